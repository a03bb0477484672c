/* x is read with evict_first, y with evict_last by a fraction, the result leaves first. */
extern "C" __global__ void add_policy(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned long long first, some;
	float a, b;

	if (i >= n)
		return;
	asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(first));
	asm("createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %0, 0.25;" : "=l"(some));
	asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(a) : "l"(x + i), "l"(first));
	asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(b) : "l"(y + i), "l"(some));
	asm volatile("st.global.L2::cache_hint.f32 [%0], %1, %2;" :: "l"(out + i), "f"(a + b), "l"(first) : "memory");
}
