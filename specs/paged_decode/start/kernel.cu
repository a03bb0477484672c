/*
 * paged_decode: o = softmax(scale * q * k^T) * v for the one query of each sequence, keys and values in pages.
 *
 * A block takes the AXIS_H / AXIS_HKV query heads that share one key head, and a part of the sequence's pages. Each
 * warp walks pages of its own, STAGES of them in flight by asynchronous copies; no barrier of the block is needed
 * until its warps join. The query heads are the first rows of the tensor core's operand (mma.sync m16n8k16): most of
 * its rows are idle, which costs nothing, since the keys are what has to be moved.
 *
 * `decode` writes the outputs when there is one part, else the parts' sums, which `combine` joins.
 */
#include <cuda_pipeline_primitives.h>

typedef unsigned int u32;
typedef unsigned short bf16;

#define D AXIS_D
#define PAGE AXIS_PAGE
#define GROUP (AXIS_H / AXIS_HKV) /* at most 8: rows 8 to 15 are not looked at */
#define THREADS (32 * WARPS)
#define TILE (PAGE * D)           /* elements of a page's keys, and of its values */

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

/* Group `g` (16 bytes) of row `r`; groups are permuted by the row against bank conflicts. */
__device__ __forceinline__ bf16 *cell(bf16 *tile, int r, int g)
{
	return tile + r * D + ((g ^ (r & 7)) * 8);
}

/* A warp copies one page's keys or values of one key head. */
__device__ __forceinline__ void fetch(bf16 *tile, const bf16 *cache, int page, int kv)
{
	const bf16 *from = cache + ((long long)page * PAGE * AXIS_HKV + kv) * D;
#pragma unroll
	for (int i = threadIdx.x % 32; i < TILE / 8; i += 32) {
		int r = i / (D / 8), g = i % (D / 8);
		__pipeline_memcpy_async(cell(tile, r, g), from + r * AXIS_HKV * D + g * 8, 16);
	}
}

struct state {
	float acc[D / 8][4], max, sum; /* of row lane / 4; sum: this lane's part. max in units of log2 */
};

/* One page: `left` of its keys count. */
__device__ __forceinline__ void take(struct state &st, const u32 (&qf)[D / 16][4], bf16 *ks, bf16 *vs, int left,
				     float scale)
{
	int lane = threadIdx.x % 32;

#pragma unroll
	for (int n = 0; n < PAGE / 16; n++) {
		float s[2][4] = {};
		u32 p[4], b[4];
#pragma unroll
		for (int d = 0; d < D / 16; d++) {
			load_matrices(b, cell(ks, n * 16 + lane % 8 + lane / 16 * 8, d * 2 + lane / 8 % 2));
			multiply(s[0], qf[d], b[0], b[1]);
			multiply(s[1], qf[d], b[2], b[3]);
		}
		float top = st.max;
#pragma unroll
		for (int j = 0; j < 2; j++)
#pragma unroll
			for (int e = 0; e < 2; e++) {
				bool in = n * 16 + j * 8 + lane % 4 * 2 + e < left;
				s[j][e] = in ? s[j][e] * scale : -1e30f;
				top = fmaxf(top, s[j][e]);
			}
		top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
		top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
		float keep = power_of_two(st.max - top), all = 0.0f;
		st.max = top;
#pragma unroll
		for (int j = 0; j < 2; j++)
#pragma unroll
			for (int e = 0; e < 2; e++) {
				s[j][e] = power_of_two(s[j][e] - top);
				all += s[j][e];
			}
		st.sum = st.sum * keep + all;
		p[0] = round_pair(s[0][0], s[0][1]);
		p[2] = round_pair(s[1][0], s[1][1]);
		p[1] = p[3] = 0; /* rows 8 to 15 */
#pragma unroll
		for (int d = 0; d < D / 16; d++) {
#pragma unroll
			for (int e = 0; e < 2; e++) {
				st.acc[2 * d][e] *= keep;
				st.acc[2 * d + 1][e] *= keep;
			}
			load_transposed(b, cell(vs, n * 16 + lane % 16, d * 2 + lane / 16));
			multiply(st.acc[2 * d], p, b[0], b[1]);
			multiply(st.acc[2 * d + 1], p, b[2], b[3]);
		}
	}
}

extern "C" __global__ void __launch_bounds__(THREADS)
decode(const bf16 *__restrict__ q, const bf16 *__restrict__ k, const bf16 *__restrict__ v,
       const int *__restrict__ table, const int *__restrict__ lens, bf16 *__restrict__ o, float *__restrict__ part,
       float scale, int maxp)
{
	extern __shared__ uint4 shared16[];
	__shared__ float tops[WARPS][8], sums[WARPS][8];
	int kv = blockIdx.x, batch = blockIdx.y, parts = gridDim.z, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	int len = lens[batch], pages = (len + PAGE - 1) / PAGE, per = (pages + parts - 1) / parts;
	int from = blockIdx.z * per, to = min(pages, from + per);
	const int *list = table + (long long)batch * maxp;
	bf16 *tiles = (bf16 *)shared16 + warp * STAGES * 2 * TILE;
	struct state st;
	u32 qf[D / 16][4];

	/* Rows of the operand: query heads; those that are none repeat the last. Rows 8 to 15 are zero. */
	const bf16 *mine = q + ((long long)batch * AXIS_H + kv * GROUP + min(lane / 4, GROUP - 1)) * D;
#pragma unroll
	for (int d = 0; d < D / 16; d++) {
		qf[d][0] = *(const u32 *)(mine + d * 16 + lane % 4 * 2);
		qf[d][2] = *(const u32 *)(mine + d * 16 + 8 + lane % 4 * 2);
		qf[d][1] = qf[d][3] = 0;
	}
#pragma unroll
	for (int d = 0; d < D / 8; d++)
#pragma unroll
		for (int e = 0; e < 4; e++)
			st.acc[d][e] = 0.0f;
	st.max = -1e30f; /* finite: differences are no NaN */
	st.sum = 0.0f;
	scale *= 1.4426950408889634f;

#pragma unroll
	for (int s = 0; s < STAGES - 1; s++) {
		int page = from + warp + s * WARPS;
		if (page < to) {
			fetch(tiles + s * 2 * TILE, k, list[page], kv);
			fetch(tiles + (s * 2 + 1) * TILE, v, list[page], kv);
		}
		__pipeline_commit();
	}
	int now = 0, next = STAGES - 1;
#pragma unroll 1
	for (int page = from + warp; page < to; page += WARPS) {
		int ahead = page + (STAGES - 1) * WARPS;
		if (ahead < to) {
			fetch(tiles + next * 2 * TILE, k, list[ahead], kv);
			fetch(tiles + (next * 2 + 1) * TILE, v, list[ahead], kv);
		}
		__pipeline_commit();
		__pipeline_wait_prior(STAGES - 1);
		__syncwarp(); /* the copies of all lanes are there */
		take(st, qf, tiles + now * 2 * TILE, tiles + (now * 2 + 1) * TILE, len - page * PAGE, scale);
		__syncwarp(); /* all lanes have read what the next round overwrites */
		now = now + 1 == STAGES ? 0 : now + 1;
		next = next + 1 == STAGES ? 0 : next + 1;
	}
	__pipeline_wait_prior(0);

	/* The warps join in shared memory: [WARPS][GROUP][D]. */
	float *joined = (float *)shared16;
	st.sum += __shfl_xor_sync(0xffffffffu, st.sum, 1);
	st.sum += __shfl_xor_sync(0xffffffffu, st.sum, 2);
	__syncthreads();
	if (lane % 4 == 0) {
		tops[warp][lane / 4] = st.max;
		sums[warp][lane / 4] = st.sum;
	}
	if (lane / 4 < GROUP) {
#pragma unroll
		for (int d = 0; d < D / 8; d++)
			*(float2 *)(joined + (warp * GROUP + lane / 4) * D + d * 8 + lane % 4 * 2) =
				make_float2(st.acc[d][0], st.acc[d][1]);
	}
	__syncthreads();
	for (int i = threadIdx.x; i < GROUP * D / 2; i += THREADS) {
		int r = i * 2 / D, c = i * 2 % D, head = kv * GROUP + r;
		float top = -1e30f, sum = 0.0f, x = 0.0f, y = 0.0f;
		for (int w = 0; w < WARPS; w++)
			top = fmaxf(top, tops[w][r]);
		for (int w = 0; w < WARPS; w++) {
			float f = power_of_two(tops[w][r] - top);
			sum += f * sums[w][r];
			x += f * joined[(w * GROUP + r) * D + c];
			y += f * joined[(w * GROUP + r) * D + c + 1];
		}
		if (parts == 1) {
			*(u32 *)(o + ((long long)batch * AXIS_H + head) * D + c) = round_pair(x / sum, y / sum);
			continue;
		}
		/* [B][H][parts] of D sums, then as many of (max, sum) */
		long long at = ((long long)batch * AXIS_H + head) * parts + blockIdx.z;
		*(float2 *)(part + at * D + c) = make_float2(x, y);
		if (c == 0)
			*(float2 *)(part + (long long)gridDim.y * AXIS_H * parts * D + at * 2) = make_float2(top, sum);
	}
}

/*
 * One block a query head: join the parts. Each of its JOIN groups of D threads takes every JOIN-th, EACH at a time: all
 * loads are on their way before the first is needed, since this launch is nothing but their latency.
 */
#define JOIN 4
#define EACH 8
#define MOST 128 /* parts */

extern "C" __global__ void __launch_bounds__(JOIN * D)
combine(const float *__restrict__ part, bf16 *__restrict__ o, int parts)
{
	__shared__ float tops[MOST], weight[MOST], sums[JOIN][D];
	long long row = (long long)blockIdx.y * AXIS_H + blockIdx.x;
	const float2 *ends = (const float2 *)(part + (long long)gridDim.y * AXIS_H * parts * D) + row * parts;
	int group = threadIdx.x / D, at = threadIdx.x % D;
	const float *mine = part + row * parts * D + at;
	float v[EACH], top = -1e30f, sum = 0.0f, s = 0.0f;
	float2 own = make_float2(-1e30f, 0.0f);

	if (threadIdx.x < parts)
		own = ends[threadIdx.x];
#pragma unroll
	for (int i = 0; i < EACH; i++) {
		int p = group + i * JOIN;
		v[i] = p < parts ? mine[(long long)p * D] : 0.0f;
	}
	if (threadIdx.x < parts)
		tops[threadIdx.x] = own.x;
	__syncthreads();
	for (int p = 0; p < parts; p++)
		top = fmaxf(top, tops[p]);
	if (threadIdx.x < parts)
		weight[threadIdx.x] = power_of_two(own.x - top);
	__syncthreads();
	if (threadIdx.x < parts)
		tops[threadIdx.x] = own.y * weight[threadIdx.x]; /* all have read the tops */
#pragma unroll
	for (int i = 0; i < EACH; i++)
		if (group + i * JOIN < parts)
			s += weight[group + i * JOIN] * v[i];
#pragma unroll 4
	for (int p = group + EACH * JOIN; p < parts; p += JOIN)
		s += weight[p] * mine[(long long)p * D];
	sums[group][at] = s;
	__syncthreads();
	if (group > 0)
		return;
	for (int p = 0; p < parts; p++)
		sum += tops[p];
#pragma unroll
	for (int g = 1; g < JOIN; g++)
		s += sums[g][at];
	o[row * D + at] = (bf16)round_pair(s / sum, 0.0f);
}
