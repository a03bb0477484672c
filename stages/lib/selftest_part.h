/*
 * selftest_part.h - what the files of the self-test share. Private to selftest*.c.
 *
 * Two kinds of wrong outputs. A specimen (selftest_specimens.c) is written into the memory where a
 * candidate's outputs lie, in one rep. A slip (selftest_slips.c) is a mode of the kernel, and goes through
 * the whole examination; a few of these only look at what the checker drew.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_SELFTEST_PART_H
#define TS_SELFTEST_PART_H

#include "arm_impl.h"
#include "checker_call.h"
#include "fill.h"
#include "image.h"
#include "memory.h"
#include "proof.h"
#include "selftest.h"

#include <limits.h>
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

struct play {
	struct arm arm;          /* first: what proof.c takes for a candidate's arm is this */
	struct selftest *t;
	char dir[PATH_MAX];
	struct spec *spec;
	struct image honest;
	struct proof_arm own;    /* the honest kernel */
	struct checker *checker;
	struct proof proof;
	struct proof_work w;
	uint8_t *in, *rw;        /* of the workload; on a GPU copies */
	uint8_t *right;          /* outputs of the honest kernel, as the rw memfd held them */
	uint64_t rep;
	const struct specimen *s;
};

int selftest_on_gpu(const struct play *p);
int selftest_fetch(struct play *p, struct err *e); /* p->in and p->rw are as the memory is */
/* One line: what was tried for `rule`, and what came of it. */
void selftest_say(struct selftest *t, int ok, const char *rule, const char *what, const char *got);
/* The same of a reason: one of `words` ("ok", "any" but ok) is right. */
void selftest_judged(struct selftest *t, const char *rule, const char *what, const char *words, const char *word);
/* A rep of the honest kernel; what it wrote is kept in p->right. */
int selftest_honest(struct play *p, const struct checker_prep *prep, struct err *e);

/* selftest_slips.c */
int selftest_slips(struct play *p, struct err *e);
int selftest_inputs(struct play *p, struct err *e);

#endif
