/*
 * fill_part.h - what the two files of fill share. Private to them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_FILL_PART_H
#define TS_FILL_PART_H

#include "fill.h"
#include "rng.h"

/* One tensor being filled. */
struct fill_job {
	const struct spec_tensor *t;
	enum dtype dt;
	uint8_t *out;
	size_t n, row;       /* elements, and of the last dimension */
	int64_t from, to;    /* evaluated expressions of the fill */
	int bits;            /* significant bits of a wide operand in the exact regimes */
	struct rng r;
};

/* fill_structured.c: tensors whose elements depend on each other. */
int fill_structured(struct fill_job *j, struct err *e);

#endif
