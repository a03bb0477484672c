/*
 * engine_memory.h - how much of the GPU's memory an engine holds, seen from outside.
 *
 * What NVML says of single processes is missing in many containers, so it is the device's own count of used memory: one
 * process at a time has something to do (all others wait for a request, the lane keeps strangers away), and what the count grows by
 * meanwhile is its own. Needs a context of this process (the reference's); without one nothing is known.
 *
 *   engine_memory_begin, the engine works, engine_memory_look (as often as wanted), ...
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_MEMORY_H
#define TS_ENGINE_MEMORY_H

#include <stdint.h>

struct engine_memory {
	int known;
	int64_t held, peak; /* bytes */
};

/* From now on growth is somebody else's. */
void engine_memory_begin(void);
/* What was taken since the last look or begin is this engine's. */
void engine_memory_look(struct engine_memory *m);

#endif
