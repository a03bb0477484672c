static __device__ float аdd(float a, float b)
{
	return a + b;
}

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = аdd(x[i], y[i]);
}
