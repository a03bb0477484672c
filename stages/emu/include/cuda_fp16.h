/* fp16 and its pairs: the bit patterns of IEEE binary16, correctly rounded conversions.
 *
 * SPDX-License-Identifier: MIT
 *
 * Sums, products, quotients and square roots are computed in float and rounded again, which
 * gives the correctly rounded result (24 >= 2 * 11 + 2); fma goes through double rounded to
 * odd. Transcendental functions are float's, rounded once: a GPU's may differ in the last bit.
 */
#ifndef EMU_CUDA_FP16_H
#define EMU_CUDA_FP16_H
#include "emu_half.h"

struct alignas(2) __half;
EMU_INLINE unsigned short emu_h_bits_from_float(float f);
EMU_INLINE float emu_h_bits_to_float(unsigned short h);

struct alignas(2) __half {
	unsigned short bits;
	__half() = default;
	EMU_INLINE __half(float f) : bits(emu_h_bits_from_float(f)) {}
	EMU_INLINE __half(double d) : bits(emu_h_bits_from_float(emu_double_odd(d))) {}
	EMU_INLINE __half(int i) : bits(emu_h_bits_from_float(emu_double_odd((double)i))) {}
	EMU_INLINE __half(unsigned i) : bits(emu_h_bits_from_float(emu_double_odd((double)i))) {}
	EMU_INLINE __half(short i) : bits(emu_h_bits_from_float((float)i)) {}
	EMU_INLINE __half(unsigned short i) : bits(emu_h_bits_from_float((float)i)) {}
	EMU_INLINE __half(long long i) : bits(emu_h_bits_from_float(emu_double_odd((double)i))) {}
	EMU_INLINE __half(unsigned long long i) : bits(emu_h_bits_from_float(emu_double_odd((double)i))) {}
	EMU_INLINE __half(__half_raw r);
	EMU_INLINE operator float() const { return emu_h_bits_to_float(bits); }
	EMU_INLINE explicit operator double() const { return (double)emu_h_bits_to_float(bits); }
	EMU_INLINE explicit operator int() const { return __float2int_rz(emu_h_bits_to_float(bits)); }
	EMU_INLINE explicit operator unsigned() const { return __float2uint_rz(emu_h_bits_to_float(bits)); }
	EMU_INLINE explicit operator bool() const { return (bits & 0x7fffu) != 0; }
	EMU_INLINE operator __half_raw() const { return __half_raw{bits}; }
};
struct alignas(4) __half2 {
	__half x, y;
	__half2() = default;
	EMU_INLINE __half2(__half a, __half b) : x(a), y(b) {}
};
typedef __half half;
typedef __half2 half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;
EMU_INLINE __half::__half(__half_raw r) : bits(r.x) {}

EMU_INLINE float emu_h_bits_to_float(unsigned short h)
{
	/* the exponent moved into float's place, then scaled by the difference of the biases */
	float f = emu_bits<float>((unsigned)(h & 0x7fffu) << 13) * 0x1p112f;
	unsigned w = emu_bits<unsigned>(f);
	if ((h & 0x7c00u) == 0x7c00u)
		w |= 0x7f800000u;
	return emu_bits<float>(w | (unsigned)(h & 0x8000u) << 16);
}

/* mode as in emu_direct: 0 nearest even, 1 to zero, 2 up, 3 down */
EMU_INLINE unsigned short emu_h_round(float f, int mode)
{
	unsigned w = emu_bits<unsigned>(f), sign = w >> 16 & 0x8000u, a = w & 0x7fffffffu;
	if (a > 0x7f800000u)
		return (unsigned short)0x7fffu;
	if (mode == 2)
		mode = sign ? 1 : 4; /* 4: away from zero */
	else if (mode == 3)
		mode = sign ? 4 : 1;
	if (a == 0x7f800000u)
		return (unsigned short)(sign | 0x7c00u);
	if (a >= 0x47800000u) /* 65536 and more */
		return (unsigned short)(sign | (mode == 1 ? 0x7bffu : 0x7c00u));
	unsigned r, rest, middle;
	if (a < 0x38800000u) { /* subnormal: units of 2^-24 */
		unsigned e = a >> 23, m = (a & 0x7fffffu) | (e ? 0x800000u : 0u);
		unsigned shift = 126u - (e ? e : 1u);
		if (shift > 25u) { /* below half a unit */
			r = 0;
			rest = a ? 1u : 0u;
			middle = 2u;
		} else {
			r = m >> shift;
			rest = m & ((1u << shift) - 1u);
			middle = 1u << (shift - 1u);
		}
	} else {
		r = (a - 0x38000000u) >> 13;
		rest = a & 0x1fffu;
		middle = 0x1000u;
	}
	if (mode == 0 ? rest > middle || (rest == middle && (r & 1u)) : mode == 4 && rest)
		r++;
	return (unsigned short)(sign | r);
}

EMU_INLINE unsigned short emu_h_bits_from_float(float f)
{
	unsigned w = emu_bits<unsigned>(f), a = w & 0x7fffffffu;
	if (__builtin_expect(a - 0x38800000u < 0x47800000u - 0x38800000u, 1))
		return (unsigned short)((w >> 16 & 0x8000u) | (a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13);
	return emu_h_round(f, 0);
}
EMU_INLINE float emu_h_to_float(__half h) { return emu_h_bits_to_float(h.bits); }
EMU_INLINE __half emu_h_make(unsigned short bits)
{
	__half h;
	h.bits = bits;
	return h;
}
EMU_INLINE __half emu_h_from_float(float f) { return emu_h_make(emu_h_bits_from_float(f)); }
EMU_INLINE __half emu_h_from_odd(double d) { return emu_h_from_float(emu_double_odd(d)); }

/* ---- conversions ---- */
EMU_INLINE float __half2float(__half h) { return emu_h_to_float(h); }
EMU_INLINE __half __float2half(float f) { return emu_h_from_float(f); }
EMU_INLINE __half __float2half_rn(float f) { return emu_h_from_float(f); }
EMU_INLINE __half __float2half_rz(float f) { return emu_h_make(emu_h_round(f, 1)); }
EMU_INLINE __half __float2half_ru(float f) { return emu_h_make(emu_h_round(f, 2)); }
EMU_INLINE __half __float2half_rd(float f) { return emu_h_make(emu_h_round(f, 3)); }
EMU_INLINE __half __double2half(double d) { return emu_h_from_odd(d); }
EMU_INLINE __half2 __float2half2_rn(float f) { return __half2(emu_h_from_float(f), emu_h_from_float(f)); }
EMU_INLINE __half2 __floats2half2_rn(float a, float b)
{
	return __half2(emu_h_from_float(a), emu_h_from_float(b));
}
EMU_INLINE __half2 __float22half2_rn(float2 f) { return __floats2half2_rn(f.x, f.y); }
EMU_INLINE float2 __half22float2(__half2 v) { return float2{emu_h_to_float(v.x), emu_h_to_float(v.y)}; }
EMU_INLINE __half2 __half2half2(__half h) { return __half2(h, h); }
EMU_INLINE unsigned short __half_as_ushort(__half h) { return h.bits; }
EMU_INLINE short __half_as_short(__half h) { return (short)h.bits; }
EMU_INLINE __half __ushort_as_half(unsigned short b) { return emu_h_make(b); }
EMU_INLINE __half __short_as_half(short b) { return emu_h_make((unsigned short)b); }
EMU_INLINE __half __int2half_rn(int i) { return emu_h_from_odd((double)i); }
EMU_INLINE __half __uint2half_rn(unsigned i) { return emu_h_from_odd((double)i); }
EMU_INLINE __half __short2half_rn(short i) { return emu_h_from_float((float)i); }
EMU_INLINE __half __ushort2half_rn(unsigned short i) { return emu_h_from_float((float)i); }
EMU_INLINE int __half2int_rn(__half h) { return __float2int_rn(emu_h_to_float(h)); }
EMU_INLINE int __half2int_rz(__half h) { return __float2int_rz(emu_h_to_float(h)); }
EMU_INLINE int __half2int_ru(__half h) { return __float2int_ru(emu_h_to_float(h)); }
EMU_INLINE int __half2int_rd(__half h) { return __float2int_rd(emu_h_to_float(h)); }
EMU_INLINE unsigned __half2uint_rn(__half h) { return __float2uint_rn(emu_h_to_float(h)); }
EMU_INLINE unsigned __half2uint_rz(__half h) { return __float2uint_rz(emu_h_to_float(h)); }
EMU_INLINE short __half2short_rz(__half h) { return (short)__float2int_rz(emu_h_to_float(h)); }
#define CUDART_INF_FP16 __ushort_as_half((unsigned short)0x7c00u)
#define CUDART_NAN_FP16 __ushort_as_half((unsigned short)0x7fffu)
#define CUDART_ZERO_FP16 __ushort_as_half((unsigned short)0u)
#define CUDART_ONE_FP16 __ushort_as_half((unsigned short)0x3c00u)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half((unsigned short)0x7bffu)

/* ---- arithmetic: through float, which is exact enough to round once more ---- */
#define EMU___half2(name, expression) \
	EMU_INLINE __half name(__half p, __half q) \
	{ \
		float a = emu_h_to_float(p), b = emu_h_to_float(q); \
		return emu_h_from_float(expression); \
	} \
	EMU_INLINE __half2 name##2(__half2 p, __half2 q) { return __half2{name(p.x, q.x), name(p.y, q.y)}; }
EMU___half2(__hadd, a + b)
EMU___half2(__hsub, a - b)
EMU___half2(__hmul, a * b)
EMU___half2(__hdiv, a / b)
EMU___half2(__hmin, fminf(a, b))
EMU___half2(__hmax, fmaxf(a, b))
EMU___half2(__hmin_nan, a != a || b != b ? NAN : fminf(a, b))
EMU___half2(__hmax_nan, a != a || b != b ? NAN : fmaxf(a, b))
EMU___half2(__hadd_sat, __saturatef(a + b))
EMU___half2(__hsub_sat, __saturatef(a - b))
EMU___half2(__hmul_sat, __saturatef(a * b))
#undef EMU___half2
EMU_INLINE __half2 __h2div(__half2 p, __half2 q) { return __hdiv2(p, q); }
EMU_INLINE __half __hadd_rn(__half a, __half b) { return __hadd(a, b); }
EMU_INLINE __half __hsub_rn(__half a, __half b) { return __hsub(a, b); }
EMU_INLINE __half __hmul_rn(__half a, __half b) { return __hmul(a, b); }
EMU_INLINE __half2 __hadd2_rn(__half2 a, __half2 b) { return __hadd2(a, b); }
EMU_INLINE __half2 __hsub2_rn(__half2 a, __half2 b) { return __hsub2(a, b); }
EMU_INLINE __half2 __hmul2_rn(__half2 a, __half2 b) { return __hmul2(a, b); }
EMU_INLINE __half __hfma(__half a, __half b, __half c)
{
	return emu_h_from_odd(emu_fma_odd(emu_h_to_float(a), emu_h_to_float(b), emu_h_to_float(c)));
}
EMU_INLINE __half2 __hfma2(__half2 a, __half2 b, __half2 c) { return __half2{__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
EMU_INLINE __half __hfma_relu(__half a, __half b, __half c)
{
	__half r = __hfma(a, b, c);
	return emu_h_to_float(r) < 0 ? emu_h_from_float(0.0f) : r;
}
EMU_INLINE __half2 __hfma2_relu(__half2 a, __half2 b, __half2 c)
{
	return __half2{__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)};
}
EMU_INLINE __half2 __hcmadd(__half2 a, __half2 b, __half2 c)
{
	__half re = __hfma(a.x, b.x, c.x), im = __hfma(a.x, b.y, c.y);
	__half minus;
	minus.bits = (unsigned short)(a.y.bits ^ 0x8000u);
	return __half2{__hfma(minus, b.y, re), __hfma(a.y, b.x, im)};
}
EMU_INLINE __half __hneg(__half a)
{
	a.bits = (unsigned short)(a.bits ^ 0x8000u);
	return a;
}
EMU_INLINE __half __habs(__half a)
{
	a.bits = (unsigned short)(a.bits & 0x7fffu);
	return a;
}
EMU_INLINE __half2 __hneg2(__half2 a) { return __half2{__hneg(a.x), __hneg(a.y)}; }
EMU_INLINE __half2 __habs2(__half2 a) { return __half2{__habs(a.x), __habs(a.y)}; }

/* ---- comparisons; the u forms are true for unordered operands ---- */
#define EMU_HC(name, expression, unordered) \
	EMU_INLINE bool __h##name(__half p, __half q) \
	{ \
		float a = emu_h_to_float(p), b = emu_h_to_float(q); \
		return (unordered && (a != a || b != b)) || (a == a && b == b && (expression)); \
	} \
	EMU_INLINE __half2 __h##name##2(__half2 p, __half2 q) \
	{ \
		return __half2{emu_h_from_float(__h##name(p.x, q.x)), emu_h_from_float(__h##name(p.y, q.y))}; \
	} \
	EMU_INLINE bool __hb##name##2(__half2 p, __half2 q) { return __h##name(p.x, q.x) && __h##name(p.y, q.y); } \
	EMU_INLINE unsigned __h##name##2_mask(__half2 p, __half2 q) \
	{ \
		return (__h##name(p.x, q.x) ? 0xffffu : 0u) | (__h##name(p.y, q.y) ? 0xffff0000u : 0u); \
	}
EMU_HC(eq, a == b, false)
EMU_HC(ne, a != b, false)
EMU_HC(lt, a < b, false)
EMU_HC(le, a <= b, false)
EMU_HC(gt, a > b, false)
EMU_HC(ge, a >= b, false)
EMU_HC(equ, a == b, true)
EMU_HC(neu, a != b, true)
EMU_HC(ltu, a < b, true)
EMU_HC(leu, a <= b, true)
EMU_HC(gtu, a > b, true)
EMU_HC(geu, a >= b, true)
#undef EMU_HC
EMU_INLINE bool __hisnan(__half a) { return __builtin_isnan(emu_h_to_float(a)); }
EMU_INLINE __half2 __hisnan2(__half2 a)
{
	return __half2{emu_h_from_float(__hisnan(a.x)), emu_h_from_float(__hisnan(a.y))};
}
EMU_INLINE int __hisinf(__half a)
{
	float f = emu_h_to_float(a);
	return __builtin_isinf(f) ? (f > 0 ? 1 : -1) : 0;
}

/* ---- functions: computed in float and rounded once ---- */
#define EMU_HF(name, call) \
	EMU_INLINE __half h##name(__half p) \
	{ \
		float a = emu_h_to_float(p); \
		return emu_h_from_float(call); \
	} \
	EMU_INLINE __half2 h2##name(__half2 p) { return __half2{h##name(p.x), h##name(p.y)}; }
EMU_HF(sqrt, sqrtf(a))
EMU_HF(rsqrt, (float)(1.0 / sqrt((double)a)))
EMU_HF(rcp, 1.0f / a)
EMU_HF(exp, expf(a))
EMU_HF(exp2, exp2f(a))
EMU_HF(exp10, exp10f(a))
EMU_HF(log, logf(a))
EMU_HF(log2, log2f(a))
EMU_HF(log10, log10f(a))
EMU_HF(sin, sinf(a))
EMU_HF(cos, cosf(a))
EMU_HF(tanh, tanhf(a))
EMU_HF(tanh_approx, tanhf(a))
EMU_HF(ceil, ceilf(a))
EMU_HF(floor, floorf(a))
EMU_HF(trunc, truncf(a))
EMU_HF(rint, rintf(a))
#undef EMU_HF

/* ---- pairs ---- */
EMU_INLINE __half2 __halves2half2(__half a, __half b) { return __half2{a, b}; }
EMU_INLINE __half2 make_half2(__half a, __half b) { return __half2{a, b}; }
EMU_INLINE __half __low2half(__half2 v) { return v.x; }
EMU_INLINE __half __high2half(__half2 v) { return v.y; }
EMU_INLINE __half2 __low2half2(__half2 v) { return __half2{v.x, v.x}; }
EMU_INLINE __half2 __high2half2(__half2 v) { return __half2{v.y, v.y}; }
EMU_INLINE __half2 __lowhigh2highlow(__half2 v) { return __half2{v.y, v.x}; }
EMU_INLINE __half2 __lows2half2(__half2 a, __half2 b) { return __half2{a.x, b.x}; }
EMU_INLINE __half2 __highs2half2(__half2 a, __half2 b) { return __half2{a.y, b.y}; }
EMU_INLINE float __low2float(__half2 v) { return emu_h_to_float(v.x); }
EMU_INLINE float __high2float(__half2 v) { return emu_h_to_float(v.y); }

/* ---- operators ---- */
#define EMU_HO(op, name) \
	EMU_INLINE __half operator op(__half a, __half b) { return name(a, b); } \
	EMU_INLINE __half2 operator op(__half2 a, __half2 b) { return name##2(a, b); } \
	EMU_INLINE __half &operator op##=(__half &a, __half b) { return a = name(a, b); } \
	EMU_INLINE __half2 &operator op##=(__half2 &a, __half2 b) { return a = name##2(a, b); }
EMU_HO(+, __hadd)
EMU_HO(-, __hsub)
EMU_HO(*, __hmul)
EMU_HO(/, __hdiv)
#undef EMU_HO
EMU_INLINE __half operator+(__half a) { return a; }
EMU_INLINE __half operator-(__half a) { return __hneg(a); }
EMU_INLINE __half2 operator-(__half2 a) { return __hneg2(a); }
EMU_INLINE __half &operator++(__half &a) { return a = __hadd(a, emu_h_from_float(1.0f)); }
EMU_INLINE __half &operator--(__half &a) { return a = __hsub(a, emu_h_from_float(1.0f)); }
EMU_INLINE bool operator==(__half a, __half b) { return __heq(a, b); }
EMU_INLINE bool operator!=(__half a, __half b) { return __hneu(a, b); }
EMU_INLINE bool operator<(__half a, __half b) { return __hlt(a, b); }
EMU_INLINE bool operator<=(__half a, __half b) { return __hle(a, b); }
EMU_INLINE bool operator>(__half a, __half b) { return __hgt(a, b); }
EMU_INLINE bool operator>=(__half a, __half b) { return __hge(a, b); }
EMU_INLINE bool operator==(__half2 a, __half2 b) { return __hbeq2(a, b); }

/* ---- memory, atomics, shuffles ---- */
EMU_ATOMIC2(atomicAdd, __half, EMU_UPDATE(__half, __hadd(old, v)))
EMU_ATOMIC2(atomicAdd, __half2, EMU_UPDATE(__half2, __hadd2(old, v)))
EMU_SHFL(__half)
EMU_SHFL(__half2)

#endif
