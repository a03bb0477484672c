/*
 * engine_setup.h - what a stage of an engine problem begins with: spec, candidate, artefact, model, all by their hashes.
 *
 *   engine_setup -> u.rig, u.spec ... -> engine_setup_free
 *
 * Inputs recorded: `candidate`, `artefact`, `model`; of an engine in C the verdict's device is {"kind": "host"}, and nothing emulated;
 * of one in CUDA it is the GPU, whose lane is held from then on, and where the reference computes. The model must be that of the run (setting
 * model_sha256) and of the last step before that names one: a trial has one model.
 *
 * The stage's key comes from the checker (engine_setup_key); it draws the prompts and is published with the verdict.
 * An engine is started only after it was told to us, so unlike inputs of kernels the checker need not draw them: the
 * engine's process sees neither ours nor the checker's.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_SETUP_H
#define TS_ENGINE_SETUP_H

#include "checker_call.h"
#include "engine_rig.h"
#include "engine_spec.h"
#include "gpu.h"
#include "lane.h"
#include "stage.h"

#include <limits.h>

struct engine_setup {
	struct engine_spec *spec;
	struct engine_model model;
	struct engine_rig rig;
	char program[PATH_MAX];
	char artefact[HASH_HEX];
	char key[HASH_HEX];      /* the stage's, once engine_setup_key was called */
	int open;
	struct lane lane;        /* CUDA: that of the GPU, from engine_setup to engine_setup_free; else not taken */
	struct gpu gpu;
};

/* `text`: spec.json as pinned. `artefact`: file name below artefact/, "engine"; NULL: spec and candidate alone, nothing is
 * run. */
int engine_setup(struct stage *s, const char *text, size_t len, const char *artefact, struct engine_setup *u,
		 struct err *e);
void engine_setup_free(struct engine_setup *u);

/* Starts a checker under the stage's name and takes the key; from then on it only signs. */
int engine_setup_key(struct stage *s, const char *stage, struct checker **c, struct engine_setup *u, struct err *e);

/* A list of the spec as work for the rig; free it. */
struct engine_rig_work *engine_setup_work(const struct engine_workload *w, int n);

#endif
