/*
 * run_single.h - runs of one trial that start from something given: a kernel of the user's own, a trial's reply once
 * more, somebody else's record.
 *
 * Each fills what to keep in the run's given/ folder, the proposer and the origin that trial.json will name, and where the
 * caller left them NULL problem and device. Strings live as long as the program. 0, or -1 with EX_BADUSE (nothing
 * to start from) or what reading the record gave.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_RUN_SINGLE_H
#define TS_RUN_SINGLE_H

#include "runs.h"

/* make try: `plan` may be NULL, then the champion's or the baseline's is kept. `engine`: of an engine problem, where `kernel` is
 * a folder, or one file that is a whole engine, and there is no plan. */
int run_try(struct run_plan *p, const char *kernel, const char *plan, int engine, struct err *e);
/* make redo: the recorded reply of trial `id` again, in a trial of its own; without a reply, and of an engine, its sources. */
int run_redo(struct run_plan *p, const char *id, int spec_given, int device_given, struct err *e);
/* make adopt: a trial's record (its final choice, else its first attempt), a champion's folder, or any folder with
 * the two files, or with those of an engine. A record says which problem it is for. */
int run_adopt(struct run_plan *p, const char *from, int spec_given, struct err *e);

#endif
