/* bfloat16 and its pairs: the upper half of a float, correctly rounded conversions.
 *
 * SPDX-License-Identifier: MIT
 *
 * Sums, products, quotients and square roots are computed in float and rounded again, which
 * gives the correctly rounded result (24 >= 2 * 8 + 2); fma goes through double rounded to
 * odd. Transcendental functions are float's, rounded once: a GPU's may differ in the last bit.
 */
#ifndef EMU_CUDA_BF16_H
#define EMU_CUDA_BF16_H
#include "emu_half.h"

/* mode as in emu_direct: 0 nearest even, 1 to zero, 2 up, 3 down */
EMU_INLINE unsigned short emu_b_round(float f, int mode)
{
	unsigned w = emu_bits<unsigned>(f);
	if ((w & 0x7fffffffu) > 0x7f800000u)
		return (unsigned short)0x7fffu;
	unsigned r = w >> 16, rest = w & 0xffffu, sign = w >> 31;
	if (mode == 0)
		r += rest > 0x8000u || (rest == 0x8000u && (r & 1u));
	else if (rest && ((mode == 2 && !sign) || (mode == 3 && sign)))
		r++;
	return (unsigned short)r;
}
EMU_INLINE float emu_b_bits_to_float(unsigned short b) { return emu_bits<float>((unsigned)b << 16); }

struct alignas(2) __nv_bfloat16 {
	unsigned short bits;
	__nv_bfloat16() = default;
	EMU_INLINE __nv_bfloat16(float f) : bits(emu_b_round(f, 0)) {}
	EMU_INLINE __nv_bfloat16(double d) : bits(emu_b_round(emu_double_odd(d), 0)) {}
	EMU_INLINE __nv_bfloat16(int i) : bits(emu_b_round(emu_double_odd((double)i), 0)) {}
	EMU_INLINE __nv_bfloat16(unsigned i) : bits(emu_b_round(emu_double_odd((double)i), 0)) {}
	EMU_INLINE __nv_bfloat16(short i) : bits(emu_b_round((float)i, 0)) {}
	EMU_INLINE __nv_bfloat16(unsigned short i) : bits(emu_b_round((float)i, 0)) {}
	EMU_INLINE __nv_bfloat16(long long i) : bits(emu_b_round(emu_double_odd((double)i), 0)) {}
	EMU_INLINE __nv_bfloat16(unsigned long long i) : bits(emu_b_round(emu_double_odd((double)i), 0)) {}
	EMU_INLINE __nv_bfloat16(__nv_bfloat16_raw r) : bits(r.x) {}
	EMU_INLINE operator float() const { return emu_b_bits_to_float(bits); }
	EMU_INLINE explicit operator double() const { return (double)emu_b_bits_to_float(bits); }
	EMU_INLINE explicit operator int() const { return __float2int_rz(emu_b_bits_to_float(bits)); }
	EMU_INLINE explicit operator unsigned() const { return __float2uint_rz(emu_b_bits_to_float(bits)); }
	EMU_INLINE explicit operator bool() const { return (bits & 0x7fffu) != 0; }
	EMU_INLINE operator __nv_bfloat16_raw() const { return __nv_bfloat16_raw{bits}; }
};
struct alignas(4) __nv_bfloat162 {
	__nv_bfloat16 x, y;
	__nv_bfloat162() = default;
	EMU_INLINE __nv_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) : x(a), y(b) {}
};
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

EMU_INLINE float emu_b_to_float(__nv_bfloat16 h) { return emu_b_bits_to_float(h.bits); }
EMU_INLINE __nv_bfloat16 emu_b_make(unsigned short bits)
{
	__nv_bfloat16 h;
	h.bits = bits;
	return h;
}
EMU_INLINE __nv_bfloat16 emu_b_from_float(float f) { return emu_b_make(emu_b_round(f, 0)); }
EMU_INLINE __nv_bfloat16 emu_b_from_odd(double d) { return emu_b_from_float(emu_double_odd(d)); }

/* ---- conversions ---- */
EMU_INLINE float __bfloat162float(__nv_bfloat16 h) { return emu_b_to_float(h); }
EMU_INLINE __nv_bfloat16 __float2bfloat16(float f) { return emu_b_from_float(f); }
EMU_INLINE __nv_bfloat16 __float2bfloat16_rn(float f) { return emu_b_from_float(f); }
EMU_INLINE __nv_bfloat16 __float2bfloat16_rz(float f) { return emu_b_make(emu_b_round(f, 1)); }
EMU_INLINE __nv_bfloat16 __float2bfloat16_ru(float f) { return emu_b_make(emu_b_round(f, 2)); }
EMU_INLINE __nv_bfloat16 __float2bfloat16_rd(float f) { return emu_b_make(emu_b_round(f, 3)); }
EMU_INLINE __nv_bfloat16 __double2bfloat16(double d) { return emu_b_from_odd(d); }
EMU_INLINE __nv_bfloat162 __float2bfloat162_rn(float f)
{
	return __nv_bfloat162(emu_b_from_float(f), emu_b_from_float(f));
}
EMU_INLINE __nv_bfloat162 __floats2bfloat162_rn(float a, float b)
{
	return __nv_bfloat162(emu_b_from_float(a), emu_b_from_float(b));
}
EMU_INLINE __nv_bfloat162 __float22bfloat162_rn(float2 f) { return __floats2bfloat162_rn(f.x, f.y); }
EMU_INLINE float2 __bfloat1622float2(__nv_bfloat162 v)
{
	return float2{emu_b_to_float(v.x), emu_b_to_float(v.y)};
}
EMU_INLINE __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 h) { return __nv_bfloat162(h, h); }
EMU_INLINE unsigned short __bfloat16_as_ushort(__nv_bfloat16 h) { return h.bits; }
EMU_INLINE short __bfloat16_as_short(__nv_bfloat16 h) { return (short)h.bits; }
EMU_INLINE __nv_bfloat16 __ushort_as_bfloat16(unsigned short b) { return emu_b_make(b); }
EMU_INLINE __nv_bfloat16 __short_as_bfloat16(short b) { return emu_b_make((unsigned short)b); }
EMU_INLINE __nv_bfloat16 __int2bfloat16_rn(int i) { return emu_b_from_odd((double)i); }
EMU_INLINE __nv_bfloat16 __uint2bfloat16_rn(unsigned i) { return emu_b_from_odd((double)i); }
EMU_INLINE int __bfloat162int_rn(__nv_bfloat16 h) { return __float2int_rn(emu_b_to_float(h)); }
EMU_INLINE int __bfloat162int_rz(__nv_bfloat16 h) { return __float2int_rz(emu_b_to_float(h)); }
EMU_INLINE unsigned __bfloat162uint_rz(__nv_bfloat16 h) { return __float2uint_rz(emu_b_to_float(h)); }
#define CUDART_INF_BF16 __ushort_as_bfloat16((unsigned short)0x7f80u)
#define CUDART_NAN_BF16 __ushort_as_bfloat16((unsigned short)0x7fffu)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0u)
#define CUDART_ONE_BF16 __ushort_as_bfloat16((unsigned short)0x3f80u)

/* ---- arithmetic: through float, which is exact enough to round once more ---- */
#define EMU___nv_bfloat162(name, expression) \
	EMU_INLINE __nv_bfloat16 name(__nv_bfloat16 p, __nv_bfloat16 q) \
	{ \
		float a = emu_b_to_float(p), b = emu_b_to_float(q); \
		return emu_b_from_float(expression); \
	} \
	EMU_INLINE __nv_bfloat162 name##2(__nv_bfloat162 p, __nv_bfloat162 q) { return __nv_bfloat162{name(p.x, q.x), name(p.y, q.y)}; }
EMU___nv_bfloat162(__hadd, a + b)
EMU___nv_bfloat162(__hsub, a - b)
EMU___nv_bfloat162(__hmul, a * b)
EMU___nv_bfloat162(__hdiv, a / b)
EMU___nv_bfloat162(__hmin, fminf(a, b))
EMU___nv_bfloat162(__hmax, fmaxf(a, b))
EMU___nv_bfloat162(__hmin_nan, a != a || b != b ? NAN : fminf(a, b))
EMU___nv_bfloat162(__hmax_nan, a != a || b != b ? NAN : fmaxf(a, b))
EMU___nv_bfloat162(__hadd_sat, __saturatef(a + b))
EMU___nv_bfloat162(__hsub_sat, __saturatef(a - b))
EMU___nv_bfloat162(__hmul_sat, __saturatef(a * b))
#undef EMU___nv_bfloat162
EMU_INLINE __nv_bfloat162 __h2div(__nv_bfloat162 p, __nv_bfloat162 q) { return __hdiv2(p, q); }
EMU_INLINE __nv_bfloat16 __hadd_rn(__nv_bfloat16 a, __nv_bfloat16 b) { return __hadd(a, b); }
EMU_INLINE __nv_bfloat16 __hsub_rn(__nv_bfloat16 a, __nv_bfloat16 b) { return __hsub(a, b); }
EMU_INLINE __nv_bfloat16 __hmul_rn(__nv_bfloat16 a, __nv_bfloat16 b) { return __hmul(a, b); }
EMU_INLINE __nv_bfloat162 __hadd2_rn(__nv_bfloat162 a, __nv_bfloat162 b) { return __hadd2(a, b); }
EMU_INLINE __nv_bfloat162 __hsub2_rn(__nv_bfloat162 a, __nv_bfloat162 b) { return __hsub2(a, b); }
EMU_INLINE __nv_bfloat162 __hmul2_rn(__nv_bfloat162 a, __nv_bfloat162 b) { return __hmul2(a, b); }
EMU_INLINE __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c)
{
	return emu_b_from_odd(emu_fma_odd(emu_b_to_float(a), emu_b_to_float(b), emu_b_to_float(c)));
}
EMU_INLINE __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) { return __nv_bfloat162{__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
EMU_INLINE __nv_bfloat16 __hfma_relu(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c)
{
	__nv_bfloat16 r = __hfma(a, b, c);
	return emu_b_to_float(r) < 0 ? emu_b_from_float(0.0f) : r;
}
EMU_INLINE __nv_bfloat162 __hfma2_relu(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c)
{
	return __nv_bfloat162{__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)};
}
EMU_INLINE __nv_bfloat162 __hcmadd(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c)
{
	__nv_bfloat16 re = __hfma(a.x, b.x, c.x), im = __hfma(a.x, b.y, c.y);
	__nv_bfloat16 minus;
	minus.bits = (unsigned short)(a.y.bits ^ 0x8000u);
	return __nv_bfloat162{__hfma(minus, b.y, re), __hfma(a.y, b.x, im)};
}
EMU_INLINE __nv_bfloat16 __hneg(__nv_bfloat16 a)
{
	a.bits = (unsigned short)(a.bits ^ 0x8000u);
	return a;
}
EMU_INLINE __nv_bfloat16 __habs(__nv_bfloat16 a)
{
	a.bits = (unsigned short)(a.bits & 0x7fffu);
	return a;
}
EMU_INLINE __nv_bfloat162 __hneg2(__nv_bfloat162 a) { return __nv_bfloat162{__hneg(a.x), __hneg(a.y)}; }
EMU_INLINE __nv_bfloat162 __habs2(__nv_bfloat162 a) { return __nv_bfloat162{__habs(a.x), __habs(a.y)}; }

/* ---- comparisons; the u forms are true for unordered operands ---- */
#define EMU_HC(name, expression, unordered) \
	EMU_INLINE bool __h##name(__nv_bfloat16 p, __nv_bfloat16 q) \
	{ \
		float a = emu_b_to_float(p), b = emu_b_to_float(q); \
		return (unordered && (a != a || b != b)) || (a == a && b == b && (expression)); \
	} \
	EMU_INLINE __nv_bfloat162 __h##name##2(__nv_bfloat162 p, __nv_bfloat162 q) \
	{ \
		return __nv_bfloat162{emu_b_from_float(__h##name(p.x, q.x)), emu_b_from_float(__h##name(p.y, q.y))}; \
	} \
	EMU_INLINE bool __hb##name##2(__nv_bfloat162 p, __nv_bfloat162 q) { return __h##name(p.x, q.x) && __h##name(p.y, q.y); } \
	EMU_INLINE unsigned __h##name##2_mask(__nv_bfloat162 p, __nv_bfloat162 q) \
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
EMU_INLINE bool __hisnan(__nv_bfloat16 a) { return __builtin_isnan(emu_b_to_float(a)); }
EMU_INLINE __nv_bfloat162 __hisnan2(__nv_bfloat162 a)
{
	return __nv_bfloat162{emu_b_from_float(__hisnan(a.x)), emu_b_from_float(__hisnan(a.y))};
}
EMU_INLINE int __hisinf(__nv_bfloat16 a)
{
	float f = emu_b_to_float(a);
	return __builtin_isinf(f) ? (f > 0 ? 1 : -1) : 0;
}

/* ---- functions: computed in float and rounded once ---- */
#define EMU_HF(name, call) \
	EMU_INLINE __nv_bfloat16 h##name(__nv_bfloat16 p) \
	{ \
		float a = emu_b_to_float(p); \
		return emu_b_from_float(call); \
	} \
	EMU_INLINE __nv_bfloat162 h2##name(__nv_bfloat162 p) { return __nv_bfloat162{h##name(p.x), h##name(p.y)}; }
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
EMU_INLINE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162{a, b}; }
EMU_INLINE __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162{a, b}; }
EMU_INLINE __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
EMU_INLINE __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
EMU_INLINE __nv_bfloat162 __low2bfloat162(__nv_bfloat162 v) { return __nv_bfloat162{v.x, v.x}; }
EMU_INLINE __nv_bfloat162 __high2bfloat162(__nv_bfloat162 v) { return __nv_bfloat162{v.y, v.y}; }
EMU_INLINE __nv_bfloat162 __lowhigh2highlow(__nv_bfloat162 v) { return __nv_bfloat162{v.y, v.x}; }
EMU_INLINE __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162{a.x, b.x}; }
EMU_INLINE __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162{a.y, b.y}; }
EMU_INLINE float __low2float(__nv_bfloat162 v) { return emu_b_to_float(v.x); }
EMU_INLINE float __high2float(__nv_bfloat162 v) { return emu_b_to_float(v.y); }

/* ---- operators ---- */
#define EMU_HO(op, name) \
	EMU_INLINE __nv_bfloat16 operator op(__nv_bfloat16 a, __nv_bfloat16 b) { return name(a, b); } \
	EMU_INLINE __nv_bfloat162 operator op(__nv_bfloat162 a, __nv_bfloat162 b) { return name##2(a, b); } \
	EMU_INLINE __nv_bfloat16 &operator op##=(__nv_bfloat16 &a, __nv_bfloat16 b) { return a = name(a, b); } \
	EMU_INLINE __nv_bfloat162 &operator op##=(__nv_bfloat162 &a, __nv_bfloat162 b) { return a = name##2(a, b); }
EMU_HO(+, __hadd)
EMU_HO(-, __hsub)
EMU_HO(*, __hmul)
EMU_HO(/, __hdiv)
#undef EMU_HO
EMU_INLINE __nv_bfloat16 operator+(__nv_bfloat16 a) { return a; }
EMU_INLINE __nv_bfloat16 operator-(__nv_bfloat16 a) { return __hneg(a); }
EMU_INLINE __nv_bfloat162 operator-(__nv_bfloat162 a) { return __hneg2(a); }
EMU_INLINE __nv_bfloat16 &operator++(__nv_bfloat16 &a) { return a = __hadd(a, emu_b_from_float(1.0f)); }
EMU_INLINE __nv_bfloat16 &operator--(__nv_bfloat16 &a) { return a = __hsub(a, emu_b_from_float(1.0f)); }
EMU_INLINE bool operator==(__nv_bfloat16 a, __nv_bfloat16 b) { return __heq(a, b); }
EMU_INLINE bool operator!=(__nv_bfloat16 a, __nv_bfloat16 b) { return __hneu(a, b); }
EMU_INLINE bool operator<(__nv_bfloat16 a, __nv_bfloat16 b) { return __hlt(a, b); }
EMU_INLINE bool operator<=(__nv_bfloat16 a, __nv_bfloat16 b) { return __hle(a, b); }
EMU_INLINE bool operator>(__nv_bfloat16 a, __nv_bfloat16 b) { return __hgt(a, b); }
EMU_INLINE bool operator>=(__nv_bfloat16 a, __nv_bfloat16 b) { return __hge(a, b); }
EMU_INLINE bool operator==(__nv_bfloat162 a, __nv_bfloat162 b) { return __hbeq2(a, b); }

/* ---- memory, atomics, shuffles ---- */
EMU_ATOMIC2(atomicAdd, __nv_bfloat16, EMU_UPDATE(__nv_bfloat16, __hadd(old, v)))
EMU_ATOMIC2(atomicAdd, __nv_bfloat162, EMU_UPDATE(__nv_bfloat162, __hadd2(old, v)))
EMU_SHFL(__nv_bfloat16)
EMU_SHFL(__nv_bfloat162)

#endif
