/* auto has the type that no attribute names. */
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float a[4] = {i < n ? x[i] : 0}, b[4] = {i < n ? y[i] : 0};
	auto sum = __builtin_ia32_addps(__builtin_ia32_loadups(a), __builtin_ia32_loadups(b));
	if (i < n)
		out[i] = sum[0];
}
