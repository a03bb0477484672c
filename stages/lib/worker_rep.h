/*
 * worker_rep.h - the kernels of stages/gpu/rep.cu in a worker: what stands around the launches of a
 * rep, and the figures of the machine. Used by stages/roles/worker.c and worker_slot.c only.
 *
 *   rep_open      load the kernels, buffers, events; run the canary
 *     rep_scrub, rep_flush   enqueue, also while a stream captures
 *     rep_figures, rep_ceilings
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_WORKER_REP_H
#define TS_WORKER_REP_H

#include "cuda_api.h"
#include "worker_call.h"

/* A driver call that fails is ours to tell. */
#define TRY(call, ...) \
	do { \
		CUresult result = cu.call(__VA_ARGS__); \
		if (result) \
			return cuda_fail(e, "cu" #call, result); \
	} while (0)

enum { REP_LOCALS = 4 }; /* frames of 256, 1024, 4096, 16384 bytes */

struct rep {
	CUdevice dev;
	CUstream stream;
	CUmodule module;
	CUfunction null, canary, same, shared, local[REP_LOCALS], read, write, copy, fma, bf16, fp16;
	int sms, shared_bytes, local_blocks[REP_LOCALS];
	uint64_t l2, flush_bytes;
	CUdeviceptr flush, small; /* flush: read-only once open; small: counters of the scrubs, then a sink */
	uint64_t small_bytes;     /* the whole mapping */
	CUevent dummy, start, stop;
	int capturing; /* set by who lets the stream capture */
};

/* EX_AGAIN, saying that the GPU is not healthy, when the canary is not right. */
int rep_open(struct rep *r, CUdevice dev, const void *cubin, struct err *e);
/* Which scrub a kernel with that much local memory a thread needs: 0 none, 1..REP_LOCALS, -1 too much. */
int rep_local(uint64_t bytes);
int rep_scrub(struct rep *r, uint64_t seed, int local, struct err *e);
int rep_flush(struct rep *r, struct err *e);
/* Enqueue: notes if two pieces of memory differ; after the rep, did any? Forgotten by the next scrub. */
int rep_same(struct rep *r, CUdeviceptr p, CUdeviceptr q, uint64_t bytes, struct err *e);
int rep_changed(struct rep *r, int *changed, struct err *e);
/* Start and stop of a window, with the dummy event before it. */
int rep_begin(struct rep *r, struct err *e);
int rep_end(struct rep *r, struct err *e);
int rep_elapsed(struct rep *r, int64_t *ns, struct err *e);

int rep_figures(struct rep *r, struct worker_figures *f, struct err *e);
int rep_ceilings(struct rep *r, struct worker_ceilings *c, struct err *e);

#endif
