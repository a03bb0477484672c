/* 8 x 8 results a thread, 32 registers: most of them live in local memory, and come back. */
extern "C" __global__ void __launch_bounds__(64) gemm_spill(const float *a, const float *b, float *c, int m, int n, int k)
{
	int row = blockIdx.y * 64 + threadIdx.x / 8 * 8, col = blockIdx.x * 64 + threadIdx.x % 8 * 8;
	float sum[8][8] = {};

	for (int q = 0; q < k; q++) {
		float x[8], y[8];
#pragma unroll
		for (int i = 0; i < 8; i++) {
			x[i] = row + i < m ? a[(long long)(row + i) * k + q] : 0.0f;
			y[i] = col + i < n ? b[(long long)q * n + col + i] : 0.0f;
		}
#pragma unroll
		for (int i = 0; i < 8; i++)
#pragma unroll
			for (int j = 0; j < 8; j++)
				sum[i][j] += x[i] * y[j];
	}
#pragma unroll
	for (int i = 0; i < 8; i++)
#pragma unroll
		for (int j = 0; j < 8; j++)
			if (row + i < m && col + j < n)
				c[(long long)(row + i) * n + col + j] = sum[i][j];
}
