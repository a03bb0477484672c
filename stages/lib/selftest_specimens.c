/*
 * selftest_specimens.c - what each rule of the judge must refuse. See selftest.h.
 *
 * The bounds of stages/selftest/spec.json lie so far apart that each of these breaks one rule alone: with
 * that rule switched off nothing else would see it, unless its line here says more than one word.
 *
 * SPDX-License-Identifier: MIT
 */
#include "selftest_part.h"

#include "dtype.h"

#include <math.h>
#include <string.h>

static double load(const struct spoil *s, size_t i)
{
	return dtype_load((enum dtype)s->buf->dtype, s->got, i);
}

static void store(const struct spoil *s, size_t i, double v)
{
	dtype_store((enum dtype)s->buf->dtype, s->got, i, v);
}

static void scale(const struct spoil *s, size_t n, double by)
{
	for (size_t i = 0; i < n; i++)
		store(s, i, load(s, i) * by);
}

/* Bound: 1 % of the element and of a typical one. */
static void one_element(const struct spoil *s)
{
	size_t i = s->n / 3;

	store(s, i, load(s, i) * 1.01 + copysign(0.05, load(s, i)));
}

static void last_element(const struct spoil *s)
{
	store(s, s->n - 1, load(s, s->n - 1) * 1.01 + copysign(0.05, load(s, s->n - 1)));
}

static void all_a_little(const struct spoil *s)
{
	scale(s, s->n, 1.005); /* relative L2: 0.4 % allowed, 0.6 % of a row */
}

static void first_row(const struct spoil *s)
{
	scale(s, s->row, 1.009);
}

static void last_row(const struct spoil *s)
{
	struct spoil last = *s;

	last.got += (s->n - s->row) * dtype_size((enum dtype)s->buf->dtype);
	scale(&last, s->row, 1.009);
}

/* Eleven bits of 24. */
static void half_precision(const struct spoil *s)
{
	for (size_t i = 0; i < s->n; i++) {
		int x;
		double v = frexp(load(s, i), &x);
		store(s, i, ldexp(nearbyint(ldexp(v, 11)), x - 11));
	}
}

/* Cut off instead of rounded: each within its bound, all the same way. */
static void one_way(const struct spoil *s)
{
	const float *x = (const float *)(const void *)s->in[0], *y = (const float *)(const void *)s->in[1];

	for (size_t i = 0; i < s->n; i++) {
		float v = x[i] + y[i];
		uint32_t word;
		memcpy(&word, &v, sizeof word);
		((uint16_t *)(void *)s->got)[i] = (uint16_t)(word >> 16);
	}
}

static void one_bit(const struct spoil *s)
{
	s->got[s->n / 2 * dtype_size((enum dtype)s->buf->dtype)] ^= 1;
}

static void one_nan(const struct spoil *s)
{
	store(s, s->n / 2, NAN);
}

static void all_nan(const struct spoil *s)
{
	memset(s->got, 0xff, s->buf->bytes);
}

static void one_infinity(const struct spoil *s)
{
	store(s, s->n / 2, INFINITY);
}

static void all_infinite(const struct spoil *s)
{
	for (size_t i = 0; i < s->n; i++)
		store(s, i, load(s, i) < 0 ? -INFINITY : INFINITY);
}

static void zeros(const struct spoil *s)
{
	memset(s->got, 0, s->buf->bytes);
}

/* As much again lies behind it. */
static void from_behind(const struct spoil *s)
{
	memcpy(s->got, s->got + s->buf->bytes, s->buf->bytes);
}

static void out_of_range(const struct spoil *s)
{
	store(s, s->n - 1, 1 << 20);
}

static void negative(const struct spoil *s)
{
	store(s, 0, -1);
}

static void neighbour(const struct spoil *s)
{
	store(s, 0, load(s, 0) > 0 ? load(s, 0) - 1 : 1);
}

static void repeated(const struct spoil *s)
{
	store(s, 1, load(s, 0));
}

static void swap(const struct spoil *s, size_t a, size_t b)
{
	double v = load(s, a);

	store(s, a, load(s, b));
	store(s, b, v);
}

static void ends_swapped(const struct spoil *s)
{
	swap(s, 0, s->row - 1);
}

/* Two equal keys that follow each other change places: sorted, but not stably. */
static void equals_swapped(const struct spoil *s)
{
	const int32_t *key = (const int32_t *)(const void *)s->in[2];

	for (size_t i = 0; i + 1 < s->row; i++)
		if (key[(size_t)load(s, i)] == key[(size_t)load(s, i + 1)]) {
			swap(s, i, i + 1);
			return;
		}
}

/* All samples the same, though every one is possible. */
static void one_sample(const struct spoil *s)
{
	for (size_t i = 0; i < s->row; i++)
		store(s, i, 0);
}

#define OUT(rule, what, words, output, spoil) {rule, what, words, output, spoil, NULL, 0, 0, 0, 0, 0, 0}
#define TOUCH(rule, what, words, buffer, at, way) {rule, what, words, NULL, NULL, buffer, at, way, 0, 1, 0, 0}

const struct specimen SPECIMENS[] = {
	OUT("judge.element", "one element wrong", "element", "sum", one_element),
	OUT("every.element", "the last element wrong", "element", "sum", last_element),
	OUT("judge.element", "zeros", "element", "sum", zeros),
	OUT("judge.rel_l2", "all elements a little too large", "rel_l2", "sum", all_a_little),
	OUT("judge.row", "the first row a little too large", "row", "sum", first_row),
	OUT("judge.row", "the last row a little too large", "row", "sum", last_row),
	OUT("judge.error_ratio", "half the precision", "error_ratio", "fine", half_precision),
	OUT("judge.bias", "roundings that all go one way", "bias", "narrow", one_way),
	OUT("judge.exact", "the last bit of a float", "exact", "same", one_bit),
	OUT("judge.exact", "the last bit of an integer", "exact", "number", one_bit),
	OUT("judge.exact", "integers all zero", "exact", "number", zeros),
	OUT("judge.nan", "one NaN", "nan", "sum", one_nan),
	OUT("judge.nan", "nothing but NaN", "nan", "fine", all_nan),
	OUT("judge.nan", "one NaN in bfloat16", "nan", "narrow", one_nan),
	OUT("judge.nan", "one NaN where values must be equal", "nan", "same", one_nan),
	OUT("judge.nonfinite", "one infinity", "nonfinite", "sum", one_infinity),
	OUT("judge.nonfinite", "infinities under a loose bound", "nonfinite", "fine", all_infinite),
	{"judge.unwritten", "a NaN that was there before", "unwritten", "sum", NULL, NULL, 0, 0, 0, 0, 0, 1},
	{"judge.unwritten", "numbers that were there before", "unwritten", "sum", NULL, NULL, 0, 0, 0, 1, 0, 1},
	{"judge.unwritten", "bfloat16 that was there before", "unwritten", "narrow", NULL, NULL, 0, 0, 0, 1, 0, 1},
	{"judge.unwritten", "integers that were there before", "unwritten", "number", NULL, NULL, 0, 0, 0, 0, 0, 1},
	{"poison.outputs", "the right outputs of the rep before, nothing written", "unwritten", NULL, NULL, NULL,
	 0, 0, 0, 0, 0, 2},
	OUT("reference.apart", "the answer looked for behind the buffer", "any", "sum", from_behind),
	OUT("judge.index", "an index past the end", "index", "best", out_of_range),
	OUT("judge.index", "an index below zero", "index", "best", negative),
	OUT("judge.ties", "the index of a smaller element", "ties", "best", neighbour),
	OUT("judge.topk", "an index twice among the largest", "ties", "top", repeated),
	OUT("judge.topk", "an index past the end among the largest", "ties", "top", out_of_range),
	OUT("judge.topk", "values that are not the indexed ones", "ties", "topv", one_bit),
	OUT("judge.topk", "a value that is a NaN", "ties", "topv", one_nan),
	OUT("judge.order", "first and last in each other's place", "order", "order", ends_swapped),
	OUT("judge.order", "equal keys in each other's place", "order", "order", equals_swapped),
	OUT("judge.order", "an index twice in a sort", "order", "order", repeated),
	OUT("judge.order", "an index below zero in a sort", "order", "order", negative),
	OUT("every.output", "zeros in the last output", "distribution", "draw", zeros),
	OUT("judge.distribution", "one sample only", "distribution", "draw", one_sample),
	OUT("judge.distribution", "a sample that cannot be", "distribution", "draw", negative),
	TOUCH("judge.guard_write", "a byte before an output", "guard_write", "sum", AT_FRONT, CHECKER_TOUCH),
	TOUCH("judge.guard_write", "a byte after an output", "guard_write", "draw", AT_END, CHECKER_TOUCH),
	TOUCH("judge.guard_write", "a byte after a workspace", "guard_write", "workspace 0", AT_END, CHECKER_TOUCH),
	TOUCH("judge.guard_write", "a byte after an input", "guard_write", "y", AT_END, CHECKER_TOUCH),
	TOUCH("judge.input_write", "a byte of an input", "input_write", "x", 5, CHECKER_TOUCH),
	TOUCH("judge.late_write", "an output changes after it was compared", "late_write", "sum", 8,
	      CHECKER_TOUCH_LATE),
	TOUCH("judge.late_write", "a guard changes after all was compared", "late_write", "same", AT_END,
	      CHECKER_TOUCH_LATE),
	TOUCH("judge.late_write", "an input changes after all was compared", "late_write", "p", 0,
	      CHECKER_TOUCH_LATE),
	{"judge.late_write", "work after the answer", "late_write", NULL, NULL, NULL, 0, 0, 0, 0, 50000000, 0},
	/* Where the exact result is known no bound forgives. */
	{"judge.exact", "one step off where sums are exact", "exact", "fine", one_bit, NULL, 0, 0, REGIME_EXACT_A,
	 0, 0, 0},
	{NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0},
};
