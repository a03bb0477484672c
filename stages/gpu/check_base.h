/*
 * check_base.h - under check.cu: random words, exact arithmetic, element types, warps. Like check.h its text
 * goes in front of check.cu, so it includes nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_CHECK_BASE_H
#define TS_CHECK_BASE_H

#define DEVICE static __device__ inline
#ifdef __CUDA_ARCH__
#define LANES 32
#else
#define LANES 1
#endif

/* ---- random words ---- */

DEVICE void philox(const struct check_key *key, check_u32 tag, check_u64 i, check_u32 w[4])
{
	check_u32 k0 = key->w[0], k1 = key->w[1];

	w[0] = (check_u32)i;
	w[1] = (check_u32)(i >> 32) ^ tag << 24;
	w[2] = key->w[2];
	w[3] = key->w[3];
	for (int r = 0; r < 10; r++) {
		check_u64 a = (check_u64)w[0] * 0xD2511F53u, b = (check_u64)w[2] * 0xCD9E8D57u;
		w[0] = (check_u32)(b >> 32) ^ w[1] ^ k0;
		w[1] = (check_u32)b;
		w[2] = (check_u32)(a >> 32) ^ w[3] ^ k1;
		w[3] = (check_u32)a;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
}

DEVICE check_u64 join(check_u32 low, check_u32 high)
{
	return (check_u64)high << 32 | low;
}

/* [0, n): the bias is below n / 2^64. */
DEVICE check_u64 below(check_u64 word, check_u64 n)
{
	return __umul64hi(word, n);
}

DEVICE double unit(check_u64 word)
{
	return (double)(word >> 11) * 0x1p-53;
}

DEVICE check_u64 bits_of(double v)
{
	return (check_u64)__double_as_longlong(v);
}

DEVICE double power2(int k) /* normal numbers only */
{
	return __longlong_as_double((check_i64)(1023 + k) << 52);
}

DEVICE int exponent(double v) /* of a normal number */
{
	return (int)(bits_of(v) >> 52 & 0x7ff) - 1023;
}

DEVICE int is_nan(double v)
{
	return !(v == v);
}

DEVICE int is_inf(double v)
{
	return (bits_of(v) & 0x7fffffffffffffffull) == 0x7ff0000000000000ull;
}

DEVICE int is_finite(double v)
{
	return (bits_of(v) >> 52 & 0x7ff) != 0x7ff;
}

DEVICE double infinity(void)
{
	return __longlong_as_double(0x7ff0000000000000ll);
}

/* Natural logarithm of a number in (0, 1), from + - * / alone. */
DEVICE double logarithm(double v)
{
	int e = exponent(v);
	double m = v * power2(-e); /* [1, 2) */

	if (m > 1.4142135623730951) {
		m = m * 0.5;
		e = e + 1;
	}
	double s = (m - 1) / (m + 1), q = s * s, sum = 1.0 / 17;
	for (int k = 15; k >= 1; k -= 2)
		sum = sum * q + 1.0 / k;
	return 2 * s * sum + (double)e * 0.6931471805599453;
}

DEVICE double tail(double p) /* quantile of p < 0.02425 */
{
	double q = sqrt(-2 * logarithm(p));
	double top = ((((-7.784894002430293e-03 * q - 3.223964580411365e-01) * q - 2.400758277161838e+00) * q -
		       2.549732539343734e+00) * q + 4.374664141464968e+00) * q + 2.938163982698783e+00;

	return top / ((((7.784695709041462e-03 * q + 3.224671290700398e-01) * q + 2.445134137142996e+00) * q +
		       3.754408661907416e+00) * q + 1);
}

/* The normal distribution's quantile by Acklam's rational function: relative error 1e-9. */
DEVICE double normal(check_u64 word)
{
	double p = ((double)(word >> 11) + 0.5) * 0x1p-53;

	if (p < 0.02425)
		return tail(p);
	if (p > 1 - 0.02425)
		return -tail(1 - p);
	double q = p - 0.5, r = q * q;
	double top = (((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r - 2.759285104469687e+02) * r +
			1.383577518672690e+02) * r - 3.066479806614716e+01) * r + 2.506628277459239e+00) * q;
	return top / (((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r - 1.556989798598866e+02) * r +
			6.680131188771972e+01) * r - 1.328068155288572e+01) * r + 1);
}

/* ---- element types ---- */

/* A small float: e exponent and m mantissa bits, the usual bias, subnormals. */
DEVICE double small_load(check_u32 v, int e, int m, int has_inf)
{
	int bias = (1 << (e - 1)) - 1, top = (1 << e) - 1;
	int exp = (int)(v >> m) & top, man = (int)(v & ((1u << m) - 1));
	double sign = v >> (e + m) & 1 ? -1 : 1;

	if (exp == top && has_inf)
		return man ? infinity() - infinity() : sign * infinity();
	if (exp == top && man == (1 << m) - 1)
		return infinity() - infinity();
	if (exp == 0)
		return sign * (double)man * power2(1 - bias - m);
	return sign * (double)(man | 1 << m) * power2(exp - bias - m);
}

DEVICE check_u32 small_store(float f, int e, int m, int has_inf)
{
	int bias = (1 << (e - 1)) - 1;
	double v = (double)f, a = fabs(v);
	check_u32 sign = (check_u32)(bits_of(v) >> 63) << (e + m), top = ((1u << e) - 1) << m;
	check_u32 nan = has_inf ? top | 1u << (m - 1) : top | ((1u << m) - 1), inf = has_inf ? top : nan;

	if (is_nan(v))
		return sign | nan;
	if (is_inf(v))
		return sign | inf;
	int lead = exponent(a) < 1 - bias ? 1 - bias : exponent(a);
	check_u32 q = (check_u32)rint(a * power2(m - lead)); /* exact scaling, nearest even */
	check_u32 r = q < 1u << m ? q : q + ((check_u32)(lead + bias - 1) << m);
	return sign | (r >= (has_inf ? top : nan) ? inf : r);
}

DEVICE check_u32 bfloat_store(float f)
{
	check_u32 u = __float_as_uint(f);

	if (is_nan((double)f))
		return (u >> 16 | 0x40) & 0xffff;
	return (u + 0x7fff + (u >> 16 & 1)) >> 16 & 0xffff;
}

DEVICE double load(check_u32 t, const void *base, check_u64 i)
{
	switch (t) {
	case CK_F64: return ((const double *)base)[i];
	case CK_F32: return (double)((const float *)base)[i];
	case CK_F16: return small_load(((const unsigned short *)base)[i], 5, 10, 1);
	case CK_BF16: return (double)__uint_as_float((check_u32)((const unsigned short *)base)[i] << 16);
	case CK_E4M3: return small_load(((const unsigned char *)base)[i], 4, 3, 0);
	case CK_E5M2: return small_load(((const unsigned char *)base)[i], 5, 2, 1);
	case CK_I64: return (double)((const check_i64 *)base)[i];
	case CK_I32: return (double)((const int *)base)[i];
	case CK_I16: return (double)((const short *)base)[i];
	case CK_I8: return (double)((const signed char *)base)[i];
	case CK_U64: return (double)((const check_u64 *)base)[i];
	case CK_U32: return (double)((const check_u32 *)base)[i];
	case CK_U16: return (double)((const unsigned short *)base)[i];
	default: return (double)((const unsigned char *)base)[i];
	}
}

/* Towards zero, clamped. Every value in the range of int64 fits what calls it with. */
DEVICE check_i64 clamp(double v, double lo, double hi)
{
	if (!(v >= lo))
		return (check_i64)lo;
	if (v >= hi)
		return hi >= 0x1p63 ? 0x7fffffffffffffffll : (check_i64)hi;
	return (check_i64)v;
}

DEVICE check_u64 clamp_wide(double v)
{
	return v >= 0x1p64 ? 0xffffffffffffffffull : v > 0 ? (check_u64)v : 0;
}

DEVICE void store(check_u32 t, void *base, check_u64 i, double v)
{
	switch (t) {
	case CK_F64: ((double *)base)[i] = v; break;
	case CK_F32: ((float *)base)[i] = (float)v; break;
	case CK_F16: ((unsigned short *)base)[i] = (unsigned short)small_store((float)v, 5, 10, 1); break;
	case CK_BF16: ((unsigned short *)base)[i] = (unsigned short)bfloat_store((float)v); break;
	case CK_E4M3: ((unsigned char *)base)[i] = (unsigned char)small_store((float)v, 4, 3, 0); break;
	case CK_E5M2: ((unsigned char *)base)[i] = (unsigned char)small_store((float)v, 5, 2, 1); break;
	case CK_I64: ((check_i64 *)base)[i] = clamp(v, -0x1p63, 0x1p63); break;
	case CK_I32: ((int *)base)[i] = (int)clamp(v, -0x1p31, 0x1p31 - 1); break;
	case CK_I16: ((short *)base)[i] = (short)clamp(v, -32768, 32767); break;
	case CK_I8: ((signed char *)base)[i] = (signed char)clamp(v, -128, 127); break;
	case CK_U64: ((check_u64 *)base)[i] = clamp_wide(v); break;
	case CK_U32: ((check_u32 *)base)[i] = (check_u32)clamp(v, 0, 0x1p32 - 1); break;
	case CK_U16: ((unsigned short *)base)[i] = (unsigned short)clamp(v, 0, 65535); break;
	case CK_U8: ((unsigned char *)base)[i] = (unsigned char)clamp(v, 0, 255); break;
	default: ((unsigned char *)base)[i] = v != 0; break;
	}
}

DEVICE double round_to(check_u32 t, double v)
{
	switch (t) {
	case CK_F32: return (double)(float)v;
	case CK_F16: return small_load(small_store((float)v, 5, 10, 1), 5, 10, 1);
	case CK_BF16: return (double)__uint_as_float(bfloat_store((float)v) << 16);
	case CK_E4M3: return small_load(small_store((float)v, 4, 3, 0), 4, 3, 0);
	case CK_E5M2: return small_load(small_store((float)v, 5, 2, 1), 5, 2, 1);
	default: return v;
	}
}

/* Step between neighbours at v, of the types narrower than float. */
DEVICE double step_of(check_u32 t, double v)
{
	int least = t == CK_F16 || t == CK_E5M2 ? -14 : t == CK_E4M3 ? -6 : -126;
	int bits = t == CK_F16 ? 11 : t == CK_BF16 ? 8 : t == CK_E4M3 ? 4 : 3;

	if (!is_finite(v))
		return 0;
	int e = exponent(v);
	return power2((e < least ? least : e) + 1 - bits);
}

/* ---- keeping the largest ---- */

/* The plain read saves nearly all atomics: what it sees is never more than what is there. */
DEVICE void keep_max(check_u64 *have, check_u64 v)
{
	if (v > *(volatile check_u64 *)have)
		atomicMax(have, v);
}

DEVICE check_u64 as_max(double v) /* v >= 0 or NaN, which is above all */
{
	return is_nan(v) ? 0x7ff8000000000000ull : bits_of(v);
}

/* ---- over the lanes of a warp, in a fixed order ---- */

DEVICE double lanes_add(double v)
{
#ifdef __CUDA_ARCH__
	for (int k = 16; k; k /= 2)
		v = v + __shfl_xor_sync(0xffffffffu, v, k);
#endif
	return v;
}

DEVICE check_u64 lanes_count(check_u64 v)
{
#ifdef __CUDA_ARCH__
	for (int k = 16; k; k /= 2)
		v = v + __shfl_xor_sync(0xffffffffu, v, k);
#endif
	return v;
}

DEVICE check_u64 lanes_max(check_u64 v)
{
#ifdef __CUDA_ARCH__
	for (int k = 16; k; k /= 2) {
		check_u64 o = __shfl_xor_sync(0xffffffffu, v, k);
		v = o > v ? o : v;
	}
#endif
	return v;
}

DEVICE check_u32 width_of(check_u32 t)
{
	return t == CK_F64 || t == CK_I64 || t == CK_U64   ? 8
	       : t == CK_F32 || t == CK_I32 || t == CK_U32 ? 4
	       : t == CK_F16 || t == CK_BF16 || t == CK_I16 || t == CK_U16 ? 2 : 1;
}

/* Mask for the bytes of 8 from `at` (within the segment) that lie in [from, to). */
DEVICE check_u64 bytes_in(check_u64 at, check_u64 from, check_u64 to)
{
	check_u64 m = 0;

	if (at >= from && at + 8 <= to)
		return ~0ull;
	if (at + 8 <= from || at >= to)
		return 0;
	for (int k = 0; k < 8; k++)
		if (at + (check_u64)k >= from && at + (check_u64)k < to)
			m |= 0xffull << 8 * k;
	return m;
}

#endif
