/*
 * contest.h - sessions until the rule speaks: the decision of bench and confirm.
 *
 * A contest owns the plan of a comparison (workloads, weights, rule, class constants, order seed),
 * runs sessions through session.h and keeps all of them. contest_decide stops at the first word of
 * stats_look that also holds for every workload and for the champion as it runs alone;
 * contest_fixed runs a given number. Both end with an outcome in verdict terms; -1 is trouble of
 * ours.
 *
 * Alone: solo_k = ln(champion's time alone / in company), theta_k + solo_k is what the candidate
 * gains on the champion alone. If the 95 % interval of the mean of solo lies below minus the class's
 * slack (company slows the champion), the contest is invalid. A winner must have a mean of
 * theta + min(solo, slack) above half the margin (as a ratio) and its one-sided lower bound above 0.
 * Being faster in company is a burst of somebody else's work at a bad moment, never to a candidate's
 * advantage.
 *
 * Looks: after the first PROMOTE the guards and `alone` are tested at that and every later look, each
 * at its own level. A confirmation looks after CONTEST_CONFIRM sessions and, if then open, once more
 * after CONTEST_CONFIRM_MOST; extending makes the published ratio slightly too high on average, so
 * the record says which look ended it (stats.h, rule 2).
 *
 * Two groups: theta trims outliers, which are nobody's on a shared machine. Who does the work of many reps in one and
 * next to none in the others would have them for outliers. So a winner some of whose reps take over twice their
 * median, and more of them than of the champion's, must have half its gain by the sum of all its reps, and half
 * the margin.
 *
 * Guards (a confirmation on a GPU, first session only): a winner whose windows are more than
 * CONTEST_DRAIN slower once what they wrote is paid for, or CONTEST_SUSTAINED slower when run back to back,
 * is rejected where that is sure (two standard errors), else inconclusive.
 *
 * Life: contest_init, fill the plan, contest_prereg to disk, contest_decide or contest_fixed,
 * contest_write, contest_free.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_CONTEST_H
#define TS_CONTEST_H

#include "err.h"
#include "jsonw.h"
#include "rawfile.h"
#include "session.h"
#include "stats.h"
#include "verdict.h"

/* Times of a candidate that fall into two groups: more than this share of its reps, and this much more than twice
 * the champion's share, took over twice their median. */
#define CONTEST_TAIL 0.03
#define CONTEST_TAIL_OVER 0.02
#define CONTEST_DRAIN 0.01
#define CONTEST_SUSTAINED 0.03

enum {
	CONTEST_SESSIONS = 24,
	CONTEST_CONFIRM = 4,   /* sessions of a confirmation */
	CONTEST_CONFIRM_MOST = 2 * CONTEST_CONFIRM, /* ... that misses its mark and might not have */
	CONTEST_AA = 4,        /* sessions of champion against itself */
};

struct contest {
	/* the plan */
	const struct session_class *c;
	struct stats_rule rule;
	int workloads;
	const char *name[SESSION_WORKLOADS]; /* borrowed */
	double weight[SESSION_WORKLOADS];    /* 0: held out, guarded only */
	const struct session_size *size;     /* GPU: per workload, borrowed; else NULL */
	char order_seed[SESSION_SEED];
	int order_derived;      /* 1: from SEED (sim); 0: from the system's entropy */
	int solo_too, anchor;   /* measure the champion alone; the baseline as well */
	int whole;              /* 1: every session to its full length (A/A) */
	int confirming;         /* codes say confirm.* */
	int guards;             /* drain and sustained guards, in its first session */
	const struct session_ops *ops;
	void *ctx;
	struct raw *raw;
	int first;              /* index of its first session in the raw file */

	/* what came of it */
	struct session_result *session; /* n of them */
	int n;
	double theta[CONTEST_SESSIONS];  /* k of them: those that were finished */
	double solo[CONTEST_SESSIONS];
	double by_workload[SESSION_WORKLOADS][CONTEST_SESSIONS];
	double anchors[CONTEST_SESSIONS];
	int k;
	struct stats_look look[CONTEST_SESSIONS];
	int looks;
	int64_t behind;                  /* ns that the candidate is behind in all pairs so far */
	int slow;                        /* it was given up as hopeless; the last session says where */
	int late;                        /* the cap of time ended it */
	enum verdict_kind kind;
	const char *code;
	char message[320];
};

void contest_init(struct contest *t);
void contest_free(struct contest *t);

/* Sessions until PROMOTE (pass), REJECT, the cap, or a failure. */
int contest_decide(struct contest *t, struct err *e);
/* Exactly `sessions` of them. kind is V_PASS unless an arm failed. */
int contest_fixed(struct contest *t, int sessions, struct err *e);
/* After contest_fixed(CONTEST_CONFIRM): does the confirmation hold? Guards (above), mean at least half the margin
 * (as a ratio), no workload's mean below the guard. Sets kind, code, message; V_NONE when a mark is
 * missed but the margin (for a workload: 0) is still within the one-sided bound: then the caller
 * runs as many sessions again, once. */
void contest_confirm(struct contest *t);

double contest_confirm_floor(const struct stats_rule *r); /* theta */
/* The pre-registered plan as members of an open JSON object. */
void contest_plan_write(const struct contest *t, struct jsonw *w);
void contest_write(const struct contest *t, struct jsonw *w, const char *key);
/* Estimate of the speed-up and its 95 % interval (ratios); 0 when there is no session. */
double contest_ratio(const struct contest *t, double *lo, double *hi);
double contest_anchor(const struct contest *t, double *lo, double *hi); /* 0: not measured */

#endif
