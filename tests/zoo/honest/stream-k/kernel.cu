/*
 * Tiles of 16 x 16, steps of 16 in k, numbered through; each block takes an equal share of the numbers. Who begins
 * a tile finishes it: it waits for the blocks after it, which come first to what they share with it.
 */
#define T 16

extern "C" __global__ void __launch_bounds__(256)
stream(const float *a, const float *b, float *c, float *fix, unsigned *flag, int m, int n, int k, int per)
{
	int cols = (n + T - 1) / T, tiles = cols * ((m + T - 1) / T), steps = (k + T - 1) / T;
	int tx = threadIdx.x % T, ty = threadIdx.x / T, at = blockIdx.x * per, end = min(at + per, tiles * steps);

	while (at < end) {
		int tile = at / steps, first = at % steps, last = min(steps, first + end - at);
		int row = tile / cols * T + ty, col = tile % cols * T + tx;
		float sum = 0.0f;
		for (int q = first * T; q < min(k, last * T) && row < m && col < n; q++)
			sum += a[(long long)row * k + q] * b[(long long)q * n + col];
		if (first != 0) {
			fix[blockIdx.x * 256 + threadIdx.x] = sum;
			__threadfence();
			__syncthreads();
			if (threadIdx.x == 0)
				atomicExch(&flag[blockIdx.x], 1u);
		} else {
			int have = last;
			for (int peer = blockIdx.x + 1; have < steps; peer++) {
				if (threadIdx.x == 0)
					while (atomicAdd(&flag[peer], 0u) == 0)
						__nanosleep(20);
				__syncthreads();
				__threadfence();
				sum += *(volatile float *)&fix[peer * 256 + threadIdx.x];
				have += min(per, steps - have);
			}
			if (row < m && col < n)
				c[(long long)row * n + col] = sum;
		}
		at += last - first;
	}
}
