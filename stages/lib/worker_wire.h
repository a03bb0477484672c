/*
 * worker_wire.h - what a stage and its worker say to each other. Private to worker_call.c,
 * worker_wire.c, worker_slot.c and stages/roles/worker.c.
 *
 * A SOCK_SEQPACKET pair; the worker's end is descriptor WORKER_FD. The worker speaks first (HELLO: its
 * layers, its compute capability), then one request, one reply, each one packet of fixed size. START
 * brings a memory file with the cubin of stages/gpu/rep.cu, LOAD one with the artefact and one with the
 * launches, MAP the handles of a layout. Both sides are one build on one machine, so structs travel
 * as they are. code != 0: trouble of ours, with a text; else `outcome` says what the candidate did.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_WORKER_WIRE_H
#define TS_WORKER_WIRE_H

#include "buf.h"
#include "worker_call.h"

enum { WORKER_FD = 3, WORKER_MAGIC = 0x54535731, WORKER_FDS = MEM_MAX };

enum worker_op {
	WORKER_OP_START = 1,
	WORKER_OP_MAP,
	WORKER_OP_UNMAP,
	WORKER_OP_LOAD,
	WORKER_OP_UNLOAD,
	WORKER_OP_RUN,
	WORKER_OP_FIGURES,
	WORKER_OP_CEILINGS,
};

struct worker_request {
	uint32_t magic, op;
	int32_t slot, mem;
	int32_t windows, mems[WORKER_WINDOWS];  /* LOAD */
	uint64_t cubin_len, launches_len;       /* START, LOAD */
	int32_t scalar_type[CHECKER_SCALARS];   /* LOAD: enum dtype, DT_NONE for a tensor */
	uint64_t scrub_seed;                    /* RUN */
	int32_t untimed, drain, look, scalars_set;
	double scalars[WORKER_WINDOWS][CHECKER_SCALARS];
	struct mem_layout layout;               /* MAP */
};

struct worker_reply {
	uint32_t magic;
	int32_t code;               /* 0, or an enum exit_code */
	char text[480];
	int32_t outcome;            /* enum worker_outcome */
	int32_t rebuilt;
	int64_t elapsed_ns;
	char layers[CONFINE_LIST];  /* HELLO */
	int32_t capability[2], driver; /* HELLO; driver 0: there is none to open, whatever the cage */
	struct worker_figures figures;
	struct worker_ceilings ceilings;
};

void wire_launches_put(struct buf *b, const struct launches *l);
/* Every count is checked. Free with launches_free. */
int wire_launches_get(const void *data, size_t len, struct launches *l, struct err *e);

#endif
