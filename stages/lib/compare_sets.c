/*
 * compare_sets.c - comparators for outputs that have more than one right answer: ties, top-k,
 * sorts, samples. See compare.h.
 *
 * They trust nothing in `got`: every index is range-checked before it is used.
 *
 * SPDX-License-Identifier: MIT
 */
#include "buf.h"
#include "compare.h"
#include "defence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double src(const struct compare_side *s, size_t row, size_t i)
{
	return dtype_load(s->source_dtype, s->source, row * s->source_row + i);
}

/* Element i of got as an index into a row of source, or -1. */
static int64_t index_at(const struct compare_side *s, const void *base, size_t i)
{
	int64_t v = dtype_load_int(s->dtype, base, i);

	return v >= 0 && (uint64_t)v < s->source_row ? v : -1;
}

/* Each output element is an index into its own row of source, such as an arg-max. */
static const char *set_ties(const struct spec_compare *c, const struct compare_side *s, double *wrong)
{
	size_t bad = 0, outside = 0;

	for (size_t i = 0; i < s->n; i++) {
		int64_t g = index_at(s, s->got, i), r = index_at(s, s->ref, i);
		size_t row = i / s->row;
		if (r < 0)
			return "judge.reference";
		if (g < 0)
			outside++;
		else if (!(fabs(src(s, row, (size_t)g) - src(s, row, (size_t)r)) <= c->tie))
			bad++;
	}
	*wrong = (double)(bad + outside) / (double)s->n;
	if (outside && DEFENCE("judge.index"))
		return "judge.index";
	return bad && DEFENCE("judge.ties") ? "judge.ties" : NULL;
}

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* One row of top-k: distinct valid indices whose source values are those of the reference. */
static int topk_row_ok(const struct spec_compare *c, const struct compare_side *s, size_t row,
		       double *got, double *ref, uint8_t *seen)
{
	size_t k = s->row;

	memset(seen, 0, s->source_row);
	for (size_t i = 0; i < k; i++) {
		int64_t g = index_at(s, s->got, row * k + i), r = index_at(s, s->ref, row * k + i);
		if (g < 0 || r < 0 || seen[g])
			return 0;
		seen[g] = 1;
		got[i] = src(s, row, (size_t)g);
		ref[i] = src(s, row, (size_t)r);
		/* The values output must be what the indices gather. */
		if (s->values && !(fabs(dtype_load(s->values_dtype, s->values, row * k + i) -
					got[i]) <= c->tie))
			return 0;
	}
	if (!c->sorted) {
		qsort(got, k, sizeof *got, cmp_double);
		qsort(ref, k, sizeof *ref, cmp_double);
	}
	for (size_t i = 0; i < k; i++)
		if (!(fabs(got[i] - ref[i]) <= c->tie))
			return 0;
	return 1;
}

static const char *set_topk(const struct spec_compare *c, const struct compare_side *s, double *wrong)
{
	double *got = xmalloc(s->row * sizeof *got), *ref = xmalloc(s->row * sizeof *ref);
	uint8_t *seen = xmalloc(s->source_row + 1);
	size_t rows = s->n / s->row, bad = 0;

	for (size_t r = 0; r < rows; r++)
		bad += !topk_row_ok(c, s, r, got, ref, seen);
	free(got);
	free(ref);
	free(seen);
	*wrong = rows ? (double)bad / (double)rows : 0;
	return bad && DEFENCE("judge.topk") ? "judge.ties" : NULL;
}

/* Is `b` allowed to follow `a` in a sort? */
static int in_order(const struct spec_compare *c, double a, double b)
{
	return c->descending ? a >= b : a <= b;
}

/* One row of a sort by index: a permutation in order; equal keys keep theirs if stable. */
static int sort_row_ok(const struct spec_compare *c, const struct compare_side *s, size_t row,
		       uint8_t *seen)
{
	int64_t last = -1;

	memset(seen, 0, s->source_row);
	for (size_t i = 0; i < s->row; i++) {
		int64_t g = index_at(s, s->got, row * s->row + i);
		if (g < 0 || seen[g])
			return 0;
		seen[g] = 1;
		double now = src(s, row, (size_t)g);
		if (s->values &&
		    !(dtype_load(s->values_dtype, s->values, row * s->row + i) == now))
			return 0;
		if (last >= 0) {
			double was = src(s, row, (size_t)last);
			if (!in_order(c, was, now) || (c->stable && was == now && g < last))
				return 0;
		}
		last = g;
	}
	return s->row == s->source_row;
}

static const char *set_sort(const struct spec_compare *c, const struct compare_side *s, double *wrong)
{
	uint8_t *seen = xmalloc(s->source_row + 1);
	size_t rows = s->n / s->row, bad = 0;

	for (size_t r = 0; r < rows; r++)
		bad += !sort_row_ok(c, s, r, seen);
	free(seen);
	*wrong = rows ? (double)bad / (double)rows : 0;
	return bad && DEFENCE("judge.order") ? "judge.order" : NULL;
}

/* Upper incomplete gamma ratio Q(a, x), by series or continued fraction. */
static double gamma_q(double a, double x)
{
	double front = exp(-x + a * log(x) - lgamma(a));

	if (x < a + 1) {
		double term = 1 / a, sum = term;
		for (int n = 1; n < 10000 && fabs(term) > fabs(sum) * 1e-16; n++) {
			term *= x / (a + n);
			sum += term;
		}
		return 1 - sum * front;
	}
	double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
	for (int i = 1; i < 10000; i++) {
		double an = -i * (i - a);
		b += 2;
		d = an * d + b;
		d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
		c = b + an / c;
		c = fabs(c) < 1e-300 ? 1e-300 : c;
		h *= d * c;
		if (fabs(d * c - 1) < 1e-16)
			break;
	}
	return front * h;
}

double compare_chi2_tail(double x, double k)
{
	if (!(x > 0))
		return 1;
	return gamma_q(k / 2, x / 2);
}

/* Samples of one row against its probabilities: chi-square over bins of at least five expected. */
static int samples_row_ok(const struct compare_side *s, size_t row, double alpha, double *count)
{
	double total = 0, chi = 0, expect = 0, seen = 0;
	int bins = 0;

	memset(count, 0, s->source_row * sizeof *count);
	for (size_t i = 0; i < s->row; i++) {
		int64_t g = index_at(s, s->got, row * s->row + i);
		if (g < 0 || !(src(s, row, (size_t)g) > 0))
			return 0; /* outside the support */
		count[g]++;
	}
	for (size_t i = 0; i < s->source_row; i++)
		total += src(s, row, i);
	for (size_t i = 0; i < s->source_row; i++) {
		expect += src(s, row, i) / total * (double)s->row;
		seen += count[i];
		if (expect < 5 && i + 1 < s->source_row)
			continue;
		if (expect > 0)
			chi += (seen - expect) * (seen - expect) / expect;
		bins += expect > 0;
		expect = seen = 0;
	}
	return bins < 2 || compare_chi2_tail(chi, bins - 1) >= alpha;
}

static const char *set_samples(const struct spec_compare *c, const struct compare_side *s, double *wrong)
{
	double *count = xmalloc((s->source_row + 1) * sizeof *count);
	size_t rows = s->n / s->row, bad = 0;

	for (size_t r = 0; r < rows; r++)
		bad += !samples_row_ok(s, r, c->alpha / (double)rows, count);
	free(count);
	*wrong = rows ? (double)bad / (double)rows : 0;
	return bad && DEFENCE("judge.distribution") ? "judge.distribution" : NULL;
}

const char *compare_set(const struct spec_compare *c, const struct compare_side *s, double *wrong)
{
	if (!s->source || s->source_row == 0 || dtype_is_float(s->dtype))
		return "judge.reference";
	switch (c->kind) {
	case COMPARE_TIES: return set_ties(c, s, wrong);
	case COMPARE_TOPK: return set_topk(c, s, wrong);
	case COMPARE_SORT: return set_sort(c, s, wrong);
	case COMPARE_DISTRIBUTION: return set_samples(c, s, wrong);
	default: return "judge.reference";
	}
}
