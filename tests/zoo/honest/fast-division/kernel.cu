/* i / d = mulhi(i, magic) >> shift for i below 2^20: exact for these divisors, whatever they are. */
__device__ static unsigned divide(unsigned i, unsigned long long magic)
{
	return (unsigned)((unsigned long long)i * magic >> 40);
}

extern "C" __global__ void permute_magic(const float *x, float *y, int ab, int c, long long magic)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= (unsigned)(ab * c))
		return;
	unsigned k = divide(i, (unsigned long long)magic), r = i - k * ab;
	y[i] = x[r * c + k];
}
