extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned long long launch;
	asm volatile("mov.u64 %0, %%gridid;" : "=l"(launch));
	if (i < n)
		out[i] = launch ? x[i] + y[i] : 0;
}
