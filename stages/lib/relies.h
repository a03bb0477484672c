/*
 * relies.h - what a right and fast kernel relies on that not every user would allow.
 *
 * A verdict's status says how far it carries:
 *   clean           decided by the judge's rules alone
 *   rule-dependent  passed, and whether it should depends on a rule that somebody may see otherwise; the
 *                   rules are named, each in words that its author can answer
 *   inconclusive    the evidence decides neither way
 *   invalid         nothing is concluded: our fault or the machine's
 *
 * The rules (relies_rule): what is found in the plan, the source and the PTX here, in equal runs that differ by
 * the judge, in the layers that held by promote. None is a reason to reject (threats.md J10, T10, T16): hints,
 * sizes of one's own and sums in any order are honest tuning. Nothing found here is proof of its absence.
 *
 * A struct relies is plain: zero it, fill it, read it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_RELIES_H
#define TS_RELIES_H

#include "jsonw.h"

#include <stddef.h>

struct plan;
struct spec;
struct facts;

enum { RELIES_MAX = 8, RELIES_WORDS = 320 };

struct relies {
	int n;
	struct {
		const char *rule; /* static */
		char words[RELIES_WORDS];
	} item[RELIES_MAX];
};

/* A rule as it is spelled in the list, static; NULL when unknown. fast_math, cache_hints, placement, public_sizes,
 * order, isolation. */
const char *relies_rule(const char *name);

/* Once each: the first words stay. Unknown names are ignored. */
void relies_add(struct relies *r, const char *rule, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The rules of a list that relies_write wrote; NULL is none. */
void relies_join(struct relies *r, const cJSON *list);

/* Knobs of the compiler that give up exactness; launches or tunables that are chosen at a public size alone. */
void relies_plan(struct relies *r, const struct plan *p, const struct spec *s, const struct facts *f);
/* Comparisons with a public size, loads and stores that name a cache's policy. */
void relies_source(struct relies *r, const char *text, size_t len, const struct spec *s);
/* Both. */
void relies_candidate(struct relies *r, const char *text, size_t len, const struct plan *p, const struct spec *s,
		      const struct facts *f);
/* The same policies, and registers that say where on the GPU it runs. */
void relies_ptx(struct relies *r, const char *ptx, size_t len);

void relies_write(const struct relies *r, struct jsonw *w, const char *key); /* [{"rule","words"}] */

#endif
