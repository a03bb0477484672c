/*
 * checker_part.h - the keys of the checker. Private to stages/roles/checker.c and checker_keys.c.
 *
 * keys_make reads trials/runs/R/key, or on a runner's far side the two keys of one step, or without a run
 * draws a key that is thrown away. The page they lie in is locked and left out of core dumps.
 * keys_make ... keys_wipe; a failed keys_make leaves something to wipe too.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_CHECKER_PART_H
#define TS_CHECKER_PART_H

#include "err.h"
#include "run.h"

#include <stdint.h>

/* From the run's key, one way: `stage` draws the inputs of one step of one trial, `mac` signs that
 * trial's verdicts. A machine that gets these two learns nothing of other trials, nor of later steps. */
struct keys {
	uint8_t run[32], stage[32], mac[32];
};

int keys_make(struct keys **keys, const char *run_dir, const char *trial, const char *stage, struct err *e);
/* Of a replay's scratch run: the stage key that a verdict published. */
int keys_replay(struct keys *keys, const struct run *run, const char *run_dir, const char *stage, struct err *e);
/* To standard output; the exit code. */
int keys_hand(const struct keys *keys);
void keys_wipe(struct keys *keys); /* NULL: nothing */

#endif
