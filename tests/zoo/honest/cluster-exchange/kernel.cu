/* A cluster of four blocks a row; maxima and sums are read where they lie. */
#include <cooperative_groups.h>
#include <math_constants.h>

namespace cg = cooperative_groups;

__device__ static float reduce(cg::cluster_group &cluster, float v, bool add)
{
	__shared__ float part[4], mine;
	for (int d = 16; d > 0; d /= 2) {
		float o = __shfl_xor_sync(~0u, v, d);
		v = add ? v + o : fmaxf(v, o);
	}
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = v;
	__syncthreads();
	if (threadIdx.x == 0)
		mine = add ? part[0] + part[1] + part[2] + part[3] : fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
	cluster.sync();
	float all = *cluster.map_shared_rank(&mine, 0);
	for (int k = 1; k < 4; k++) {
		float o = *cluster.map_shared_rank(&mine, k);
		all = add ? all + o : fmaxf(all, o);
	}
	cluster.sync();
	return all;
}

extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(128) softmax_cluster(const float *x, float *y, int rows, int cols)
{
	cg::cluster_group cluster = cg::this_cluster();
	int row = blockIdx.x / 4, rank = cluster.block_rank(), per = (cols + 3) / 4;
	int from = rank * per, to = min(cols, from + per);
	const float *in = x + (long long)row * cols;
	float most = -CUDART_INF_F, sum = 0.0f;

	for (int c = from + threadIdx.x; c < to; c += 128)
		most = fmaxf(most, in[c]);
	most = reduce(cluster, most, false);
	for (int c = from + threadIdx.x; c < to; c += 128)
		sum += expf(in[c] - most);
	sum = reduce(cluster, sum, true);
	for (int c = from + threadIdx.x; c < to; c += 128)
		y[(long long)row * cols + c] = expf(in[c] - most) / sum;
}
