/*
 * judge_engine.h - the judge of engine problems: judge.c hands a trial over when its spec says "kind": "engine".
 *
 * Untimed, on the public workloads, a fresh child each, prompts from the stage's key (engine_rig.h). Decides s->v; signed by
 * the checker in *c, which lives until the verdict is written. DEVICE=sim: nothing is run, a keyed fraction fails.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_JUDGE_ENGINE_H
#define TS_JUDGE_ENGINE_H

#include "checker_call.h"
#include "stage.h"

int judge_engine(struct stage *s, const char *text, size_t len, struct checker **c, struct err *e);

#endif
