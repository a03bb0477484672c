/*
 * tune_part.h - what the files of tools/tune.c share. Private to it and tune_*.c here.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_TUNE_PART_H
#define TS_TUNE_PART_H

#include "buf.h"
#include "checker_call.h"
#include "gpu.h"
#include "image.h"
#include "plan.h"
#include "proof.h"
#include "stage.h"

enum { TUNE_CONFIGS = 64 };

struct tune_entry {
	struct plan_config config;
	struct buf plan;       /* plan.json of this configuration */
	struct image image;    /* not sim */
	int built, right;
	double score;          /* mean ln of medians, weighted: lower is better */
	char word[48];         /* why not, for the record */
};

struct tune {
	struct stage *s;
	struct spec *spec;
	char spec_dir[TRIAL_PATH];
	struct plan *plan;     /* as proposed */
	struct buf kernel, plan_text;
	struct checker *checker;
	struct proof proof;
	struct facts facts;
	struct gpu gpu;        /* facts, arch; after gpu_take the one in use */
	struct tune_entry *entry; /* room for two more: mixed */
	int n, own;            /* entry of the proposed configuration; -1 */
	struct tune_entry *mixed; /* GPU: several configurations, by size; NULL */
	int sim, on_gpu;
};

/* tune_files.c: candidate/ and artefact/, what every later step works on. x NULL or the proposed
 * configuration: everything as it was, byte for byte. */
int tune_files(struct tune *t, struct tune_entry *x, struct err *e);

/* tune_choose.c: entries to try, the proposed one first where it is legal. */
int tune_choose(struct tune *t, struct err *e);

/* tune_try.c: a configuration at the tiny shapes, and under a short judge. 1 passes, 0 does not (x->word says why). */
int tune_tiny(struct tune *t, struct tune_entry *x, const struct proof_arm *a, int emu, struct err *e);
int tune_judge(struct tune *t, struct tune_entry *x, const struct proof_arm *a, int emu, struct err *e);

/* tune_try.c, GPU only. Compile all; time all; then tiny shapes and a short judge of one (1 passes). */
int tune_build(struct tune *t, struct tune_entry *x, struct err *e);
int tune_time(struct tune *t, struct err *e);
int tune_examine(struct tune *t, struct tune_entry *x, struct err *e);

#endif
