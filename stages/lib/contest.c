/*
 * contest.c - see contest.h. The JSON is in contest_write.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "contest.h"

#include "defence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void contest_init(struct contest *t)
{
	memset(t, 0, sizeof *t);
	t->rule = STATS_DEFAULT;
	t->solo_too = 1;
	t->session = xcalloc(CONTEST_SESSIONS, sizeof *t->session);
}

void contest_free(struct contest *t)
{
	free(t->session);
	t->session = NULL;
}

__attribute__((format(printf, 4, 5))) static void end(struct contest *t, enum verdict_kind kind,
						      const char *code, const char *fmt, ...)
{
	va_list ap;
	t->kind = kind;
	t->code = code;
	va_start(ap, fmt);
	vsnprintf(t->message, sizeof t->message, fmt, ap);
	va_end(ap);
}

/* An arm failed. Only the candidate's failures are charged to it. */
static void end_failed(struct contest *t, const struct session_result *r)
{
	static const char *const code[][2] = {
		[SHOT_OK] = {"ok", "ok"},
		[SHOT_WRONG] = {"bench.wrong_output", "confirm.wrong_output"},
		[SHOT_FAULT] = {"bench.fault", "confirm.fault"},
		[SHOT_PROTOCOL] = {"bench.protocol", "confirm.protocol"},
		[SHOT_TIMEOUT] = {"bench.timeout", "confirm.timeout"},
		[SHOT_SLOW] = {"bench.slower", "confirm.slower"},
		[SHOT_LATE] = {"bench.late_work", "confirm.late_work"},
	};
	const char *where = t->name[r->at_workload];
	if (r->outcome == SHOT_ENV) {
		end(t, V_INVALID, t->confirming ? "confirm.invalid_env" : "bench.invalid_env", "session %d: %.200s",
		    r->index, r->text);
		return;
	}
	if (r->outcome == SHOT_SLOW) {
		int public = t->weight[r->at_workload] > 0;
		t->slow = 1;
		end(t, V_REJECT,
		    !t->confirming ? "bench.slower" : public ? "confirm.workload" : "confirm.held_out",
		    "%s%s: %.200s; given up", public ? "workload " : "", public ? where : "a held-out workload",
		    r->text);
		return;
	}
	if (r->guilty == RAW_CANDIDATE)
		end(t, V_REJECT, code[r->outcome][t->confirming], "workload %s: %.200s", where, r->text);
	else
		end(t, V_INVALID, t->confirming ? "confirm.rival" : "bench.rival",
		    "the %s failed on workload %s: %.200s",
		    r->guilty == RAW_CHAMPION ? "champion" : "baseline", where, r->text);
}

static void keep(struct contest *t, const struct session_result *r)
{
	double anchor = 0, weights = 0;
	t->theta[t->k] = r->theta;
	t->solo[t->k] = r->solo;
	for (int i = 0; i < t->workloads; i++) {
		t->by_workload[i][t->k] = r->w[i].theta;
		anchor += t->weight[i] > 0 ? t->weight[i] * r->w[i].anchor : 0;
		weights += t->weight[i];
	}
	t->anchors[t->k] = weights > 0 ? anchor / weights : NAN;
	t->k++;
}

/* One more session. t->kind is set if an arm failed in it. */
static int step(struct contest *t, struct err *e)
{
	if (t->n >= CONTEST_SESSIONS)
		return err_set(e, EX_HARNESS, "more than %d sessions", CONTEST_SESSIONS);
	struct session_result *r = &t->session[t->n];
	struct session_job job = {.index = t->first + t->n,
				  .workloads = t->workloads,
				  .weight = t->weight,
				  .order_seed = t->order_seed,
				  .c = t->c,
				  .delta = t->whole ? NAN : stats_delta(&t->rule),
				  .solo = t->solo_too,
				  .anchor = t->anchor,
				  .guards = t->guards && t->n == 0,
				  .size = t->size,
				  .behind = t->whole ? NULL : &t->behind,
				  .ops = t->ops,
				  .ctx = t->ctx,
				  .raw = t->raw};
	if (session_run(&job, r, e) != 0)
		return -1;
	t->n++;
	if (r->outcome != SHOT_OK) {
		end_failed(t, r);
	} else {
		keep(t, r);
	}
	return 0;
}

/* -1: some workload is surely below the guard; 1: none can be; 0: not known yet. With one
 * workload theta itself is the statement, and the margin is above the guard. */
static int guards(const struct contest *t, int *which)
{
	double least = log1p(t->rule.guard);
	int all = 1;
	*which = 0;
	for (int i = 0; i < t->workloads && t->workloads > 1 && DEFENCE("bench.workload"); i++) {
		if (stats_upper(t->by_workload[i], t->k, t->rule.guard_level) < least) {
			*which = i;
			return -1;
		}
		if (stats_lower(t->by_workload[i], t->k, t->rule.guard_level) < least) {
			*which = i;
			all = 0;
		}
	}
	return all;
}

/* Does the champion run as it does alone? -1: surely not; 1: the candidate beats it alone too; 0:
 * not known yet. */
static int alone(const struct contest *t)
{
	double both[CONTEST_SESSIONS], slack = t->c->solo_slack;
	if (!t->solo_too || !DEFENCE("bench.champion_solo"))
		return 1;
	for (int i = 0; i < t->k; i++)
		both[i] = t->theta[i] + fmin(t->solo[i], slack);
	if (stats_upper(t->solo, t->k, 0.975) < -slack)
		return -1;
	return stats_mean(both, (size_t)t->k) > contest_confirm_floor(&t->rule) &&
	       stats_lower(both, t->k, t->rule.guard_level) > 0;
}

static void end_apart(struct contest *t)
{
	end(t, V_INVALID, t->confirming ? "confirm.champion_solo" : "bench.champion_solo",
	    "with the candidate about, the champion runs at %.3fx the speed it has alone",
	    exp(stats_mean(t->solo, (size_t)t->k)));
}

static void end_by_word(struct contest *t, const struct stats_look *l)
{
	double ratio = exp(l->mean), percent = 100 * t->rule.margin;
	if (l->word == STATS_REJECT && l->mean < 0)
		end(t, V_REJECT, "bench.slower", "%.4fx the champion's speed in %d sessions", ratio, l->k);
	else if (l->word == STATS_REJECT)
		end(t, V_REJECT, "bench.below_margin",
		    "%.4fx the champion's speed in %d sessions: not more than %.3g %% faster", ratio,
		    l->k, percent);
	else
		end(t, V_INCONCLUSIVE, "bench.inconclusive",
		    "%.4fx the champion's speed; not certain to be over %.3g %% after %d sessions",
		    ratio, percent, l->k);
}

/* Its times fall into two groups, and all of them together are not half the gain: ended. */
static int end_if_lumpy(struct contest *t)
{
	for (int i = 0; i < t->workloads; i++) {
		double total[RAW_ARMS] = {0}, tail[RAW_ARMS] = {0};
		int n = 0;
		for (int s = 0; s < t->n; s++) {
			const struct session_workload *w = &t->session[s].w[i];
			if (t->session[s].outcome != SHOT_OK)
				continue;
			for (int a = 0; a < RAW_ARMS; a++) {
				total[a] += w->total[a];
				tail[a] += w->tail[a];
			}
			n++;
		}
		double own = tail[RAW_CANDIDATE] / n, his = tail[RAW_CHAMPION] / n;
		double ratio = total[RAW_CHAMPION] / total[RAW_CANDIDATE], least = contest_confirm_floor(&t->rule);
		least = fmax(least, stats_mean(t->by_workload[i], (size_t)t->k) / 2);
		if (n == 0 || t->weight[i] <= 0 || !(own > CONTEST_TAIL && own > 2 * his + CONTEST_TAIL_OVER) ||
		    log(ratio) >= least || !DEFENCE("bench.bimodal"))
			continue;
		end(t, V_REJECT, t->confirming ? "confirm.bimodal" : "bench.bimodal",
		    "workload %s: %.1f %% of its runs take over twice their median; all of them: %.4fx the champion's speed",
		    t->name[i], 100 * own, ratio);
		return 1;
	}
	return 0;
}

/* A winner must also hurt no workload; while that is open, sample on to the cap. */
static void end_if_won(struct contest *t, const struct stats_look *l)
{
	int which, held = guards(t, &which), free = alone(t);
	if (free < 0)
		end_apart(t);
	else if (held > 0 && free > 0 && end_if_lumpy(t))
		return;
	else if (held > 0 && free > 0)
		end(t, V_PASS, "ok", "%.4fx the champion's speed, certified over %.3g %%",
		    exp(l->mean), 100 * t->rule.margin);
	else if (held < 0)
		end(t, V_REJECT, "bench.workload", "workload %s is more than %.3g %% slower",
		    t->name[which], -100 * t->rule.guard);
	else if (l->k >= t->rule.k_max && !held)
		end(t, V_INCONCLUSIVE, "bench.inconclusive",
		    "workload %s may be more than %.3g %% slower", t->name[which],
		    -100 * t->rule.guard);
	else if (l->k >= t->rule.k_max)
		end(t, V_INCONCLUSIVE, "bench.inconclusive",
		    "faster next to the champion, not certain to be against the champion alone");
}

static double clock_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Out of time: only ever against the candidate. */
static void end_if_late(struct contest *t, double from)
{
	if (t->kind != V_NONE || !(t->c->time_s > 0) || t->k < t->rule.k_min ||
	    clock_s() - from < t->c->time_s)
		return;
	t->late = 1;
	end(t, V_INCONCLUSIVE, "bench.inconclusive",
	    "%.4fx the champion's speed; nothing certain after %d sessions and %.0f s",
	    exp(stats_mean(t->theta, (size_t)t->k)), t->k, t->c->time_s);
}

int contest_decide(struct contest *t, struct err *e)
{
	double from = clock_s();
	while (t->kind == V_NONE) {
		if (step(t, e) != 0)
			return -1;
		if (t->kind != V_NONE)
			break;
		struct stats_look *l = &t->look[t->looks++];
		*l = stats_look(&t->rule, t->theta, t->k);
		if (l->word == STATS_PROMOTE)
			end_if_won(t, l);
		else if (l->word != STATS_MORE)
			end_by_word(t, l);
		end_if_late(t, from);
	}
	return 0;
}

int contest_fixed(struct contest *t, int sessions, struct err *e)
{
	while (t->kind == V_NONE && t->k < sessions) {
		if (step(t, e) != 0)
			return -1;
	}
	if (t->kind == V_NONE)
		end(t, V_PASS, "ok", "%d sessions", t->k);
	return 0;
}

/* Half the margin, as measured in simulation: it removes the winner's curse without throwing
 * away true winners (measurement notes 3.4 and 5). */
double contest_confirm_floor(const struct stats_rule *r)
{
	return log1p(r->margin / 2);
}

/* A mean that misses its mark: surely (its upper bound does not reach `needs` either), or, before
 * the last session, worth as many sessions again. */
static void end_missed(struct contest *t, const double *x, double needs, const char *code,
		       const char *what)
{
	double m = stats_mean(x, (size_t)t->k);
	if (stats_upper(x, t->k, t->rule.guard_level) < needs)
		end(t, V_REJECT, code, "%s: %.4fx the champion's speed in new processes", what, exp(m));
	else if (t->k >= CONTEST_CONFIRM_MOST)
		end(t, V_INCONCLUSIVE, "confirm.inconclusive",
		    "%s: %.4fx the champion's speed, too uncertain to confirm", what, exp(m));
	else
		t->kind = V_NONE;
}

/* Returns 0 where one does not hold. */
static int end_by_guard(struct contest *t, double x, double se, double least, const char *code, int workload,
			const char *what)
{
	if (isnan(x) || x >= least)
		return 1;
	int sure = x + 2 * se < least;
	end(t, sure ? V_REJECT : V_INCONCLUSIVE, sure ? code : "confirm.inconclusive",
	    "workload %s: %.4fx the champion's speed %s%s", t->name[workload], exp(x), what,
	    sure ? "" : ", too uncertain to confirm");
	return 0;
}

static int guarded(struct contest *t)
{
	for (int i = 0; t->guards && t->n > 0 && i < t->workloads; i++) {
		const struct session_workload *w = &t->session[0].w[i];
		if ((DEFENCE("confirm.drain") &&
		     !end_by_guard(t, w->drain, w->drain_se, log1p(-CONTEST_DRAIN), "confirm.drain", i,
				   "once what it wrote is paid for")) ||
		    (DEFENCE("confirm.sustained") &&
		     !end_by_guard(t, w->sustained, w->sustained_se, log1p(-CONTEST_SUSTAINED),
				   "confirm.sustained", i, "when run back to back")))
			return 0;
	}
	return 1;
}

void contest_confirm(struct contest *t)
{
	if (t->solo_too && alone(t) < 0) {
		end_apart(t);
		return;
	}
	if (stats_mean(t->theta, (size_t)t->k) < contest_confirm_floor(&t->rule) && DEFENCE("confirm.below_margin")) {
		end_missed(t, t->theta, stats_delta(&t->rule), "confirm.below_margin", "all workloads");
		return;
	}
	for (int i = 0; i < t->workloads; i++) {
		int public = t->weight[i] > 0;
		if (stats_mean(t->by_workload[i], (size_t)t->k) >= log1p(t->rule.guard) || !DEFENCE("confirm.workload"))
			continue;
		/* A held-out size is not named: its axes are secret. */
		end_missed(t, t->by_workload[i], 0, public ? "confirm.workload" : "confirm.held_out",
			   public ? t->name[i] : "a held-out workload");
		return;
	}
	if (!guarded(t) || end_if_lumpy(t))
		return;
	end(t, V_PASS, "ok", "%.4fx the champion's speed, confirmed in new processes%s",
	    exp(stats_mean(t->theta, (size_t)t->k)),
	    t->k > CONTEST_CONFIRM ? " (second look: slightly biased upwards)" : "");
}

double contest_ratio(const struct contest *t, double *lo, double *hi)
{
	stats_interval(t->theta, t->k, 0.95, lo, hi);
	return t->k ? exp(stats_mean(t->theta, (size_t)t->k)) : 0;
}

double contest_anchor(const struct contest *t, double *lo, double *hi)
{
	if (!t->anchor || t->k == 0)
		return 0;
	stats_interval(t->anchors, t->k, 0.95, lo, hi);
	return exp(stats_mean(t->anchors, (size_t)t->k));
}
