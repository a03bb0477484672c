/*
 * record.h - what is derived from a promote verdict: log, index, history, champion.
 *
 * promote.json is the commit point of a trial. From it follow, in this order and each exactly
 * once however often it is tried:
 *   trials/log.jsonl     one line per closed trial
 *   trials/index.tsv     trial, spec, device, candidate hash, verdict, code, hash of the candidate
 *                        as proposed, before tune (tab-separated)
 *   trials/history.git   branch trial/NNNN with the sources; a merge on champion/SPEC/DEVICE
 *                        when kept (bare; never the user's own repository)
 *   champion/SPEC/DEVICE symlink to .v/DEVICE-NNNN: sources, evidence, README
 * Trials close in the order of their numbers, so the last line of a file says how far it is.
 *
 * promote calls record_roll for its trial; iterate calls record_catch_up before anybody reads,
 * which repairs what a killed promote left undone.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_RECORD_H
#define TS_RECORD_H

#include "err.h"
#include "trial.h"
#include "verdict.h"

#include <cjson/cJSON.h>

/* A closed trial, as the parts of the record see it. Strings point into the two files. */
struct closed {
	struct trial trial;
	struct verdict_in promote;
	int kept;
	const char *candidate;  /* hash, or NULL when there never was a candidate */
	const char *parent;     /* trial it was derived from, or NULL */
	const char *before;     /* champion before it, or NULL */
	const char *title;      /* one line: the proposal's item, or "" */
	const char *dir;        /* folder of its sources, relative to the trial's: "", "a0", ... */
	long number;
};

/* EX_HARNESS when the verdict keeps a candidate that its own evidence contradicts. */
int closed_read(const char *id, struct closed *c, struct err *e);
void closed_free(struct closed *c);

int record_roll(const char *id, struct err *e);
int record_catch_up(int *rolled, struct err *e);

/* Number of the newest trial in log.jsonl (0: none). A torn last line is cut off. */
int record_last(long *number, struct err *e);

/* The parts; idempotent. record_git.c and record_champion.c. */
int record_history(const struct closed *c, struct err *e);
int record_champion(const struct closed *c, struct err *e);
/* On a GPU: evidence/cuda-K.cubin, .ptx and, where nvdisasm is installed, .sass of a champion's folder. */
int record_code(const struct closed *c, const char *dir, struct err *e);
/* The trial of the same problem and device that was start/ as it is shipped: 1 and *out to be freed, or 0. */
int record_start(const struct closed *c, struct closed *out);

#endif
