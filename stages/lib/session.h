/*
 * session.h - one session: fresh processes, champion and candidate interleaved.
 *
 * What it does, workload by workload in a drawn order:
 *   solo      the champion alone, before any candidate process exists (on a GPU: before the candidate's module is
 *             loaded, with a copy of the champion in its place)
 *   start     both arms in new processes, the first by coin flip
 *   warm      pairs that are stored and not counted; if the candidate took more than `hopeless` times
 *             as long as the champion's slowest rep, one more pair; if again, the session ends: SHOT_SLOW
 *   measure   blocks of ABBA or BAAB quads, each drawn; blocks are added until the standard error
 *             of the workload's theta is small enough or the cap is reached
 *             (SHOT_SLOW too once the candidate is `behind_s` behind the champion, all warm and
 *             measured pairs of all sessions of the contest added up)
 *   anchor    (confirmation only) candidate against baseline, in the same way
 *   drain     (first session of a confirmation on a GPU) both arms with windows that end only when what
 *             was written has left the cache
 *   sustained (likewise) bursts of launches back to back, about a second of each arm over all workloads
 * Where the class says `lasting`, an arm is one process for the session: solo of all workloads, then the candidate starts and
 * warm, measure of all of them, then the baseline starts and anchor of all, each time in the drawn order. The ops open and
 * close a workload once a turn.
 *
 * Every rep goes to the raw file. How a rep is made (inputs, flush, clock, check) is the caller's:
 * session_ops. The session never reads a clock and knows no device.
 *
 * All draws come from `order_seed` and the place they are for, by SHA-256, so that anyone can
 * repeat them: bit = lowest bit of the first byte of SHA-256("SEED:order:SESSION:WORKLOAD:PLACE:QUAD"),
 * where PLACE = 65536 * phase + block (phases as in rawfile.h).
 *
 * Life: session_run fills a struct session_result (plain, no allocation). A wrong output or a dead
 * arm is a result; -1 is trouble of ours.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_SESSION_H
#define TS_SESSION_H

#include "err.h"
#include "jsonw.h"
#include "rawfile.h"

#include <stdint.h>

enum { SESSION_WORKLOADS = 64, SESSION_BLOCKS = 128, SESSION_SEED = 33,
       SESSION_SOLO_WARM = 1000 /* block of the warm reps of the champion alone */ };

#define SESSION_TAIL 2

/* Constants of a device class; part of the pre-registration. */
struct session_class {
	const char *name;
	int block_quads;   /* quads of a block: 2 pairs each */
	int blocks_min, blocks_max;
	double se_target;  /* of a workload's theta in one session: enough, even at the margin */
	double decisive;   /* or the standard error is this many times smaller than the distance of
	                    * theta from the margin; 0: never stop for that */
	int lost_blocks;   /* a candidate behind by more than `lost` (log) in each of its first so many blocks */
	double lost;       /* is timed no longer on that workload: only ever against it; 0: no such end */
	double trim;       /* 0.2, cut from each end */
	int warm_pairs;
	int solo_reps;     /* counted ones; two more warm up */
	double solo_slack; /* champion alone against champion in company: |log ratio| that is borne */
	int anchor_quads;
	int ring;          /* sets to draw from; the arms of a pair get two different ones */
	int k_max;         /* cap of sessions: caps are part of the pre-registration */
	double time_s;     /* no further session after this much time; 0: no such cap */
	double hopeless;   /* a candidate this many times slower in two warm reps has lost; 0: no such end */
	double behind_s;   /* so has one this much time behind in all; 0: no such end */
	double s0_floor;   /* least sd between sessions that is believed */
	int lasting;       /* 1: one process of an arm for all workloads of a session; see below */
	int drain_quads;   /* guards of a confirmation; 0: none */
	int sustained_quads;
};

extern const struct session_class SESSION_EMU, SESSION_SIM, SESSION_CUDA, SESSION_ENGINE, SESSION_ENGINE_GPU;
const struct session_class *session_class_of(const char *device); /* a slug is a GPU's: SESSION_CUDA */

/* What a workload of a GPU takes instead of the class's constants, chosen before the first counted sample
 * from the champion's own time; part of the pre-registration. */
struct session_size {
	int windows;      /* copies of the workload in one timed window */
	int ring;         /* sets to draw from */
	int fresh;        /* 1: every rep also changes elements of its set; 0: sets of the ring as they are */
	int block_quads, blocks_max, solo_reps, anchor_quads;
	double rep_ns, cost_ns; /* what was seen: window of the champion, whole rep with its checks */
};
/* From the champion's window of one copy, an empty launch's, and the cost of a rep with one copy (of which
 * the input and its reference: prepare_ns). */
void session_size_for(double rep_ns, double null_ns, double cost_ns, double prepare_ns, struct session_size *z);

enum shot_outcome {
	SHOT_OK = 0, SHOT_WRONG, SHOT_FAULT, SHOT_PROTOCOL, SHOT_TIMEOUT, SHOT_LATE,
	SHOT_SLOW, /* of a session only: right, and so slow that more reps would be a waste */
	SHOT_ENV,  /* the machine was not quiet or not healthy: nobody's fault */
};

struct shot {
	/* asked */
	int session, workload;
	enum raw_arm arm;    /* changed by a rig that ran another one first, which failed: whose fault it is */
	enum raw_phase phase;
	int block;
	uint32_t set;
	uint64_t rep;        /* place in the raw file: names the perturbation */
	/* answered */
	uint64_t start, stop;
	enum raw_check check;
	enum shot_outcome outcome;
	char text[256];      /* for people, when not SHOT_OK */
};

struct session_ops {
	/* Fresh memory for a workload; no arm runs yet. */
	int (*open)(void *ctx, int session, int workload, struct err *e);
	/* Start an arm in a new process, ending the one it may have. A candidate that does not
	 * start is *outcome SHOT_FAULT. */
	int (*start)(void *ctx, enum raw_arm arm, enum shot_outcome *outcome, char text[256],
		     struct err *e);
	int (*stop)(void *ctx, enum raw_arm arm, struct err *e);
	int (*shoot)(void *ctx, struct shot *s, struct err *e);
	void (*close)(void *ctx);
	/* The session is over; NULL: nothing to look at. `s` comes with session, candidate and workload 0. May find that
	 * the session is void (SHOT_ENV), or what could only be seen once the arms are gone: outcome, text, and
	 * whose fault at which workload. */
	int (*end)(void *ctx, struct shot *s, struct err *e);
};

struct session_job {
	int index;            /* over the raw file */
	int workloads;
	const double *weight; /* per workload; 0: measured and guarded, not in theta */
	const struct session_size *size; /* per workload; NULL: the class's constants */
	const char *order_seed;
	const struct session_class *c;
	double delta;         /* log margin that `decisive` looks at; NAN: no early stop */
	int solo, anchor, guards;
	int64_t *behind;      /* ticks (ns) behind so far, carried from session to session; NULL: no
	                       * SHOT_SLOW at all (champion against itself) */
	const struct session_ops *ops;
	void *ctx;
	struct raw *raw;
};

struct session_workload {
	int blocks;
	double block[SESSION_BLOCKS]; /* L_b */
	double theta, se;
	double alone;                 /* median ticks of the champion alone; 0: not measured */
	double solo;                  /* ln(champion alone / champion in company), medians */
	double total[RAW_ARMS];       /* ticks of its measured reps, nothing trimmed */
	double tail[RAW_ARMS];        /* share of its measured reps that took over SESSION_TAIL times their median */
	double mean[RAW_ARMS], min[RAW_ARMS]; /* ticks, for people; nothing is decided by them */
	double anchor;                /* ln(baseline / candidate); NAN when not measured */
	double drain, drain_se;       /* ln(champion / candidate); NAN when not measured */
	double sustained, sustained_se;
};

struct session_result {
	int index;
	enum shot_outcome outcome; /* of the first bad shot */
	enum raw_arm guilty;
	char text[256];
	int at_workload;
	double slow_times;         /* SHOT_SLOW in the warm pairs: by this factor at least; else 0 */
	struct session_workload w[SESSION_WORKLOADS];
	double theta;              /* weighted over workloads */
	double solo;               /* weighted over workloads; 0 when not measured */
};

int session_run(const struct session_job *job, struct session_result *r, struct err *e);

/* The draws, by place. session_order: 0 is ABBA (champion first), 1 is BAAB. */
int session_order(const char *seed, int session, int workload, int block, int quad);
uint64_t session_word(const char *seed, const char *what, int a, int b, int c, int d);
/* Input set of a slot: the first of a pair draws word % ring, the second another one,
 * (first + 1 + (word >> 32) % (ring - 1)) % ring. `place` as above. */
uint32_t session_set(const char *seed, int session, int workload, int place, int slot, int ring);

/* Arm of slot 0..3 of a quad: first is A when order is 0. */
enum raw_arm session_arm(int order, int slot, enum raw_arm a, enum raw_arm b);

void session_class_write(const struct session_class *c, struct jsonw *w, const char *key);
void session_write(const struct session_result *r, int workloads, const char *const *names,
		   struct jsonw *w);

#endif
