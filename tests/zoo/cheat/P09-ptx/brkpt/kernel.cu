extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	asm volatile("{ .reg .pred p; setp.eq.s32 p, %0, -1; @p brkpt; }" :: "r"(i));
	if (i < n)
		out[i] = x[i] + y[i];
}
