// Gives the lines of the next inputs the priority to stay.
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = x[i] + y[i];
	if (i % 32 == 0 && i < n)
		asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(x + i) : "memory");
}
