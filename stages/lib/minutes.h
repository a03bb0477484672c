/*
 * minutes.h - the wall minutes of a run over all its makes: the setting max_minutes.
 *
 * trials/runs/R/minutes.jsonl, append-only: {"t" (epoch seconds), "kind", "trial", "s"}. iterate writes `begin` when a make
 * starts and `end` when it ends; the recipe wrapper writes `reserve` before a trial is proposed, with the median of the
 * trials so far, and `settle` when it is closed, with the seconds since the last stamp of that make (with WIDTH above 1 these
 * are what a trial adds, not what it takes). What a killed make had reserved stays charged; if more than that had passed
 * by the last step it finished, `begin` charges the rest.
 *
 * A trial that does not fit is not begun: EX_NOENV, and the run stops. One that outlasts the budget is stopped by
 * iterate's alarm. Clocks that go backwards count as standing.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_MINUTES_H
#define TS_MINUTES_H

#include "err.h"
#include "run.h"

#include <stddef.h>

#define MINUTES_OPEN 256 /* trials in flight that are told apart */

struct minutes {
	double charged; /* seconds, open reservations included */
	double median;  /* of the trials settled so far; 0 none */
	double last;    /* newest stamp of the newest make; 0 none */
	double open;    /* reserved by it and not settled */
	int nopen;
	struct minutes_open {
		char trial[TRIAL_ID];
		double s;
	} of[MINUTES_OPEN];
};

/* The state after these lines; lines that cannot be read count for nothing. */
void minutes_fold(const char *text, size_t len, struct minutes *m);
int minutes_read(const struct run *r, struct minutes *m, struct err *e);

/* All do nothing in a run without max_minutes. *left_s: seconds until it is over, 0 no limit. */
int minutes_begin(const struct run *r, double *left_s, struct err *e);
int minutes_end(const struct run *r, struct err *e);
int minutes_reserve(const struct run *r, const char *trial, struct err *e);
int minutes_settle(const struct run *r, const char *trial, struct err *e);
/* For the wrapper: one of these two, by the name of the run. */
int minutes_step(const char *run, const char *trial, int closed, struct err *e);

#endif
