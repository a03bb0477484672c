// launch: bits grid=4 block=256 args=o
// Integer and bit intrinsics against the plain definition.

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
__global__ void bits(unsigned *o)
{
	unsigned id = blockIdx.x * 256 + threadIdx.x;
	unsigned a = id * 2654435761u, b = (a ^ 0x9e3779b9u) * 40503u + id;
	if (id == 0)
		a = 0;
	int n = 0, lead = 0, low = 0;
	unsigned rev = 0;
	for (int k = 0; k < 32; k++) {
		n += a >> k & 1;
		rev |= (a >> k & 1u) << (31 - k);
	}
	while (lead < 32 && !(a >> (31 - lead) & 1))
		lead++;
	for (int k = 31; k >= 0; k--)
		if (a >> k & 1)
			low = k + 1;
	expect(o, __popc(a) == n && __clz((int)a) == lead && __ffs((int)a) == low && __brev(a) == rev, 1);
	unsigned long long w = (unsigned long long)a << 32 | b;
	expect(o, __popcll(w) == __popc(a) + __popc(b) && __brevll(w) == ((unsigned long long)__brev(b) << 32 | __brev(a)), 2);
	expect(o, __clzll((long long)w) == (a ? __clz((int)a) : 32 + __clz((int)b)), 3);
	expect(o, __ffsll((long long)w) == (b ? __ffs((int)b) : 32 + __ffs((int)a)), 4);
	unsigned s = b & 31u;
	expect(o, __funnelshift_l(b, a, s) == (s ? a << s | b >> (32 - s) : a), 5);
	expect(o, __funnelshift_r(b, a, s) == (s ? b >> s | a << (32 - s) : b), 6);
	expect(o, __funnelshift_lc(b, a, 40) == b && __funnelshift_rc(b, a, 40) == a && __funnelshift_l(b, a, 33) == (a << 1 | b >> 31), 7);
	unsigned perm = 0, sel = 0x7205u;
	for (int k = 0; k < 4; k++) {
		unsigned i = sel >> (4 * k) & 7u;
		perm |= ((i < 4 ? a >> (8 * i) : b >> (8 * (i - 4))) & 255u) << (8 * k);
	}
	expect(o, __byte_perm(a, b, sel) == perm, 8);
	expect(o, __umulhi(a, b) == (unsigned)((unsigned long long)a * b >> 32), 9);
	expect(o, __mulhi((int)a, (int)b) == (int)((long long)(int)a * (int)b >> 32), 10);
	unsigned long long x = w * 3 + 1, al = (unsigned)w, ah = w >> 32, bl = (unsigned)x, bh = x >> 32;
	unsigned long long mid = (al * bl >> 32) + (unsigned)(ah * bl) + (unsigned)(al * bh);
	expect(o, __umul64hi(w, x) == ah * bh + (ah * bl >> 32) + (al * bh >> 32) + (mid >> 32), 11);
	int dot = 5;
	unsigned udot = 5;
	for (int k = 0; k < 4; k++) {
		dot += (int)(signed char)(a >> 8 * k) * (int)(signed char)(b >> 8 * k);
		udot += (a >> 8 * k & 255u) * (b >> 8 * k & 255u);
	}
	expect(o, __dp4a((int)a, (int)b, 5) == dot && __dp4a(a, b, 5u) == udot, 12);
	expect(o, __sad(-3, 5, 2u) == 10u && __usad(5u, 3u, 1u) == 3u, 13);
	expect(o, __hadd(-3, 6) == 1 && __rhadd(-3, 6) == 2 && __uhadd(~0u, ~0u) == ~0u, 14);
	expect(o, __mul24(-5, 7) == -35 && __umul24(0xff000002u, 3u) == 6u, 15);
	expect(o, __vadd4(0x01ff0304u, 0x01010101u) == 0x02000405u && __vmaxs2(0x8000ffffu, 0x00010001u) == 0x00010001u, 16);
	expect(o, __float_as_int(1.0f) == 0x3f800000 && __int_as_float(0x40000000) == 2.0f, 17);
	expect(o, __double_as_longlong(__hiloint2double(0x40080000, 0)) == 0x4008000000000000ll && __double2hiint(3.0) == 0x40080000, 18);
	expect(o, min(3, -2) == -2 && max(3u, 7u) == 7u && min(1.5f, 2.5f) == 1.5f && max(2ll, 3ll) == 3ll && abs(-4) == 4, 19);
}
