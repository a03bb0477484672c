t-K partial sums added into a zeroed fp32 workspace
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
		" [%0], [%1, {%2, %3}], [%4];" :: "r"(dst)