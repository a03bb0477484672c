/*
 * matmul_bf16: c[m][n] = sum_k a[m][k] * b[k][n], bf16 in and out, fp32 accumulation, for sm_90a.
 *
 * Persistent and warp-specialised: one thread of the last warpgroup feeds STAGES shared tiles by TMA, BM/64
 * warpgroups multiply them with wgmma. CLUSTER 2: two blocks one below the other share the tile of b, each
 * loads half of it for both. b is row-major, so its tiles are "MN-major": chunks of 64 columns, BK rows of
 * 128 bytes each, swizzled; wgmma takes them transposed.
 *
 *   gemm        stores bf16 through a swizzled staging tile and TMA
 *   gemm_part   stores fp32 sums of a part of k to `part`, rows `pitch` apart
 *   add_parts   adds the parts in a fixed order and rounds
 *   small       few results of short sums, on the ordinary cores
 *   pad         copies a matrix to rows that TMA can address (16-byte multiples)
 *
 * TMA needs row strides of 16 bytes: k and n multiples of 8. Other shapes are padded first and stored by
 * gemm_part and add_parts, which take any n. Tails in m, n and k are clipped, and zero-filled, by TMA.
 */
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short bf16;

#define BK 64

/* ptx: begin */
__device__ __forceinline__ u32 round_pair(float low, float high)
{
	u32 r;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
	return r;
}

struct __align__(64) tensor_map { u64 opaque[16]; };

#define WARPGROUPS (BM / 64)             /* they multiply; one more loads */
#define A_BYTES (BM * BK * 2)
#define B_BYTES (BN * BK * 2)
#define B_CHUNK (BK * 128)               /* 64 columns of b */
#define OUT_CHUNK (64 * 128)             /* staging: 64 rows of 128 bytes */
#define NACC (BN / 2)                    /* sums a thread */

__device__ __forceinline__ u32 shared_addr(const void *p)
{
	return (u32)__cvta_generic_to_shared(p);
}

__device__ __forceinline__ void bar_init(u32 bar, u32 count)
{
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void bar_expect(u32 bar, u32 bytes)
{
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory");
}

__device__ __forceinline__ void bar_wait(u32 bar, u32 parity)
{
	asm volatile("{\n.reg .pred done;\n"
		"again:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
		"@!done bra again;\n}" :: "r"(bar), "r"(parity) : "memory");
}

/*
 * Arrive on the barrier at the same offset in block `rank` of the cluster. Only reads by wgmma come before,
 * and these are complete: the default scope will do. The cluster scope puts a fence of the whole GPU into
 * the loop (228 us instead of 175 at 4096^3).
 */
__device__ __forceinline__ void bar_arrive_at(u32 bar, u32 rank)
{
	asm volatile("{\n.reg .b32 far;\nmapa.shared::cluster.u32 far, %0, %1;\n"
		"mbarrier.arrive.shared::cluster.b64 _, [far];\n}" :: "r"(bar), "r"(rank) : "memory");
}

__device__ __forceinline__ void tma_load(u32 dst, const tensor_map *map, int x, int y, u32 bar)
{
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
		" [%0], [%1, {%2, %3}], [%4];" :: "r"(dst), "l"(map), "r"(x), "r"(y), "r"(bar) : "memory");
}

__device__ __forceinline__ void tma_load_all(u32 dst, const tensor_map *map, int x, int y, u32 bar)
{
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
		".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
		:: "r"(dst), "l"(map), "r"(x), "r"(y), "r"(bar), "h"((bf16)((1 << CLUSTER) - 1)) : "memory");
}

__device__ __forceinline__ void tma_store(const tensor_map *map, int x, int y, u32 src)
{
	asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
		:: "l"(map), "r"(x), "r"(y), "r"(src) : "memory");
}

/* K-major, 128-byte swizzle: rows of 128 bytes, groups of 8 rows 1024 bytes apart. */
__device__ __forceinline__ u64 operand_a(u32 addr)
{
	return (u64)((addr & 0x3ffff) >> 4) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

/* MN-major, 128-byte swizzle: 64 columns a row, groups of 8 k 1024 bytes apart, the next 64 columns a chunk on. */
__device__ __forceinline__ u64 operand_b(u32 addr)
{
	return (u64)((addr & 0x3ffff) >> 4) | (u64)(B_CHUNK >> 4) << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

#define R4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define R16(i) R4(i), R4(i + 4), R4(i + 8), R4(i + 12)
#define R64(i) R16(i), R16(i + 16), R16(i + 32), R16(i + 48)

/* d = a * b, plus d unless `add` is 0. The last immediate: b is transposed. */
__device__ __forceinline__ void multiply(float (&d)[NACC], u64 a, u64 b, int add)
{
#if BN == 256
	asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
		"wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
		"%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
		"%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
		"%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
		"%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,"
		"%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,"
		"%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,"
		"%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,"
		"%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
		"}, %128, %129, p, 1, 1, 0, 1;\n}" : R64(0), R64(64) : "l"(a), "l"(b), "r"(add));
#elif BN == 128
	asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
		"wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
		"%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
		"%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
		"%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
		"%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
		"}, %64, %65, p, 1, 1, 0, 1;\n}" : R64(0) : "l"(a), "l"(b), "r"(add));
#else
#error "BN must be 128 or 256"
#endif
}

/* Work of the whole grid: tiles of BM * CLUSTER rows by BN columns, each in `parts` parts of k. */
struct work {
	int rows, cols, parts, per, steps; /* tiles; parts of `per` steps of BK each, of `steps` */
};

/* Item t: row and column of the tile, and the steps [from, to) of k. GROUP tile rows at a time. */
__device__ __forceinline__ void place(const work &w, int t, int &row, int &col, int &from, int &to)
{
	int part = t % w.parts;
	t /= w.parts;
	int band = t / (GROUP * w.cols), first = band * GROUP, high = min(w.rows - first, GROUP);
	t -= band * GROUP * w.cols;
	row = first + t % high;
	col = t / high;
	from = part * w.per;
	to = min(w.steps, from + w.per);
}

__device__ __forceinline__ void load_tiles(const work &w, const tensor_map *map_a, const tensor_map *map_b, u32 tile_a,
					   u32 tile_b, u32 full, u32 empty, u32 rank)
{
	int s = 0, row, col, from, to;
	u32 parity = 1; /* the first round finds every slot free */

	for (int t = blockIdx.x / CLUSTER; t < w.rows * w.cols * w.parts; t += gridDim.x / CLUSTER) {
		place(w, t, row, col, from, to);
		int m = (row * CLUSTER + (int)rank) * BM, n = col * BN;
		for (int k = from; k < to; k++) {
			u32 bar = full + 8 * s;
			bar_wait(empty + 8 * s, parity);
			bar_expect(bar, A_BYTES + B_BYTES);
			tma_load(tile_a + s * A_BYTES, map_a, k * BK, m, bar);
#pragma unroll
			for (int c = 0; c < BN / 64 / CLUSTER; c++) {
				int chunk = (int)rank * (BN / 64 / CLUSTER) + c;
				u32 dst = tile_b + s * B_BYTES + chunk * B_CHUNK;
				if (CLUSTER == 1)
					tma_load(dst, map_b, n + chunk * 64, k * BK, bar);
				else
					tma_load_all(dst, map_b, n + chunk * 64, k * BK, bar);
			}
			if (++s == STAGES) {
				s = 0;
				parity ^= 1;
			}
		}
	}
}

/* 64 rows of sums from row m on, bf16, through two staging chunks of this warpgroup. */
__device__ __forceinline__ void store_tma(const float (&d)[NACC], const tensor_map *map, u32 staging, int group, int m,
					  int n, int height, int width)
{
	int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
	int r = warp * 16 + lane % 16; /* this lane's row for stmatrix; two halves of 8 columns */

#pragma unroll
	for (int c = 0; c < BN / 64; c++) {
		u32 out = staging + c % 2 * OUT_CHUNK;
		if (threadIdx.x % 128 == 0) /* the store before the last has left its chunk */
			asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
		asm volatile("bar.sync %0, 128;" :: "r"(group + 1) : "memory");
#pragma unroll
		for (int j = 0; j < 4; j++) {
			const float *v = d + c * 32 + j * 8;
			u32 at = out + r * 128 + (((j * 2 + lane / 16) ^ (r & 7)) * 16);
			asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
				:: "r"(at), "r"(round_pair(v[0], v[1])), "r"(round_pair(v[2], v[3])),
				"r"(round_pair(v[4], v[5])), "r"(round_pair(v[6], v[7])) : "memory");
		}
		asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
		asm volatile("bar.sync %0, 128;" :: "r"(group + 1) : "memory");
		if (threadIdx.x % 128 == 0) {
			if (m < height && n + c * 64 < width)
				tma_store(map, n + c * 64, m, out);
			asm volatile("cp.async.bulk.commit_group;" ::: "memory"); /* also when empty */
		}
	}
}

/* The same rows as fp32; `part` is this part's matrix, `pitch` a multiple of 8 not below the width. */
__device__ __forceinline__ void store_part(const float (&d)[NACC], float *part, int m, int n, int height, int pitch)
{
	int lane = threadIdx.x % 32, r = m + threadIdx.x / 32 % 4 * 16 + lane / 4;

#pragma unroll
	for (int j = 0; j < BN / 8; j++) {
		int c = n + j * 8 + lane % 4 * 2;
		float *to = part + (long long)r * pitch + c;
		if (c < pitch && r < height)
			*(float2 *)to = make_float2(d[4 * j], d[4 * j + 1]);
		if (c < pitch && r + 8 < height)
			*(float2 *)(to + 8ll * pitch) = make_float2(d[4 * j + 2], d[4 * j + 3]);
	}
}

__device__ __forceinline__ void cluster_sync(void)
{
	asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

/* `out` of the store by TMA, or `part` and `pitch`. */
template <bool PART>
__device__ __forceinline__ void run(const tensor_map *map_a, const tensor_map *map_b, const tensor_map *out, float *part,
				    int m, int n, int k, int parts, int per, int pitch)
{
	extern __shared__ char raw[];
	__shared__ __align__(8) u64 bars[2 * STAGES];
	u32 tile_a = (shared_addr(raw) + 1023) & ~1023u; /* swizzled tiles start at multiples of 1024 */
	u32 tile_b = tile_a + STAGES * A_BYTES, staging = tile_b + STAGES * B_BYTES;
	u32 full = shared_addr(bars), empty = full + 8 * STAGES;
	u32 rank = CLUSTER == 1 ? 0 : blockIdx.x % CLUSTER;
	int group = threadIdx.x / 128;
	work w;

	if (threadIdx.x == 0) {
		for (int s = 0; s < STAGES; s++) {
			bar_init(full + 8 * s, 1);
			bar_init(empty + 8 * s, WARPGROUPS * CLUSTER);
		}
		asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
	}
	if (CLUSTER == 1)
		__syncthreads();
	else
		cluster_sync();
	w.rows = (m + BM * CLUSTER - 1) / (BM * CLUSTER);
	w.cols = (n + BN - 1) / BN;
	w.parts = parts;
	w.per = per;
	w.steps = (k + BK - 1) / BK;

	if (group == WARPGROUPS) {
		asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
		if (threadIdx.x == 128 * WARPGROUPS)
			load_tiles(w, map_a, map_b, tile_a, tile_b, full, empty, rank);
	} else {
		asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
		int s = 0, row, col, from, to;
		u32 parity = 0;
		float d[NACC];

		for (int t = blockIdx.x / CLUSTER; t < w.rows * w.cols * w.parts; t += gridDim.x / CLUSTER) {
			place(w, t, row, col, from, to);
			int before = 0;
			for (int i = from; i < to; i++) {
				bar_wait(full + 8 * s, parity);
				u64 a = operand_a(tile_a + s * A_BYTES + group * 64 * 128);
				u64 b = operand_b(tile_b + s * B_BYTES);
				asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
				for (int q = 0; q < BK / 16; q++) /* 16 k: 32 bytes of a's rows, 16 rows of b */
					multiply(d, a + 2 * q, b + 128 * q, i + q != from);
				asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
				asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
				if (i > from && threadIdx.x % 128 < CLUSTER) /* the step before is done */
					bar_arrive_at(empty + 8 * before, threadIdx.x % 128);
				before = s;
				if (++s == STAGES) {
					s = 0;
					parity ^= 1;
				}
			}
			asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
			for (int i = 0; i < NACC; i++)
				asm volatile("" : "+f"(d[i]) :: "memory");
			if (threadIdx.x % 128 < CLUSTER)
				bar_arrive_at(empty + 8 * before, threadIdx.x % 128);
			int r = (row * CLUSTER + (int)rank) * BM + group * 64, c = col * BN;
			if (PART)
				store_part(d, part + (long long)(from / per) * m * pitch, r, c, m, pitch);
			else
				store_tma(d, out, staging + group * 2 * OUT_CHUNK, group, r, c, m, n);
		}
		if (!PART && threadIdx.x % 128 == 0)
			asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
	}
	if (CLUSTER > 1) /* no block leaves while the other may still write or signal here */
		cluster_sync();
}

extern "C" __global__ void __launch_bounds__(128 * (WARPGROUPS + 1), 1)
gemm(const __grid_constant__ tensor_map map_a, const __grid_constant__ tensor_map map_b,
     const __grid_constant__ tensor_map map_c, int m, int n, int k)
{
	run<false>(&map_a, &map_b, &map_c, 0, m, n, k, 1, (k + BK - 1) / BK, 0);
}

extern "C" __global__ void __launch_bounds__(128 * (WARPGROUPS + 1), 1)
gemm_part(const __grid_constant__ tensor_map map_a, const __grid_constant__ tensor_map map_b, float *part, int m, int n,
	  int k, int parts, int per, int pitch)
{
	run<true>(&map_a, &map_b, 0, part, m, n, k, parts, per, pitch);
}
/* ptx: end */

/* One block a row, eight columns a thread; `pitch` is a multiple of 8. */
extern "C" __global__ void __launch_bounds__(256)
add_parts(const float *__restrict__ part, bf16 *__restrict__ c, int m, int n, int pitch, int parts)
{
	long long each = (long long)m * pitch;
	const float *from = part + (long long)blockIdx.x * pitch;
	bf16 *to = c + (long long)blockIdx.x * n;

	for (int col = threadIdx.x * 8; col < n; col += 256 * 8) {
		float4 lo = *(const float4 *)(from + col), hi = *(const float4 *)(from + col + 4);
		for (int p = 1; p < parts; p++) {
			float4 x = *(const float4 *)(from + p * each + col);
			float4 y = *(const float4 *)(from + p * each + col + 4);
			lo = make_float4(lo.x + x.x, lo.y + x.y, lo.z + x.z, lo.w + x.w);
			hi = make_float4(hi.x + y.x, hi.y + y.y, hi.z + y.z, hi.w + y.w);
		}
		uint4 v = make_uint4(round_pair(lo.x, lo.y), round_pair(lo.z, lo.w), round_pair(hi.x, hi.y),
				     round_pair(hi.z, hi.w));
		if (n % 8 == 0) {
			*(uint4 *)(to + col) = v;
			continue;
		}
		u32 word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
		for (int j = 0; j < 8; j++)
			if (col + j < n)
				to[col + j] = (bf16)(word[j / 2] >> j % 2 * 16);
	}
}

/* One block a row, to rows `pitch` apart, a multiple of 8; what is between is zero. */
extern "C" __global__ void __launch_bounds__(256)
pad(const bf16 *__restrict__ from, bf16 *__restrict__ to, int cols, int pitch)
{
	const bf16 *at = from + (long long)blockIdx.x * cols;
	uint4 *row = (uint4 *)(to + (long long)blockIdx.x * pitch);

	for (int col = threadIdx.x * 8; col < pitch; col += 256 * 8) {
		u32 word[4] = {};
#pragma unroll
		for (int j = 0; j < 8; j++)
			if (col + j < cols)
				word[j / 2] |= (u32)at[col + j] << j % 2 * 16;
		row[col / 8] = make_uint4(word[0], word[1], word[2], word[3]);
	}
}

__device__ static float widened(bf16 v)
{
	return __uint_as_float((u32)v << 16);
}

/*
 * For few results of short sums, where the launches and the filling of the pipeline above would take longer than the
 * work: 16 x 16 results a block, one a thread, 64 of k at a time.
 */
extern "C" __global__ void __launch_bounds__(256)
small(const bf16 *__restrict__ a, const bf16 *__restrict__ b, bf16 *__restrict__ c, int m, int n, int k)
{
	__shared__ float as[16][65], bs[64][16];
	int tx = threadIdx.x % 16, ty = threadIdx.x / 16, row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
	float sum = 0.0f;

	for (int from = 0; from < k; from += 64) {
#pragma unroll
		for (int i = 0; i < 64; i += 16) {
			as[ty][i + tx] = row < m && from + i + tx < k
				? widened(a[(long long)row * k + from + i + tx]) : 0.0f;
			bs[i + ty][tx] = col < n && from + i + ty < k
				? widened(b[(long long)(from + i + ty) * n + col]) : 0.0f;
		}
		__syncthreads();
#pragma unroll 16
		for (int q = 0; q < min(64, k - from); q++)
			sum += as[ty][q] * bs[q][tx];
		__syncthreads();
	}
	if (row < m && col < n)
		c[(long long)row * n + col] = (bf16)round_pair(sum, 0.0f);
}
