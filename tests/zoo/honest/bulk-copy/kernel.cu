/* One thread asks for 4 KiB of x and of y; all add in place; one thread sends the tile out and waits until it has gone. */
#define TILE 1024

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

__device__ static void load(float *to, const float *from, unsigned long long *bar)
{
	asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
		:: "r"(at(to)), "l"(from), "r"(4 * TILE), "r"(at(bar)) : "memory");
}

extern "C" __global__ void __launch_bounds__(256) add_bulk(const float *x, const float *y, float *out, int n)
{
	__shared__ __align__(128) float a[TILE], b[TILE];
	__shared__ unsigned long long bar;
	unsigned parity = 0;
	int whole = n / TILE;

	if (threadIdx.x == 0) {
		bar_init(&bar, 1);
		asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
	}
	__syncthreads();
	for (int t = blockIdx.x; t < whole; t += gridDim.x, parity ^= 1) {
		if (threadIdx.x == 0) {
			bar_expect(&bar, 8 * TILE);
			load(a, x + (long long)t * TILE, &bar);
			load(b, y + (long long)t * TILE, &bar);
		}
		bar_wait(&bar, parity);
		for (int i = threadIdx.x; i < TILE; i += 256)
			a[i] += b[i];
		asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
		__syncthreads();
		if (threadIdx.x == 0) {
			asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
				:: "l"(out + (long long)t * TILE), "r"(at(a)), "r"(4 * TILE) : "memory");
			asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
		}
		__syncthreads();
	}
	if (blockIdx.x == 0)
		for (int i = whole * TILE + threadIdx.x; i < n; i += 256)
			out[i] = x[i] + y[i];
}
