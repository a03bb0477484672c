/*
 * summary.h - what a run came to, in five lines, and its budget in one.
 *
 * Reads the promote verdicts of the run's trials and the last line of its ledger.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_SUMMARY_H
#define TS_SUMMARY_H

#include "clusters.h"
#include "err.h"
#include "run.h"

#include <cjson/cJSON.h>

/* A run by its verdicts. */
struct summary {
	int closed, kept, rejected, inconclusive, invalid;
	int space_done;     /* trials that found nothing left to try */
	int plateaued;      /* trials that PLATEAU ended */
	int widened;        /* trials proposed while it widened the search */
	int dry;            /* charged trials since the last keep, by the newest closed trial; with PLATEAU */
	char words[400];    /* of the newest of these; of a run of one trial: why it was not kept */
	cJSON *reasons;     /* object: code -> count, of trials not kept */
	struct clusters clusters; /* of the trials rejected or inconclusive; the first message of each is shown */
	int turns, repaired, mended; /* repair turns; trials with some; of these past compile and unit tests */
	cJSON *errors;      /* object: code -> count, first errors of the trials that were repaired */
	char champion[TRIAL_ID]; /* after the newest closed trial; "" none */
	char relies[128];   /* rules that the champion's keeping depends on, "fast_math, order"; "" clean */
	double gain;        /* product of the ratios of what this run kept; 1 nothing */
	int asked, unusable; /* replies of a model, a program or a record; those without a usable candidate */
	double best_ratio;  /* champion against the baseline; 0 unknown */
};

void summary_read(const struct run *r, struct summary *s);
void summary_free(struct summary *s);

/* What a person must know of the figures of this run: "emulated: not a GPU speed", or "". */
const char *summary_note(const struct run *r);

/* Lines on standard output. */
void summary_lanes(const struct run *r); /* GPUs of the run and who holds them; nothing on emu and sim */
void summary_rows(const struct run *r, const struct summary *s); /* trials, reasons, champion, spend */
/* What is about to run, and what is reused; `tried`: of the judge's self-test, "" none. */
void summary_banner(const struct run *r, const char *tried);

/* Let BIN/render write the report; RUNNING ("r0001: 3 of 10 trials closed") while a run is on, else NULL. */
int summary_page(const char *bin, const char *running, struct err *e);

/* The rows, then the report is rendered by BIN/render and its path printed. */
int summary_print(const struct run *r, const char *bin, struct err *e);

#endif
