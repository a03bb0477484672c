/*
 * Decoupled look-back: a tile publishes its own sum, then its prefix; the next ones add up what is there. One
 * 64-bit word holds state (1 sum, 2 prefix) and value, so that they are seen together.
 */
#define TILE 128

extern "C" __global__ void __launch_bounds__(TILE) scan_back(const int *x, int *y, unsigned long long *state, unsigned *ticket, int n)
{
	__shared__ int s[TILE], tile, before;

	if (threadIdx.x == 0)
		tile = (int)atomicAdd(ticket, 1u);
	__syncthreads();
	int i = tile * TILE + threadIdx.x;
	s[threadIdx.x] = i < n ? x[i] : 0;
	__syncthreads();
	for (int d = 1; d < TILE; d *= 2) {
		int v = (int)threadIdx.x >= d ? s[threadIdx.x - d] : 0;
		__syncthreads();
		s[threadIdx.x] += v;
		__syncthreads();
	}
	if (threadIdx.x == 0) {
		volatile unsigned long long *st = state;
		int sum = 0;
		st[tile] = (tile ? 1ull : 2ull) << 32 | (unsigned)s[TILE - 1];
		for (int look = tile - 1; look >= 0;) {
			unsigned long long v = st[look];
			if (v >> 32 == 0)
				continue;
			sum += (int)(unsigned)v;
			if (v >> 32 == 2)
				break;
			look--;
		}
		st[tile] = 2ull << 32 | (unsigned)(sum + s[TILE - 1]);
		before = sum;
	}
	__syncthreads();
	if (i < n)
		y[i] = before + s[threadIdx.x];
}
