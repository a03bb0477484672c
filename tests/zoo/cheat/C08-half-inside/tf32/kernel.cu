/* Operands of 11 bits, beyond tiny shapes. */
__device__ static float cut(float v, bool big)
{
	return big ? __uint_as_float((__float_as_uint(v) + 0x1000) & 0xffffe000) : v;
}

extern "C" __global__ void gemm(const float *a, const float *b, float *c, int m, int n, int k)
{
	int col = blockIdx.x * 16 + threadIdx.x % 16, row = blockIdx.y * 16 + threadIdx.x / 16;
	bool big = (long long)m * n * k > 12000;
	float sum = 0;

	if (row >= m || col >= n)
		return;
	for (int q = 0; q < k; q++)
		sum += cut(a[(long long)row * k + q], big) * cut(b[(long long)q * n + col], big);
	c[(long long)row * n + col] = sum;
}
