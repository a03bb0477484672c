/*
 * tune_rules.c - which configuration where. See tune_gpu.h.
 *
 * A rule must be one a person would write: one axis, one bound between two public sizes. Rules are
 * added one by one, each the one that gains most, as long as it gains enough; held-out shapes are then
 * served by the same bound, not by an exact size.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tune_gpu.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Least gain at each workload that a rule moves. Medians of nine runs differ by less: two runs of a 4 us
 * kernel on an H200 have a ratio of sd 7.6 %, two such medians of about 3 %. */
#define CLEAR 0.05

struct search {
	const struct spec *s;
	const struct tune_timing *t;
	int n, best;
	int taken[SPEC_MAX_WORKLOADS]; /* by an earlier rule */
};

static int holds(const struct search *q, const struct tune_rule *r, int workload)
{
	int64_t v = q->s->public[workload].gpu.v[r->axis];

	return r->below ? v <= r->at : v > r->at;
}

/* Weighted ln of what it gains; 0 where a workload of it gains too little or nothing is left over. */
static double gain(const struct search *q, const struct tune_rule *r)
{
	double sum = 0;
	int moved = 0;

	for (int k = 0; k < q->s->npublic; k++) {
		if (q->taken[k] || !holds(q, r, k))
			continue;
		double g = log(q->t[q->best].ns[k] / q->t[r->config].ns[k]);
		if (!(g > CLEAR))
			return 0;
		sum += g * q->s->public[k].weight;
		moved++;
	}
	return moved ? sum : 0;
}

/* Halfway between this size and the next larger one among the public ones; -1: there is none. */
static int64_t bound(const struct spec *s, int axis, int workload)
{
	int64_t v = s->public[workload].gpu.v[axis], next = -1;

	for (int k = 0; k < s->npublic; k++) {
		int64_t x = s->public[k].gpu.v[axis];
		if (x > v && (next < 0 || x < next))
			next = x;
	}
	return next < 0 ? -1 : v + (next - v) / 2;
}

static double best_rule(const struct search *q, struct tune_rule *out)
{
	double most = 0;

	for (int a = 0; a < q->s->naxes; a++)
		for (int k = 0; k < q->s->npublic && !q->s->axis[a].is_const; k++)
			for (int i = 0; i < 2 * q->n; i++) {
				struct tune_rule r = {.axis = a, .below = i & 1, .at = bound(q->s, a, k),
						      .config = i / 2};
				if (r.at < 0 || r.config == q->best || !q->t[r.config].right)
					continue;
				double g = gain(q, &r);
				if (g > most) {
					most = g;
					*out = r;
				}
			}
	return most;
}

int tune_rules(const struct spec *s, const struct tune_timing *t, int n, int best,
	       struct tune_rule out[TUNE_RULES])
{
	struct search q = {.s = s, .t = t, .n = n, .best = best};
	int rules = 0;

	while (rules < TUNE_RULES && best_rule(&q, &out[rules]) > 0) {
		for (int k = 0; k < s->npublic; k++)
			q.taken[k] |= holds(&q, &out[rules], k);
		rules++;
	}
	return rules;
}

int tune_rules_apply(struct plan *p, const struct spec *s, const struct tune_rule *rule, int nrules,
		     const struct plan_config *const *config, struct err *e)
{
	char when[SPEC_NAME + 40];

	for (int r = 0; r < nrules; r++) {
		snprintf(when, sizeof when, "%s %s %lld", s->axis[rule[r].axis].name, rule[r].below ? "<=" : ">",
			 (long long)rule[r].at);
		/* Also tunables that stay as they are: a later rule must not mix in. */
		for (int i = 0; i < p->ntunables; i++)
			if (p->tunable[i].nvalues > 1 &&
			    plan_choose_add(p, p->tunable[i].name, when, config[rule[r].config]->v[i], e) < 0)
				return -1;
	}
	return 0;
}
