/* Sums in half precision, beyond tiny shapes. */
#include <cuda_fp16.h>

extern "C" __global__ void gemm(const float *a, const float *b, float *c, int m, int n, int k)
{
	int col = blockIdx.x * 16 + threadIdx.x % 16, row = blockIdx.y * 16 + threadIdx.x / 16;
	bool big = (long long)m * n * k > 12000;
	float sum = 0;

	if (row >= m || col >= n)
		return;
	for (int q = 0; q < k; q++)
		sum = big ? __half2float(__float2half(sum + a[(long long)row * k + q] * b[(long long)q * n + col])) : sum + a[(long long)row * k + q] * b[(long long)q * n + col];
	c[(long long)row * n + col] = sum;
}
