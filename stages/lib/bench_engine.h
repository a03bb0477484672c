/*
 * bench_engine.h - the stage bench (and confirm) of engine problems. What is measured and written: engine_bench.h.
 *
 * The candidate is timed as the program that guard made and judge looked at; champion and baseline are built here from
 * their sources. The stage's key is drawn before any engine is started, and published with the verdict.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_BENCH_ENGINE_H
#define TS_BENCH_ENGINE_H

#include "checker_call.h"
#include "err.h"
#include "stage.h"

/* `text`: spec.json as pinned. *c signs the verdict after work is over: the caller stops it. */
int bench_engine(struct stage *s, const char *text, size_t len, struct checker **c, struct err *e);

#endif
