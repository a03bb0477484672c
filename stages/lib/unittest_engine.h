/*
 * unittest_engine.h - the cheap tier of engine problems: unittest.c hands an attempt over when its spec says "kind": "engine".
 *
 * The spec's tiny workloads (odd batches and prompts, one id, one sequence), a fresh child each, three batches each
 * (engine_rig.h). First the build with sanitizers, where guard made one, then the one that will be timed. The shapes are
 * public and nothing of these prompts is used again, so the text says what was wrong in full. Decides s->v; writes
 * aK/unittest.log.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_UNITTEST_ENGINE_H
#define TS_UNITTEST_ENGINE_H

#include "checker_call.h"
#include "stage.h"

int unittest_engine(struct stage *s, const char *text, size_t len, struct checker **c, struct err *e);

#endif
