/*
 * contest_write.c - a contest as JSON: enough for a stranger to recompute the verdict.
 *
 * SPDX-License-Identifier: MIT
 */
#include "contest.h"

#include <math.h>

static void rule_write(const struct stats_rule *r, struct jsonw *w)
{
	jw_str(w, "rule", STATS_RULE);
	jw_num(w, "margin", r->margin);
	jw_num(w, "alpha", r->alpha);
	jw_num(w, "g", r->g);
	jw_int(w, "k_min", r->k_min);
	jw_int(w, "k_max", r->k_max);
	jw_num(w, "futile_gap", r->futile_gap);
	jw_num(w, "futile_z1", r->futile_z1);
	jw_num(w, "futile_z", r->futile_z);
	jw_num(w, "futile_floor", r->futile_floor);
	jw_num(w, "s0", r->s0);
	jw_num(w, "guard", r->guard);
	jw_num(w, "guard_level", r->guard_level);
	jw_num(w, "confirm_floor", contest_confirm_floor(r));
	jw_int(w, "confirm_sessions", CONTEST_CONFIRM);
	jw_int(w, "confirm_most", CONTEST_CONFIRM_MOST);
}

static void size_write(const struct session_size *z, struct jsonw *w)
{
	jw_int(w, "windows", z->windows);
	jw_int(w, "ring", z->ring);
	jw_bool(w, "fresh", z->fresh);
	jw_int(w, "block_quads", z->block_quads);
	jw_int(w, "blocks_max", z->blocks_max);
	jw_int(w, "solo_reps", z->solo_reps);
	jw_int(w, "anchor_quads", z->anchor_quads);
	jw_num(w, "rep_ns", z->rep_ns);
	jw_num(w, "cost_ns", z->cost_ns);
}

void contest_plan_write(const struct contest *t, struct jsonw *w)
{
	rule_write(&t->rule, w);
	/* What the rule can see here: with the sd between sessions that A/A showed. */
	jw_num(w, "detectable", stats_detectable(&t->rule, t->rule.s0, 0.9));
	session_class_write(t->c, w, "class");
	jw_str(w, "order_seed", t->order_seed);
	jw_str(w, "order_from", t->order_derived ? "SEED" : "entropy");
	jw_bool(w, "solo", t->solo_too);
	jw_bool(w, "anchor", t->anchor);
	if (t->guards) {
		jw_num(w, "drain_limit", CONTEST_DRAIN);
		jw_num(w, "sustained_limit", CONTEST_SUSTAINED);
	}
	jw_arr(w, "workloads");
	for (int i = 0; i < t->workloads; i++) {
		jw_obj(w, NULL);
		jw_str(w, "name", t->name[i]);
		jw_num(w, "weight", t->weight[i]);
		if (t->size)
			size_write(&t->size[i], w);
		jw_end(w);
	}
	jw_end(w);
}

static void looks_write(const struct contest *t, struct jsonw *w)
{
	jw_arr(w, "looks");
	for (int i = 0; i < t->looks; i++) {
		const struct stats_look *l = &t->look[i];
		jw_obj(w, NULL);
		jw_int(w, "k", l->k);
		jw_num(w, "mean", l->mean);
		jw_num(w, "s", l->s);
		jw_num(w, "t", l->t);
		jw_num(w, "bf", exp(l->log_bf));
		jw_num(w, "p", l->p);
		jw_str(w, "word", stats_word_name(l->word));
		jw_end(w);
	}
	jw_end(w);
}

static void estimate_write(const struct contest *t, struct jsonw *w)
{
	double lo = NAN, hi = NAN, ratio = contest_ratio(t, &lo, &hi);
	double sd = stats_sd(t->theta, (size_t)t->k);
	jw_obj(w, "estimate");
	jw_num(w, "ratio", t->k ? ratio : NAN);
	jw_num(w, "lo95", t->k > 1 ? lo : NAN);
	jw_num(w, "hi95", t->k > 1 ? hi : NAN);
	jw_num(w, "sd", t->k > 1 ? sd : NAN);
	jw_int(w, "sessions", t->k);
	jw_num(w, "detectable", t->k > 1 ? stats_detectable(&t->rule, sd, 0.9) : NAN);
	jw_end(w);
}

static void guards_write(const struct contest *t, struct jsonw *w)
{
	jw_arr(w, "guards");
	for (int i = 0; i < t->workloads; i++) {
		double level = t->rule.guard_level;
		jw_obj(w, NULL);
		jw_str(w, "name", t->name[i]);
		jw_num(w, "theta", t->k ? stats_mean(t->by_workload[i], (size_t)t->k) : NAN);
		jw_num(w, "lower", stats_lower(t->by_workload[i], t->k, level));
		jw_num(w, "upper", stats_upper(t->by_workload[i], t->k, level));
		jw_end(w);
	}
	jw_end(w);
}

static void anchor_write(const struct contest *t, struct jsonw *w)
{
	double lo = NAN, hi = NAN, ratio = contest_anchor(t, &lo, &hi);
	if (!(ratio > 0)) {
		jw_null(w, "anchor");
		return;
	}
	jw_obj(w, "anchor");
	jw_num(w, "ratio", ratio);
	jw_num(w, "lo95", lo);
	jw_num(w, "hi95", hi);
	jw_end(w);
}

void contest_write(const struct contest *t, struct jsonw *w, const char *key)
{
	jw_obj(w, key);
	jw_int(w, "first_session", t->first);
	jw_str(w, "verdict", verdict_kind_name(t->kind));
	jw_str(w, "code", t->code);
	estimate_write(t, w);
	anchor_write(t, w);
	guards_write(t, w);
	looks_write(t, w);
	if (t->confirming && !t->looks)
		jw_int(w, "look", t->k > CONTEST_CONFIRM ? 2 : 1);
	jw_bool(w, "out_of_time", t->late);
	if (t->slow) {
		const struct session_result *r = &t->session[t->n - 1];
		jw_obj(w, "given_up");
		jw_int(w, "session", r->index);
		jw_int(w, "workload", r->at_workload);
		jw_num(w, "times", r->slow_times > 0 ? r->slow_times : NAN);
		jw_num(w, "behind_s", (double)t->behind * 1e-9);
		jw_end(w);
	}
	jw_arr(w, "sessions");
	for (int i = 0; i < t->n; i++)
		session_write(&t->session[i], t->workloads, t->name, w);
	jw_end(w);
	jw_end(w);
}
