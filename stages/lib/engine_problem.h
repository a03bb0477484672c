/*
 * engine_problem.h - is this an engine problem, and where may its engines run? What every stage asks first; nothing here
 * opens a model or a GPU's driver.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_PROBLEM_H
#define TS_ENGINE_PROBLEM_H

#include "engine_spec.h"
#include "stage.h"

/* Does this run have an engine problem? 1: yes, and `text` is its spec.json as pinned; 0: no, and `text` is empty; -1. */
int engine_problem(const struct stage *s, struct buf *text, struct err *e);

/* An engine in C is no emulation of anything: its times are those of this processor. On emu: not emulated, {"kind": "host"}. */
void engine_on_host(struct stage *s);

/* 0, or EX_NOENV: the trial's device is not one for this language. */
int engine_device(const struct stage *s, const struct engine_spec *p, struct err *e);

#endif
