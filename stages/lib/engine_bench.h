/*
 * engine_bench.h - bench and confirm of engine problems: which contests, which gates, and what is written of them.
 *
 * The same contest, rule and files as for kernels (contest.h): champion against candidate, session by session, with the
 * native baseline in the same sessions where it is not the champion itself; then the gates of engine_gates.h. A confirmation
 * runs the bench again first where the champion is another one (`again`), then new sessions with the held-out workloads.
 *
 * Life: fill the plan, engine_bench_measure, engine_bench_last and the two writers, engine_bench_free. The caller holds the
 * timing lane, knows the stage and writes the verdict.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_BENCH_H
#define TS_ENGINE_BENCH_H

#include "engine_gates.h"
#include "engine_live.h"
#include "gpu.h"

struct engine_arm {
	int present;
	char trial[TRIAL_ID];        /* "" for the baseline */
	char candidate[HASH_HEX];    /* identity: its files */
	char sha[HASH_HEX];          /* of the program */
	char program[PATH_MAX];
};

struct engine_bench {
	/* the plan */
	const char *trial;           /* the candidate's */
	struct engine_arm arm[RAW_ARMS]; /* the baseline only where it is not the champion */
	const struct engine_model *model;
	struct engine_task task[SESSION_WORKLOADS]; /* public ones, proxies, held-out ones (weight 0) */
	int npublic, nshown, ntasks; /* counts up to and with: public, proxy, held-out */
	double margin, guard;
	struct engine_limits limits;    /* its floor is set by engine_bench_measure */
	double load_s, step_s;       /* the prompt counts as a step */
	uint64_t memory;             /* private bytes of a process */
	const struct gpu *gpu;       /* of engines in CUDA; NULL: on the processor */
	char key[HASH_HEX];          /* prompts come from it; public once the verdict is */
	int confirming, again;
	/* The plan as text, to disk, before the first sample. */
	int (*preregister)(void *ctx, const char *text, size_t len, struct err *e);
	void *ctx;

	/* what came of it */
	char order_seed[SESSION_SEED];
	struct engine_floor floor[SESSION_WORKLOADS];
	struct engine_live live;
	struct engine_session ses;
	struct contest first, fresh; /* bench, or bench again inside confirm; confirm */
	struct raw raw;
};

/* EX_BADINPUT: the checkpoint cannot judge. */
int engine_bench_measure(struct engine_bench *b, struct err *e);
const struct contest *engine_bench_last(const struct engine_bench *b); /* the one that decides */
void engine_bench_free(struct engine_bench *b);

/* Members of an open object: everything of data that is not the stage's own. `raw` and `lines` name the side files that the
 * caller writes from b->raw and b->ses.lines. */
void engine_bench_write(const struct engine_bench *b, const char *raw, const char *lines, struct jsonw *w);

#endif
