/*
 * prompt.cuh - what a prompt needs beside cuBLAS: norms, rotation into the cache, attention with an online softmax
 * (FlashAttention-2 style on mma.sync), silu.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PROMPT_CUH
#define PROMPT_CUH

#include "step.cuh"

/* x[t] = embed[ids[t]]; hidden / 8 threads */
static __global__ void embed_tokens(bf16 *x, const bf16 *embed, const int *ids, int hidden)
{
	((uint4 *)(x + (size_t)blockIdx.x * hidden))[threadIdx.x] =
		((const uint4 *)(embed + (size_t)ids[blockIdx.x] * hidden))[threadIdx.x];
}

/* y = x / rms * w; a block a token, hidden / 8 threads */
static __global__ void rms_tokens(bf16 *y, const bf16 *x, const bf16 *w, int hidden, float eps)
{
	__shared__ float part[32];
	const size_t at = (size_t)blockIdx.x * hidden + threadIdx.x * 8;
	const uint4 xi = *(const uint4 *)(x + at), wi = *(const uint4 *)(w + threadIdx.x * 8);
	const u32 xs[4] = {xi.x, xi.y, xi.z, xi.w}, ws[4] = {wi.x, wi.y, wi.z, wi.w};
	float sum = 0.0f;
#pragma unroll
	for (int i = 0; i < 4; i++)
		sum += low(xs[i]) * low(xs[i]) + high(xs[i]) * high(xs[i]);
	sum = warp_sum(sum);
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = sum;
	__syncthreads();
	sum = warp_sum(threadIdx.x % 32 < blockDim.x / 32 ? part[threadIdx.x % 32] : 0.0f);
	const float k = rsqrtf(sum / hidden + eps);
	u32 r[4];
#pragma unroll
	for (int i = 0; i < 4; i++)
		r[i] = pair(low(xs[i]) * k * low(ws[i]), high(xs[i]) * k * high(ws[i]));
	*(uint4 *)(y + at) = make_uint4(r[0], r[1], r[2], r[3]);
}

/* A warp for a head of a token: q in place, k and v into the cache. qkv: [tokens][(heads + 2 kv_heads) D]. */
static __global__ void turn_tokens(bf16 *qkv, const bf16 *qn, const bf16 *kn, bf16 *kc, bf16 *vc, const float2 *turn, int heads,
				   int kv_heads, int per, int most, float eps)
{
	const int lane = threadIdx.x, all = heads + 2 * kv_heads, h = blockIdx.y * blockDim.y + threadIdx.y, t = blockIdx.x;
	if (h >= all)
		return;
	bf16 *at = qkv + ((size_t)t * all + h) * D + 2 * lane;
	const u32 x0 = *(const u32 *)at, x1 = *(const u32 *)(at + 64);
	if (h >= heads)
		at = (h < heads + kv_heads ? kc : vc) +
		     (((size_t)(t / per) * kv_heads + (h - heads) % kv_heads) * most + t % per) * D + 2 * lane;
	if (h < heads + kv_heads) {
		float x[4] = {low(x0), high(x0), low(x1), high(x1)};
		norm_turn(x, h < heads ? qn : kn, turn + (size_t)(t % per) * (D / 2), lane, eps);
		*(u32 *)at = pair(x[0], x[1]);
		*(u32 *)(at + 64) = pair(x[2], x[3]);
	} else {
		*(u32 *)at = x0;
		*(u32 *)(at + 64) = x1;
	}
}

/* act[t][i] = silu(gate) * up; gu: [t][8 gate, 8 up, ...]. A thread 8 elements. */
static __global__ void silu_tokens(bf16 *act, const bf16 *gu, size_t groups)
{
	const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= groups)
		return;
	const uint4 gi = ((const uint4 *)gu)[2 * i], ui = ((const uint4 *)gu)[2 * i + 1];
	const u32 g[4] = {gi.x, gi.y, gi.z, gi.w}, u[4] = {ui.x, ui.y, ui.z, ui.w};
	u32 r[4];
#pragma unroll
	for (int k = 0; k < 4; k++)
		r[k] = pair(low(g[k]) / (1.0f + __expf(-low(g[k]))) * low(u[k]),
			    high(g[k]) / (1.0f + __expf(-high(g[k]))) * high(u[k]));
	((uint4 *)act)[i] = make_uint4(r[0], r[1], r[2], r[3]);
}

/* res[b] = the last token of each sequence, in float32; hidden / 4 threads */
static __global__ void last_tokens(float *res, const bf16 *x, int per, int hidden, int *position, int *prompt)
{
	const uint2 v = *(const uint2 *)(x + ((size_t)blockIdx.x * per + per - 1) * hidden + threadIdx.x * 4);
	*(float4 *)(res + (size_t)blockIdx.x * hidden + threadIdx.x * 4) = make_float4(low(v.x), high(v.x), low(v.y), high(v.y));
	if (blockIdx.x == 0 && threadIdx.x == 0)
		*position = per - 1, *prompt = per;
}

/* ---- attention ---- */

enum { PW = 4, PM = 16 * PW, PN = 64, PSTAGES = 2 };

/* ROWS rows from `first` on, `stride` apart; beyond `len` zero. */
template <int ROWS>
static __device__ __forceinline__ void fetch_rows(bf16 *tile, const bf16 *from, int first, int len, int stride)
{
#pragma unroll
	for (int i = threadIdx.x; i < ROWS * D / 8; i += 32 * PW) {
		const int r = i / (D / 8), g = i % (D / 8), in = first + r < len;
		__pipeline_memcpy_async(cell(tile, r, g), from + (in ? (size_t)(first + r) * stride + g * 8 : 0), 16, in ? 0 : 16);
	}
}

/* grid (batch x heads, tiles of 64 queries): the last queries, which have the most keys, begin. */
static __global__ void __launch_bounds__(32 * PW, 2)
attend_tokens(const bf16 *__restrict__ qkv, const bf16 *__restrict__ kc, const bf16 *__restrict__ vc, bf16 *__restrict__ out, int heads,
	      int kv_heads, int len, int most)
{
	extern __shared__ uint4 shared16[];
	bf16 *qs = (bf16 *)shared16, *tiles = qs + PM * D;
	const int first = (gridDim.y - 1 - blockIdx.y) * PM, head = blockIdx.x % heads, b = blockIdx.x / heads;
	const int wide = (heads + 2 * kv_heads) * D;
	const size_t theirs = ((size_t)b * kv_heads + head / (heads / kv_heads)) * most * D;
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = warp * 16;
	const int steps = (min(len, first + PM) + PN - 1) / PN;
	float acc[D / 8][4] = {}, max[2] = {-1e30f, -1e30f}, sum[2] = {};
	u32 qf[D / 16][4];

	const bf16 *k = kc + theirs, *v = vc + theirs;
	fetch_rows<PM>(qs, qkv + (size_t)b * len * wide + head * D, first, len, wide);
	__pipeline_commit();
#pragma unroll
	for (int s = 0; s < PSTAGES - 1; s++) {
		if (s < steps) {
			fetch_rows<PN>(tiles + s * 2 * PN * D, k, s * PN, len, D);
			fetch_rows<PN>(tiles + (s * 2 + 1) * PN * D, v, s * PN, len, D);
		}
		__pipeline_commit();
	}
	__pipeline_wait_prior(PSTAGES - 1);
	__syncthreads();
#pragma unroll
	for (int d = 0; d < D / 16; d++)
		load_matrices(qf[d], cell(qs, row + lane % 16, d * 2 + lane / 16));
	const float scale = 0.08838834764831845f * 1.4426950408889634f;

	int now = 0;
#pragma unroll 1
	for (int step = 0; step < steps; step++) {
		__pipeline_wait_prior(PSTAGES - 2);
		__syncthreads();
		const int next = now == 0 ? PSTAGES - 1 : now - 1;
		if (step + PSTAGES - 1 < steps) {
			fetch_rows<PN>(tiles + next * 2 * PN * D, k, (step + PSTAGES - 1) * PN, len, D);
			fetch_rows<PN>(tiles + (next * 2 + 1) * PN * D, v, (step + PSTAGES - 1) * PN, len, D);
		}
		__pipeline_commit();
		bf16 *ks = tiles + now * 2 * PN * D, *vs = ks + PN * D;
		now = now + 1 == PSTAGES ? 0 : now + 1;
		if (step * PN > first + row + 15)
			continue;
		float s[PN / 8][4] = {};
#pragma unroll
		for (int d = 0; d < D / 16; d++)
#pragma unroll
			for (int n = 0; n < PN / 16; n++) {
				u32 x[4];
				load_matrices(x, cell(ks, n * 16 + lane % 8 + lane / 16 * 8, d * 2 + lane / 8 % 2));
				mma(s[2 * n], qf[d][0], qf[d][1], qf[d][2], qf[d][3], x[0], x[1]);
				mma(s[2 * n + 1], qf[d][0], qf[d][1], qf[d][2], qf[d][3], x[2], x[3]);
			}
		const int at = first + row + lane / 4;
		if (step * PN + PN - 1 > first + row) {
#pragma unroll
			for (int n = 0; n < PN / 8; n++)
#pragma unroll
				for (int e = 0; e < 4; e++)
					if (step * PN + n * 8 + lane % 4 * 2 + e % 2 > at + e / 2 * 8)
						s[n][e] = -1e30f;
		}
#pragma unroll
		for (int h = 0; h < 2; h++) {
			float top = max[h], all = 0.0f;
#pragma unroll
			for (int n = 0; n < PN / 8; n++)
				top = fmaxf(top, fmaxf(s[n][2 * h], s[n][2 * h + 1]));
			top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
			top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
			const float keep = exp2f((max[h] - top) * scale), shift = top * scale;
			max[h] = top;
#pragma unroll
			for (int n = 0; n < PN / 8; n++)
#pragma unroll
				for (int e = 2 * h; e < 2 * h + 2; e++) {
					s[n][e] = exp2f(fmaf(s[n][e], scale, -shift));
					all += s[n][e];
				}
			sum[h] = sum[h] * keep + all;
#pragma unroll
			for (int d = 0; d < D / 8; d++)
				acc[d][2 * h] *= keep, acc[d][2 * h + 1] *= keep;
		}
#pragma unroll
		for (int n = 0; n < PN / 16; n++) {
			const u32 p0 = pair(s[2 * n][0], s[2 * n][1]), p1 = pair(s[2 * n][2], s[2 * n][3]),
				  p2 = pair(s[2 * n + 1][0], s[2 * n + 1][1]), p3 = pair(s[2 * n + 1][2], s[2 * n + 1][3]);
#pragma unroll
			for (int d = 0; d < D / 16; d++) {
				u32 x[4];
				load_transposed(x, cell(vs, n * 16 + lane % 16, d * 2 + lane / 16));
				mma(acc[2 * d], p0, p1, p2, p3, x[0], x[1]);
				mma(acc[2 * d + 1], p0, p1, p2, p3, x[2], x[3]);
			}
		}
	}
	__pipeline_wait_prior(0);
#pragma unroll
	for (int h = 0; h < 2; h++) {
		float all = sum[h];
		all += __shfl_xor_sync(0xffffffffu, all, 1);
		all += __shfl_xor_sync(0xffffffffu, all, 2);
		const float inv = 1.0f / all;
		const int at = first + row + lane / 4 + h * 8;
		if (at >= len)
			continue;
#pragma unroll
		for (int d = 0; d < D / 8; d++)
			*(u32 *)(out + ((size_t)b * len + at) * heads * D + head * D + d * 8 + lane % 4 * 2) =
				pair(acc[d][2 * h] * inv, acc[d][2 * h + 1] * inv);
	}
}

#endif
