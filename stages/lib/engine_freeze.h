/*
 * engine_freeze.h - an engine judged and timed once more, on every workload of its problem: what make freeze puts on record.
 *
 * First the judge (engine_rig.h), as a candidate has it, but at public, proxy and odd workloads. Then times: for each
 * workload a child of the champion and one of the native baseline, one after the other (who is first changes by workload), a
 * batch to warm up and FREEZE_SAMPLES that count, both on the same prompts. The champion's ids of the batches that were timed are
 * replayed as well.
 *
 *   fill the plan -> engine_freeze_run -> word, engine_freeze_write -> engine_freeze_free
 *
 * What the engine does wrong is a word, never an error. The caller holds the timing lane. Times in seconds.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_FREEZE_H
#define TS_ENGINE_FREEZE_H

#include "engine_rig.h"
#include "engine_spec.h"

enum { FREEZE_SAMPLES = 5, FREEZE_ROWS = 3 * ENGINE_WORKLOADS, FREEZE_OWN = 0, FREEZE_NATIVE = 1 };

struct freeze_times {
	double total[FREEZE_SAMPLES], ttft[FREEZE_SAMPLES], tpot[FREEZE_SAMPLES]; /* tpot: 0 for a single step */
	uint64_t max_rss;
	int64_t gpu_bytes;      /* -1: unknown, or no GPU */
};

struct freeze_row {
	struct engine_workload w;
	const char *list;       /* "public", "proxy", "odd" */
	struct freeze_times arm[2];
	struct engine_figures figures; /* of the ids that were timed */
};

struct engine_freeze {
	/* the plan */
	const struct engine_spec *spec;
	const struct engine_model *model;
	const char *program[2];
	const char *gpu;        /* UUID, or NULL */
	uint8_t key[32];        /* prompts come from it */

	/* what came of it */
	const char *word;       /* "ok", or what is wrong (engine_rig.h) */
	char why[512];
	int n;
	struct freeze_row row[FREEZE_ROWS];
	struct engine_report report;
	struct engine_figures timed; /* all ids that were timed */
};

int engine_freeze_run(struct engine_freeze *z, struct err *e);
/* Geometric mean of batch x steps / median seconds over public and proxy workloads: tokens per second. */
double engine_freeze_score(const struct engine_freeze *z, int arm);
/* Members of an open object. */
void engine_freeze_write(const struct engine_freeze *z, struct jsonw *w);
void engine_freeze_free(struct engine_freeze *z);

#endif
