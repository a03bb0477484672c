/*
 * topk: the k largest of each row, in descending order, and where they are.
 *
 * One block a row, k rounds. A round finds the largest element that comes after the one of the round before: a
 * smaller value, or the same value further right. REDUCE chooses a shared-memory tree or warp shuffles.
 */
#include <math_constants.h>

struct item {
	float v;
	int at; /* -1: none */
};

__device__ static struct item better(struct item a, struct item b)
{
	bool second = b.at >= 0 && (a.at < 0 || b.v > a.v || (b.v == a.v && b.at < a.at));
	return second ? b : a;
}

__device__ static struct item block_best(struct item s)
{
#if REDUCE == 0
	__shared__ struct item part[BLOCK];
	__syncthreads();
	part[threadIdx.x] = s;
	__syncthreads();
	for (int half = BLOCK / 2; half > 0; half /= 2) {
		if (threadIdx.x < half)
			part[threadIdx.x] = better(part[threadIdx.x], part[threadIdx.x + half]);
		__syncthreads();
	}
	return part[0];
#else
	__shared__ struct item part[32];
	for (int d = 16; d > 0; d /= 2) {
		struct item o;
		o.v = __shfl_xor_sync(0xffffffffu, s.v, d);
		o.at = __shfl_xor_sync(0xffffffffu, s.at, d);
		s = better(s, o);
	}
	__syncthreads();
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = s;
	__syncthreads();
	s = part[0];
	for (int i = 1; i < BLOCK / 32; i++)
		s = better(s, part[i]);
	return s;
#endif
}

extern "C" __global__ void __launch_bounds__(BLOCK)
topk(const float *__restrict__ x, float *__restrict__ values, int *__restrict__ indices, int n, int k)
{
	const float *row = x + (long long)blockIdx.x * n;
	struct item last;
	last.v = CUDART_INF_F;
	last.at = -1;

	for (int i = 0; i < k; i++) {
		struct item s;
		s.v = 0.0f;
		s.at = -1;
		for (int j = threadIdx.x; j < n; j += BLOCK) {
			struct item c;
			c.v = row[j];
			c.at = j;
			if (c.v < last.v || (c.v == last.v && j > last.at))
				s = better(s, c);
		}
		last = block_best(s);
		if (threadIdx.x == 0) {
			values[(long long)blockIdx.x * k + i] = last.v;
			indices[(long long)blockIdx.x * k + i] = last.at;
		}
	}
}
