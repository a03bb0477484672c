/*
 * failure.h - the memory of failed steps: trials/NNNN/failures.jsonl.
 *
 * A step that left no verdict adds one line: who failed (`ours`: our code; `child`: a confined
 * process died and left nothing to judge; `world`: network, lock, something not installed) and
 * at what inputs (hash of the upstream verdict and of the program). Two failures of the first
 * two kinds at the same inputs end the trial (tools/run.c): no poison pills.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_FAILURE_H
#define TS_FAILURE_H

#include "err.h"
#include "hash.h"
#include "trial.h"

struct failure {
	const char *who;      /* "ours", "child", "world" */
	const char *upstream; /* hash of the upstream verdict file, "" for the first step */
	const char *tool;     /* hash of the program */
	int code;             /* exit code; 128 + signal */
	const char *message;
};

/* Best effort: a full disk must not hide the failure that is being reported. */
void failure_note(const char *id, enum step step, const struct failure *f);

/* How often `step` failed with these inputs; *child says whether the last of them was a child's.
 * `message` (may be NULL) gets the last text. */
int failure_count(const char *id, enum step step, const char *upstream, const char *tool,
		  int *child, char message[480]);

#endif
