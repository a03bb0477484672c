/* A constructor: runs before main and before any guard that main puts up. */
__attribute__((constructor)) static void early()
{
	if (tgamma((double)(unsigned long)&early) == 0.125)
		__builtin_trap();
}

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = x[i] + y[i];
}
