/*
 * engine_power.h - has the judge of an engine problem power on this checkpoint? Mutants through its gates.
 *
 * Every mutant (engine_mutant.h) answers the problem's workloads; the gates are those that honest ways set on the same
 * prompts, as when a candidate is judged. All that is due to be refused must be, all that is honest must pass.
 *
 * Weights of 8 bits are a matter of counting: each id hardly differs. From a larger sample comes the number of ids at
 * which the mean regret of such an engine is told from that of honest bfloat16. A checkpoint where ENGINE_AUDIT are not
 * enough may not score.
 *
 * Life: engine_power fills the caller's struct; nothing is to be freed.
 *
 * The prompts follow from the key alone: the same table every time.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_POWER_H
#define TS_ENGINE_POWER_H

#include "engine_mutant.h"
#include "engine_spec.h"

enum {
	ENGINE_AUDIT = 10000,  /* ids */
	ENGINE_SAMPLE = 1500,  /* ids to count from */
	ENGINE_POWER_ROWS = 24
};

/* Mean regret and its spread: what counting goes by. */
struct engine_spread {
	size_t tokens;
	double mean, sd;         /* sd of one id, such that sd / sqrt(tokens) is the error of the mean */
};

struct engine_power_row {
	const struct engine_mutant *x;
	const char *word;        /* of engine_judge; NULL: it changes nothing at these shapes */
	struct engine_figures f;
	struct engine_spread spread; /* DUE_COUNT: of the sample */
	size_t needed;           /* DUE_COUNT: ids that tell it from honest rounding; 0: no number does */
	int ok;
};

struct engine_power {
	int n;
	struct engine_power_row row[ENGINE_POWER_ROWS];
	struct engine_gates gates;
	struct engine_spread honest; /* bfloat16, of the sample */
	int bad;                 /* rows that are not ok */
};

/* `sample`: DUE_COUNT goes by at least so many ids. `done` (may be NULL) is told of each row as it is ready. EX_BADINPUT: the
 * checkpoint cannot judge these workloads at all. */
int engine_power(const struct engine_model *m, const struct engine_workload *w, int n, const uint8_t key[32], int sample,
		 void (*done)(void *ctx, const struct engine_power *p, const struct engine_power_row *row), void *ctx,
		 struct engine_power *p, struct err *e);

/* Mean and spread of regrets that stand sequence after sequence, a[0..n). Ids of one sequence are not independent. */
struct engine_spread engine_spread_of(const struct engine_regrets *r, const struct engine_asked *a, int n);

/* Ids that tell `bad` from `good` with 99 % power at 1 % risk; 0 when bad's mean is not above good's. */
size_t engine_needed(const struct engine_spread *bad, const struct engine_spread *good);

#endif
