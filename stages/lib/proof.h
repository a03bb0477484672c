/*
 * proof.h - show that a candidate computes what its spec says, or find where it does not.
 *
 * The machinery that judge, unittest, tune and check share: one rep is prepare (checker), run
 * (arm), verify (checker), with every failure turned into a reason word. On top of it
 * proof_judge, the whole examination of design.md 4 for one artefact.
 *
 * On a GPU the shapes are the spec's own, the image that serves a shape is chosen at each
 * (image_pick), and one worker serves all shapes (worker_pool.h). Threads cannot be ordered there, so
 * orders are ignored; every rep has another content of shared and local memory instead.
 *
 * The words are those of reason.h without the area: "element", "guard_write", "fault"; callers
 * put "judge." or "unittest." in front. Nothing here knows a key or a reference.
 *
 * proof_open -> proof_rep ... -> proof_close, per workload. A proof_arm is borrowed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_PROOF_H
#define TS_PROOF_H

#include "arm.h"
#include "checker_call.h"
#include "confine.h"
#include "jsonw.h"
#include "image.h"
#include "plan.h"
#include "spec.h"
#include "verdict.h"

struct proof_arm {
	const struct plan *plan;
	const char *artefact, *artefact_sha; /* emu */
	const struct image_set *set;         /* GPU; then the two above are not used */
	int sanitize;
};

struct proof {
	struct checker *checker;
	const struct spec *spec;
	const char *device;            /* "emu", or the slug of a GPU's model */
	const char *gpu;               /* GPU: UUID */
	const struct facts *facts;     /* GPU: of the run; NULL on emu */
	int64_t timeout_ns;            /* of a run; 0: emu: spec's limit; GPU: by the reference's time */
	int unhealthy;                 /* GPU: after a failure no new worker started, or somebody ended the arm's */
	int ran;                       /* children started */
	char isolation[CONFINE_LIST];  /* layers that every child so far had */
};

struct proof_work {
	struct proof *p;
	const struct proof_arm *a;
	struct checker_work w;
	struct arm *arm;               /* reopened after a failure */
	struct facts facts;            /* of the device and of the image */
	struct cubin *cubin;           /* GPU: of the image that serves this shape */
	int image;                     /* GPU: which of the set */
	uint32_t n_ws;                 /* what the plan uses of each workspace */
	uint64_t ws[CHECKER_WS];
	int64_t prepare_ns;            /* shortest preparation that ran the reference; 0 none yet */
	char refused[300];             /* the plan cannot be launched at this shape: every rep fails */
};

struct proof_out {
	int pass;
	char word[40];                 /* "ok", or why not */
	enum arm_status status;
	int no_launch;                 /* ARM_REFUSED because the plan itself has no launch here */
	struct compare_result cmp;     /* valid when status is ARM_OK */
	int64_t elapsed_ns, late_ns;
	char text[4096];               /* report of the device, for people */
};

/* 0 also when the plan has no launches here: that is the candidate's fault, told by proof_rep.
 * q->emu is set here, by the device. */
int proof_open(struct proof *p, const struct proof_arm *a, const struct checker_open *q,
	       struct proof_work *w, struct err *e);
/* prep's n_ws and ws are filled here. The low 32 bits of `seed` order shuffled threads, all of it says what
 * shared memory and registers hold. */
int proof_rep(struct proof_work *w, const struct checker_prep *prep, enum arm_order order,
	      uint64_t seed, struct proof_out *out, struct err *e);
void proof_close(struct proof_work *w);
/* Fills are said to move the bits of an output when each of two gave its own this many times more. */
enum { PROOF_AGAIN = 5 };
/* A hang must not hold the lane of a GPU for the spec's whole limit: twenty runs of the reference are
 * allowed and a fifth of a second, never less than one second. */
int64_t proof_limit(const struct spec *s, int64_t reference_ns);
/* One more process ran under these layers. */
void proof_layers(struct proof *p, const char *layers);
/* The layers every child had, into the verdict. Cuts p->isolation up; p must outlive v. */
void proof_isolation(struct proof *p, struct verdict *v);

/* The images of a trial's candidate in folder `dir` ("a0", "" for the final one), by the hashes on
 * record, which become inputs of the verdict. */
struct stage;
int proof_set(struct stage *s, const struct plan *p, const char *dir, struct image_set *set, struct err *e);

/* ---- the whole examination ---- */

struct proof_budget {
	int reps;       /* per public workload */
	int held_reps;  /* per held-out workload */
	int held_out;   /* held-out workloads, -1: as many as the spec says */
	int probes;     /* more held-out shapes, near edges, one run each under a fence */
	double probe_s; /* no further probe after this long, once half of them were made */
	double wall_s;  /* stop adding reps beyond the least one of each kind after this long */
};
extern const struct proof_budget PROOF_JUDGE_EMU, PROOF_TUNE_EMU, PROOF_JUDGE_CUDA, PROOF_TUNE_CUDA;

enum { PROOF_ROWS = 160 };

struct proof_row {
	char name[SPEC_NAME + 16];
	enum checker_mode mode;
	int reps, runs, fence;
	double worst, rel_l2, row_l2, ratio; /* worst figures over its reps */
	int probe;                           /* one run at a shape near an edge */
	int regimes[REGIME_COUNT];
	int exact_done;
};

struct proof_report {
	int pass;
	char word[40];                /* first failure */
	char where[SPEC_NAME + 16];   /* public workload's name, or "a held-out shape" */
	int held_out;                 /* it failed at a held-out shape */
	int deterministic;            /* 0: identical fills gave different bits */
	int orders;                   /* 0: the device has no thread orders to try */
	int order_dependent;          /* thread order changes bits (within tolerance) */
	int cut;                      /* budget ended before all reps were made */
	char text[4096];              /* the device's report of the failure, for the log */
	int n;
	struct proof_row row[PROOF_ROWS];
};

int proof_judge(struct proof *p, const struct proof_arm *a, const struct proof_budget *b,
		struct proof_report *r, struct err *e);
/* Rows, regimes, flags into an open object. */
void proof_report_write(const struct proof_report *r, struct jsonw *w);

#endif
