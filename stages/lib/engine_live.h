/*
 * engine_live.h - real engines and the reference behind an engine_session: its io and its judging.
 *
 * Processes by engine_call.h, tokens by engine_replay.h. Gates are calibrated before the first sample, on the prompts of the
 * first measured pair of some workloads (session 0); of the next pair where the checkpoint cannot judge by those.
 *
 * Life: fill in, engine_live_calibrate, an engine_session with ENGINE_LIVE_IO and ENGINE_LIVE_JUDGING and this as
 * both contexts, engine_live_free.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_LIVE_H
#define TS_ENGINE_LIVE_H

#include "contest.h"
#include "engine_model.h"
#include "engine_replay.h"
#include "engine_session.h"
#include "gpu.h"

enum { ENGINE_STATES = 2 * CONTEST_SESSIONS };

struct engine_live {
	const char *program[RAW_ARMS];   /* absolute; NULL: no such arm */
	const struct engine_model *model;
	double load_s;                   /* 0: engine_call's default */
	uint64_t memory;                 /* private bytes of a process; 0: no limit */
	const char *gpu;                 /* UUID, NULL: engines in C */

	/* what came of it */
	struct engine_honest honest;     /* its gates hold for every token */
	int pair;                        /* whose prompts they were made of */
	struct engine_regrets regrets;   /* of the session so far */
	struct engine_figures figures;   /* of the candidate's last session that was judged */
	char isolation[CONFINE_LIST];    /* layers that held in every process */
	struct gpu_state state[ENGINE_STATES]; /* of the GPU after each session, the last ones of too many */
	int states;
	int layered;

	struct engine child[RAW_ARMS];   /* private */
};

extern const struct engine_io ENGINE_LIVE_IO;
extern const struct engine_judging ENGINE_LIVE_JUDGING;

/* On the first n tasks of the session's plan. EX_BADINPUT when the checkpoint cannot judge. */
int engine_live_calibrate(struct engine_live *l, const struct engine_session *s, int n, struct err *e);
void engine_live_free(struct engine_live *l);

#endif
