/*
 * step.cuh - one step of decoding for up to 32 sequences, as few kernels as it takes, each begun before the one before
 * it has ended (programmatic dependent launch): weights do not depend on anything, so their first pieces are fetched while the
 * kernel before still runs.
 *
 * skinny<...>: y[b][o] = sum over k of w[o][k] x[b][k]. Weights are the 16-row operand of mma.sync, sequences its 8
 * columns. The order of k within a product is free as long as both sides agree, so each lane takes 8 neighbouring k of a row
 * in one 16-byte load and uses them as two fragments. Warps of a block share out k, and so do blocks (`splits`); the sums
 * of blocks are added up by whoever reads them, in a fixed order: the same bits every time.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STEP_CUH
#define STEP_CUH

#include "model.cuh"

#include <cuda_pipeline_primitives.h>
#include <math_constants.h>

typedef unsigned int u32;

enum { D = 128, ATT_WARPS = 4, ATT_STAGES = 2, KEYS = 16 };

static __device__ __forceinline__ float warp_sum(float x)
{
	for (int o = 16; o; o >>= 1)
		x += __shfl_xor_sync(0xffffffffu, x, o);
	return x;
}

static __device__ __forceinline__ void mma(float (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
		     "{%0, %1, %2, %3};"
		     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/* Weights are read once: not worth a place in L1. */
static __device__ __forceinline__ uint4 stream16(const void *p)
{
	uint4 r;
	asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
		     : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "l"(p));
	return r;
}

static __device__ __forceinline__ u32 pair(float low, float high)
{
	u32 r;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
	return r;
}

static __device__ __forceinline__ float low(u32 x) { return __uint_as_float(x << 16); }
static __device__ __forceinline__ float high(u32 x) { return __uint_as_float(x & 0xffff0000u); }

enum { TO_SUMS, TO_SILU, TO_ARGMAX };

struct best {
	float value;
	int id;
};

/*
 * TO_SUMS: sums[split][batch][out]. TO_SILU: rows of w are 8 of gate, 8 of up, ...; act[batch][out / 2]. TO_ARGMAX:
 * best[batch][tile], of the rows of a tile. grid (out / (16 ROWS), splits); out is a multiple of 16 ROWS, in of 32.
 */
template <int WARPS, int DEPTH, int ROWS, int COLS, int TO>
static __global__ void __launch_bounds__(32 * WARPS)
skinny(const bf16 *__restrict__ w, const bf16 *x, int out, int in, int batch, float *sums, bf16 *act, struct best *best)
{
	__shared__ float part[WARPS][ROWS * COLS * 4][32];
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
	const int steps = in / 32, slot = blockIdx.y * WARPS + warp, slots = gridDim.y * WARPS;
	const int first = slot * steps / slots, end = (slot + 1) * steps / slots;
	const bf16 *rows = w + ((size_t)blockIdx.x * 16 * ROWS + g) * in + t * 8;
	uint4 a[DEPTH][ROWS][2];
	float c[ROWS][COLS][4] = {};

#pragma unroll
	for (int d = 0; d < DEPTH; d++)
#pragma unroll
		for (int r = 0; r < ROWS; r++)
#pragma unroll
			for (int h = 0; h < 2; h++)
				if (first + d < end)
					a[d][r][h] = stream16(rows + (size_t)(r * 16 + h * 8) * in + (first + d) * 32);
	cudaGridDependencySynchronize();
#pragma unroll 1
	for (int s = first; s < end; s += DEPTH) {
#pragma unroll
		for (int d = 0; d < DEPTH; d++) {
			if (s + d >= end)
				break;
			uint4 b[COLS];
#pragma unroll
			for (int n = 0; n < COLS; n++) {
				b[n] = make_uint4(0, 0, 0, 0);
				if (n * 8 + g < batch)
					b[n] = *(const uint4 *)(x + (size_t)(n * 8 + g) * in + (s + d) * 32 + t * 8);
			}
#pragma unroll
			for (int r = 0; r < ROWS; r++) {
				const uint4 p = a[d][r][0], q = a[d][r][1];
#pragma unroll
				for (int n = 0; n < COLS; n++) {
					mma(c[r][n], p.x, q.x, p.y, q.y, b[n].x, b[n].y);
					mma(c[r][n], p.z, q.z, p.w, q.w, b[n].z, b[n].w);
				}
				if (s + d + DEPTH < end) {
					a[d][r][0] = stream16(rows + (size_t)(r * 16) * in + (s + d + DEPTH) * 32);
					a[d][r][1] = stream16(rows + (size_t)(r * 16 + 8) * in + (s + d + DEPTH) * 32);
				}
			}
		}
	}
	cudaTriggerProgrammaticLaunchCompletion(); /* earlier, and blocks that wait would take the place of blocks that work */
#pragma unroll
	for (int r = 0; r < ROWS; r++)
#pragma unroll
		for (int n = 0; n < COLS; n++)
#pragma unroll
			for (int i = 0; i < 4; i++)
				part[warp][(r * COLS + n) * 4 + i][lane] = c[r][n][i];
	__syncthreads();
	if (TO == TO_SUMS) {
		for (int i = threadIdx.x; i < ROWS * COLS * 128; i += 32 * WARPS) {
			/* consecutive threads: consecutive rows */
			const int row = i % (16 * ROWS), col = i / (16 * ROWS);
			const int reg = ((row / 16) * COLS + col / 8) * 4 + row % 16 / 8 * 2 + col % 2, l = row % 8 * 4 + col % 8 / 2;
			float sum = 0.0f;
#pragma unroll
			for (int k = 0; k < WARPS; k++)
				sum += part[k][reg][l];
			if (col < batch)
				sums[((size_t)blockIdx.y * batch + col) * out + blockIdx.x * 16 * ROWS + row] = sum;
		}
	} else if (TO == TO_SILU) {
		for (int i = threadIdx.x; i < ROWS * COLS * 64; i += 32 * WARPS) {
			const int row = i % (8 * ROWS), col = i / (8 * ROWS);
			const int reg = ((row / 8) * COLS + col / 8) * 4 + col % 2, l = row % 8 * 4 + col % 8 / 2;
			float gate = 0.0f, up = 0.0f;
#pragma unroll
			for (int k = 0; k < WARPS; k++)
				gate += part[k][reg][l], up += part[k][reg + 2][l];
			if (col < batch)
				act[(size_t)col * (out / 2) + blockIdx.x * 8 * ROWS + row] =
					__float2bfloat16(gate / (1.0f + __expf(-gate)) * up);
		}
	} else {
		/* eight threads a column */
		for (int col = threadIdx.x / 8; col < (COLS * 8 + WARPS * 4 - 1) / (WARPS * 4) * (WARPS * 4); col += WARPS * 4) {
			float top = -CUDART_INF_F;
			int at = 0x7fffffff;
			if (col < COLS * 8) {
				for (int row = threadIdx.x % 8; row < 16 * ROWS; row += 8) {
					const int reg = ((row / 16) * COLS + col / 8) * 4 + row % 16 / 8 * 2 + col % 2,
						  l = row % 8 * 4 + col % 8 / 2;
					float sum = 0.0f;
#pragma unroll
					for (int k = 0; k < WARPS; k++)
						sum += part[k][reg][l];
					if (sum > top)
						top = sum, at = blockIdx.x * 16 * ROWS + row;
				}
			}
			for (int o = 4; o; o >>= 1) {
				const float other = __shfl_xor_sync(0xffffffffu, top, o);
				const int where = __shfl_xor_sync(0xffffffffu, at, o);
				if (other > top || (other == top && where < at))
					top = other, at = where;
			}
			if (threadIdx.x % 8 == 0 && col < batch)
				best[(size_t)col * gridDim.x + blockIdx.x] = {top, at};
		}
	}
}

/* res[b] += the sums of the splits; y = res / rms * w. A block a sequence, hidden / 4 threads. */
static __global__ void __launch_bounds__(1024)
add_rms(float *res, const float *sums, int splits, bf16 *y, const bf16 *w, int hidden, float eps)
{
	__shared__ float part[32];
	const int b = blockIdx.x, i = threadIdx.x * 4;
	const uint2 wi = *(const uint2 *)(w + i);
	cudaTriggerProgrammaticLaunchCompletion();
	cudaGridDependencySynchronize();
	float4 x = *(const float4 *)(res + (size_t)b * hidden + i);
#pragma unroll 4
	for (int s = 0; s < splits; s++) {
		const float4 p = *(const float4 *)(sums + ((size_t)s * gridDim.x + b) * hidden + i);
		x.x += p.x, x.y += p.y, x.z += p.z, x.w += p.w;
	}
	if (splits)
		*(float4 *)(res + (size_t)b * hidden + i) = x;
	float sum = warp_sum(x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w);
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = sum;
	__syncthreads();
	sum = warp_sum(threadIdx.x % 32 < blockDim.x / 32 ? part[threadIdx.x % 32] : 0.0f);
	const float k = rsqrtf(sum / hidden + eps);
	*(uint2 *)(y + (size_t)b * hidden + i) = make_uint2(pair(x.x * k * low(wi.x), x.y * k * high(wi.x)),
							   pair(x.z * k * low(wi.y), x.w * k * high(wi.y)));
}

/* ---- attention of one new token a sequence ---- */

static __device__ __forceinline__ void load_matrices(u32 (&r)[4], const void *row)
{
	u32 at = (u32)__cvta_generic_to_shared(row);
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
		     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}

static __device__ __forceinline__ void load_transposed(u32 (&r)[4], const void *row)
{
	u32 at = (u32)__cvta_generic_to_shared(row);
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
		     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}

/* 16 bytes `g` of row r, rows of 256 bytes; permuted against bank conflicts. */
static __device__ __forceinline__ bf16 *cell(bf16 *tile, int r, int g)
{
	return tile + r * D + ((g ^ (r & 7)) * 8);
}

/* A head (lane l has 2l, 2l + 1, 64 + 2l, 64 + 2l + 1), normed and turned. */
static __device__ __forceinline__ void norm_turn(float (&x)[4], const bf16 *w, const float2 *turn, int lane, float eps)
{
	const float k = rsqrtf(warp_sum(x[0] * x[0] + x[1] * x[1] + x[2] * x[2] + x[3] * x[3]) / D + eps);
	const u32 w0 = *(const u32 *)(w + 2 * lane), w1 = *(const u32 *)(w + 64 + 2 * lane);
	const float4 cs = *(const float4 *)(turn + 2 * lane); /* cosine, sine; cosine, sine */
	const float a0 = x[0] * k * low(w0), a1 = x[1] * k * high(w0), b0 = x[2] * k * low(w1), b1 = x[3] * k * high(w1);
	x[0] = a0 * cs.x - b0 * cs.y, x[1] = a1 * cs.z - b1 * cs.w;
	x[2] = b0 * cs.x + a0 * cs.y, x[3] = b1 * cs.z + a1 * cs.w;
}

struct attention {
	const float *sums;       /* [splits][batch][(heads + 2 kv_heads) D] */
	int splits;
	const bf16 *qn, *kn;
	bf16 *k, *v;             /* [batch, kv_heads, most, D] */
	const float2 *turn;      /* [position][D / 2] */
	const int *position;     /* of the new token */
	float *part;             /* [batch, kv_heads, split][GROUP][PART] */
	u32 *arrived;            /* [batch, kv_heads], 0 before and after */
	bf16 *out;               /* [batch, heads D] */
	int heads, kv_heads, most, chunk;
	float eps;
};

enum { PART = D + 4 }; /* values, their maximum, their sum */

static __device__ __forceinline__ void gather(float (&x)[4], const struct attention &A, int b, int head, int lane)
{
	const int wide = (A.heads + 2 * A.kv_heads) * D;
	x[0] = x[1] = x[2] = x[3] = 0.0f;
	for (int s = 0; s < A.splits; s++) {
		const float *p = A.sums + ((size_t)s * gridDim.z + b) * wide + head * D + 2 * lane;
		const float2 lo = *(const float2 *)p, hi = *(const float2 *)(p + 64);
		x[0] += lo.x, x[1] += lo.y, x[2] += hi.x, x[3] += hi.y;
	}
}

/* 16 keys and 16 values, by one warp. */
static __device__ __forceinline__ void fetch_keys(bf16 *tile, const bf16 *k, const bf16 *v, int from, int lane)
{
#pragma unroll
	for (int i = 0; i < 8; i++) {
		const int r = i * 2 + lane / 16, g = lane % 16;
		__pipeline_memcpy_async(cell(tile, r, g), k + (size_t)(from + r) * D + g * 8, 16);
		__pipeline_memcpy_async(cell(tile + KEYS * D, r, g), v + (size_t)(from + r) * D + g * 8, 16);
	}
}

/*
 * grid (splits of the keys, kv_heads, batch), GROUP = heads / kv_heads. Warps take 16 keys in turn. The rows of the products
 * are the heads of the group, of 16. Keys of before are fetched while the kernel before still runs; the new one is put
 * among them when it is known, and into the cache. The block that arrives last adds up the others. `most` and `chunk` are
 * multiples of KEYS: a tile never leaves its sequence's cache, what lies beyond the last key is masked.
 */
template <int GROUP>
static __global__ void __launch_bounds__(32 * ATT_WARPS, 3) attend(const struct attention A)
{
	extern __shared__ uint4 shared16[];
	bf16 *q = (bf16 *)shared16, *tiles = q + 16 * D;
	__shared__ float tops[ATT_WARPS][GROUP], alls[ATT_WARPS][GROUP], accs[ATT_WARPS][GROUP][D];
	__shared__ __align__(16) bf16 fresh[2][D];
	__shared__ int last;
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4, b = blockIdx.z, kv = blockIdx.y;
	const size_t theirs = ((size_t)b * A.kv_heads + kv) * A.most * D;
	bf16 *kc = A.k + theirs, *vc = A.v + theirs, *mine = tiles + warp * ATT_STAGES * 2 * KEYS * D;

	cudaTriggerProgrammaticLaunchCompletion();
	const int position = *A.position, first = blockIdx.x * A.chunk, end = min(position + 1, first + A.chunk);
	if (first > position)
		return;
	const int tiles_n = (end - first + KEYS - 1) / KEYS, ours = end == position + 1; /* the new key is */
#pragma unroll
	for (int s = 0; s < ATT_STAGES - 1; s++) {
		if (warp + s * ATT_WARPS < tiles_n)
			fetch_keys(mine + s * 2 * KEYS * D, kc, vc, first + (warp + s * ATT_WARPS) * KEYS, lane);
		__pipeline_commit();
	}
	cudaGridDependencySynchronize();
	const float2 *turn = A.turn + (size_t)position * (D / 2);
	if (ours && warp < 2) {
		float x[4];
		gather(x, A, b, A.heads + (warp == 0 ? 0 : A.kv_heads) + kv, lane);
		if (warp == 0)
			norm_turn(x, A.kn, turn, lane, A.eps);
		bf16 *to = (warp == 0 ? kc : vc) + (size_t)position * D + 2 * lane;
		*(u32 *)to = *(u32 *)&fresh[warp][2 * lane] = pair(x[0], x[1]);
		*(u32 *)(to + 64) = *(u32 *)&fresh[warp][64 + 2 * lane] = pair(x[2], x[3]);
	}
	for (int h = ATT_WARPS - 1 - warp; h < 16; h += ATT_WARPS) {
		float x[4] = {};
		if (h < GROUP) {
			gather(x, A, b, kv * GROUP + h, lane);
			norm_turn(x, A.qn, turn, lane, A.eps);
		}
		*(u32 *)(cell(q, h, lane / 4) + lane % 4 * 2) = pair(x[0], x[1]);
		*(u32 *)(cell(q, h, 8 + lane / 4) + lane % 4 * 2) = pair(x[2], x[3]);
	}
	__syncthreads();
	u32 qf[D / 16][4];
#pragma unroll
	for (int d = 0; d < D / 16; d++)
		load_matrices(qf[d], cell(q, lane % 16, d * 2 + lane / 16));

	const float scale = 0.08838834764831845f * 1.4426950408889634f; /* 1 / sqrt(D), in powers of two */
	float acc[D / 8][4] = {}, top = -1e30f, all = 0.0f; /* of row g; rows from 8 on are none */
	int now = 0;
#pragma unroll 1
	for (int i = warp; i < tiles_n; i += ATT_WARPS) {
		__pipeline_wait_prior(ATT_STAGES - 2);
		__syncwarp();
		const int next = now == 0 ? ATT_STAGES - 1 : now - 1;
		if (i + (ATT_STAGES - 1) * ATT_WARPS < tiles_n)
			fetch_keys(mine + next * 2 * KEYS * D, kc, vc, first + (i + (ATT_STAGES - 1) * ATT_WARPS) * KEYS, lane);
		__pipeline_commit();
		bf16 *ks = mine + now * 2 * KEYS * D, *vs = ks + KEYS * D;
		now = now + 1 == ATT_STAGES ? 0 : now + 1;
		if (ours && i == tiles_n - 1) {
			*(uint4 *)cell(lane < 16 ? ks : vs, position - first - i * KEYS, lane % 16) = ((const uint4 *)fresh[lane / 16])[lane % 16];
			__syncwarp();
		}
		float s[2][4] = {};
#pragma unroll
		for (int d = 0; d < D / 16; d++) {
			u32 k[4];
			load_matrices(k, cell(ks, lane % 8 + lane / 16 * 8, d * 2 + lane / 8 % 2));
			mma(s[0], qf[d][0], qf[d][1], qf[d][2], qf[d][3], k[0], k[1]);
			mma(s[1], qf[d][0], qf[d][1], qf[d][2], qf[d][3], k[2], k[3]);
		}
		float most = top, sum = 0.0f;
#pragma unroll
		for (int n = 0; n < 2; n++)
#pragma unroll
			for (int e = 0; e < 2; e++) {
				if (first + i * KEYS + n * 8 + t * 2 + e >= end)
					s[n][e] = -1e30f;
				most = fmaxf(most, s[n][e]);
			}
		most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
		most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
		const float keep = exp2f((top - most) * scale);
		top = most;
#pragma unroll
		for (int n = 0; n < 2; n++)
#pragma unroll
			for (int e = 0; e < 2; e++) {
				s[n][e] = exp2f((s[n][e] - most) * scale);
				sum += s[n][e];
			}
		all = all * keep + sum;
		const u32 p0 = pair(s[0][0], s[0][1]), p2 = pair(s[1][0], s[1][1]);
#pragma unroll
		for (int d = 0; d < D / 8; d++)
			acc[d][0] *= keep, acc[d][1] *= keep;
#pragma unroll
		for (int d = 0; d < D / 16; d++) {
			u32 v[4];
			load_transposed(v, cell(vs, lane % 16, d * 2 + lane / 16));
			mma(acc[2 * d], p0, 0, p2, 0, v[0], v[1]);
			mma(acc[2 * d + 1], p0, 0, p2, 0, v[2], v[3]);
		}
	}
	__pipeline_wait_prior(0);
	all += __shfl_xor_sync(0xffffffffu, all, 1);
	all += __shfl_xor_sync(0xffffffffu, all, 2);
	if (g < GROUP) {
		if (t == 0)
			tops[warp][g] = top, alls[warp][g] = all;
#pragma unroll
		for (int d = 0; d < D / 8; d++)
			*(float2 *)&accs[warp][g][d * 8 + t * 2] = make_float2(acc[d][0], acc[d][1]);
	}
	__syncthreads();
	const int parts = position / A.chunk + 1;
	float *to = A.part + (((size_t)b * A.kv_heads + kv) * gridDim.x + blockIdx.x) * GROUP * PART;
	for (int h = threadIdx.x / D; h < GROUP; h += 32 * ATT_WARPS / D) {
		const int i = threadIdx.x % D;
		float m = -1e30f, sum = 0.0f, value = 0.0f;
#pragma unroll
		for (int w = 0; w < ATT_WARPS; w++)
			m = fmaxf(m, tops[w][h]);
#pragma unroll
		for (int w = 0; w < ATT_WARPS; w++) {
			const float k = exp2f((tops[w][h] - m) * scale);
			sum += alls[w][h] * k;
			value += accs[w][h][i] * k;
		}
		if (parts == 1) {
			A.out[((size_t)b * A.heads + kv * GROUP + h) * D + i] = __float2bfloat16(value / sum);
		} else {
			to[h * PART + i] = value;
			if (i == 0)
				to[h * PART + D] = m, to[h * PART + D + 1] = sum;
		}
	}
	if (parts == 1)
		return;
	__threadfence();
	__syncthreads();
	if (threadIdx.x == 0) {
		u32 *n = A.arrived + b * A.kv_heads + kv;
		last = atomicAdd(n, 1) == (u32)parts - 1;
		if (last)
			*n = 0;
	}
	__syncthreads();
	if (!last)
		return;
	__threadfence();
	/* a warp a head, a lane a part (at most 64), then four elements */
	const float *from = A.part + ((size_t)b * A.kv_heads + kv) * gridDim.x * GROUP * PART;
	for (int h = warp; h < GROUP; h += ATT_WARPS) {
		float m[2], k[2];
#pragma unroll
		for (int j = 0; j < 2; j++)
			m[j] = lane + 32 * j < parts ? __ldcg(from + (size_t)((lane + 32 * j) * GROUP + h) * PART + D) : -1e30f;
		float most = fmaxf(m[0], m[1]), sum = 0.0f;
		for (int o = 16; o; o >>= 1)
			most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, o));
#pragma unroll
		for (int j = 0; j < 2; j++) {
			k[j] = exp2f((m[j] - most) * scale);
			if (lane + 32 * j < parts)
				sum += k[j] * __ldcg(from + (size_t)((lane + 32 * j) * GROUP + h) * PART + D + 1);
		}
		sum = warp_sum(sum);
		float4 value = {};
#pragma unroll 4
		for (int i = 0; i < parts; i++) {
			const float4 p = __ldcg((const float4 *)(from + (size_t)(i * GROUP + h) * PART) + lane);
			const float x = __shfl_sync(0xffffffffu, i < 32 ? k[0] : k[1], i % 32);
			value.x += x * p.x, value.y += x * p.y, value.z += x * p.z, value.w += x * p.w;
		}
		const float inv = 1.0f / sum;
		*(uint2 *)(A.out + ((size_t)b * A.heads + kv * GROUP + h) * D + lane * 4) =
			make_uint2(pair(value.x * inv, value.y * inv), pair(value.z * inv, value.w * inv));
	}
}

/*
 * The best of all tiles; its embedding becomes the next residual, its id goes to the host. A block of 1024 a sequence.
 * said: [steps][batch], in memory of the host; *done, too, says how many steps are there. *position: tokens in the cache,
 * less one; the last block to arrive moves it on.
 */
static __global__ void __launch_bounds__(1024)
choose(const struct best *best, int tiles, const bf16 *embed, float *res, int hidden, int *position, const int *prompt, int *said,
       volatile int *done, u32 *arrived)
{
	__shared__ float tops[32];
	__shared__ int ats[32];
	const int b = blockIdx.x;
	float top = -CUDART_INF_F;
	int at = 0x7fffffff;
	cudaTriggerProgrammaticLaunchCompletion();
	cudaGridDependencySynchronize();
	for (int i = threadIdx.x; i < tiles; i += blockDim.x) {
		const struct best x = best[(size_t)b * tiles + i];
		if (x.value > top || (x.value == top && x.id < at))
			top = x.value, at = x.id;
	}
	for (int round = 0; round < 2; round++) {
		for (int o = 16; o; o >>= 1) {
			const float other = __shfl_xor_sync(0xffffffffu, top, o);
			const int where = __shfl_xor_sync(0xffffffffu, at, o);
			if (other > top || (other == top && where < at))
				top = other, at = where;
		}
		if (round == 0) {
			if (threadIdx.x % 32 == 0)
				tops[threadIdx.x / 32] = top, ats[threadIdx.x / 32] = at;
			__syncthreads();
			top = tops[threadIdx.x % 32], at = ats[threadIdx.x % 32];
		}
	}
	at = at < 0x7fffffff ? at : 0; /* all were NaN */
	for (int i = threadIdx.x; i < hidden; i += blockDim.x)
		res[(size_t)b * hidden + i] = __bfloat162float(embed[(size_t)at * hidden + i]);
	if (threadIdx.x == 0) {
		const int step = *(volatile int *)position + 1 - *prompt;
		*(volatile int *)(said + (size_t)step * gridDim.x + b) = at;
		__threadfence_system();
		if (atomicAdd(arrived, 1) == gridDim.x - 1) {
			*arrived = 0;
			*position += 1;
			__threadfence_system();
			*done = step + 1;
		}
	}
}

#endif
