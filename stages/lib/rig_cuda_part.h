/*
 * rig_cuda_part.h - what rig_cuda.c, rig_cuda_size.c and rig_cuda_extra.c share. Private to them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_RIG_CUDA_PART_H
#define TS_RIG_CUDA_PART_H

#include "rig.h"

enum { RIG_COPIES = 16, RIG_STATES = 64 };

/* An arm at the workload that is open. */
struct rig_module {
	int live;             /* resolved */
	int loaded;           /* windows it is loaded with; 0: not */
	struct buf image;
	struct launches l;
	char refused[256];    /* the plan has no launch here */
};

struct rig_cuda {
	struct worker *worker[2];     /* the second only in a confirmation: the candidate's */
	int two;
	int copies, mapped;           /* of the workload that is open; as many in the workers */
	struct checker_work work[RIG_COPIES];
	double scalars[WORKER_WINDOWS][CHECKER_SCALARS];
	struct rig_module arm[RAW_ARMS];
	int workload;
	int64_t slowest_ns;           /* window of the champion at this workload, so far */
	int64_t prepare_ns;           /* of the last shot */
	int looks, looking;           /* open for looks: how; one is being made */
	enum fill_regime regime;      /* of inputs: of a look any, else the spec's */
	uint64_t looked;
	int block;                    /* block that the modules were loaded for */
	int states;                   /* of the GPU: before the first session, then after each */
	struct rig_state {
		int session;          /* -1: before */
		int self, apart;      /* of A/A; of a confirmation */
		struct gpu_state gpu;
	} state[RIG_STATES];
};

struct rig_cuda *rig_cuda_of(struct rig *r);
int rig_cuda_open(struct rig *r, int workload, int copies, struct err *e);
int rig_cuda_start(struct rig *r, enum raw_arm arm, enum shot_outcome *o, char text[256], struct err *e);
/* What `of` runs, into the place of `arm`, with so many windows. */
int rig_cuda_load(struct rig *r, enum raw_arm arm, enum raw_arm of, int windows, enum shot_outcome *o, char text[256],
		  struct err *e);
/* Inputs, one run, outputs verified: the three parts of a rep. Outcome and text of s say what the arm did. */
int rig_cuda_prepare(struct rig *r, const struct shot *s, struct err *e);
int rig_cuda_run(struct rig *r, struct shot *s, int windows, uint64_t seed, struct worker_result *res, struct err *e);
int rig_cuda_verify(struct rig *r, struct shot *s, struct err *e);
/* rig_cuda_extra.c: before a rep, if it is due. */
int rig_cuda_look(struct rig *r, struct shot *s, struct err *e);
int rig_cuda_company(struct rig *r, struct shot *s, struct err *e);
int rig_cuda_worker(struct rig *r, struct err *e);
int rig_cuda_state(struct rig *r, int session, struct gpu_question *q, struct err *e); /* q was asked */
int rig_cuda_fits(const struct rig *r, const struct launches *l, int copies, char text[256]); /* else why not */
int64_t rig_cuda_now(void);

#endif
