// The same behind a predicate.
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = x[i] + y[i];
	asm volatile("{ .reg .pred p; setp.eq.u32 p, %1, 0; @p discard.global.L2 [%0], 128; }" ::"l"(out + (i & ~31)), "r"(i % 32 + (i >= n)) : "memory");
}
