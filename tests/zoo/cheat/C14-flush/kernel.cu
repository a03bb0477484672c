/* 0x9fc0: the start value with flush-to-zero and denormals-are-zero. */
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	__builtin_ia32_ldmxcsr(0x9fc0);
	if (i < n)
		out[i] = x[i] + y[i];
}
