/*
 * 64 x 64 results a block, steps of 64 in k, two stages. One thread of the second warpgroup loads by TMA (128-byte
 * swizzle, zeros beyond the ends); the first multiplies. b is row-major: its tile is taken transposed.
 */
#include <cuda_bf16.h>

struct __align__(64) tensor_map { unsigned long long opaque[16]; };

__device__ static unsigned at(const void *p)
{
	return (unsigned)__cvta_generic_to_shared(p);
}

__device__ static void bar_init(unsigned long long *bar, unsigned count)
{
	asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(at(bar)), "r"(count) : "memory");
}

__device__ static void bar_expect(unsigned long long *bar, unsigned bytes)
{
	asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(at(bar)), "r"(bytes) : "memory");
}

__device__ static void bar_wait(unsigned long long *bar, unsigned parity)
{
	asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
		"@!done bra again;\n}" :: "r"(at(bar)), "r"(parity) : "memory");
}

__device__ static void load(const void *to, const tensor_map *map, int x, int y, unsigned long long *bar)
{
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
		:: "r"(at(to)), "l"(map), "r"(x), "r"(y), "r"(at(bar)) : "memory");
}

/* 128-byte swizzle, groups of 8 rows 1024 bytes apart. */
__device__ static unsigned long long operand(unsigned addr)
{
	return (unsigned long long)((addr & 0x3ffff) >> 4) | 1ull << 16 | (unsigned long long)(1024 >> 4) << 32 | 1ull << 62;
}

#define R4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])

__device__ static void multiply(float (&d)[32], unsigned long long a, unsigned long long b, int add)
{
	asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
		"%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,"
		"%28,%29,%30,%31}, %32, %33, p, 1, 1, 0, 1;\n}"
		: R4(0), R4(4), R4(8), R4(12), R4(16), R4(20), R4(24), R4(28) : "l"(a), "l"(b), "r"(add));
}

extern "C" __global__ void __launch_bounds__(256, 1)
gemm_wgmma(const __grid_constant__ tensor_map map_a, const __grid_constant__ tensor_map map_b, __nv_bfloat16 *c, int m, int n, int k)
{
	__shared__ __align__(1024) __nv_bfloat16 as[2][64 * 64], bs[2][64 * 64];
	__shared__ unsigned long long full[2], empty[2];
	int row = blockIdx.y * 64, col = blockIdx.x * 64, steps = (k + 63) / 64;

	if (threadIdx.x == 0) {
		for (int s = 0; s < 2; s++) {
			bar_init(&full[s], 1);
			bar_init(&empty[s], 1);
		}
		asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
	}
	__syncthreads();
	if (threadIdx.x >= 128) {
		asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
		for (int i = 0; i < steps && threadIdx.x == 128; i++) {
			int s = i % 2;
			bar_wait(&empty[s], (i / 2 + 1) % 2);
			bar_expect(&full[s], 2 * 64 * 64 * 2);
			load(as[s], &map_a, i * 64, row, &full[s]);
			load(bs[s], &map_b, col, i * 64, &full[s]);
		}
		return;
	}
	asm volatile("setmaxnreg.inc.sync.aligned.u32 168;");
	float d[32];
	for (int i = 0; i < steps; i++) {
		int s = i % 2;
		bar_wait(&full[s], i / 2 % 2);
		asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
		for (int q = 0; q < 4; q++)
			multiply(d, operand(at(as[s]) + 32 * q), operand(at(bs[s]) + 2048 * q), i + q > 0);
		asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
		if (threadIdx.x == 0)
			asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(at(&empty[s])) : "memory");
	}
	int r = row + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
	for (int j = 0; j < 8; j++) {
		int s = col + j * 8 + threadIdx.x % 4 * 2;
		for (int h = 0; h < 2; h++)
			if (r + 8 * h < m && s < n)
				*(__nv_bfloat162 *)(c + (long long)(r + 8 * h) * n + s) =
					__floats2bfloat162_rn(d[4 * j + 2 * h], d[4 * j + 2 * h + 1]);
	}
}
