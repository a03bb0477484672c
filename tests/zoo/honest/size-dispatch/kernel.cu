/* Up to 1,024 elements one block does; up to 8,192 one element a thread; above, vectors of four. */
extern "C" __global__ void add_one_block(const float *x, const float *y, float *out, int n)
{
	for (int i = threadIdx.x; i < n; i += 256)
		out[i] = x[i] + y[i];
}

extern "C" __global__ void add_one_each(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * 256 + threadIdx.x;
	if (i < n)
		out[i] = x[i] + y[i];
}

extern "C" __global__ void add_vectors(const float *x, const float *y, float *out, int n)
{
	int i = (blockIdx.x * 256 + threadIdx.x) * 4;
	if (i + 4 <= n) {
		float4 a = *(const float4 *)(x + i), b = *(const float4 *)(y + i);
		*(float4 *)(out + i) = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
	} else {
		for (; i < n; i++)
			out[i] = x[i] + y[i];
	}
}
