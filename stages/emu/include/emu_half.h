/* What fp16 and bfloat16 share: rounding twice without rounding wrongly.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef EMU_HALF_H
#define EMU_HALF_H

struct __half_raw {
	unsigned short x;
};
struct __nv_bfloat16_raw {
	unsigned short x;
};

/* The float next to d that has an odd last bit, unless d is a float: a later rounding to
 * fewer bits then sees on which side of a tie it was. */
EMU_INLINE float emu_double_odd(double d)
{
	float f = (float)d;
	if ((double)f == d || d != d || __builtin_isinf(f))
		return f;
	unsigned w = emu_bits<unsigned>(f);
	double a = d < 0 ? -d : d, b = (double)(f < 0 ? -f : f);
	if (b > a)
		w--; /* truncate */
	return emu_bits<float>(w | 1u);
}

/* a * b + c of short floats in double, rounded to odd. The product is exact. */
EMU_INLINE double emu_fma_odd(float a, float b, float c)
{
	double p = (double)a * b, s = p + c;
	if (s != s || __builtin_isinf(s))
		return s;
	double rest = emu_sum_rest(p, c, s);
	if (rest == 0)
		return s;
	unsigned long long w = emu_bits<unsigned long long>(s);
	if ((s > 0) == (rest < 0))
		w--;
	return emu_bits<double>(w | 1ull);
}

#endif
