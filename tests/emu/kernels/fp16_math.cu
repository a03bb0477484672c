// launch: math grid=32 block=256 args=o
// launch: pairs grid=1 block=32 args=o,w
// Arithmetic, fma, comparisons, pairs and atomics of fp16 and bfloat16, rounded correctly.

#include <cuda_fp16.h>
#include <cuda_bf16.h>

static __device__ void expect(unsigned *o, bool ok, unsigned where)
{
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = where;
}
/* long double would do, but the exact sum in integers is beyond doubt: a*b + c of fp16 */
__device__ unsigned exact_fma(half a, half b, half c)
{
	__int128 p = (__int128)llrint(ldexp((double)__half2float(a), 24)) * llrint(ldexp((double)__half2float(b), 24));
	__int128 s = p + ((__int128)llrint(ldexp((double)__half2float(c), 24)) << 24); /* units of 2^-48 */
	bool minus = s < 0;
	unsigned __int128 m = minus ? -s : s;
	int top = 0;
	while (top < 127 && m >> top > 1)
		top++;
	int e = top - 48 < -14 ? -14 : top - 48; /* exponent of the result */
	int shift = e - 10 + 48;
	unsigned __int128 q = m >> shift, rest = m & (((unsigned __int128)1 << shift) - 1), half_unit = (unsigned __int128)1 << (shift - 1);
	if (rest > half_unit || (rest == half_unit && (q & 1)))
		q++;
	double v = ldexp((double)(unsigned long long)q, e - 10);
	unsigned r = v >= 65520.0 ? 0x7c00u : __half_as_ushort(__float2half((float)v));
	return r | (minus ? 0x8000u : 0u);
}

template <class T> __device__ T four(T x) { return x + x + x + x; }

__global__ void math(unsigned *o)
{
	unsigned id = blockIdx.x * 256 + threadIdx.x, r = id * 2654435761u ^ id << 7;
	half a = __ushort_as_half((unsigned short)(r & 0xffffu)), b = __ushort_as_half((unsigned short)(r >> 16));
	half c = __ushort_as_half((unsigned short)(r * 40503u >> 9));
	if ((id & 3) == 0) { /* a product close to a tie against c */
		a = __ushort_as_half((unsigned short)(0x3c00u | (r & 0x3ffu)));
		b = __ushort_as_half((unsigned short)(0x3800u | (r >> 10 & 0x3ffu)));
		c = __ushort_as_half((unsigned short)((r >> 20 & 0x83ffu) | (r & 0x8000u)));
	}
	float fa = __half2float(a), fb = __half2float(b), fc = __half2float(c);
	if (!isfinite(fa) || !isfinite(fb) || !isfinite(fc))
		return;
	expect(o, __half_as_ushort(a + b) == __half_as_ushort(__double2half((double)fa + fb)), 1);
	expect(o, __half_as_ushort(a - b) == __half_as_ushort(__double2half((double)fa - fb)), 2);
	expect(o, __half_as_ushort(a * b) == __half_as_ushort(__double2half((double)fa * fb)), 3);
	unsigned got = __half_as_ushort(__hfma(a, b, c)), want = exact_fma(a, b, c);
	expect(o, got == want || ((got | want) & 0x7fffu) == 0, 4);
	if (fb != 0)
		expect(o, __half_as_ushort(a / b) == __half_as_ushort(__double2half((double)fa / fb)), 5);
	expect(o, (a < b) == (fa < fb) && (a == b) == (fa == fb) && __hge(a, b) == (fa >= fb), 6);
	expect(o, __half2float(__hmax(a, b)) == fmaxf(fa, fb) && __half2float(hsqrt(__habs(a))) == __half2float(__float2half(sqrtf(fabsf(fa)))), 7);
	/* bfloat16: a tie that only the addend breaks */
	__nv_bfloat16 tiny = __float2bfloat16(1e-30f);
	__nv_bfloat16 x = __float2bfloat16(1.0078125f), y = __float2bfloat16(1.5f); /* product 1.51171875: a tie */
	float up = __bfloat162float(__hfma(x, y, tiny)), down = __bfloat162float(__hfma(x, y, __hneg(tiny)));
	expect(o, up == 1.515625f && down == 1.5078125f, 8);
	expect(o, __bfloat162float(__hmul(x, y)) == 1.515625f || __bfloat162float(__hmul(x, y)) == 1.5078125f, 9);
}

struct cells {
	half2 h;
	__nv_bfloat162 b;
	half one[2];
};

__global__ void pairs(unsigned *o, cells *w)
{
	int t = threadIdx.x;
	half2 p = __floats2half2_rn((float)t, 0.5f * t), q = __half2half2(__float2half(2.0f));
	float2 f = __half22float2(__hfma2(p, q, p));
	expect(o, f.x == 3.0f * t && f.y == 1.5f * t, 20);
	expect(o, __low2float(p * q) == 2.0f * t && __high2float(p + p) == (float)t, 21);
	expect(o, __hbeq2(__lowhigh2highlow(__lowhigh2highlow(p)), p) && __hbgt2(q, q) == false, 22);
	half2 s = __shfl_xor_sync(0xffffffffu, p, 1);
	expect(o, __low2float(s) == (float)(t ^ 1), 23);
	half m = __low2half(p);
	m += __float2half(1.0f);
	m = -m;
	expect(o, (float)m == -(t + 1.0f) && (int)m == -(t + 1), 24);
	__nv_bfloat162 b = __floats2bfloat162_rn((float)t, 1.0f);
	expect(o, __bfloat1622float2(__hadd2(b, b)).x == 2.0f * t, 25);
	expect(o, __bfloat162float(__float2bfloat16(3.0f) * __float2bfloat16(5.0f)) == 15.0f, 26);
	expect(o, four(__float2half(0.25f)) == __float2half(1.0f) && four(__float2bfloat16(2.0f)) == __float2bfloat16(8.0f), 27);
	expect(o, __half2float(hexp(__float2half(0.0f))) == 1.0f && __bfloat162float(hrsqrt(__float2bfloat16(4.0f))) == 0.5f, 28);
	expect(o, sizeof(half) == 2 && sizeof(half2) == 4 && alignof(half2) == 4, 29);
	__shared__ half sh[32];
	sh[t] = __int2half_rn(t);
	__syncthreads();
	expect(o, __half2int_rn(sh[31 - t]) == 31 - t, 30);
	atomicAdd(&w->h, __floats2half2_rn(1.0f, 0.25f));
	atomicAdd(&w->b, __floats2bfloat162_rn(2.0f, 0.5f));
	atomicAdd(&w->one[1], __float2half(0.5f));
	__syncthreads();
	expect(o, __low2float(w->h) == 32.0f && __high2float(w->h) == 8.0f, 31);
	expect(o, __low2float(w->b) == 64.0f && __high2float(w->b) == 16.0f && __half2float(w->one[1]) == 16.0f, 32);
}
