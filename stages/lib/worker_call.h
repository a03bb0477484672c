/*
 * worker_call.h - talk to a worker: the process that runs candidate code on a GPU.
 *
 * One worker is one CUDA context, confined, disposable, with nothing secret mapped. It maps the
 * checker's memory (inputs read-only), holds artefacts in slots and runs one slot at a time: scrub
 * of shared and local memory, read flush of L2, start event, the launches, stop event, all in one
 * graph. Slots of one worker share addresses, events and, where their shapes allow, one executable
 * graph (h200-facts.md 7).
 *
 *   worker_start
 *     worker_map        memory of a workload, under a number (several for several windows)
 *     worker_load       artefact and launches into a slot
 *       worker_run ...
 *     worker_unload, worker_unmap
 *   worker_stop
 *
 * -1 is trouble of ours or the machine's. What the candidate did is the outcome: after anything but
 * WORKER_OK and WORKER_REFUSED the worker is dead; stop it and start another, whose start proves the
 * GPU healthy (EX_AGAIN when it is not).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_WORKER_CALL_H
#define TS_WORKER_CALL_H

#include "checker_call.h"
#include "confine.h"
#include "err.h"
#include "memory.h"
#include "plan.h"

#include <stdint.h>

enum { WORKER_SLOTS = 4, WORKER_MEMS = 64, WORKER_WINDOWS = 64 };

enum worker_outcome {
	WORKER_OK = 0,
	WORKER_REFUSED, /* the device cannot load or launch it: text says why */
	WORKER_FAULT,   /* illegal address, trap, launch failure */
	WORKER_TIMEOUT, /* killed at the deadline */
	WORKER_DIED,    /* the process ended without an answer */
};

struct worker_opts {
	const char *gpu;          /* "GPU-..." UUID */
	int64_t timeout_ns;       /* of a run; 0: 10 s. Counted from the request, by us */
};

struct worker_run {
	uint64_t scrub_seed;      /* what shared and local memory hold before it */
	int untimed;              /* 1: no flush (judge); scrub and restore always */
	int64_t timeout_ns;       /* 0: as worker_start was told */
	int drain;                /* 1: the window ends after a read flush, so that dirty lines are paid */
	int look;                 /* 1: a rep whose time does not count. Outputs of a window are spoilt once the one
	                           * before it has ended, and it is seen if launches change their variables: from
	                           * then on these are put back before each window */
	/* by window, by input index of the spec; NULL: the plan takes no scalar */
	const double (*scalars)[CHECKER_SCALARS];
};

struct worker_result {
	enum worker_outcome outcome;
	int64_t elapsed_ns;       /* between the events; whole ticks of theirs */
	int64_t wall_ns;          /* request to reply, our clock */
	int rebuilt;              /* 1: the executable graph had to be made anew for this slot */
	int killed;               /* somebody else killed the worker */
	char text[256];
};

/* Figures of the machine, measured in the worker with our own kernels; copy_gbs is the better of ours and the
 * driver's own copy, which on an H200 is 8 % ahead. */
struct worker_figures {
	double tick_ns;           /* of the events: gcd of what was seen */
	double empty_ns, null_ns; /* medians: empty window, one empty kernel, after the flush */
	uint64_t flush_bytes;
	double flush_check;       /* read probe after our flush over the same after 16 x L2: 1 is perfect */
};
struct worker_ceilings {      /* medians of several windows */
	double copy_gbs, read_gbs, write_gbs; /* bytes read plus written */
	double fp32_tflops, bf16_tflops, fp16_tflops; /* bf16, fp16: tensor cores, fp32 sums */
};

struct worker;

int worker_start(struct worker **w, const struct worker_opts *o, struct err *e);
void worker_stop(struct worker *w);
int worker_alive(const struct worker *w);
const char *worker_isolation(const struct worker *w);

int worker_map(struct worker *w, int mem, const struct mem_layout *l, const int *fd, struct err *e);
int worker_unmap(struct worker *w, int mem, struct err *e);
/* `windows` copies of the launches run back to back in one window, copy i on memory mem[i]. */
int worker_load(struct worker *w, int slot, const void *cubin, size_t len, const struct launches *l,
		const struct spec *spec, int windows, const int *mem, struct worker_result *r, struct err *e);
int worker_unload(struct worker *w, int slot, struct err *e);
int worker_run(struct worker *w, int slot, const struct worker_run *q, struct worker_result *r,
	       struct err *e);
int worker_figures(struct worker *w, struct worker_figures *f, struct err *e);
int worker_ceilings(struct worker *w, struct worker_ceilings *c, struct err *e);

const char *worker_outcome_name(enum worker_outcome o);

#endif
