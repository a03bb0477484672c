extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	unsigned at = threadIdx.x, first = blockIdx.x * blockDim.x;
	uint3 threadIdx = {at, 0, 0};
	unsigned i = first + threadIdx.x;
	if (i < n)
		out[i] = x[i] + y[i];
}
