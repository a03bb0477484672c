/*
 * fakes.h - outputs that no judge may accept, written straight into a candidate's memory.
 *
 * For `make check` and for tests of the checker: each writes one output buffer given what an
 * honest kernel wrote there (`honest`), the inputs, or an earlier rep (`stale`).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_FAKES_H
#define TS_FAKES_H

#include "memory.h"

struct fake {
	const struct mem_layout *layout;
	uint8_t *rw;           /* the rw memfd, mapped */
	const uint8_t *in;     /* the inputs memfd, mapped */
	const uint8_t *honest; /* rw memfd after an honest run on these inputs */
	const uint8_t *stale;  /* rw memfd of an earlier rep; fake_double: float64 values */
	int input;             /* fake_copy: which input */
};

typedef void fake_fn(const struct fake *f, const struct mem_buf *b);

struct fake_kind {
	const char *name;
	fake_fn *write;
	int floats; /* only where an output is a float */
};

extern const struct fake_kind FAKES[]; /* ends with a NULL name */

fake_fn fake_copy, fake_stale;
fake_fn fake_double; /* not a fake: the right values, rounded to the output's type */

#endif
