/*
 * fill.h - write the inputs of a rep from a key.
 *
 * fill_inputs is a pure function of (spec, axes, set key, rep key, regime): the set key gives
 * the base content, the rep key (NULL: none) changes a few random elements of every input in
 * place, so that two reps never see the same data and an answer kept from the rep before is
 * wrong somewhere.
 *
 * Regimes (threats.md 13): the spec's own fills; mixed magnitudes with rare spikes, and rows that are loud in few
 * places (what keeps too few candidates, or forgets, misses them); rows equal
 * but for a few elements; and, where sums of products of integers are exact (oracle.h finds out
 * by the baseline), one operand of up to 17 significant bits against {-1,0,1}, and swapped. Inputs
 * whose meaning is structural (indices, page tables, offsets) keep their fill in every regime;
 * uniform ones, whose range may be a domain, keep theirs but in the exact regimes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_FILL_H
#define TS_FILL_H

#include "err.h"
#include "spec.h"

#include <stdint.h>

enum fill_regime {
	REGIME_SPEC = 0,   /* the spec's own fills */
	REGIME_MIXED,      /* mixed magnitudes, rare large spikes */
	REGIME_NEAR_EQUAL, /* rows that differ in a few elements only */
	REGIME_EXACT_A,    /* first operand wide integers, others in {-1,0,1}: sums exact */
	REGIME_EXACT_B,    /* swapped */
	REGIME_COUNT
};

const char *fill_regime_name(enum fill_regime r);
/* Bit per regime that this spec's fills and sizes allow; REGIME_SPEC always. */
uint32_t fill_regimes(const struct spec *s, const struct axes *a);

/* Tensor input `i` into `out` (spec_bytes of it). set_key NULL: `out` holds the set's content
 * already, only the rep's changes are made. */
int fill_input(const struct spec *s, const struct axes *a, int i, enum fill_regime regime,
	       const uint8_t set_key[32], const uint8_t *rep_key, void *out, struct err *e);
/* How an input is drawn, for those who draw it elsewhere (gpu_check.h). */
enum fill_how {
	FILL_PLAIN = 0,   /* element by element, as the spec's fill says */
	FILL_STRUCTURED,  /* by fill_input only */
	FILL_MIXED, FILL_NEAR_EQUAL, FILL_EXACT_WIDE, FILL_EXACT_SMALL,
};
struct fill_way {
	enum fill_how how;
	uint64_t n, row;     /* elements, and of the last dimension */
	int64_t from, to;    /* expressions of the fill, in numbers */
	int bits;            /* of a wide operand: integers up to 2^bits */
};
int fill_describe(const struct spec *s, const struct axes *a, int i, enum fill_regime regime,
		  struct fill_way *w, struct err *e);

/* The rep's changes to an input, to be made in this order. They do not depend on its content. */
enum { FILL_CHANGES = 4 };
enum fill_change_kind { FILL_SET, FILL_FLIP, FILL_SWAP };
struct fill_change {
	enum fill_change_kind kind;
	uint64_t at, other;  /* elements; other: of a swap */
	double value;        /* flip: -value where the element is above zero, else value */
};
int fill_changes(const struct spec *s, const struct axes *a, int i, enum fill_regime regime,
		 const uint8_t rep_key[32], struct fill_change out[FILL_CHANGES], int *n, struct err *e);

/* Scalar input `i`: drawn anew for every rep. The value as the dtype can hold it. */
int fill_scalar(const struct spec *s, const struct axes *a, int i, enum fill_regime regime,
		const uint8_t rep_key[32], double *out, struct err *e);

#endif
