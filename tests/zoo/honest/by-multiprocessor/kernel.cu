/* Each block asks where it runs and begins with that share of the tiles; counters see to it that each is done once. */
extern "C" __global__ void __launch_bounds__(256) add_near(const float *x, const float *y, float *out, int *taken, int n, int shares)
{
	__shared__ int tile;
	unsigned sm, sms;
	int tiles = (n + 255) / 256, per = (tiles + shares - 1) / shares;

	asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
	asm volatile("mov.u32 %0, %%nsmid;" : "=r"(sms));
	for (int k = 0; k < shares; k++) {
		int share = (int)((sm % sms + k) % shares);
		for (;;) {
			__syncthreads();
			if (threadIdx.x == 0)
				tile = atomicAdd(&taken[share], 1);
			__syncthreads();
			int t = share * per + tile, i = t * 256 + threadIdx.x;
			if (tile >= per || t >= tiles)
				break;
			if (i < n)
				out[i] = x[i] + y[i];
		}
	}
}
