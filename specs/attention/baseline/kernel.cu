/*
 * attention: o = softmax(scale * q * k^T, causal) * v, bf16 in and out, fp32 inside.
 *
 * One block a query: its scores go to shared memory, one key a thread at a time; the block reduces their
 * maximum and sum; then each thread adds up one column of v. VEC neighbouring elements of k are read by
 * one access.
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

extern "C" __global__ void __launch_bounds__(BLOCK)
attention(const __nv_bfloat16 *__restrict__ q, const __nv_bfloat16 *__restrict__ k,
	  const __nv_bfloat16 *__restrict__ v, __nv_bfloat16 *__restrict__ o, float scale, int heads, int group,
	  int len, int dim)
{
	extern __shared__ float score[]; /* len */
	__shared__ float qs[128];
	int row = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
	long long mine = ((long long)(batch * heads + head) * len + row) * dim;
	const __nv_bfloat16 *kh = k + (long long)(batch * (heads / group) + head / group) * len * dim;
	const __nv_bfloat16 *vh = v + (long long)(batch * (heads / group) + head / group) * len * dim;
	float max = -CUDART_INF_F, sum = 0.0f;

	for (int d = threadIdx.x; d < dim; d += BLOCK)
		qs[d] = __bfloat162float(q[mine + d]) * scale;
	__syncthreads();
	for (int j = threadIdx.x; j <= row; j += BLOCK) {
		float s = 0.0f;
		for (int d = 0; d < dim; d += VEC) {
			union pack p;
			p.v = *(const decltype(p.v) *)(kh + (long long)j * dim + d);
#pragma unroll
			for (int e = 0; e < VEC; e++)
				s += qs[d + e] * __bfloat162float(p.e[e]);
		}
		score[j] = s;
		max = fmaxf(max, s);
	}
	max = reduce(max, 1);
	for (int j = threadIdx.x; j <= row; j += BLOCK) {
		score[j] = expf(score[j] - max);
		sum += score[j];
	}
	sum = reduce(sum, 0);
	for (int d = threadIdx.x; d < dim; d += BLOCK) {
		float s = 0.0f;
		for (int j = 0; j <= row; j++)
			s += score[j] * __bfloat162float(vh[(long long)j * dim + d]);
		o[mine + d] = __float2bfloat16(s / sum);
	}
}
