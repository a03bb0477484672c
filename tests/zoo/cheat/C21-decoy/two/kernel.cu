/* What does the work. */
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = x[i] + y[i];
}

/* Not in the plan, by a name of the compiler. */
__global__ void add_fast(const float *x, const float *y, float *out, int n)
{
	out[n - 1] = x[0] + y[0];
}
extern "C" __global__ void shown(const float *x, float *out)
{
	out[threadIdx.x] = x[threadIdx.x];
}
