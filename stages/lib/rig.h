/*
 * rig.h - how reps are made on a device: the session_ops of emu and sim.
 *
 * A rig knows the arms (plan, image, identity) and the workloads of a comparison.
 *
 * emu   each arm is its own confined child; a checker writes new inputs before every rep (another
 *       set for each arm, the same addresses), poisons the rest, and compares every output in
 *       full after it. Between the two, this process streams through a buffer larger than the
 *       caches, then asks the arm and reads its own monotonic clock around the answer.
 * sim   nothing runs: sim.h invents the time.
 *
 * Life: rig_init, rig_workloads, rig_champion/rig_candidate/rig_baseline, (emu) rig_checker,
 * contests with rig_ops and the rig as ctx, rig_free.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_RIG_H
#define TS_RIG_H

#include "arm.h"
#include "checker_call.h"
#include "plan.h"
#include "session.h"
#include "stage.h"

#include <stdint.h>

#define RIG_FILE_MAX (4u << 20)
#define RIG_ARTEFACT "artefact/emu-fast" /* of a trial's final candidate */

struct rig_arm {
	int present;
	char trial[TRIAL_ID];        /* "" for the baseline */
	char candidate[HASH_HEX];    /* identity: kernel and plan */
	char image[4096];            /* emu: the artefact, "" on sim */
	char image_sha[HASH_HEX];
	struct plan *plan;
};

struct rig_workload {
	enum checker_mode mode;
	uint32_t index;
	struct axes axes;
	char name[SPEC_NAME];
	double weight;               /* 0 when held out */
};

struct rig {
	struct stage *s;
	int emu;                     /* else sim */
	struct spec *spec;
	struct rig_arm arm[RAW_ARMS];
	int self;                    /* 1: the candidate's place is taken by the champion (A/A) */
	int nworkloads;
	struct rig_workload workload[SESSION_WORKLOADS];

	/* emu */
	struct checker *checker;
	uint8_t *flush;
	size_t flush_bytes;
	char order_seed[SESSION_SEED];
	uint64_t rep_base;           /* added to the place in the raw file: A/A draws other reps */
	int64_t t0;                  /* of the raw file's clock */
	struct checker_work work;
	struct arm *live[RAW_ARMS];
	int64_t late[RAW_ARMS], timed[RAW_ARMS]; /* ns of this session's workload */
	char isolation[192];
	char refused[256];           /* the candidate cannot be launched at this size */

	/* sim */
	struct sim_place {
		double true_ns;
		uint64_t stream;
	} place[RAW_ARMS];
	uint64_t sim_session;        /* offset of sessions: trial and step */
	uint64_t sim_clock;
};

int rig_init(struct rig *r, struct stage *s, struct err *e);
void rig_free(struct rig *r);

/* Arms. The champion is that of stage_champion, or the baseline when there is none. */
int rig_candidate(struct rig *r, struct err *e);
int rig_champion(struct rig *r, struct err *e);
int rig_baseline(struct rig *r, struct err *e);
int rig_champion_is_baseline(const struct rig *r);

/* The public workloads, and with `held_out` the secret ones behind them. */
int rig_workloads(struct rig *r, int held_out, struct err *e);

/* Start the checker: keys, references, inputs. Also on sim, for the verdict's MAC. */
int rig_checker(struct rig *r, struct err *e);

extern const struct session_ops RIG_EMU_OPS, RIG_SIM_OPS;
const struct session_ops *rig_ops(const struct rig *r);
size_t rig_flush_bytes(void); /* 2 x L2 of a core plus its share of L3, capped */

#endif
