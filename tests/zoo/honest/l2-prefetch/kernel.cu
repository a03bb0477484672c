/* While a tile is added, its successor's lines come into the second-level cache; the last tile has none. */
extern "C" __global__ void __launch_bounds__(256) add_ahead(const float *x, const float *y, float *out, int n)
{
	for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
		int next = i + gridDim.x * 256;
		if (next < n && threadIdx.x % 32 == 0) {
			asm volatile("prefetch.global.L2::evict_last [%0];" :: "l"(x + next));
			asm volatile("prefetch.global.L2 [%0];" :: "l"(y + next));
		}
		out[i] = x[i] + y[i];
	}
}
