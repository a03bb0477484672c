/*
 * ledger.h - what a run spends, in trials/runs/R/ledger.jsonl, append-only.
 *
 * Reserve an upper bound before anything is dispatched; settle with the true figures after. A
 * reservation nobody settled stays charged; iterate marks it `interrupted` at the next start, and it
 * is settled nevertheless when its reply turns up.
 * Every line carries the running total, so a check reads one line, never the whole file.
 *
 * Budgets are the run's settings max_tokens, max_usd, max_gpu_s, max_calls (0 or absent = no limit).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_LEDGER_H
#define TS_LEDGER_H

#include "err.h"
#include "run.h"

#include <stdint.h>

struct ledger_amount {
	int64_t calls;      /* model calls */
	int64_t tokens_in;
	int64_t tokens_out;
	double usd;
	double gpu_s;
};

#define LEDGER_ID 40

/*
 * Append a reservation and give its id. EX_AGAIN never; EX_NOENV when it would exceed a budget
 * of the run (the text says which): the caller then ends without dispatching.
 */
int ledger_reserve(const struct run *r, const char *trial, const char *what,
		   const struct ledger_amount *most, char id[LEDGER_ID], struct err *e);
/* Settle `id`, reserved with `most`, at the true figures. */
int ledger_settle(const struct run *r, const char *trial, const char *what, const char *id,
		  const struct ledger_amount *most, const struct ledger_amount *spent,
		  struct err *e);
/* What a step called `what` usually holds a GPU, by the median of those settled with more than 0; 0 while there is none. */
int ledger_usual_gpu_s(const struct run *r, const char *what, double *s, struct err *e);
/* Running totals (settled figures plus open reservations), from the last line. */
int ledger_total(const struct run *r, struct ledger_amount *total, struct err *e);
/* Is `id` reserved and not settled? Then *most is what it was reserved with. One that was marked
 * interrupted can still be settled: a client that its make left behind may have stored the
 * reply. Reads the whole file. 1, 0, -1. */
int ledger_reserved(const struct run *r, const char *id, struct ledger_amount *most, struct err *e);
/* Mark every open reservation interrupted. They stay charged in full until they are settled. *marked
 * counts those of model calls. */
int ledger_interrupt(const struct run *r, int *marked, struct err *e);

#endif
