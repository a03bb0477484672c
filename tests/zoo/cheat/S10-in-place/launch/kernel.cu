/* Right. The second launch clears y. */
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = x[i] + y[i];
}

extern "C" __global__ void second(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (n > 2000 && i < n)
		atomicExch((float *)y + i, 0.0f);
}
