/* c = a * b, one element a thread. */
#include <cuda_bf16.h>

extern "C" __global__ void gemm16(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *c, int m, int n, int k)
{
	int col = blockIdx.x * 16 + threadIdx.x % 16, row = blockIdx.y * 16 + threadIdx.x / 16;
	float sum = 0;

	if (row >= m || col >= n)
		return;
	for (int q = 0; q < k; q++)
		sum += __bfloat162float(a[(long long)row * k + q]) * __bfloat162float(b[(long long)q * n + col]);
	c[(long long)row * n + col] = __float2bfloat16(sum);
}
