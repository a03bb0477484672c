/*
 * worker_pool.h - one worker kept between two uses of it.
 *
 * A worker takes a third of a second to start; an examination looks at twenty shapes one after the
 * other. Who is done with a healthy worker gives it back, unloaded and unmapped, and the next user of
 * this process on the same GPU takes it. After a failure there is none to give back, so that the next
 * one is new.
 *
 *   worker_pool_take -> map, load, run, unload, unmap -> worker_pool_give
 *   worker_pool_check    after a failure: is the GPU well?
 *   worker_pool_stop     at the end, or when nothing of this process may stay on the GPU
 *
 * Whoever takes one gives its deadline with each run (worker_run.timeout_ns). One thread only.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_WORKER_POOL_H
#define TS_WORKER_POOL_H

#include "worker_call.h"

/* The kept one where it fits o->gpu, else a new one. */
int worker_pool_take(struct worker **w, const struct worker_opts *o, struct err *e);
/* Kept, or stopped when it is dead or one is kept already. NULL: nothing. */
void worker_pool_give(struct worker *w, const char *gpu);
/* Have one, so that the GPU was shown to start work. EX_AGAIN when it is not well. */
int worker_pool_check(const char *gpu, struct err *e);
void worker_pool_stop(void);

#endif
