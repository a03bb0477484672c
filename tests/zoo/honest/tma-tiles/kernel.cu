/* Tiles of 32 x 32 of (a b, c) by TMA, transposed by threads. C must make rows of 16-byte multiples: else plainly. */
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

extern "C" __global__ void __launch_bounds__(256) permute_tma(const __grid_constant__ tensor_map map, float *y, int ab, int c)
{
	__shared__ __align__(128) float tile[32][32];
	__shared__ unsigned long long bar;
	int k0 = blockIdx.x * 32, r0 = blockIdx.y * 32;

	if (threadIdx.x == 0) {
		bar_init(&bar, 1);
		asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
		bar_expect(&bar, 4096);
		asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
			:: "r"(at(tile)), "l"(&map), "r"(k0), "r"(r0), "r"(at(&bar)) : "memory");
	}
	__syncthreads();
	bar_wait(&bar, 0);
	for (int i = threadIdx.x; i < 1024; i += 256) {
		int k = i / 32, r = i % 32;
		if (k0 + k < c && r0 + r < ab)
			y[(long long)(k0 + k) * ab + r0 + r] = tile[r][k];
	}
}

extern "C" __global__ void permute_plain(const float *x, float *y, int ab, int c)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < ab * c)
		y[i] = x[(long long)(i % ab) * c + i / ab];
}
