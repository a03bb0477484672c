/*
 * engine_rig.h - is this engine right? Workloads run on it with prompts of a key, then every id it said is judged.
 *
 * For each workload a fresh child answers three batches: two of other prompts, then the first again. So an
 * answer that was remembered, or that depends on what was asked before, shows as wrong ids or as another answer to
 * the same question. Gates come first, from honest ways to answer the very same prompts, before any engine is
 * started; the replay comes last, after the last child is reaped.
 *
 *   engine_rig_run -> look at the report, engine_rig_write -> engine_report_free
 *
 * What the engine does wrong is in the report, never an error. The margin holds for each id; the mean, the 99th percentile
 * and the share of argmaxes for the ids of all workloads together, since a few near ties must not convict. The third
 * answer is replayed where it is not the first one again.
 *
 * Prompts: engine_replay_prompts under the key, label "WORKLOAD/SET/DRAW". When honest ways differ too much on a draw
 * for this checkpoint to judge by, another is made, three at most.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_RIG_H
#define TS_ENGINE_RIG_H

#include "engine_call.h"
#include "engine_model.h"
#include "engine_replay.h"
#include "jsonw.h"

enum { ENGINE_ASKS = 3, ENGINE_DRAWS = 3 };

struct engine_rig {
	const char *program;             /* absolute */
	const struct engine_model *model;
	uint8_t key[32];                 /* the stage's */
	double load_s, step_s;           /* until ready; for each step and for the prompt. 0: 120, 10 */
	uint64_t memory;                 /* private bytes of a child, 0: no limit */
	const char *gpu;                 /* UUID, NULL: an engine in C */
};

struct engine_rig_work {
	const char *name;                /* borrowed */
	int batch, prompt, steps;
};

struct engine_row {
	struct engine_rig_work w;
	struct engine_asked a[ENGINE_ASKS]; /* a[2].ids are a[0].ids */
	int ready;                       /* it said so */
	int answered;                    /* asks answered whole */
	enum engine_outcome outcome;
	int repeats;                     /* the third answer is the first */
	int64_t ready_ns, first_ns, total_ns; /* of the first ask; no measurement: nothing was kept quiet */
	uint64_t max_rss;
	int64_t gpu_bytes;               /* -1 unknown, or no GPU */
	char end[96];                    /* "exit 0", "signal 11 (Segmentation fault)" */
	struct buf log;                  /* its stderr: untrusted */
	struct engine_figures figures;
	int ask, sequence, step;         /* of the largest regret */
};

struct engine_report {
	int n;                           /* rows; those behind a failed one were not run */
	struct engine_row *row;
	struct engine_honest honest;
	int draws;
	struct engine_figures all;
	char isolation[CONFINE_LIST];
	const char *word;                /* "ok", an outcome ("died"), or a gate ("margin") */
	int at;                          /* row of the fault, -1: all of them together */
	int repeats;                     /* in every row */
};

int engine_rig_run(const struct engine_rig *g, const struct engine_rig_work *w, int n, struct engine_report *r,
		   struct err *e);
void engine_report_free(struct engine_report *r);

/* Reason code of a word, under a stage: ("judge", "died") is "judge.engine_died", ("judge", "margin") "judge.margin". */
void engine_code(char out[64], const char *stage, const char *word);

/* Members of an open object: gates, noise, figures, workloads. */
void engine_rig_write(const struct engine_report *r, struct jsonw *w);

/* One line: what is wrong, at a workload whose shape and ids may be told. `own`: 1 names ids and steps. */
int engine_rig_explain(const struct engine_rig *g, const struct engine_report *r, int own, struct buf *out, struct err *e);

#endif
