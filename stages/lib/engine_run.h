/*
 * engine_run.h - what a new run of an engine problem is pinned to: its device and its model.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_RUN_H
#define TS_ENGINE_RUN_H

#include "err.h"

#include <cjson/cJSON.h>

/* Is specs/NAME one? 1: yes; 0: no; -1: it cannot be read. */
int engine_run_kind(const char *name, struct err *e);

/* Is specs/NAME an engine problem? 1: yes, its spec can be read, *device (NULL: not given) is one it can run on; 0: no;
 * -1. An engine in C runs on this processor, "emu", whatever GPUs there are; one in CUDA on a GPU alone. */
int engine_run_device(const char *name, const char **device, struct err *e);

/* Settings of an engine run, into `more`: model_dir (resolved, when the user gave one) and model_sha256. Makes the checkpoint
 * when there is none. EX_BADUSE, EX_BADINPUT, EX_NOENV. */
int engine_run_model(const char *name, const char *model_dir, cJSON *more, struct err *e);

/* 0, or EX_BADUSE for proposers that know kernels alone (try, redo and adopt among them). */
int engine_run_proposer(const char *proposer, struct err *e);

#endif
