/*
 * compare.h - is an output right? Every element, NaN-safe, scaled by the reference alone.
 *
 * compare_output adds one output to a running result: the first rule broken gives the code, and
 * the worst figures of all outputs are kept. The reference of a float output is float64; of an
 * integer output it has the output's own type.
 *
 * Figures: worst = largest |err| / bound over all elements (<= 1 passes); rel_l2 over the whole
 * output and row_l2 over its worst row; ratio = a row's rms error over the rms error of the
 * baseline kernel on the same inputs (with a floor, so that an exact baseline convicts nobody).
 * Under the rounding of a narrow output (bfloat16 and below) a sum or a factor of lower precision
 * hides from all of these, but it moves a whole row one way, and rounding does not: see `bias`.
 * No index, value or seed leaves this module: feedback is coarse on purpose (threats.md J05).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_COMPARE_H
#define TS_COMPARE_H

#include "err.h"
#include "spec.h"

#include <stddef.h>
#include <stdint.h>

struct compare_result {
	int32_t pass;       /* 1 only if every check ran and held */
	char code[40];      /* reason code: "ok", "judge.nonfinite", "judge.rel_l2", ... */
	char output[72];    /* the output that failed first; "" if none */
	double worst;       /* largest error over its bound */
	double rel_l2;      /* worst output */
	double row_l2;      /* worst row of the worst output */
	double ratio;       /* worst error ratio; 0 when not measured */
	double wrong;       /* share of elements of the failing output that are out of bounds, 0..1 */
	double poison;      /* share of its elements that still hold the poison, 0..1 */
	uint8_t hash[32];   /* SHA-256 of all output payloads (bit-for-bit agreement) */
};

/* What one output is compared with. */
struct compare_side {
	const char *name;
	enum dtype dtype;        /* of `got` */
	size_t n;                /* elements */
	size_t row;              /* elements of a row, >= 1 */
	const void *got;         /* candidate's */
	const void *ref;         /* float64, or integers of dtype */
	const void *base;        /* baseline kernel's output of the same dtype, or NULL */
	const void *poison;      /* what the buffer held before, or NULL */
	int exact;               /* exact-integer regime: got must equal ref rounded to dtype */
	double slack;            /* factor on error_ratio for regimes harder than the spec's: >= 1 */
	/* Comparators over an input: `source` (source_dtype, rows of source_row elements) and the
	 * output of gathered values, if any. */
	const void *source;
	enum dtype source_dtype;
	size_t source_row;
	const void *values;      /* candidate's output of values (dtype values_dtype), or NULL */
	enum dtype values_dtype;
};

/* Bounds with every NAN replaced by the default of dtype and compute class. */
struct compare_bounds {
	double atol_rms, rtol, rel_l2, row_rel_l2, error_ratio;
	double ratio_floor; /* the ratio's denominator is at least this, relative to a row's rms */
	double bias;        /* narrow outputs: common relative error of a row, beyond chance */
};
void compare_defaults(const struct spec *s, const struct spec_tensor *out, struct compare_bounds *b);

void compare_begin(struct compare_result *r); /* pass = 1, code "ok", zeros */
void compare_output(struct compare_result *r, const struct spec_compare *c,
		    const struct compare_bounds *b, const struct compare_side *s);
/* Fail with a code unless already failed. */
void compare_fail(struct compare_result *r, const char *code, const char *output);

/*
 * For those who walk an output elsewhere (gpu_check.h): the same rules on the figures of the walk.
 * Rows shorter than 128 elements are merged into groups; the last group takes the rest.
 */
struct compare_figures {
	uint64_t wrong, nonfinite, nan, poisoned;
	double worst, rel_l2, row_l2, ratio;
	int biased;
};
size_t compare_group(size_t n, size_t row); /* elements of a group */
int compare_narrow(const struct compare_bounds *b, enum dtype t, size_t n, int exact); /* look for bias? */
/* Of `s`: name, dtype, n, exact, slack, and whether there is a base. */
void compare_conclude(struct compare_result *r, const struct compare_bounds *b,
		      const struct compare_side *s, const struct compare_figures *f);
void compare_conclude_integers(struct compare_result *r, const struct compare_side *s, uint64_t wrong,
			       uint64_t poisoned);

/* compare_sets.c: the comparators that judge a set or an order. Return NULL or a reason code. */
const char *compare_set(const struct spec_compare *c, const struct compare_side *s, double *wrong);

/* Chi-square upper tail probability P(X >= x) for k degrees of freedom. */
double compare_chi2_tail(double x, double k);

#endif
