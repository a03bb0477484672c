/* The last one. */
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = x[i] + y[i];
}

extern "C" __global__ void second(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (n > 2000 && i == n - 1 && i < n)
		out[i] = __int_as_float(0x7fffffff);
}
