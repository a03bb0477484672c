/*
 * guard_engine.h - guard, for engine problems: names, bytes, what the source may ask the system for, duplicates, compile.
 *
 * Rules over tokens are for friendly errors: what an engine may really do is decided where it runs (engine_call.h: no
 * network, no other process, its own program, the model and the system's libraries alone in view).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_GUARD_ENGINE_H
#define TS_GUARD_ENGINE_H

#include "stage.h"

#include <stddef.h>

/* `text`: spec.json as pinned. Writes aK/guard.log and aK/artefact/engine (sim: a text) and the verdict. */
int guard_engine(struct stage *s, const char *text, size_t len, struct err *e);

#endif
