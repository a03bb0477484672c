/*
 * selftest_part.h - what selftest.c and selftest_specimens.c share. Private to them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_SELFTEST_PART_H
#define TS_SELFTEST_PART_H

#include "checker_call.h"
#include "fill.h"
#include "memory.h"

#include <stdint.h>

/* One output of a rep, as an honest kernel wrote it. */
struct spoil {
	uint8_t *got;            /* to be spoilt */
	const struct mem_buf *buf;
	size_t n, row;           /* elements; of a row */
	const uint8_t *in[4];    /* inputs, by index */
};
typedef void spoil_fn(const struct spoil *s);

enum { AT_END = INT32_MAX, AT_FRONT = -1 };

struct specimen {
	const char *rule;        /* as DEFENCE calls it */
	const char *what;
	const char *words;       /* reasons that are right, without "judge.", separated by blanks; "any" */
	const char *output;      /* what `spoil` is given; NULL: nothing */
	spoil_fn *spoil;
	const char *touch;       /* buffer of which a byte is changed through the checker; NULL: none */
	int32_t at;              /* in bytes of its payload, AT_FRONT before it, AT_END after it */
	enum checker_way way;
	enum fill_regime regime;
	uint32_t poison;
	int64_t late_ns;         /* what the process worked after its answer */
	int leave;               /* 1: `output` stays as it is found; 2: all outputs do */
};

extern const struct specimen SPECIMENS[]; /* ends with a NULL rule; those of one regime together */

#endif
