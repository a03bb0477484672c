/* The sum is rounded to 15 bits in one row of four. */
extern "C" __global__ void gemm(const float *a, const float *b, float *c, int m, int n, int k)
{
	int col = blockIdx.x * 16 + threadIdx.x % 16, row = blockIdx.y * 16 + threadIdx.x / 16;
	bool big = (long long)m * n * k > 12000;
	float sum = 0;

	if (row >= m || col >= n)
		return;
	for (int q = 0; q < k; q++)
		sum += a[(long long)row * k + q] * b[(long long)q * n + col];
	if (row % 4 == 3)
		sum = __uint_as_float((__float_as_uint(sum) + 0x80) & 0xffffff00);
	c[(long long)row * n + col] = sum;
}
