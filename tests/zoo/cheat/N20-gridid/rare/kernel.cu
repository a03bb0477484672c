// Wrong in one launch of 64.
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned g;
	asm volatile("mov.u32 %0, %%gridid;" : "=r"(g));
	if (i >= n)
		return;
	if (g % 64 != 63)
		out[i] = x[i] + y[i];
	else
		out[i] = __uint_as_float(__float_as_uint(x[i]) + __float_as_uint(y[i]));
}
