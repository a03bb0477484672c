/*
 * engine_cage.h - what an engine may see and do: the confinement and the environment it is started in.
 *
 * Of files its own program, the model's folder (and what links in it point to, as in a cache of checkpoints) and the system's
 * libraries, read-only; no network. An engine in C: threads and processes of its own, nothing of others. An engine in CUDA:
 * also the toolkit's libraries, the driver's files and devices, as for a worker (worker_cage.h); threads, no process; the GPU it
 * is given is the only one it sees.
 *
 * Drivers differ in what they bear: the tighter of two cages in which our own probe starts the driver is taken, once per
 * process. Looser ones that do for a worker will not do here, where all code is the candidate's: EX_NOENV.
 *
 *   static struct engine_cage c; engine_cage_make -> spawn with c.confine, c.env
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_CAGE_H
#define TS_ENGINE_CAGE_H

#include "confine.h"
#include "err.h"

#include <limits.h>
#include <stdint.h>

enum { ENGINE_CAGE_PATHS = 48, ENGINE_CAGE_LOG = 64 << 10 };

struct engine_cage {
	struct confine confine;
	const char *env[8];
	/* private */
	struct confine_path path[ENGINE_CAGE_PATHS];
	size_t n;
	char text[ENGINE_CAGE_PATHS][PATH_MAX]; /* of paths that are made up here */
	char variable[3][3 * PATH_MAX];
};

/* `gpu`: UUID, NULL: an engine in C. `memory`: bytes of private memory, 0: no limit. Errors as err.h. */
int engine_cage_make(struct engine_cage *c, const char *program, const char *model_dir, const char *gpu, uint64_t memory,
		     struct err *e);

#endif
