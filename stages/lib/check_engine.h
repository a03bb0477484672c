/*
 * check_engine.h - prove an engine problem before it is used: the engine's branch of tools/check.c.
 *
 * The baseline compiles and passes the judge at tiny and public workloads; then the power of the judge (engine_power.h). Prints
 * a line for each proof, as for kernels.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_CHECK_ENGINE_H
#define TS_CHECK_ENGINE_H

#include "err.h"

#include <stddef.h>

/* `dir`: specs/NAME. `text`: its spec.json. `model_dir`: the user's checkpoint, or NULL. *failures: proofs that do not
 * hold. EX_BADINPUT: no problem, or a checkpoint that cannot judge; EX_NOENV: it does not run here. */
int check_engine(const char *dir, const char *text, size_t len, const char *model_dir, int *failures, struct err *e);

#endif
