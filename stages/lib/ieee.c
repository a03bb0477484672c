/*
 * ieee.c - see ieee.h.
 *
 * Operands come out of volatile variables, so that the compiler cannot know them; what is done to
 * them is left to it, so that its flags show.
 *
 * SPDX-License-Identifier: MIT
 */
#include "ieee.h"

#include <fenv.h>
#include <math.h>
#include <stddef.h>

static const char *nan_logic(void)
{
	volatile double v_nan = NAN, v_one = 1;
	volatile float v_small_nan = NAN;
	double nan = v_nan, one = v_one;
	float small = v_small_nan;

	if (nan <= one || nan >= one || nan == nan || nan < one || !(nan != one))
		return "a comparison with a NaN holds";
	if (!!(nan <= one) || fmax(nan, one) != one)
		return "a NaN is not kept apart from numbers";
	if (!isnan(nan) || isfinite(nan) || isinf(nan) || !isnan(small) || isfinite(small))
		return "a NaN is not recognised";
	if (!isnan(nan * 0 + one) || !isnan(nan - nan))
		return "a NaN is lost in arithmetic";
	return NULL;
}

static const char *infinities(void)
{
	volatile double v_inf = INFINITY, v_huge = 0x1p1023, v_zero = 0;
	double inf = v_inf, huge = v_huge, zero = v_zero;

	if (!isinf(inf) || isfinite(inf) || !isinf(huge * 2) || !isnan(inf - inf) || !isnan(inf * zero))
		return "infinity is not recognised";
	if (!(1 / (zero * -1) < 0) || !signbit(zero * -1))
		return "the sign of zero is lost";
	return NULL;
}

static const char *denormals(void)
{
	volatile double v_tiny = 0x1p-1060, v_half = 0.5, v_least = 0x1p-1022, v_up = 0x1p100;
	volatile float v_small = 0x1p-140f, v_small_half = 0.5f, v_small_least = 0x1p-126f, v_small_up = 0x1p50f;

	if (!(v_tiny * v_up > 0) || !(v_small * v_small_up > 0))
		return "denormal operands count as zero (DAZ is set)";
	if (!(v_least * v_half > 0) || !(v_small_least * v_small_half > 0))
		return "denormal results become zero (FTZ is set)";
	return NULL;
}

static const char *rounding(void)
{
	volatile double v_one = 1, v_up = 0x1.8p-53, v_down = 0x1p-54, v_big = 0x1p60, v_three = 3, v_five = 5;
	volatile double v_x = 1 + 0x1p-30, v_y = 1 + 0x1p-30, v_square = v_x * v_y;
	volatile float v_f = 1, v_g = 0x1.8p-24f;
	double one = v_one, up = v_up, down = v_down, big = v_big, three = v_three, five = v_five;
	double x = v_x, y = v_y, square = v_square;
	double third[4] = {five / three, (five + 2) / three, (five + 5) / three, one / three};
	float f = v_f, g = v_g;

	if ((one + up) - one != 0x1p-52 || one + down != one || -one - down != -one ||
	    (f + g) - f != 0x1p-23f)
		return "sums keep more digits than their type has, or round another way";
	if ((big + one) - big != 0 || (one + big) - one - big != 0)
		return "sums are put in another order";
	if (x * y - square != 0)
		return "products are contracted into sums";
	if (third[0] != 5.0 / 3.0 || third[1] != 7.0 / 3.0 || third[2] != 10.0 / 3.0 || third[3] != 1.0 / 3.0)
		return "a quotient is made by a reciprocal";
	return NULL;
}

const char *ieee_broken(void)
{
	const char *why = fegetround() == FE_TONEAREST ? nan_logic() : "rounding is not to nearest";

	if (!why)
		why = infinities();
	if (!why)
		why = denormals();
	return why ? why : rounding();
}
