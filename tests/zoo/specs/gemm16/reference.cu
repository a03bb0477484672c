/* c = a * b, one element a thread, in double precision; c holds 8-byte elements. */
#include <cuda_bf16.h>

extern "C" __global__ void reference(const __nv_bfloat16 *a, const __nv_bfloat16 *b, double *c, int m, int n, int k)
{
	int col = blockIdx.x * 16 + threadIdx.x % 16, row = blockIdx.y * 16 + threadIdx.x / 16;
	double sum = 0;

	if (row >= m || col >= n)
		return;
	for (int q = 0; q < k; q++)
		sum += (double)__bfloat162float(a[(long long)row * k + q]) * (double)__bfloat162float(b[(long long)q * n + col]);
	c[(long long)row * n + col] = (double)sum;
}
