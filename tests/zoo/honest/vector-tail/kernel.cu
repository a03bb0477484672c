/* Four floats an access; one thread more takes what is left of n. */
extern "C" __global__ void add4(const float *__restrict__ x, const float *__restrict__ y, float *__restrict__ out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, whole = n / 4;

	if (i < whole) {
		float4 a = ((const float4 *)x)[i], b = ((const float4 *)y)[i];
		((float4 *)out)[i] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
	} else if (i == whole) {
		for (int k = 4 * whole; k < n; k++)
			out[k] = x[k] + y[k];
	}
}
