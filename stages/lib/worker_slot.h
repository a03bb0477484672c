/*
 * worker_slot.h - memories, artefacts and reps of a worker. Used by stages/roles/worker.c only.
 *
 * One executable graph serves all slots: a rep captures the launches of its slot anew and updates the
 * graph, which keeps its place and its events. It is made anew where an update fails or would be silently
 * wrong (gpu_shape).
 *
 * Return 0; 1: the reply holds an outcome that is not WORKER_OK; -1 with the error.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_WORKER_SLOT_H
#define TS_WORKER_SLOT_H

#include "gpu_run.h"
#include "worker_rep.h"
#include "worker_wire.h"

int slot_map(const struct worker_request *q, const int *fd, int nfds, struct err *e);
int slot_unmap(const struct worker_request *q, struct err *e);
int slot_load(const struct worker_request *q, const void *cubin, const struct launches *l,
	      struct worker_reply *r, struct err *e);
int slot_unload(const struct worker_request *q, struct err *e);
int slot_run(struct rep *rep, const struct worker_request *q, struct worker_reply *r, struct err *e);

#endif
