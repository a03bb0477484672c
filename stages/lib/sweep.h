/*
 * sweep.h - propose the next configuration of a kernel's tunables, without a model.
 *
 * A kernel that was never tried as it stands (start/) is tried so first: what it gives by itself is then known.
 * The space is that of the source at the run's start (its champion, else start/ on a GPU, else baseline/);
 * a configuration is legal when every constraint holds, at every public workload. Which one trial
 * i of a run gets is a pure function of the run's settings and of trials closed by `sees`, so two
 * trials in flight never get the same one, whatever order they run in:
 *   - up to SWEEP_EXHAUSTIVE points: all legal ones in an order shuffled by SEED, without those
 *     tried before the run; trial i takes number i. The list is worked out once and kept in
 *     trials/runs/R/sweep.json, which may be deleted at any time.
 *   - beyond: odd rounds search round the champion (one step of one tunable, any value of one,
 *     one step of two), even rounds walk a seeded permutation of the whole space. Every point
 *     belongs to one residue class modulo WIDTH and trial i only takes points of class i, so
 *     the WIDTH trials in flight cannot meet; what is closed is found in trials/index.tsv.
 *
 * Costs a few milliseconds at most, whatever the history.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_SWEEP_H
#define TS_SWEEP_H

#include "buf.h"
#include "err.h"
#include "hash.h"
#include "plan.h"

#define SWEEP_EXHAUSTIVE 4096
#define SWEEP_WALK 1000000 /* points looked at before giving up on a sparse space */

struct sweep {
	struct plan *base;        /* of the run's start; loses every `choose` */
	const struct spec *spec;
	const struct facts *facts;
	const char *device;
	const char *kernel_sha;   /* of base's kernel.cu */
	int base_tried;           /* base as it stands needs no trial (a champion, the baseline) */
	const struct plan_config *champion; /* current one in this space, or NULL */
	int64_t seed;
	long index, width;        /* of the trial in its run; of the run */
	long first;               /* number of the run's first trial */
	long sees;                /* trials up to this number are closed */
	const char *cache;        /* path of sweep.json, NULL: none */
	const char *tried;        /* path of trials/index.tsv */
};

struct sweep_pick {
	int done;                 /* nothing is left */
	struct plan_config config;
	struct buf plan;          /* plan.json with it */
	char how[160];            /* "configuration 3 of 96 ..." */
};

int sweep_next(const struct sweep *s, struct sweep_pick *out, struct err *e);

/* The plan as this project writes it: canonical, indented, a newline at the end. */
void sweep_plan_text(const struct plan *p, struct buf *out);

/* "BM 64 -> 128, STAGES 2 -> 3", or "no change"; cut to a line. */
void sweep_words(const struct plan *p, const struct plan_config *from, const struct plan_config *to,
		 struct buf *out);

#endif
