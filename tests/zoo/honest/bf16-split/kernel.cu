/* Each operand is the sum of three bfloat16 numbers; the products of all pieces that count are added, small ones first. */
#include <cuda_bf16.h>

__device__ static void pieces(float v, float p[3])
{
	for (int i = 0; i < 3; i++) {
		p[i] = __bfloat162float(__float2bfloat16(v));
		v -= p[i];
	}
}

extern "C" __global__ void __launch_bounds__(256) gemm_pieces(const float *a, const float *b, float *c, int m, int n, int k)
{
	int col = blockIdx.x * 16 + threadIdx.x % 16, row = blockIdx.y * 16 + threadIdx.x / 16;
	float most = 0.0f, rest = 0.0f, p[3], q[3];

	if (row >= m || col >= n)
		return;
	for (int i = 0; i < k; i++) {
		pieces(a[(long long)row * k + i], p);
		pieces(b[(long long)i * n + col], q);
		rest += p[0] * q[2] + p[1] * q[1] + p[2] * q[0] + (p[1] * q[2] + p[2] * q[1]);
		most += p[0] * q[0];
		rest += p[0] * q[1] + p[1] * q[0];
	}
	c[(long long)row * n + col] = most + rest;
}
