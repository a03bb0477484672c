/*
 * matmul in double precision; c holds 8-byte elements.
 *
 * The tiled product of the textbooks: 16 x 16 threads, 4 x 4 results each, panels of 16 in k, widened
 * to double as they are copied. Sums run over k in order.
 */

#define TILE 64
#define DEEP 16

extern "C" __global__ void __launch_bounds__(256)
reference(const float *a, const float *b, double *c, int m, int n, int k)
{
	__shared__ double as[DEEP][TILE + 1], bs[DEEP][TILE];
	int row = blockIdx.y * TILE, col = blockIdx.x * TILE, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
	double sum[4][4] = {};

	for (int k0 = 0; k0 < k; k0 += DEEP) {
		for (int i = threadIdx.x; i < TILE * DEEP; i += 256) {
			int r = i / DEEP, q = i % DEEP;
			as[q][r] = row + r < m && k0 + q < k ? (double)a[(long long)(row + r) * k + k0 + q] : 0.0;
		}
		for (int i = threadIdx.x; i < TILE * DEEP; i += 256) {
			int q = i / TILE, s = i % TILE;
			bs[q][s] = col + s < n && k0 + q < k ? (double)b[(long long)(k0 + q) * n + col + s] : 0.0;
		}
		__syncthreads();
		for (int q = 0; q < DEEP; q++)
			for (int i = 0; i < 4; i++)
				for (int j = 0; j < 4; j++)
					sum[i][j] += as[q][ty + 16 * i] * bs[q][tx + 16 * j];
		__syncthreads();
	}
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 4; j++)
			if (row + ty + 16 * i < m && col + tx + 16 * j < n)
				c[(long long)(row + ty + 16 * i) * n + col + tx + 16 * j] = sum[i][j];
}
