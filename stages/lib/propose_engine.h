/*
 * propose_engine.h - propose, for engine problems.
 *
 * The parent is the champion of the moment, else the problem's baseline/. Proposers so far: `sweep`, each
 * configuration of the tunables that the engine at the run's start declares once in a run (engine_tunables.h), and
 * `replay`, whole engines in folders: setting reply names a folder that has one folder NNNN for each trial of the run (0001
 * the first) with the candidate's files, and beside it, where a line of words is wanted, NNNN.txt.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_PROPOSE_ENGINE_H
#define TS_PROPOSE_ENGINE_H

#include "stage.h"

/* `kind`: the proposer. EX_BADUSE: one that knows kernels alone. */
int propose_engine(struct stage *s, const char *kind, struct err *e);

#endif
