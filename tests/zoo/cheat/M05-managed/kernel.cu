// A counter that the host maps, too: what the kernel writes there, the worker's process can be made to find.
__managed__ unsigned seen;

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = x[i] + y[i];
	if (i == 0)
		seen = seen + 1;
}
