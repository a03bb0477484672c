/* Takes any alignment: elements up to the first whole 16 bytes of out one by one, then vectors where x and y lie alike. */
extern "C" __global__ void add_any(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
	int lead = (int)(-(unsigned long long)out >> 2 & 3);
	int alike = ((unsigned long long)x >> 2 & 3) == ((unsigned long long)out >> 2 & 3) &&
		    ((unsigned long long)y >> 2 & 3) == ((unsigned long long)out >> 2 & 3);

	lead = min(lead, n);
	int vectors = alike ? (n - lead) / 4 : 0;
	for (int k = i; k < vectors; k += step) {
		float4 a = *(const float4 *)(x + lead + 4 * k), b = *(const float4 *)(y + lead + 4 * k);
		*(float4 *)(out + lead + 4 * k) = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
	}
	for (int k = i; k < lead; k += step)
		out[k] = x[k] + y[k];
	for (int k = lead + 4 * vectors + i; k < n; k += step)
		out[k] = x[k] + y[k];
}
