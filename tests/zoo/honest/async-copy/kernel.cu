/* Each block walks over its tiles: the next one is on its way into shared memory while this one is added. */
#include <cuda_pipeline.h>

#define TILE 128

__device__ static void fetch(float *to, const float *x, int tile, int n)
{
	int i = tile * TILE + threadIdx.x;
	if (i < n)
		__pipeline_memcpy_async(to + threadIdx.x, x + i, 4);
}

extern "C" __global__ void __launch_bounds__(TILE) add_async(const float *x, const float *y, float *out, int n)
{
	__shared__ float a[2][TILE], b[2][TILE];
	int tiles = (n + TILE - 1) / TILE, s = 0;

	fetch(a[0], x, blockIdx.x, n);
	fetch(b[0], y, blockIdx.x, n);
	__pipeline_commit();
	for (int t = blockIdx.x; t < tiles; t += gridDim.x, s ^= 1) {
		fetch(a[s ^ 1], x, t + gridDim.x, n);
		fetch(b[s ^ 1], y, t + gridDim.x, n);
		__pipeline_commit();
		__pipeline_wait_prior(1);
		int i = t * TILE + threadIdx.x; /* each thread reads what it fetched: no barrier is needed */
		if (i < n)
			out[i] = a[s][threadIdx.x] + b[s][threadIdx.x];
	}
}
