/* Warp 0 fetches the next step of 16 x 16 panels while eight warps multiply the one before. */
#define T 16

__device__ static void fetch(float (*as)[T], float (*bs)[T], const float *a, const float *b, int m, int n, int k, int step)
{
	for (int i = threadIdx.x; i < T * T; i += 32) {
		int r = i / T, s = i % T, row = blockIdx.y * T + r, col = blockIdx.x * T + s;
		as[r][s] = row < m && step * T + s < k ? a[(long long)row * k + step * T + s] : 0.0f;
		bs[r][s] = col < n && step * T + r < k ? b[(long long)(step * T + r) * n + col] : 0.0f;
	}
}

extern "C" __global__ void __launch_bounds__(288) gemm_roles(const float *a, const float *b, float *c, int m, int n, int k)
{
	__shared__ float as[2][T][T], bs[2][T][T];
	int steps = (k + T - 1) / T, worker = threadIdx.x - 32, ty = worker / T, tx = worker % T;
	float sum = 0.0f;

	if (threadIdx.x < 32)
		fetch(as[0], bs[0], a, b, m, n, k, 0);
	__syncthreads();
	for (int t = 0; t < steps; t++) {
		if (threadIdx.x < 32) {
			if (t + 1 < steps)
				fetch(as[(t + 1) % 2], bs[(t + 1) % 2], a, b, m, n, k, t + 1);
		} else {
			for (int q = 0; q < T; q++)
				sum += as[t % 2][ty][q] * bs[t % 2][q][tx];
		}
		__syncthreads();
	}
	if (worker >= 0 && blockIdx.y * T + ty < m && blockIdx.x * T + tx < n)
		c[(long long)(blockIdx.y * T + ty) * n + blockIdx.x * T + tx] = sum;
}
