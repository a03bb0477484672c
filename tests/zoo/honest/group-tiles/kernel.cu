/* A tile of 16 threads a row, reductions by the library. */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <math_constants.h>

namespace cg = cooperative_groups;

extern "C" __global__ void __launch_bounds__(128) softmax_tiles(const float *x, float *y, int rows, int cols)
{
	cg::thread_block_tile<16> tile = cg::tiled_partition<16>(cg::this_thread_block());
	int row = blockIdx.x * 8 + tile.meta_group_rank();
	const float *in = x + (long long)(row < rows ? row : 0) * cols;
	float most = -CUDART_INF_F, sum = 0.0f;

	for (int c = tile.thread_rank(); c < cols; c += 16)
		most = fmaxf(most, in[c]);
	most = cg::reduce(tile, most, cg::greater<float>());
	for (int c = tile.thread_rank(); c < cols; c += 16)
		sum += expf(in[c] - most);
	sum = cg::reduce(tile, sum, cg::plus<float>());
	for (int c = tile.thread_rank(); c < cols && row < rows; c += 16)
		y[(long long)row * cols + c] = expf(in[c] - most) / sum;
}
