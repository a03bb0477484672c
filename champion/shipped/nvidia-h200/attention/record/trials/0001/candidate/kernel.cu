/*
 * attention: o = softmax(scale * q * k^T, causal) * v, bf16 in and out, fp32 sums, bf16 probabilities.
 *
 * Two kernels in one text, chosen by WIDE; both keep the online softmax in registers, start with the last queries of
 * each head (they have the most keys), and walk the keys up to the diagonal.
 *
 * WIDE 1   for compute capability 9.0: WARPS / 4 warpgroups take 64 queries each, one more loads tiles of 128 keys by
 *          TMA, STAGES of them in flight. Both products are wgmma; the sums of the first become the operand of the
 *          second in registers, and while the scores of a tile become probabilities the product of the tile before
 *          with v still runs. BN is 128; MT and OCCUPY have no say.
 * WIDE 0   for any GPU with mma.sync: a block takes BM = 16 * MT * WARPS queries, a warp 16 * MT of them, and the
 *          keys in tiles of BN. Tiles of k and v come by asynchronous copies, STAGES of them in flight; rows of
 *          shared memory are permuted by 16-byte groups (XOR) against bank conflicts.
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

#if WIDE
/* ---- WIDE: wgmma and TMA ---- */

typedef unsigned long long u64;

struct __align__(64) tensor_map { u64 opaque[16]; };

#define GROUPS (WARPS / 4)
#define WROWS 64            /* queries of a warpgroup */
#define WM (WROWS * GROUPS) /* of a block; one warpgroup more loads */
#define WN BN               /* keys of a tile: 128, as wgmma's shapes below have it */
#define WTHREADS (128 * (GROUPS + 1))

__device__ __forceinline__ u32 shared_addr(const void *p)
{
	return (u32)__cvta_generic_to_shared(p);
}

/* Barriers in shared memory: for `count` arrivals; one arrival, and `bytes` to come; one arrival. */
#define BAR_INIT(bar, count) \
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory")
#define BAR_EXPECT(bar, bytes) \
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory")
#define BAR_ARRIVE(bar) \
	asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory")

__device__ __forceinline__ void bar_wait(u32 bar, u32 parity)
{
	asm volatile("{\n.reg .pred done;\n"
		"again:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
		"@!done bra again;\n}" :: "r"(bar), "r"(parity) : "memory");
}

/* ROWS rows of D elements from row y of head z on: 64 columns a piece, the pieces behind each other. */
template <int D, int ROWS>
__device__ __forceinline__ void tma_load(u32 dst, const tensor_map *map, int y, int z, u32 bar)
{
	BAR_EXPECT(bar, ROWS * D * 2);
#pragma unroll
	for (int x = 0; x < D; x += 64)
		asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
			" [%0], [%1, {%2, %3, %4}], [%5];"
			:: "r"(dst + x * ROWS * 2), "l"(map), "r"(x), "r"(y), "r"(z), "r"(bar) : "memory");
}

/*
 * Operands with rows of 128 bytes, swizzled, groups of 8 rows 1024 bytes apart. K-major: a row is 64 of k. MN-major: a row
 * is 64 columns of one k, and the next 64 columns are WN rows on.
 */
__device__ __forceinline__ u64 operand(u32 addr, u32 next)
{
	return (u64)((addr & 0x3ffff) >> 4) | (u64)(next >> 4) << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

#define ALONG(addr) operand(addr, 16)
#define ACROSS(addr) operand(addr, WN * 128)

#define L32 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15," \
	"%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define L64 L32 "," "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
	"%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define R4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define R16(i) R4(i), R4(i + 4), R4(i + 8), R4(i + 12)
#define R32(i) R16(i), R16(i + 16)

/* d = a * b, plus d unless `add` is 0: 64 queries, 128 keys, both operands K-major. */
__device__ __forceinline__ void scores(float (&d)[64], u64 a, u64 b, int add)
{
	asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
		"wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" L64
		"}, %64, %65, p, 1, 1, 0, 0;\n}" : R32(0), R32(32) : "l"(a), "l"(b), "r"(add));
}

/* d += a * b: probabilities in registers, b MN-major (the last immediate). */
__device__ __forceinline__ void weigh(float (&d)[64], const u32 *a, u64 b)
{
	asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" L64
		"}, {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
		: R32(0), R32(32) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

__device__ __forceinline__ void weigh(float (&d)[32], const u32 *a, u64 b)
{
	asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" L32
		"}, {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
		: R32(0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

#define FENCE() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define COMMIT() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WAIT(left) asm volatile("wgmma.wait_group.sync.aligned " #left ";" ::: "memory")

/* The sums are what the wait has made of them. */
template <int N>
__device__ __forceinline__ void settled(float (&d)[N])
{
#pragma unroll
	for (int i = 0; i < N; i++)
		asm volatile("" : "+f"(d[i]) :: "memory");
}

/* s = q * k^T; q of this warpgroup, k of one tile; the two halves of D are WM, and WN, rows apart. */
template <int D>
__device__ __forceinline__ void all_scores(float (&s)[64], u32 q, u32 k)
{
#pragma unroll
	for (int i = 0; i < D / 16; i++)
		scores(s, ALONG(q + i / 4 * WM * 128) + i % 4 * 2, ALONG(k + i / 4 * WN * 128) + i % 4 * 2, i > 0);
}

/* acc += p * v: 16 keys at a time, 16 rows of 128 bytes. */
template <int D>
__device__ __forceinline__ void all_weighed(float (&acc)[D / 2], const u32 (&p)[32], u32 v)
{
#pragma unroll
	for (int i = 0; i < WN / 16; i++)
		weigh(acc, p + 4 * i, ACROSS(v) + 128 * i);
}

/* The online softmax of one tile; queries `at` and at + 8, keys from `first` on. keep: what the sums so far shrink by. */
__device__ __forceinline__ void take(float (&s)[64], float (&max)[2], float (&sum)[2], float (&keep)[2], int at, int first,
				     float scale)
{
	int lane = threadIdx.x % 32;

	if (first + WN - 1 > at - lane / 4) { /* not all keys are behind the warp's first query */
#pragma unroll
		for (int i = 0; i < 64; i++)
			if (first + i / 4 * 8 + lane % 4 * 2 + i % 2 > at + i % 4 / 2 * 8)
				s[i] = -1e30f;
	}
#pragma unroll
	for (int h = 0; h < 2; h++) {
		float top = max[h], all = 0.0f;
#pragma unroll
		for (int i = 2 * h; i < 64; i += 4)
			top = fmaxf(top, fmaxf(s[i], s[i + 1]));
		top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
		top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
		keep[h] = power_of_two((max[h] - top) * scale);
		max[h] = top;
		float shift = top * scale;
#pragma unroll
		for (int i = 2 * h; i < 64; i += 4) {
			s[i] = power_of_two(fmaf(s[i], scale, -shift));
			s[i + 1] = power_of_two(fmaf(s[i + 1], scale, -shift));
			all += s[i] + s[i + 1];
		}
		sum[h] = sum[h] * keep[h] + all;
	}
}

__device__ __forceinline__ void pack(u32 (&p)[32], const float (&s)[64])
{
#pragma unroll
	for (int i = 0; i < 32; i++)
		p[i] = round_pair(s[2 * i], s[2 * i + 1]);
}

/*
 * A warpgroup takes 64 queries, the last one loads. While the scores of a tile become probabilities, the product of the
 * tile before with v is still running. Rows beyond the end are zero (TMA), and beyond every diagonal.
 */
template <int D>
__device__ __forceinline__ void run(const tensor_map *map_q, const tensor_map *map_k, const tensor_map *map_v,
					 bf16 *o, float scale, int group, int len)
{
	enum { TILE = WN * D * 2, QUERIES = WM * D * 2 };
	extern __shared__ uint4 shared16[];
	__shared__ __align__(8) u64 bars[1 + 4 * STAGES];
	u32 qs = (shared_addr(shared16) + 1023) & ~1023u, ks = qs + QUERIES, vs = ks + STAGES * TILE;
	u32 bar_q = shared_addr(bars), full_k = bar_q + 8, full_v = full_k + 8 * STAGES, free_k = full_v + 8 * STAGES;
	u32 free_v = free_k + 8 * STAGES;
	int first = (gridDim.y - 1 - blockIdx.y) * WM, head = blockIdx.x, kv = head / group;
	int steps = (min(len, first + WM) + WN - 1) / WN, me = threadIdx.x / 128;

	if (threadIdx.x == 0) {
		BAR_INIT(bar_q, 1);
		for (int i = 0; i < STAGES; i++) {
			BAR_INIT(full_k + 8 * i, 1);
			BAR_INIT(full_v + 8 * i, 1);
			BAR_INIT(free_k + 8 * i, GROUPS);
			BAR_INIT(free_v + 8 * i, GROUPS);
		}
		asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
	}
	__syncthreads();
	if (me == GROUPS) {
		asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(GROUPS == 2 ? 40 : 32));
		if (threadIdx.x != 128 * GROUPS)
			return;
		tma_load<D, WM>(qs, map_q, first, head, bar_q);
		int s = 0;
		u32 parity = 1; /* the first round finds every slot free */
		for (int step = 0; step < steps; step++) {
			bar_wait(free_k + 8 * s, parity);
			tma_load<D, WN>(ks + s * TILE, map_k, step * WN, kv, full_k + 8 * s);
			bar_wait(free_v + 8 * s, parity);
			tma_load<D, WN>(vs + s * TILE, map_v, step * WN, kv, full_v + 8 * s);
			if (++s == STAGES) {
				s = 0;
				parity ^= 1;
			}
		}
		return;
	}
	asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(GROUPS == 2 ? 232 : 160));
	int lane = threadIdx.x % 32, at = first + me * WROWS + threadIdx.x / 32 % 4 * 16 + lane / 4;
	int s = 0, before = 0;
	u32 parity = 0, parity_before = 0, mine = qs + me * WROWS * 128, p[32];
	bool signals = threadIdx.x % 128 == 0;
	float sc[64], acc[D / 2], max[2] = {-1e30f, -1e30f}, sum[2] = {}, keep[2];

#pragma unroll
	for (int i = 0; i < D / 2; i++)
		acc[i] = 0.0f;
	scale *= 1.4426950408889634f; /* powers of two below */
	bar_wait(bar_q, 0);
	bar_wait(full_k, 0);
	FENCE();
	all_scores<D>(sc, mine, ks);
	COMMIT();
	WAIT(0);
	settled(sc);
	if (signals)
		BAR_ARRIVE(free_k);
	take(sc, max, sum, keep, at, 0, scale);
	pack(p, sc);
#pragma unroll 1
	for (int step = 1; step < steps; step++) {
		if (++s == STAGES) {
			s = 0;
			parity ^= 1;
		}
		bar_wait(full_k + 8 * s, parity);
		FENCE();
		all_scores<D>(sc, mine, ks + s * TILE);
		COMMIT();
		bar_wait(full_v + 8 * before, parity_before);
		all_weighed<D>(acc, p, vs + before * TILE);
		COMMIT();
		WAIT(1);
		settled(sc);
		if (signals)
			BAR_ARRIVE(free_k + 8 * s);
		take(sc, max, sum, keep, at, step * WN, scale);
		WAIT(0);
		settled(acc);
		if (signals)
			BAR_ARRIVE(free_v + 8 * before);
		before = s;
		parity_before = parity;
#pragma unroll
		for (int i = 0; i < D / 2; i++)
			acc[i] *= keep[i % 4 / 2];
		pack(p, sc);
	}
	bar_wait(full_v + 8 * before, parity_before);
	FENCE();
	all_weighed<D>(acc, p, vs + before * TILE);
	COMMIT();
	WAIT(0);
	settled(acc);
#pragma unroll
	for (int h = 0; h < 2; h++) {
		float all = sum[h];
		all += __shfl_xor_sync(0xffffffffu, all, 1);
		all += __shfl_xor_sync(0xffffffffu, all, 2);
		float inv = 1.0f / all;
		if (at + 8 * h >= len)
			continue;
		bf16 *to = o + ((long long)head * len + at + 8 * h) * D + lane % 4 * 2;
#pragma unroll
		for (int j = 0; j < D / 8; j++)
			*(u32 *)(to + j * 8) = round_pair(acc[4 * j + 2 * h] * inv, acc[4 * j + 2 * h + 1] * inv);
	}
}

#define ENTRY(name, D) extern "C" __global__ void __launch_bounds__(WTHREADS, 1) \
name(const __grid_constant__ tensor_map q, const __grid_constant__ tensor_map k, const __grid_constant__ tensor_map v, \
     bf16 *o, float scale, int group, int len) \
{ \
	run<D>(&q, &k, &v, o, scale, group, len); \
}

ENTRY(attention64, 64)
ENTRY(attention128, 128)
#endif
/* ptx: end */

#if !WIDE
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
#endif
