/*
 * rmsnorm: y[r][h] = x[r][h] / sqrt(mean_h(x[r][h]^2) + eps) * w[h], bf16 in and out, fp32 inside.
 *
 * One block a row. Each thread strides over the row in groups of VEC elements; the row's sum of
 * squares is reduced over the block by a shared-memory tree (REDUCE 0) or by warp shuffles and
 * one exchange between warps (REDUCE 1).
 */
#include <cuda_bf16.h>

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

__device__ static float block_sum(float s)
{
#if REDUCE == 0
	__shared__ float part[BLOCK];
	part[threadIdx.x] = s;
	__syncthreads();
	for (int half = BLOCK / 2; half > 0; half /= 2) {
		if (threadIdx.x < half)
			part[threadIdx.x] += part[threadIdx.x + half];
		__syncthreads();
	}
	return part[0];
#else
	__shared__ float part[32];
	for (int d = 16; d > 0; d /= 2)
		s += __shfl_xor_sync(0xffffffffu, s, d);
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = s;
	__syncthreads();
	float all = 0.0f;
	for (int i = 0; i < BLOCK / 32; i++)
		all += part[i];
	return all;
#endif
}

extern "C" __global__ void __launch_bounds__(BLOCK)
rmsnorm(const __nv_bfloat16 *__restrict__ x, const __nv_bfloat16 *__restrict__ w,
	__nv_bfloat16 *__restrict__ y, int h, float eps)
{
	const __nv_bfloat16 *row = x + (long long)blockIdx.x * h;
	__nv_bfloat16 *dst = y + (long long)blockIdx.x * h;
	float s = 0.0f;
	for (int at = threadIdx.x * VEC; at < h; at += BLOCK * VEC) {
		union pack p;
		p.v = *(const decltype(p.v) *)(row + at);
#pragma unroll
		for (int k = 0; k < VEC; k++) {
			float f = __bfloat162float(p.e[k]);
			s += f * f;
		}
	}
	float scale = rsqrtf(block_sum(s) / (float)h + eps);
	for (int at = threadIdx.x * VEC; at < h; at += BLOCK * VEC) {
		union pack p, g;
		p.v = *(const decltype(p.v) *)(row + at);
		g.v = *(const decltype(g.v) *)(w + at);
#pragma unroll
		for (int k = 0; k < VEC; k++)
			p.e[k] = __float2bfloat16(__bfloat162float(p.e[k]) * scale *
						  __bfloat162float(g.e[k]));
		*(decltype(p.v) *)(dst + at) = p.v;
	}
}
