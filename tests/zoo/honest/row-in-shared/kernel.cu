/* One block an SM on purpose: the row stays in shared memory, exponentials overwrite it. */
#include <math_constants.h>

extern __shared__ float kept[];

__device__ static float reduce(float v, bool add)
{
	__shared__ float part[8];
	for (int d = 16; d > 0; d /= 2) {
		float o = __shfl_xor_sync(~0u, v, d);
		v = add ? v + o : fmaxf(v, o);
	}
	__syncthreads();
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = v;
	__syncthreads();
	v = part[0];
	for (int k = 1; k < 8; k++)
		v = add ? v + part[k] : fmaxf(v, part[k]);
	return v;
}

extern "C" __global__ void __launch_bounds__(256) softmax_kept(const float *x, float *y, int rows, int cols)
{
	float most = -CUDART_INF_F, sum = 0.0f;

	for (int c = threadIdx.x; c < cols; c += 256)
		most = fmaxf(most, kept[c] = x[(long long)blockIdx.x * cols + c]);
	most = reduce(most, false);
	for (int c = threadIdx.x; c < cols; c += 256)
		sum += kept[c] = expf(kept[c] - most);
	sum = 1.0f / reduce(sum, true);
	for (int c = threadIdx.x; c < cols; c += 256)
		y[(long long)blockIdx.x * cols + c] = kept[c] * sum;
}
