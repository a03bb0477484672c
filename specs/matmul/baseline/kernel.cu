/*
 * matmul: c[m][n] = sum_k a[m][k] * b[k][n], fp32.
 *
 * A block of TX x TY threads computes a (TY*TM) x (TX*TN) tile of c. It walks k in steps of BK,
 * copies both panels to shared memory as floats, and each thread keeps TM x TN sums in registers.
 * Rows and columns of a thread are TY and TX apart, so that a warp reads neighbouring columns.
 */

#define BM (TY * TM)
#define BN (TX * TN)

extern "C" __global__ void __launch_bounds__(TX *TY)
matmul(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int m, int n,
       int k)
{
	__shared__ float as[BK][BM + 1];
	__shared__ float bs[BK][BN];
	int me = threadIdx.y * TX + threadIdx.x;
	int row = blockIdx.y * BM, col = blockIdx.x * BN;
	float acc[TM][TN] = {};

	for (int k0 = 0; k0 < k; k0 += BK) {
		for (int i = me; i < BM * BK; i += TX * TY) {
			int r = i / BK, q = i % BK;
			as[q][r] = row + r < m && k0 + q < k
				? a[(long long)(row + r) * k + k0 + q] : 0.0f;
		}
		for (int i = me; i < BN * BK; i += TX * TY) {
			int q = i / BN, s = i % BN;
			bs[q][s] = col + s < n && k0 + q < k
				? b[(long long)(k0 + q) * n + col + s] : 0.0f;
		}
		__syncthreads();
		for (int q = 0; q < BK; q++) {
#pragma unroll
			for (int i = 0; i < TM; i++)
#pragma unroll
				for (int j = 0; j < TN; j++)
					acc[i][j] += as[q][threadIdx.y + i * TY] *
						     bs[q][threadIdx.x + j * TX];
		}
		__syncthreads();
	}
#pragma unroll
	for (int i = 0; i < TM; i++)
#pragma unroll
		for (int j = 0; j < TN; j++) {
			int r = row + threadIdx.y + i * TY, s = col + threadIdx.x + j * TX;
			if (r < m && s < n)
				c[(long long)r * n + s] = acc[i][j];
		}
}
