/*
 * arm.h - one candidate (or champion, baseline, reference) ready to run on a device.
 *
 * The same calls for every device: emu (a confined child that maps the memfds and speaks
 * stages/emu/protocol.h), sim (no execution, a deterministic figure), a GPU (a worker of its own).
 * The clock is ours, read in this process around the request and its reply; nothing a candidate
 * prints or returns is ever taken for a time or a verdict. On emu elapsed_ns is the CPU time the
 * kernel has accounted to the child between the two readings: an emulated kernel is one thread that
 * cannot sleep, fork or wait for profit, and other jobs on the machine then hardly disturb it (A/A
 * standard deviation of a session under load 5, wall 11-20 %, CPU time 0.8-1.8 %, three specs).
 * Between a reply and the next request the child is stopped, so that nothing it does is off that
 * clock: neither work that a reply came before, nor work on inputs seen to arrive. Only before its
 * first run, while it maps the memory, is it off the clock; that run warms up and counts nowhere.
 *
 * arm_open -> arm_run ... -> arm_close. An arm whose run did not end in ARM_OK is dead: close
 * it. arm_open and arm_run return -1 only for trouble that is not the candidate's.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ARM_H
#define TS_ARM_H

#include "err.h"
#include "memory.h"
#include "spec.h"

#include <stdint.h>

struct plan;
struct facts;

enum arm_status {
	ARM_OK = 0,
	ARM_FAULT,     /* signal, bad address, failed launch */
	ARM_SANITIZER, /* out of bounds or undefined behaviour, sanitize build */
	ARM_DEADLOCK,  /* barrier not reached by all, no progress */
	ARM_TIMEOUT,   /* wall or CPU limit */
	ARM_REFUSED,   /* the device cannot run this launch (limits, unsupported feature) */
	ARM_PROTOCOL,  /* the child answered nonsense or died silently */
	ARM_BARRIER,   /* threads of a block at different barriers */
	ARM_RACE,      /* race build: conflicting accesses */
};

enum arm_order { ARM_FORWARD = 0, ARM_REVERSE = 1, ARM_SHUFFLED = 2 }; /* threads and blocks */

struct arm_opts {
	const char *device;     /* "emu", "sim", or the slug of a GPU's model */
	const struct facts *facts; /* of the device; NULL: facts_find(device), which knows emu and sim */
	const char *gpu;        /* GPU: UUID of the one to use */
	const char *artefact;   /* file made by the box */
	const char *artefact_sha;
	int sanitize;           /* emu: the image is an emu-sanitize or emu-race build */
	int reference;          /* the spec's reference: float outputs are float64 */
	const struct spec *spec;
	const struct plan *plan;
	const struct axes *axes;       /* the workload's, complete */
	const struct mem_layout *layout; /* this and the fds: not used by sim */
	int in_fd, rw_fd;       /* borrowed */
	const int *fd;          /* GPU: one shareable handle for each buffer of the layout, borrowed */
	int64_t timeout_ns;     /* per run, 0: 10 s */
	const char *sim_key;    /* sim only: identifies candidate and search seed, see sim.h */
};

struct arm_run_opts {
	enum arm_order order;
	uint64_t order_seed;    /* for ARM_SHUFFLED */
	uint64_t scrub_seed;    /* poison of shared memory and registers */
	const double *scalars;  /* by input index of the spec; NULL if it has no scalar input */
	uint64_t sim_session, sim_rep; /* sim only: position, for its noise stream */
};

struct arm_result {
	enum arm_status status;
	int64_t elapsed_ns;  /* the time that counts, on the device's clock (above) */
	int64_t wall_ns;     /* CLOCK_MONOTONIC, request to reply */
	int64_t cpu_ns;      /* CPU the child used during the run; -1 unknown */
	int64_t late_ns;     /* CPU the child used between the reply before this one and this
	                      * request: work that nobody timed; 0 first time, -1 unknown */
	int killed;          /* somebody else killed the child: arm_run fails */
	char text[4096];     /* report for people: sanitizer lines, fault; "" when ARM_OK */
};

struct arm; /* opaque */

int arm_open(struct arm **a, const struct arm_opts *o, struct err *e);
int arm_run(struct arm *a, const struct arm_run_opts *r, struct arm_result *out, struct err *e);
/* After a run whose outputs have been looked at, before new inputs exist: the child forgets all that
 * it may have kept. Not timed. out->status is ARM_FAULT where data was changed that no launch changes. */
void arm_wipe(struct arm *a, struct arm_result *out);
void arm_close(struct arm *a);
const char *arm_status_name(enum arm_status s);

/* Bytes the plan uses of each of its workspaces, for checker_prepare. Returns how many. */
uint32_t arm_workspaces(const struct arm *a, uint64_t *bytes, uint32_t max);
/* The same for the last run, looked at now; -1 unknown. */
int64_t arm_late(struct arm *a);
/* 1 while the child of this arm is alive (always 1 on sim). */
int arm_alive(struct arm *a);
/* Layers of isolation active in the child, comma separated ("" on sim). */
const char *arm_isolation(const struct arm *a);

#endif
