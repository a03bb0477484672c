/*
 * attention: o = softmax(scale * q * k^T, causal) * v, bf16 in and out, fp32 sums, bf16 probabilities.
 *
 * A block takes BM = 16 * MT * WARPS queries of one head, a warp 16 * MT of them, and walks the keys in tiles
 * of BN up to its diagonal. Tiles of k and v come by asynchronous copies, STAGES of them in flight; rows of
 * shared memory are permuted by 16-byte groups (XOR) against bank conflicts. Both products run on the tensor
 * cores (mma.sync m16n8k16); the sums of the first become the operand of the second in registers. Blocks start
 * with the last queries: they have the most keys.
 *
 * Fragments of lane l, g = l / 4, t = l % 4: c[0..1] row g, columns 2t, 2t+1; c[2..3] row g + 8.
 */
#include <cuda_pipeline_primitives.h>

typedef unsigned int u32;
typedef unsigned short bf16;

#define BM (16 * MT * WARPS)
#define THREADS (32 * WARPS)

/* ptx: begin */
/* Four 8 x 8 matrices of 16-bit elements; lane l gives row l % 8 of matrix l / 8. */
__device__ __forceinline__ void load_matrices(u32 (&r)[4], const void *row)
{
	u32 at = (u32)__cvta_generic_to_shared(row);
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
		: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}

__device__ __forceinline__ void load_transposed(u32 (&r)[4], const void *row)
{
	u32 at = (u32)__cvta_generic_to_shared(row);
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
		: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}

/* c += a * b */
__device__ __forceinline__ void multiply(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
		"{%8, %9}, {%0, %1, %2, %3};"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ u32 round_pair(float low, float high)
{
	u32 r;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
	return r;
}

__device__ __forceinline__ float power_of_two(float x)
{
	float r;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
	return r;
}
/* ptx: end */

/* Group `g` (16 bytes) of row `r` in a tile with rows of D elements. */
template <int D>
__device__ __forceinline__ bf16 *cell(bf16 *tile, int r, int g)
{
	return tile + r * D + ((g ^ (r & 7)) * 8);
}

/* Start the copy of `ROWS` rows from row `first` on; rows beyond `len` become zero. */
template <int D, int ROWS>
__device__ __forceinline__ void fetch(bf16 *tile, const bf16 *from, int first, int len)
{
#pragma unroll
	for (int i = threadIdx.x; i < ROWS * D / 8; i += THREADS) {
		int r = i / (D / 8), g = i % (D / 8), in = first + r < len;
		__pipeline_memcpy_async(cell<D>(tile, r, g), from + (in ? (u32)((first + r) * D + g * 8) : 0u), 16,
					in ? 0 : 16);
	}
}

template <int D>
__device__ __forceinline__ void run(const bf16 *q, const bf16 *k, const bf16 *v, bf16 *o, float scale, int heads,
				    int group, int len)
{
	extern __shared__ uint4 shared16[];
	bf16 *qs = (bf16 *)shared16, *tiles = qs + BM * D;
	int first = (gridDim.y - 1 - blockIdx.y) * BM, head = blockIdx.x % heads, batch = blockIdx.x / heads;
	long long theirs = ((long long)batch * (heads / group) + head / group) * len * D;
	int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = warp * 16 * MT;
	int steps = (min(len, first + BM) + BN - 1) / BN;
	float acc[MT][D / 8][4] = {}, max[MT][2], sum[MT][2];
	u32 qf[MT][D / 16][4];

	k += theirs;
	v += theirs;
	fetch<D, BM>(qs, q + (long long)blockIdx.x * len * D, first, len);
	__pipeline_commit();
#pragma unroll
	for (int s = 0; s < STAGES - 1; s++) {
		if (s < steps) {
			fetch<D, BN>(tiles + s * 2 * BN * D, k, s * BN, len);
			fetch<D, BN>(tiles + (s * 2 + 1) * BN * D, v, s * BN, len);
		}
		__pipeline_commit();
	}
	__pipeline_wait_prior(STAGES - 1); /* q is there */
	__syncthreads();
	if (MT == 1) {
#pragma unroll
		for (int d = 0; d < D / 16; d++)
			load_matrices(qf[0][d], cell<D>(qs, row + lane % 16, d * 2 + lane / 16));
	}
#pragma unroll
	for (int i = 0; i < MT; i++)
#pragma unroll
		for (int h = 0; h < 2; h++) {
			max[i][h] = -1e30f; /* finite: differences are no NaN */
			sum[i][h] = 0.0f;
		}
	scale *= 1.4426950408889634f; /* powers of two below */

	int now = 0;
#pragma unroll 1
	for (int step = 0; step < steps; step++) {
		if (STAGES > 1)
			__pipeline_wait_prior(STAGES - 2);
		__syncthreads(); /* this tile is there; everybody is done with the one overwritten next */
		if (STAGES == 1) {
			fetch<D, BN>(tiles, k, step * BN, len);
			fetch<D, BN>(tiles + BN * D, v, step * BN, len);
			__pipeline_commit();
			__pipeline_wait_prior(0);
			__syncthreads();
		} else {
			int next = now == 0 ? STAGES - 1 : now - 1;
			if (step + STAGES - 1 < steps) {
				fetch<D, BN>(tiles + next * 2 * BN * D, k, (step + STAGES - 1) * BN, len);
				fetch<D, BN>(tiles + (next * 2 + 1) * BN * D, v, (step + STAGES - 1) * BN, len);
			}
			__pipeline_commit();
		}
		bf16 *ks = tiles + now * 2 * BN * D, *vs = ks + BN * D;
		now = now + 1 == STAGES ? 0 : now + 1;
		if (step * BN > first + row + 16 * MT - 1)
			continue; /* all of these keys are beyond this warp's diagonal */

		float s[MT][BN / 8][4] = {};
#pragma unroll
		for (int d = 0; d < D / 16; d++) {
			if (MT > 1) {
#pragma unroll
				for (int i = 0; i < MT; i++)
					load_matrices(qf[i][d], cell<D>(qs, row + i * 16 + lane % 16, d * 2 + lane / 16));
			}
#pragma unroll
			for (int n = 0; n < BN / 16; n++) {
				u32 b[4];
				load_matrices(b, cell<D>(ks, n * 16 + lane % 8 + lane / 16 * 8, d * 2 + lane / 8 % 2));
#pragma unroll
				for (int i = 0; i < MT; i++) {
					multiply(s[i][2 * n], qf[i][d], b[0], b[1]);
					multiply(s[i][2 * n + 1], qf[i][d], b[2], b[3]);
				}
			}
		}
#pragma unroll
		for (int i = 0; i < MT; i++) {
			int at = first + row + i * 16 + lane / 4; /* query of c[0..1]; c[2..3] is 8 below */
			if (step * BN + BN - 1 > first + row + i * 16) {
#pragma unroll
				for (int n = 0; n < BN / 8; n++)
#pragma unroll
					for (int e = 0; e < 4; e++)
						if (step * BN + n * 8 + lane % 4 * 2 + e % 2 > at + e / 2 * 8)
							s[i][n][e] = -1e30f;
			}
#pragma unroll
			for (int h = 0; h < 2; h++) {
				float top = max[i][h], all = 0.0f;
#pragma unroll
				for (int n = 0; n < BN / 8; n++)
					top = fmaxf(top, fmaxf(s[i][n][2 * h], s[i][n][2 * h + 1]));
				top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
				top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
				float keep = power_of_two((max[i][h] - top) * scale), shift = top * scale;
				max[i][h] = top;
#pragma unroll
				for (int n = 0; n < BN / 8; n++)
#pragma unroll
					for (int e = 2 * h; e < 2 * h + 2; e++) {
						s[i][n][e] = power_of_two(fmaf(s[i][n][e], scale, -shift));
						all += s[i][n][e];
					}
				sum[i][h] = sum[i][h] * keep + all; /* this lane's part of the row */
#pragma unroll
				for (int d = 0; d < D / 8; d++) {
					acc[i][d][2 * h] *= keep;
					acc[i][d][2 * h + 1] *= keep;
				}
			}
		}
#pragma unroll
		for (int n = 0; n < BN / 16; n++) {
			u32 p[MT][4];
#pragma unroll
			for (int i = 0; i < MT; i++) {
				p[i][0] = round_pair(s[i][2 * n][0], s[i][2 * n][1]);
				p[i][1] = round_pair(s[i][2 * n][2], s[i][2 * n][3]);
				p[i][2] = round_pair(s[i][2 * n + 1][0], s[i][2 * n + 1][1]);
				p[i][3] = round_pair(s[i][2 * n + 1][2], s[i][2 * n + 1][3]);
			}
#pragma unroll
			for (int d = 0; d < D / 16; d++) {
				u32 b[4];
				load_transposed(b, cell<D>(vs, n * 16 + lane % 16, d * 2 + lane / 16));
#pragma unroll
				for (int i = 0; i < MT; i++) {
					multiply(acc[i][2 * d], p[i], b[0], b[1]);
					multiply(acc[i][2 * d + 1], p[i], b[2], b[3]);
				}
			}
		}
	}
	__pipeline_wait_prior(0);
#pragma unroll
	for (int i = 0; i < MT; i++)
#pragma unroll
		for (int h = 0; h < 2; h++) {
			float all = sum[i][h];
			all += __shfl_xor_sync(0xffffffffu, all, 1);
			all += __shfl_xor_sync(0xffffffffu, all, 2);
			float inv = 1.0f / all;
			int at = first + row + i * 16 + lane / 4 + h * 8;
			if (at >= len)
				continue;
#pragma unroll
			for (int d = 0; d < D / 8; d++)
				*(u32 *)(o + ((long long)blockIdx.x * len + at) * D + d * 8 + lane % 4 * 2) =
					round_pair(acc[i][d][2 * h] * inv, acc[i][d][2 * h + 1] * inv);
		}
}

extern "C" __global__ void __launch_bounds__(THREADS, OCCUPY)
attention64(const bf16 *__restrict__ q, const bf16 *__restrict__ k, const bf16 *__restrict__ v, bf16 *__restrict__ o,
	    float scale, int heads, int group, int len)
{
	run<64>(q, k, v, o, scale, heads, group, len);
}

extern "C" __global__ void __launch_bounds__(THREADS, OCCUPY)
attention128(const bf16 *__restrict__ q, const bf16 *__restrict__ k, const bf16 *__restrict__ v, bf16 *__restrict__ o,
	     float scale, int heads, int group, int len)
{
	run<128>(q, k, v, o, scale, heads, group, len);
}
