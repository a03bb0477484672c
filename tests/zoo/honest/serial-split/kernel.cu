/* Part p of k waits until parts 0..p-1 have added theirs: the same order, so the same bits, every time. */
extern "C" __global__ void __launch_bounds__(256)
turns(const float *a, const float *b, float *c, unsigned *turn, unsigned *ticket, int m, int n, int k, int parts)
{
	__shared__ unsigned drawn;

	if (threadIdx.x == 0)
		drawn = atomicAdd(ticket, 1u); /* parts of a tile start in order, whatever the order of blocks */
	__syncthreads();
	int tile = drawn / parts, part = drawn % parts, cols = (n + 15) / 16, per = (k + parts - 1) / parts;
	int row = tile / cols * 16 + threadIdx.x / 16, col = tile % cols * 16 + threadIdx.x % 16;
	int from = part * per, to = min(k, from + per), mine = row < m && col < n;
	float sum = 0.0f;

	for (int q = from; q < to && mine; q++)
		sum += a[(long long)row * k + q] * b[(long long)q * n + col];
	if (threadIdx.x == 0)
		while (*(volatile unsigned *)&turn[tile] != (unsigned)part)
			__nanosleep(40);
	__syncthreads();
	__threadfence();
	if (mine) {
		volatile float *to_c = c + (long long)row * n + col;
		*to_c = part ? *to_c + sum : sum;
	}
	__threadfence();
	__syncthreads();
	if (threadIdx.x == 0)
		*(volatile unsigned *)&turn[tile] = part + 1;
}
