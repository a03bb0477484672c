// SPDX-License-Identifier: MIT
// C[M,N] = A[M,K] * B[N,K]^T, bf16 in and out, fp32 accumulate, row-major, for sm_90a. Device code only: no header is
// included, tensor maps arrive encoded and by value.
//
//   gemm       persistent, warp-specialised: one warpgroup feeds STAGES shared tiles by TMA, BM/64 warpgroups multiply
//              them with wgmma and store through a swizzled staging tile and TMA. CLUSTER=2 blocks share the B tile by
//              multicast. Needs K % 8 == 0 and N % 8 == 0 (16-byte tensor-map strides); tails are clipped by TMA.
//   gemm_any   any shape, slow: split-K partial sums added into a zeroed fp32 workspace
//   round_any  workspace to bf16
//
// Macros from the plan: BM BN BK STAGES CLUSTER GROUP.

typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short bf16;
struct __align__(64) tensor_map { u64 opaque[16]; };

#define WARPGROUPS (BM / 64)			// consumers; one more warpgroup produces
#define A_BYTES (BM * BK * 2)
#define B_BYTES (BN * BK * 2)
#define CHUNK_BYTES (64 * 64 * 2)		// staging tile: 64 rows of 128 bytes
#define NACC (BN / 2)				// fp32 accumulators per thread

__device__ __forceinline__ u32 shared_addr(const void *p) { return (u32)__cvta_generic_to_shared(p); }

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

// Arrive on the barrier at the same offset in block `rank` of the cluster. Only reads by wgmma come before it, and these are
// complete, so the default scope will do. With .release.cluster here and .acquire.cluster in bar_wait each step paid a
// MEMBAR.ALL.GPU: 228 us instead of 175 at 4096^3.
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

__device__ __forceinline__ void tma_load_multicast(u32 dst, const tensor_map *map, int x, int y, u32 bar, u32 mask)
{
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
		".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
		:: "r"(dst), "l"(map), "r"(x), "r"(y), "r"(bar), "h"((bf16)mask) : "memory");
}

__device__ __forceinline__ void tma_store(const tensor_map *map, int x, int y, u32 src)
{
	asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
		:: "l"(map), "r"(x), "r"(y), "r"(src) : "memory");
}

// K-major operand, 128-byte swizzle: rows of 128 bytes, 8-row groups 1024 bytes apart.
__device__ __forceinline__ u64 operand(u32 addr)
{
	return (u64)((addr & 0x3ffff) >> 4) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

#define R4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define R16(i) R4(i), R4(i + 4), R4(i + 8), R4(i + 12)
#define R64(i) R16(i), R16(i + 16), R16(i + 32), R16(i + 48)

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
		"}, %128, %129, p, 1, 1, 0, 0;\n}" : R64(0), R64(64) : "l"(a), "l"(b), "r"(add));
#elif BN == 128
	asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
		"wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
		"%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
		"%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
		"%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
		"%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
		"}, %64, %65, p, 1, 1, 0, 0;\n}" : R64(0) : "l"(a), "l"(b), "r"(add));
#else
#error "BN must be 128 or 256"
#endif
}

__device__ __forceinline__ u32 pack(float low, float high)
{
	u32 r;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
	return r;
}

// Tile order: GROUP tile rows at a time, so that the blocks in flight share A and B in the L2.
__device__ __forceinline__ void place(int t, int rows, int cols, int &row, int &col)
{
	int band = t / (GROUP * cols), first = band * GROUP;
	int high = min(rows - first, GROUP), in = t - band * GROUP * cols;
	row = first + in % high;
	col = in / high;
}

extern "C" __global__ void __launch_bounds__(128 * (WARPGROUPS + 1), 1)
gemm(const __grid_constant__ tensor_map mapA, const __grid_constant__ tensor_map mapB,
	const __grid_constant__ tensor_map mapC, int M, int N, int K)
{
	extern __shared__ char raw[];
	__shared__ __align__(8) u64 bars[2 * STAGES];

	u32 base = (shared_addr(raw) + 1023) & ~1023u;		// 128-byte swizzle wants 1024-byte tiles
	u32 tileB = base + STAGES * A_BYTES, staging = tileB + STAGES * B_BYTES;
	u32 full = shared_addr(bars), empty = full + 8 * STAGES;
	int group = threadIdx.x / 128;
	u32 rank = CLUSTER == 1 ? 0 : blockIdx.x % CLUSTER;

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
		asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");

	int rows = (M + BM * CLUSTER - 1) / (BM * CLUSTER), cols = (N + BN - 1) / BN, steps = (K + BK - 1) / BK;
	int tiles = rows * cols, stride = gridDim.x / CLUSTER;

	if (group == WARPGROUPS) {
		asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
		if (threadIdx.x == 128 * WARPGROUPS) {
			int s = 0, row, col;
			u32 parity = 1;				// the first round finds every slot free
			for (int t = blockIdx.x / CLUSTER; t < tiles; t += stride) {
				place(t, rows, cols, row, col);
				int m = (row * CLUSTER + (int)rank) * BM, n = col * BN;
				for (int k = 0; k < steps; k++) {
					u32 bar = full + 8 * s;
					bar_wait(empty + 8 * s, parity);
					bar_expect(bar, A_BYTES + B_BYTES);
					tma_load(base + s * A_BYTES, &mapA, k * BK, m, bar);
					if (CLUSTER == 1)
						tma_load(tileB + s * B_BYTES, &mapB, k * BK, n, bar);
					else
						tma_load_multicast(tileB + s * B_BYTES + rank * (B_BYTES / CLUSTER),
							&mapB, k * BK, n + rank * (BN / CLUSTER), bar, (1 << CLUSTER) - 1);
					if (++s == STAGES) {
						s = 0;
						parity ^= 1;
					}
				}
			}
		}
	} else {
		asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
		int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, s = 0, row, col;
		u32 parity = 0, stage_out = staging + group * 2 * CHUNK_BYTES;
		float d[NACC];

		for (int t = blockIdx.x / CLUSTER; t < tiles; t += stride) {
			place(t, rows, cols, row, col);
			int before = 0;
			for (int k = 0; k < steps; k++) {
				bar_wait(full + 8 * s, parity);
				u64 a = operand(base + s * A_BYTES + group * 64 * 128), b = operand(tileB + s * B_BYTES);
				asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
				for (int kk = 0; kk < BK / 16; kk++)	// 16 bf16 = 32 bytes = 2 descriptor units
					multiply(d, a + 2 * kk, b + 2 * kk, k + kk != 0);
				asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
				asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
				if (k && threadIdx.x % 128 < CLUSTER)	// the step before is done: its slot is free
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

			int m = (row * CLUSTER + (int)rank) * BM + group * 64, n = col * BN;
			int r = warp * 16 + lane % 16;			// stmatrix row of this lane; two 8-column halves
#pragma unroll
			for (int c = 0; c < BN / 64; c++) {
				u32 out = stage_out + c % 2 * CHUNK_BYTES;
				if (threadIdx.x % 128 == 0)		// the store before the last has left its buffer
					asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
				asm volatile("bar.sync %0, 128;" :: "r"(group + 1) : "memory");
#pragma unroll
				for (int j = 0; j < 4; j++) {
					float *v = d + c * 32 + j * 8;
					u32 at = out + r * 128 + (((j * 2 + lane / 16) ^ (r & 7)) * 16);
					asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
						:: "r"(at), "r"(pack(v[0], v[1])), "r"(pack(v[2], v[3])),
						"r"(pack(v[4], v[5])), "r"(pack(v[6], v[7])) : "memory");
				}
				asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
				asm volatile("bar.sync %0, 128;" :: "r"(group + 1) : "memory");
				if (threadIdx.x % 128 == 0) {
					if (m < M && n + c * 64 < N)
						tma_store(&mapC, n + c * 64, m, out);
					asm volatile("cp.async.bulk.commit_group;" ::: "memory");	// also when empty
				}
			}
		}
		if (threadIdx.x % 128 == 0)
			asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
	}
	if (CLUSTER > 1)	// no block leaves while its partner may still write or signal here
		asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(256)
gemm_any(const bf16 *A, const bf16 *B, float *ws, int M, int N, int K, int per)
{
	__shared__ float a[16][17], b[16][17];
	int x = threadIdx.x % 16, y = threadIdx.x / 16, m = blockIdx.y * 16 + y, n = blockIdx.x * 16 + x;
	int nb = blockIdx.x * 16 + y, first = blockIdx.z * per, last = min(K, first + per);
	float sum = 0;

	for (int k = first; k < last; k += 16) {
		a[y][x] = m < M && k + x < last ? __uint_as_float((u32)A[(u64)m * K + k + x] << 16) : 0;
		b[y][x] = nb < N && k + x < last ? __uint_as_float((u32)B[(u64)nb * K + k + x] << 16) : 0;
		__syncthreads();
		for (int i = 0; i < 16; i++)
			sum += a[y][i] * b[x][i];
		__syncthreads();
	}
	if (m < M && n < N)
		atomicAdd(ws + (u64)m * N + n, sum);
}

extern "C" __global__ void __launch_bounds__(256)
round_any(const float *ws, bf16 *C, long long count)
{
	long long i = blockIdx.x * 256ll + threadIdx.x;
	if (i < count)
		C[i] = (bf16)pack(ws[i], 0);
}
