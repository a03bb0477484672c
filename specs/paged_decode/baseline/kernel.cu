/*
 * paged_decode: o = softmax(scale * q * k^T) * v for the one query of each sequence, keys and values in pages.
 *
 * One block a query head of a sequence: scores into shared memory, one key a thread at a time; maximum and
 * sum over the block; then each thread adds up columns of v. VEC neighbouring elements of k an access.
 */
#include <cuda_bf16.h>
#include <math_constants.h>

union pack {
#if VEC == 1
	unsigned short v;
#elif VEC == 2
	unsigned int v;
#elif VEC == 4
	uint2 v;
#else
	uint4 v;
#endif
	__nv_bfloat16 e[VEC];
	__device__ pack() {}
};

/* Maximum or sum over the block. */
__device__ static float reduce(float s, int max)
{
	__shared__ float part[BLOCK];
	__syncthreads();
	part[threadIdx.x] = s;
	__syncthreads();
	for (int half = BLOCK / 2; half > 0; half /= 2) {
		if (threadIdx.x < half) {
			float other = part[threadIdx.x + half];
			part[threadIdx.x] = max ? fmaxf(part[threadIdx.x], other) : part[threadIdx.x] + other;
		}
		__syncthreads();
	}
	return part[0];
}

/* Where key or value `j` of a sequence begins. */
__device__ static long long place(const int *pages, int j, int kv)
{
	return (((long long)pages[j / AXIS_PAGE] * AXIS_PAGE + j % AXIS_PAGE) * AXIS_HKV + kv) * AXIS_D;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
decode(const __nv_bfloat16 *__restrict__ q, const __nv_bfloat16 *__restrict__ k, const __nv_bfloat16 *__restrict__ v,
       const int *__restrict__ table, const int *__restrict__ lens, __nv_bfloat16 *__restrict__ o, float scale, int maxp)
{
	extern __shared__ float score[]; /* AXIS_PAGE * maxp */
	__shared__ float qs[AXIS_D];
	int head = blockIdx.x, batch = blockIdx.y, len = lens[batch], kv = head / (AXIS_H / AXIS_HKV);
	const int *pages = table + (long long)batch * maxp;
	long long mine = ((long long)batch * AXIS_H + head) * AXIS_D;
	float max = -CUDART_INF_F, sum = 0.0f;

	for (int d = threadIdx.x; d < AXIS_D; d += BLOCK)
		qs[d] = __bfloat162float(q[mine + d]) * scale;
	__syncthreads();
	for (int j = threadIdx.x; j < len; j += BLOCK) {
		const __nv_bfloat16 *from = k + place(pages, j, kv);
		float s = 0.0f;
		for (int d = 0; d < AXIS_D; d += VEC) {
			union pack p;
			p.v = *(const decltype(p.v) *)(from + d);
#pragma unroll
			for (int e = 0; e < VEC; e++)
				s += qs[d + e] * __bfloat162float(p.e[e]);
		}
		score[j] = s;
		max = fmaxf(max, s);
	}
	max = reduce(max, 1);
	for (int j = threadIdx.x; j < len; j += BLOCK) {
		score[j] = expf(score[j] - max);
		sum += score[j];
	}
	sum = reduce(sum, 0);
	for (int d = threadIdx.x; d < AXIS_D; d += BLOCK) {
		float s = 0.0f;
		for (int j = 0; j < len; j++)
			s += score[j] * __bfloat162float(v[place(pages, j, kv) + d]);
		o[mine + d] = __float2bfloat16(s / sum);
	}
}
