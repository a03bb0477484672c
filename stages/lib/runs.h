/*
 * runs.h - making, finding and repairing runs. For tools/iterate and tools/status; the caller of
 * anything that writes holds the run lock ("run").
 *
 * A run's folder appears whole: it is built under a temporary name, key first, and renamed. Its
 * run.json names the ids of its trials, so claims (trials/NNNN/trial.json) can be made again.
 * `done.json` says that a run is finished or was given up; without it the run is unfinished.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_RUNS_H
#define TS_RUNS_H

#include "buf.h"
#include "err.h"
#include "run.h"

#include <cjson/cJSON.h>
#include <stdint.h>
#include <sys/types.h>

enum { RUN_GIVEN = 64 }; /* as many files as an engine may have */

/* What a new run is made of. */
struct run_plan {
	const char *spec, *device, *proposer;
	int64_t n, width, seed;
	int allow_weak;
	int replay;           /* the scratch run of tools/replay.c */
	cJSON *more;          /* further settings, an object (model, profile, max_tokens, ...) */
	cJSON *origin;        /* for every trial.json; NULL: null */
	const char *given[RUN_GIVEN][2]; /* files {path, name} to keep in the run's given/ folder */
	const char *bin;      /* folder of the programs to pin */
	const struct buf *device_json; /* of a runner's GPU (runner.h); NULL: the GPU is here */
	int gpus;             /* how many there, with device_json */
	const char *run_gpu, *run_unittest; /* runners; NULL: here */
};

/* Name of the newest run, "" when there is none. */
int runs_newest(char name[TRIAL_ID], struct err *e);
int runs_finished(const char *name); /* done.json is there */
int runs_finish(const char *name, const char *state, struct err *e); /* "finished", "given_up" */

int runs_make(const struct run_plan *p, char name[TRIAL_ID], struct err *e);

/* Claims and ids.mk, made again where they lack. */
int runs_claim(const struct run *r, struct err *e);

/* Accept the present programs: appends to pins.jsonl when they are not pinned yet. 1 if so. */
int runs_pin_tools(const struct run *r, const char *bin, struct err *e);

/* How many of the run's trials are closed; *next gets the first open id, "" if none. */
int runs_closed(const struct run *r, char next[TRIAL_ID]);

/*
 * Start one make over the trials of the run, with the wrapper BIN/run, and wait for it. Its exit
 * code, 128 + signal when it was killed, -1 when it could not be started. *pid is its process
 * meanwhile, for signal handlers. Changes MAKEFLAGS and TS_LAST in our environment.
 */
int runs_drive(const struct run *r, const char *bin, volatile pid_t *pid, struct err *e);

/*
 * Repair what killed programs left: bad artefacts of open trials to bad/, leftover temporary
 * files, stale git locks; then log, index, history and champion rolled forward. `moved` counts
 * the artefacts that were moved.
 */
int recover_run(const struct run *r, int *moved, struct err *e);
int recover_record(int *rolled, struct err *e);

/* All trials are closed: leftovers of programs that were killed and whose step was tried again by
 * the wrapper go, and what they had reserved is charged. */
int recover_end(const struct run *r, struct err *e);

#endif
