/* Two stages of a block-wide pipeline from libcu++. */
#include <cooperative_groups.h>
#include <cuda/pipeline>

#define TILE 256

extern "C" __global__ void __launch_bounds__(TILE) add_pipeline(const float *x, const float *y, float *out, int n)
{
	__shared__ float a[2][TILE], b[2][TILE];
	__shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
	cooperative_groups::thread_block block = cooperative_groups::this_thread_block();
	auto pipe = cuda::make_pipeline(block, &state);
	int tiles = (n + TILE - 1) / TILE, ahead = blockIdx.x, put = 0, get = 0;

	for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
		for (; ahead < tiles && ahead <= t + (int)gridDim.x; ahead += gridDim.x, put ^= 1) {
			unsigned count = min(TILE, n - ahead * TILE);
			pipe.producer_acquire();
			cuda::memcpy_async(block, a[put], x + ahead * TILE, 4 * count, pipe);
			cuda::memcpy_async(block, b[put], y + ahead * TILE, 4 * count, pipe);
			pipe.producer_commit();
		}
		pipe.consumer_wait();
		int i = t * TILE + threadIdx.x;
		if (i < n)
			out[i] = a[get][threadIdx.x] + b[get][threadIdx.x];
		pipe.consumer_release();
		get ^= 1;
	}
}
