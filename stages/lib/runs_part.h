/*
 * runs_part.h - what runs.c and runs_state.c share.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_RUNS_PART_H
#define TS_RUNS_PART_H

#include "jsonw.h"
#include "runs.h"

/* `champion` and `state_from` of a new run: from the newest closed trial of its spec and device. */
int runs_put_state(struct jsonw *w, const struct run_plan *p, struct err *e);

#endif
