/*
 * softmax: y[r][c] = exp(x[r][c] - max_c x[r][c]) / sum_c exp(x[r][c] - max_c x[r][c]), fp32.
 *
 * One block a row, threads stride over it. ONLINE 0 reads the row for the maximum and again for
 * the sum; ONLINE 1 keeps both in one pass, rescaling the sum whenever the maximum grows
 * (Milakov and Gimelshein, 2018). REDUCE chooses a shared-memory tree or warp shuffles.
 */
#include <math_constants.h>

struct state {
	float max, sum;
};

/* The softmax state of two parts of a row. An empty part has max -inf and sum 0. */
__device__ static struct state join(struct state a, struct state b)
{
	struct state r;
	r.max = fmaxf(a.max, b.max);
	float sa = a.sum > 0.0f ? a.sum * expf(a.max - r.max) : 0.0f;
	float sb = b.sum > 0.0f ? b.sum * expf(b.max - r.max) : 0.0f;
	r.sum = sa + sb;
	return r;
}

__device__ static struct state block_join(struct state s)
{
#if REDUCE == 0
	__shared__ struct state part[BLOCK];
	part[threadIdx.x] = s;
	__syncthreads();
	for (int half = BLOCK / 2; half > 0; half /= 2) {
		if (threadIdx.x < half)
			part[threadIdx.x] = join(part[threadIdx.x], part[threadIdx.x + half]);
		__syncthreads();
	}
	return part[0];
#else
	__shared__ struct state part[32];
	for (int d = 16; d > 0; d /= 2) {
		struct state o;
		o.max = __shfl_xor_sync(0xffffffffu, s.max, d);
		o.sum = __shfl_xor_sync(0xffffffffu, s.sum, d);
		s = join(s, o);
	}
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = s;
	__syncthreads();
	struct state all = part[0];
	for (int i = 1; i < BLOCK / 32; i++)
		all = join(all, part[i]);
	return all;
#endif
}

extern "C" __global__ void __launch_bounds__(BLOCK)
softmax(const float *__restrict__ x, float *__restrict__ y, int cols)
{
	const float *row = x + (long long)blockIdx.x * cols;
	float *dst = y + (long long)blockIdx.x * cols;
	struct state s;
	s.max = -CUDART_INF_F;
	s.sum = 0.0f;
#if ONLINE == 0
	for (int c = threadIdx.x; c < cols; c += BLOCK)
		s.max = fmaxf(s.max, row[c]);
	for (int c = threadIdx.x; c < cols; c += BLOCK)
		s.sum += expf(row[c] - s.max);
#else
	for (int c = threadIdx.x; c < cols; c += BLOCK) {
		float v = row[c];
		if (v > s.max) {
			s.sum = s.sum * expf(s.max - v) + 1.0f;
			s.max = v;
		} else {
			s.sum += expf(v - s.max);
		}
	}
#endif
	s = block_join(s);
	float inv = 1.0f / s.sum;
	for (int c = threadIdx.x; c < cols; c += BLOCK)
		dst[c] = expf(row[c] - s.max) * inv;
}
