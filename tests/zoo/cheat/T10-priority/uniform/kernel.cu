// Takes the next inputs into the uniform cache.
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned long long p = (unsigned long long)(x + i);
	if (i < n)
		asm volatile("prefetchu.L1 [%0];" ::"l"(p));
	if (i < n)
		out[i] = x[i] + y[i];
}
