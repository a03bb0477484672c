/*
 * stats.h - the arithmetic of "is B faster than A by more than the margin".
 *
 * Reads arrays of doubles, returns numbers; never allocates beyond scratch, never reads a clock
 * or a file. Everything here is deterministic. The rule is documented in three layers:
 *   rep      integer ticks, never averaged one by one;
 *   block    L_b = ln(sum of champion ticks / sum of candidate ticks) over a few ABBA quads;
 *   session  theta_k = 20 % trimmed mean of the blocks, weighted over workloads.
 * Sessions (fresh processes) are the units of evidence; stats_look() decides after each.
 *
 * Units: theta is a log ratio (0.01 is about 1 % faster), margins are ratios minus one (0.02).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_STATS_H
#define TS_STATS_H

#include <stddef.h>

double stats_mean(const double *x, size_t n);
double stats_sd(const double *x, size_t n);     /* n - 1 in the denominator; 0 when n < 2 */
double stats_median(const double *x, size_t n); /* mean of the middle two when n is even */
double stats_mad(const double *x, size_t n);    /* median |x - median|, not scaled */
double stats_trimmed(const double *x, size_t n, double fraction);    /* cut from each end */
double stats_trimmed_se(const double *x, size_t n, double fraction); /* its standard error */

double stats_normal_cdf(double z);
double stats_normal_quantile(double p); /* 0 < p < 1 */
double stats_t_cdf(double t, double nu);
double stats_t_quantile(double p, double nu);

/* Natural log of the scale-free mixture t Bayes factor after k sessions (k >= 2). */
double stats_log_bf(double t, int k, double g);

enum stats_word {
	STATS_MORE,         /* no decision yet: another session */
	STATS_PROMOTE,
	STATS_REJECT,
	STATS_INCONCLUSIVE, /* the cap was reached */
};

/* The pre-registered rule. Its text form stands in bench.json; a change bumps STATS_RULE.
 * Rule 2, against rule 1 (tools/recheck knows both):
 *   - guards and the champion alone are tested again at every look after the first PROMOTE, until they
 *     hold, fail, or the cap is reached. theta's own error bound is the first PROMOTE's; the guards'
 *     95 % are of one look, not of all;
 *   - a confirmation has two looks, after 4 sessions and, where the first left it open, after 8. Its
 *     estimate is published as measured: where it was extended it stopped on a good second look, so
 *     it is slightly biased upwards. confirm.json says which look ended it (`look`);
 *   - a hopelessly slow candidate is given up (session.h: SHOT_SLOW). */
#define STATS_RULE "touchstone-bench-rule-2"

struct stats_rule {
	double margin;       /* 0.02: the candidate must be certified more than 2 % faster */
	double alpha;        /* 0.01: bound on promoting exactly at the margin */
	double g;            /* 10: prior variance of the standardised effect */
	int k_min;           /* 4: BF cannot reach 1/(2 alpha) = 50 at k = 3 with g = 10 */
	int k_max;           /* 12: cap, then inconclusive */
	double futile_gap;   /* 0.006: after session 1, theta below ln(1+margin) by this and ... */
	double futile_z1;    /* 4: ... by this many s0 */
	double futile_z;     /* 2.5: from k_min, mean + z max(s, floor s0)/sqrt(k) < ln(1+margin) */
	double futile_floor; /* 0.7 */
	double s0;           /* sd of theta between A/A sessions on this host and kernel */
	double guard;        /* -0.03: no single workload may be slower than this */
	double guard_level;  /* 0.95: one-sided confidence of that statement */
};

extern const struct stats_rule STATS_DEFAULT; /* s0 = 0: the caller sets it */

struct stats_look {
	enum stats_word word;
	int k;
	double mean; /* of theta_1..theta_k */
	double s;    /* their sd, 0 when k < 2 */
	double t;    /* against ln(1 + margin); +-HUGE_VAL when s = 0 */
	double log_bf;
	double p;    /* always-valid p = min(1, 1/(2 BF)) of this look alone */
};

double stats_delta(const struct stats_rule *r); /* ln(1 + margin) */

/* Look after k sessions. Earlier looks are not stored: the word of the first look that is not
 * STATS_MORE is the decision, and callers stop there. */
struct stats_look stats_look(const struct stats_rule *r, const double *theta, int k);

/* Confidence interval of the speed-up ratio exp(theta), two-sided at `level`, t with k-1 df.
 * k < 2 gives lo = 0, hi = HUGE_VAL. */
void stats_interval(const double *theta, int k, double level, double *lo, double *hi);

/* One-sided lower (or upper) bound of theta at `level`; k < 2 gives -HUGE_VAL (HUGE_VAL). */
double stats_lower(const double *theta, int k, double level);
double stats_upper(const double *theta, int k, double level);

/* Smallest speed-up (as a ratio minus one) that the rule would promote at its cap with about
 * `power`, were the sd between sessions `s`. */
double stats_detectable(const struct stats_rule *r, double s, double power);

const char *stats_word_name(enum stats_word w); /* "more", "promote", ... */

#endif
