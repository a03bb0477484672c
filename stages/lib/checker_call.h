/*
 * checker_call.h - talk to the checker, the only holder of keys, references and input sets.
 *
 * One checker process per stage, on a socketpair. The stage never sees a key, a reference or
 * an input set other than the one now in memory, and the child sees even less.
 *
 *   checker_start
 *     checker_draw      axes of a workload (public, tiny, or secret held-out drawn by key)
 *     checker_open      its memory: layout and two memfds (GPU: a handle per buffer); workspaces
 *                       sized for the arms
 *       checker_prepare   write inputs of a rep, poison the rest, compute the reference
 *       ... arm_run ...
 *       checker_verify    compare all outputs in full, guards, inputs
 *     checker_close
 *     checker_mac, checker_subkey
 *   checker_stop
 *
 * Inputs are a function of (stage key, workload, set, rep if perturbed, regime) only: the same
 * numbers give the same inputs, whatever the poison. With `perturb` a few random elements of
 * each input differ from the set's base content, in a way only the rep determines. Unperturbed
 * sets and their references are cached in the checker (CHECKER_RING of them per workload).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_CHECKER_CALL_H
#define TS_CHECKER_CALL_H

#include "compare.h"
#include "err.h"
#include "fill.h"
#include "hash.h"
#include "memory.h"
#include "spec.h"

#include <stdint.h>

enum {
	CHECKER_SCALARS = SPEC_MAX_TENSORS,
	CHECKER_WS = 32,      /* workspaces of a plan */
	CHECKER_RING = 8,     /* cached input sets per workload */
	CHECKER_WORKLOADS = 32, /* open at once */
};

enum { CHECKER_RATIO_ONLY = 2, CHECKER_RATIO_LOOSE = 2 };

enum checker_mode { CHECKER_PUBLIC = 0, CHECKER_HELD_OUT = 1, CHECKER_TINY = 2 };

struct checker_opts {
	const char *device;   /* "emu", or the slug of a GPU's model: where references run */
	const char *gpu;      /* UUID of the GPU, NULL on emu */
	const char *run_dir;  /* "trials/runs/r0001": key and spec snapshot; NULL: throw-away key */
	const char *spec_dir; /* NULL: RUN_DIR/spec */
	const char *trial;    /* "0007"; with run_dir NULL any text */
	const char *stage;    /* "judge", "bench", "confirm", ... : names the stage key */
};

struct checker_open {
	enum checker_mode mode;
	uint32_t index;             /* of the workload in its list; held-out: any number */
	int emu;                    /* 1: the workload's emu axes; 0 on a GPU */
	int fence;                  /* 1: unmapped page behind each buffer */
	uint32_t n_ws;              /* workspaces: the largest any arm needs, per slot */
	uint64_t ws[CHECKER_WS];
	int baseline;               /* 1: preparations may ask for the error ratio; CHECKER_RATIO_ONLY: and for
	                             * no regime but the spec's, which is open sooner (GPU) */
};

struct checker_work {
	uint32_t id;
	int open;                   /* by checker_open; zero it and checker_close does nothing */
	struct axes axes;           /* complete, by axis index of the spec */
	struct mem_layout layout;
	int in_fd, rw_fd;           /* emu. Ours to close: checker_close does */
	int nfds, fd[MEM_MAX];      /* GPU: shareable handle of each buffer of the layout; likewise */
	uint32_t regimes;           /* bit per enum fill_regime that this spec allows */
	int64_t ref_ns;             /* GPU: one reference there, measured; 0 unknown. A perturbed rep pays
				     * it, an unperturbed one only when its set is not in the ring */
};

struct checker_prep {
	uint64_t rep;      /* names the perturbation and the scalars */
	uint32_t set;      /* base content */
	int perturb;
	enum fill_regime regime;
	uint32_t poison;   /* pattern and seed of poison and guards */
	int ratio;         /* 1: run the baseline too and compute the error ratio at verify;
	                    * CHECKER_RATIO_LOOSE: with bounds of twice the size (GPU) */
	uint32_t n_ws;     /* what the coming arm uses of each workspace */
	uint64_t ws[CHECKER_WS];
};

struct checker; /* opaque */

int checker_start(struct checker **c, const struct checker_opts *o, struct err *e);
void checker_stop(struct checker *c);

int checker_draw(struct checker *c, enum checker_mode mode, uint32_t index, int emu,
		 struct axes *out, struct err *e);
int checker_open(struct checker *c, const struct checker_open *o, struct checker_work *w,
		 struct err *e);
void checker_close(struct checker *c, struct checker_work *w);

/* `scalars` gets the value of each scalar input for this rep, by input index of the spec. */
int checker_prepare(struct checker *c, const struct checker_work *w, const struct checker_prep *p,
		    double scalars[CHECKER_SCALARS], struct err *e);
int checker_verify(struct checker *c, const struct checker_work *w, struct compare_result *out,
		   struct err *e);
/* Hash outputs, guards and inputs again (late writes). 1 in `same` if nothing moved since verify. */
int checker_again(struct checker *c, const struct checker_work *w, int *same, struct err *e);

/* For make check, which plays candidate: copies of all inputs and outputs of a workload on a GPU, laid out
 * as the memfds of emu. GET: device to copies (in_fd and rw_fd, where not NULL, become descriptors of
 * them, ours to close); PUT: copies to device. Refused unless the key is a throw-away one. */
enum checker_way { CHECKER_GET, CHECKER_PUT, CHECKER_TOUCH, CHECKER_TOUCH_LATE };
int checker_copy(struct checker *c, const struct checker_work *w, enum checker_way way, int *in_fd,
		 int *rw_fd, struct err *e);
/* For the self-test, which plays what no candidate should be able to: one bit of one byte of a buffer of
 * the layout is another, `at` counted from its payload (below 0 and past its end lie guards). TOUCH: now;
 * TOUCH_LATE: between the next verify and the next checker_again. Refused in a run, like copies. */
int checker_touch(struct checker *c, const struct checker_work *w, enum checker_way way, uint32_t buffer,
		  int64_t at, struct err *e);

/* HMAC under the trial's key (from the run key) over the SHA-256 of a verdict's text; check: *ok. checker_mac_fn is
 * the shape that verdict.h wants, its context a struct checker. */
int checker_mac(struct checker *c, const void *data, size_t len, char out[HASH_HEX], struct err *e);
int checker_mac_fn(void *c, const void *data, size_t len, char out[HASH_HEX], struct err *e);
int checker_mac_ok(struct checker *c, const void *data, size_t len, const char *mac, int *ok,
		   struct err *e);
/* The stage key, to be published with the stage's verdict. The checker refuses to draw,
 * open or prepare anything afterwards. */
int checker_subkey(struct checker *c, char out[HASH_HEX], struct err *e);

#endif
