/*
 * ops.cuh - what happens between the matrix products. Activations are bf16, arithmetic is float32.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OPS_CUH
#define OPS_CUH

#include "model.cuh"

#include <math_constants.h>

static __device__ __forceinline__ float f32(bf16 x)
{
	return __bfloat162float(x);
}

static __device__ __forceinline__ float warp_sum(float x)
{
	for (int o = 16; o; o >>= 1)
		x += __shfl_xor_sync(0xffffffffu, x, o);
	return x;
}

/* The sum over a block of whole warps, at most 1024 threads; all threads get it. */
static __device__ float block_sum(float x)
{
	__shared__ float part[32];
	x = warp_sum(x);
	__syncthreads();
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = x;
	__syncthreads();
	x = threadIdx.x % 32 < blockDim.x / 32 ? part[threadIdx.x % 32] : 0.0f;
	return warp_sum(x);
}

/* x[t] = embed[ids[t]]; a block a token. */
static __global__ void embed_kernel(bf16 *x, const bf16 *embed, const int *ids, int hidden)
{
	const size_t t = blockIdx.x;
	for (int i = threadIdx.x; i < hidden; i += blockDim.x)
		x[t * hidden + i] = embed[(size_t)ids[t] * hidden + i];
}

/* y[t] = x[t * stride + offset] / rms * w: of every token, or of the last of each sequence. */
static __global__ void rms_kernel(bf16 *y, const bf16 *x, const bf16 *w, int n, float eps, int stride, int offset)
{
	const bf16 *from = x + ((size_t)blockIdx.x * stride + offset) * n;
	bf16 *to = y + (size_t)blockIdx.x * n;
	float sum = 0.0f;
	for (int i = threadIdx.x; i < n; i += blockDim.x)
		sum += f32(from[i]) * f32(from[i]);
	const float s = rsqrtf(block_sum(sum) / n + eps);
	for (int i = threadIdx.x; i < n; i += blockDim.x)
		to[i] = __float2bfloat16(f32(from[i]) * s * f32(w[i]));
}

/*
 * Norm of each head of q and k, rotation, and k and v into the cache. Block: token x head (q heads, then kv heads); a
 * thread for each pair (i, i + d / 2). Cache: [batch, kv_heads, most, d].
 */
static __global__ void qk_kernel(bf16 *q, const bf16 *k, const bf16 *v, const bf16 *qn, const bf16 *kn, bf16 *kc, bf16 *vc, int heads,
				 int kv_heads, int per, int position, int most, float eps, float theta)
{
	const int d = 2 * blockDim.x, i = threadIdx.x, t = blockIdx.x, b = t / per, p = position + t % per;
	const int is_q = (int)blockIdx.y < heads, h = is_q ? blockIdx.y : blockIdx.y - heads;
	const bf16 *from = is_q ? q + ((size_t)t * heads + h) * d : k + ((size_t)t * kv_heads + h) * d, *w = is_q ? qn : kn;
	const float x = f32(from[i]), y = f32(from[i + d / 2]);
	const float s = rsqrtf(block_sum(x * x + y * y) / d + eps);
	float sine, cosine;
	sincosf(p * powf(theta, -2.0f * i / d), &sine, &cosine);
	const float xs = x * s * f32(w[i]), ys = y * s * f32(w[i + d / 2]);
	const size_t cell = (((size_t)b * kv_heads + h) * most + p) * d;
	bf16 *to = is_q ? q + ((size_t)t * heads + h) * d : kc + cell;
	to[i] = __float2bfloat16(xs * cosine - ys * sine);
	to[i + d / 2] = __float2bfloat16(ys * cosine + xs * sine);
	if (!is_q) {
		vc[cell + i] = v[((size_t)t * kv_heads + h) * d + i];
		vc[cell + i + d / 2] = v[((size_t)t * kv_heads + h) * d + i + d / 2];
	}
}

/* Causal softmax of the prompt: row r of a square of scores, columns 0 to r; the others become 0. */
static __global__ void softmax_kernel(bf16 *p, const float *score, int n, float scale)
{
	__shared__ float most_of[32];
	const size_t at = ((size_t)blockIdx.y * n + blockIdx.x) * n;
	const int keys = blockIdx.x + 1;
	float most = -CUDART_INF_F, sum = 0.0f;
	for (int i = threadIdx.x; i < keys; i += blockDim.x)
		most = fmaxf(most, score[at + i]);
	for (int o = 16; o; o >>= 1)
		most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, o));
	if (threadIdx.x % 32 == 0)
		most_of[threadIdx.x / 32] = most;
	__syncthreads();
	for (int i = 0; i < (int)blockDim.x / 32; i++)
		most = fmaxf(most, most_of[i]);
	for (int i = threadIdx.x; i < keys; i += blockDim.x)
		sum += expf((score[at + i] - most) * scale);
	const float inv = 1.0f / block_sum(sum);
	for (int i = threadIdx.x; i < n; i += blockDim.x)
		p[at + i] = __float2bfloat16(i < keys ? expf((score[at + i] - most) * scale) * inv : 0.0f);
}

/*
 * One new token of each sequence against its cache. Block: batch x head, a warp takes every n-th key; partial results of
 * warps are joined at the end. d is 128: four elements a lane.
 */
enum { DECODE_WARPS = 16 };

static __global__ void decode_kernel(bf16 *out, const bf16 *q, const bf16 *kc, const bf16 *vc, int heads, int kv_heads, int keys,
				     int most, float scale)
{
	__shared__ float mosts[DECODE_WARPS], sums[DECODE_WARPS], accs[DECODE_WARPS][128];
	const int d = 128, head = blockIdx.x, b = blockIdx.y, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	const size_t cell = ((size_t)b * kv_heads + head / (heads / kv_heads)) * most * d;
	const bf16 *at = q + ((size_t)b * heads + head) * d + lane * 4;
	float x[4], acc[4] = {}, top = -CUDART_INF_F, sum = 0.0f;
	for (int i = 0; i < 4; i++)
		x[i] = f32(at[i]) * scale;
	for (int p = warp; p < keys; p += DECODE_WARPS) {
		const bf16 *k = kc + cell + (size_t)p * d + lane * 4, *v = vc + cell + (size_t)p * d + lane * 4;
		const float s = warp_sum(x[0] * f32(k[0]) + x[1] * f32(k[1]) + x[2] * f32(k[2]) + x[3] * f32(k[3]));
		const float now = fmaxf(top, s), keep = expf(top - now), e = expf(s - now);
		sum = sum * keep + e;
		for (int i = 0; i < 4; i++)
			acc[i] = acc[i] * keep + e * f32(v[i]);
		top = now;
	}
	if (lane == 0)
		mosts[warp] = top, sums[warp] = sum;
	for (int i = 0; i < 4; i++)
		accs[warp][lane * 4 + i] = acc[i];
	__syncthreads();
	if (threadIdx.x < d) {
		float all = 0.0f, value = 0.0f;
		for (int w = 0; w < DECODE_WARPS; w++)
			top = fmaxf(w ? top : -CUDART_INF_F, mosts[w]);
		for (int w = 0; w < DECODE_WARPS; w++) {
			const float e = sums[w] > 0.0f ? expf(mosts[w] - top) : 0.0f;
			all += sums[w] * e;
			value += accs[w][threadIdx.x] * e;
		}
		out[((size_t)b * heads + head) * d + threadIdx.x] = __float2bfloat16(value / all);
	}
}

/* gate = silu(gate) * up */
static __global__ void silu_kernel(bf16 *gate, const bf16 *up, size_t n)
{
	const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) {
		const float g = f32(gate[i]);
		gate[i] = __float2bfloat16(g / (1.0f + expf(-g)) * f32(up[i]));
	}
}

/* The argmax of each row, the lowest id at a tie; one block of 1024 a row. */
static __global__ void argmax_kernel(int *id, const float *logits, int n)
{
	__shared__ float best_of[32];
	__shared__ int at_of[32];
	const float *x = logits + (size_t)blockIdx.x * n;
	float best = -CUDART_INF_F;
	int at = n;
	for (int i = threadIdx.x; i < n; i += blockDim.x)
		if (x[i] > best)
			best = x[i], at = i;
	for (int round = 0; round < 2; round++) {
		for (int o = 16; o; o >>= 1) {
			const float other = __shfl_xor_sync(0xffffffffu, best, o);
			const int where = __shfl_xor_sync(0xffffffffu, at, o);
			if (other > best || (other == best && where < at))
				best = other, at = where;
		}
		if (round == 0) {
			if (threadIdx.x % 32 == 0)
				best_of[threadIdx.x / 32] = best, at_of[threadIdx.x / 32] = at;
			__syncthreads();
			best = best_of[threadIdx.x % 32], at = at_of[threadIdx.x % 32];
		}
	}
	if (threadIdx.x == 0)
		id[blockIdx.x] = at;
}

#endif
