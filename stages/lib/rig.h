/*
 * rig.h - how reps are made on a device: the session_ops of emu, sim and a GPU.
 *
 * A rig knows the arms (plan, image, identity) and the workloads of a comparison.
 *
 * emu   each arm is its own confined child; a checker writes new inputs before every rep (another
 *       set for each arm, the same addresses), poisons the rest, and compares every output in
 *       full after it. Between the two, this process streams through a buffer larger than the
 *       caches, then asks the arm and reads its own monotonic clock around the answer.
 * sim   nothing runs: sim.h invents the time.
 * cuda  a fresh worker for each session, kept over its workloads, holds champion and candidate as modules of
 *       one context; they run through one graph on the same addresses. In a confirmation each arm has a
 *       worker of its own, in lock-step, and both are loaded anew for every block: where a graph lies is worth
 *       up to 1.6 % on short kernels, and is drawn again that way. The champion runs alone before the
 *       candidate's module is loaded. Short kernels run in several copies a window, each on memory of its
 *       own, each prepared and verified. Clock: the GPU's events, read by the worker.
 *
 * Life: rig_init, rig_champion/rig_candidate/rig_baseline, (GPU: r->gpu by gpu_take), rig_checker,
 * rig_workloads, (GPU) rig_calibrate, contests with rig_ops and the rig as ctx, rig_free.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_RIG_H
#define TS_RIG_H

#include "arm.h"
#include "checker_call.h"
#include "confine.h"
#include "cubin.h"
#include "gpu.h"
#include "image.h"
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
	struct image_set *set;       /* GPU: its images; image_sha is the first one's */
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
	enum device_class class;
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
	char isolation[CONFINE_LIST]; /* layers that held in every process that ran an arm */
	int layered;
	char refused[256];           /* the candidate cannot be launched at this size */

	/* GPU */
	struct gpu gpu;              /* the one to use */
	struct facts facts;          /* of the run */
	struct rig_cuda *cuda;       /* private to rig_cuda.c */
	struct session_class limits; /* of this problem: SESSION_CUDA, with time for each public workload */
	struct session_size *size;   /* by workload; NULL until rig_calibrate */
	struct worker_figures figures;
	int apart;                   /* 1: each arm in a worker of its own (confirmation) */

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

/* GPU: time the champion at every workload, choose sizes, take the figures of the machine. Before the
 * pre-registration. Where the champion fails *outcome says how. */
int rig_calibrate(struct rig *r, enum shot_outcome *outcome, char text[256], struct err *e);
void rig_cuda_free(struct rig *r);
/* A worker for a row of problems: `to` goes on with that of `from`. */
void rig_cuda_pass(struct rig *from, struct rig *to);
/* Machine, figures, and its state around every session, as members of an open object. */
void rig_cuda_write(const struct rig *r, struct jsonw *w);
/* The launches of an arm at a workload: its image, the module's facts and what plan_resolve makes of them. 1 and
 * the text when the plan has none there. `c` is filled with that image's contents. */
int rig_resolve(const struct rig *r, enum raw_arm arm, const struct axes *axes, struct buf *image,
		struct cubin *c, struct launches *l, char text[256], struct err *e);
const struct session_class *rig_class(const struct rig *r);
struct rig_arm *rig_arm_of(struct rig *r, enum raw_arm arm); /* in A/A the candidate is the champion */

extern const struct session_ops RIG_EMU_OPS, RIG_SIM_OPS, RIG_CUDA_OPS;
const struct session_ops *rig_ops(const struct rig *r);
void rig_layers(struct rig *r, const char *layers); /* of one more process: what all have in common stays */
size_t rig_flush_bytes(void); /* 2 x L2 of a core plus its share of L3, capped */

#endif
