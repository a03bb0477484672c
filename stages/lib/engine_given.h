/*
 * engine_given.h - an engine that a run was given whole: make try, adopt and redo of engine problems.
 *
 * iterate keeps the files in trials/runs/R/given/engine/ and their hashes in run.json; the proposal of the run's one trial
 * is that folder.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_GIVEN_H
#define TS_ENGINE_GIVEN_H

#include "stage.h"

#define ENGINE_GIVEN "engine/" /* of the names in run.json's `given` */

/* 1: this run was, `dir` is the folder and holds what run.json names; 0: it was not; -1 EX_BADINPUT: other files. */
int engine_given(const struct stage *s, char dir[TRIAL_PATH], struct err *e);

#endif
