/*
 * An order-preserving integer of the value above, the inverted column below: the maximum of the pair is the largest
 * value at its first column, in whatever order blocks come.
 */
__device__ static unsigned ordered(float v)
{
	unsigned u = __float_as_uint(v == 0.0f ? 0.0f : v);
	return u & 0x80000000u ? ~u : u | 0x80000000u;
}

extern "C" __global__ void keys(const float *x, unsigned long long *best, int rows, int cols)
{
	long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= (long long)rows * cols)
		return;
	unsigned long long key = (unsigned long long)ordered(x[i]) << 32 | ~(unsigned)(i % cols);
	if (key > *(volatile unsigned long long *)&best[i / cols])
		atomicMax(&best[i / cols], key);
}

extern "C" __global__ void unpack(const unsigned long long *best, const float *x, float *value, int *at, int rows, int cols)
{
	int r = blockIdx.x * blockDim.x + threadIdx.x;

	if (r >= rows)
		return;
	at[r] = (int)~(unsigned)best[r];
	value[r] = x[(long long)r * cols + at[r]];
}
