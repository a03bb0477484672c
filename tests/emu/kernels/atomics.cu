// launch: many grid=7 block=96 args=o,w
// launch: check grid=1 block=1 args=o,w
// Atomics of all kinds and types, with scopes, on global and shared memory.

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
struct cells {
	int add, sub, lo, hi, band, bor, bxor;
	unsigned uadd, usub, ulo, uhi, uand, uor, uxor, inc, dec, last, cas;
	unsigned long long wadd, wlo, whi, wand, wor, wxor, wcas, wlast;
	long long slo, shi;
	float fadd, flast;
	double dadd;
	int iexch;
	unsigned short half;
};

__global__ void many(unsigned *o, cells *c)
{
	__shared__ unsigned s;
	__shared__ float f;
	int id = blockIdx.x * blockDim.x + threadIdx.x; /* 0..671 */
	if (threadIdx.x == 0) {
		s = 0;
		f = 0;
	}
	__syncthreads();
	atomicAdd(&s, 2u);
	atomicAdd_block(&f, 0.5f);
	__syncthreads();
	expect(o, s == 192 && f == 48.0f, 1);
	atomicAdd(&c->add, id);
	atomicSub(&c->sub, 3);
	atomicMin(&c->lo, 5 - id);
	atomicMax_system(&c->hi, id);
	atomicOr(&c->bor, 1 << (id % 31));
	atomicXor(&c->bxor, id);
	atomicAnd(&c->band, -1);
	atomicAdd_system(&c->uadd, 1u);
	atomicSub(&c->usub, 1u);
	atomicMin(&c->ulo, 0u);
	atomicMax(&c->uhi, 4000000000u - id);
	atomicAnd_block(&c->uand, 0u);
	atomicOr(&c->uor, 1u << (id & 31));
	atomicXor(&c->uxor, 1u);
	expect(o, atomicInc(&c->inc, 99u) <= 99u, 2);
	expect(o, atomicDec(&c->dec, 10u) <= 10u, 3);
	atomicExch(&c->last, id + 1u);
	unsigned seen = c->cas, was;
	do {
		was = seen;
		seen = atomicCAS(&c->cas, was, was + 2u);
	} while (seen != was);
	atomicAdd(&c->wadd, 1ull << 33);
	atomicMin(&c->wlo, 0ull);
	atomicMax(&c->whi, (unsigned long long)id << 40);
	atomicAnd(&c->wand, 0ull);
	atomicOr(&c->wor, 1ull << (id & 63));
	atomicXor(&c->wxor, 1ull << 40);
	atomicExch(&c->wlast, 9ull);
	atomicCAS(&c->wcas, 0ull, 77ull);
	atomicMin(&c->slo, (long long)-id);
	atomicMax(&c->shi, (long long)id);
	atomicAdd(&c->fadd, 0.25f);
	atomicExch(&c->flast, 2.5f);
	atomicAdd(&c->dadd, 0.125);
	atomicExch_block(&c->iexch, -4);
	atomicCAS(&c->half, (unsigned short)0, (unsigned short)65535);
}

__global__ void check(unsigned *o, const cells *c)
{
	const int n = 672;
	expect(o, c->add == n * (n - 1) / 2 && c->sub == -3 * n, 10);
	expect(o, c->lo == 5 - (n - 1) && c->hi == n - 1, 11);
	int x = 0;
	for (int k = 0; k < n; k++)
		x ^= k;
	expect(o, c->bor == 0x7fffffff && c->bxor == x && c->band == 0, 12);
	expect(o, c->uadd == (unsigned)n && c->usub == 0u - n && c->ulo == 0 && c->uhi == 4000000000u, 13);
	expect(o, c->uand == 0 && c->uor == ~0u && c->uxor == 0, 14);
	expect(o, c->inc == (unsigned)n % 100, 15);
	expect(o, c->dec == (11 - n % 11) % 11, 16);
	expect(o, c->last >= 1 && c->last <= (unsigned)n && c->cas == 2u * n, 17);
	expect(o, c->wadd == (unsigned long long)n << 33 && c->whi == (n - 1ull) << 40, 18);
	expect(o, c->wor == ~0ull && c->wxor == 0 && c->wlast == 9 && c->wcas == 77, 19);
	expect(o, c->slo == -(n - 1) && c->shi == n - 1, 20);
	expect(o, c->fadd == 0.25f * n && c->flast == 2.5f && c->dadd == 0.125 * n, 21);
	expect(o, c->iexch == -4 && c->half == 65535, 22);
}
