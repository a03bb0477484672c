/*
 * engine_gates.h - what an engine that won must also hold: time to the first token and per token, spread, memory; and
 * the score of each arm.
 *
 * All from the samples of an engine_session. TTFT of a batch is the arrival of its first step, TPOT is
 * (last - first) / (steps - 1). Against the native baseline and against the champion, workload by workload (held-out ones
 * are not gated): r_k = ln(median of the candidate / median of the other) over the pairs of session k. Held: the mean
 * of r_k is at most ln(limit). Surely broken: its one-sided 95 % lower bound is above. Between the two nothing is certain:
 * inconclusive.
 *
 * Spread of an arm at a workload: 90th - 10th percentile of its measured times, each in parts of the median of its session, all
 * sessions together. What differs from session to session is in the interval of the ratio, and on a processor that others
 * use it is the processor's: on two virtual cores an engine took 55 ms in one session and 33 in another. A candidate beyond the
 * gate where the champion is not is rejected; where both are, it was the machine.
 *
 * Memory: the most of any process of the candidate: its resident set, as the kernel counted it; of an engine in CUDA what it
 * held of the GPU's (engine_memory.h). Where that could not be seen nothing is gated, and the record says so.
 *
 * Floor (engine_floor.h): a candidate whose median lies below what the GPU can do was measured wrong: inconclusive.
 *
 * Score: geometric mean over the workloads of batch * steps / median seconds. For people; nothing is decided by it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_GATES_H
#define TS_ENGINE_GATES_H

#include "contest.h"
#include "engine_floor.h"
#include "engine_session.h"

struct engine_limits {
	double native, champion; /* ratios: 1.05 */
	double spread;           /* 0.25 */
	uint64_t memory;         /* bytes, of the GPU's for an engine in CUDA; 0: no limit known */
	int gpu;                 /* engines in CUDA */
	const struct engine_floor *floor; /* of each task; NULL: none is known */
	const char *ceilings;    /* where they are from */
};

struct engine_times {
	int n;                   /* batches; 0: the rest is NAN */
	double total, ttft, tpot; /* medians, s; tpot NAN for a single step */
	double spread;
};

enum { ENGINE_TTFT, ENGINE_TPOT, ENGINE_GATED };

struct engine_ratio {
	double ratio, lo95;      /* candidate / other; NAN: not measured */
	int held, broken;
};

/* Sessions first .. first + n - 1 of one contest. */
struct engine_range {
	const struct engine_session *s;
	int first, n;
	int baseline;            /* 0: the champion is the native baseline */
};

/* Times of an arm; the baseline's, when it is the champion, are the champion's. */
struct engine_times engine_times_of(const struct engine_range *g, int workload, enum raw_arm arm);
/* Candidate against RAW_CHAMPION or RAW_BASELINE. */
struct engine_ratio engine_ratio_of(const struct engine_range *g, int workload, int what, enum raw_arm other, double limit);
double engine_score(const struct engine_range *g, enum raw_arm arm); /* NAN: not measured */

/* Only for a contest that passed: changes its kind, code and message where a gate does not hold. */
void engine_gates(const struct engine_range *g, const struct engine_limits *l, struct contest *t);
void engine_gates_write(const struct engine_range *g, const struct engine_limits *l, struct jsonw *w, const char *key);

#endif
