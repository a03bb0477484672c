/*
 * engine_gates.c - see engine_gates.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_gates.h"

#include "defence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const WHAT[ENGINE_GATED] = {"ttft", "tpot"};

static double seconds(const struct engine_session *s, const struct engine_sample *m, int what)
{
	const int steps = s->task[m->workload].steps;
	if (what == ENGINE_TTFT)
		return (double)m->ttft * 1e-9;
	if (what == ENGINE_TPOT)
		return steps > 1 ? (double)(m->total - m->ttft) * 1e-9 / (steps - 1) : NAN;
	return (double)m->total * 1e-9;
}

/* The samples of an arm in a phase, of one session or (-1) of all of the range. x has room for all. */
static size_t pick(const struct engine_range *g, int session, int workload, enum raw_arm arm, enum raw_phase phase, int what,
		   double *x)
{
	size_t n = 0;
	for (int i = 0; i < g->s->samples; i++) {
		const struct engine_sample *m = &g->s->sample[i];
		if (m->workload == workload && m->arm == arm && m->phase == phase &&
		    (session < 0 ? m->session >= g->first && m->session < g->first + g->n : m->session == session))
			x[n++] = seconds(g->s, m, what);
	}
	return n;
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* x: room for all samples. */
static double spread(const struct engine_range *g, int workload, enum raw_arm arm, enum raw_phase phase, double *x)
{
	size_t n = 0;
	for (int i = g->first; i < g->first + g->n; i++) {
		const size_t k = pick(g, i, workload, arm, phase, ENGINE_GATED, x + n);
		const double middle = k ? stats_median(x + n, k) : NAN;
		for (size_t j = n; j < n + k; j++)
			x[j] /= middle;
		n += k;
	}
	if (n == 0)
		return NAN;
	qsort(x, n, sizeof *x, ascending);
	return x[(size_t)ceil(0.9 * (double)n) - 1] - x[(size_t)ceil(0.1 * (double)n) - 1];
}

/* Where the times of an arm are: the baseline runs in the anchor's pairs. */
static enum raw_phase phase_of(const struct engine_range *g, enum raw_arm *arm)
{
	if (*arm == RAW_BASELINE && g->baseline)
		return RAW_ANCHOR;
	if (*arm == RAW_BASELINE)
		*arm = RAW_CHAMPION;
	return RAW_MEASURE;
}

struct engine_times engine_times_of(const struct engine_range *g, int workload, enum raw_arm arm)
{
	struct engine_times t = {.total = NAN, .ttft = NAN, .tpot = NAN, .spread = NAN};
	const enum raw_phase phase = phase_of(g, &arm);
	double *x = xcalloc((size_t)g->s->samples + 1, sizeof *x);
	const size_t n = pick(g, -1, workload, arm, phase, ENGINE_GATED, x);
	t.n = (int)n;
	if (n > 0) {
		t.total = stats_median(x, n);
		pick(g, -1, workload, arm, phase, ENGINE_TTFT, x);
		t.ttft = stats_median(x, n);
		pick(g, -1, workload, arm, phase, ENGINE_TPOT, x);
		t.tpot = g->s->task[workload].steps > 1 ? stats_median(x, n) : NAN;
		t.spread = spread(g, workload, arm, phase, x);
	}
	free(x);
	return t;
}

struct engine_ratio engine_ratio_of(const struct engine_range *g, int workload, int what, enum raw_arm other, double limit)
{
	const enum raw_phase phase = phase_of(g, &other);
	struct engine_ratio q = {NAN, NAN, 1, 0};
	double r[CONTEST_SESSIONS], *x = xcalloc((size_t)g->s->samples + 1, sizeof *x);
	int k = 0;
	for (int i = g->first; i < g->first + g->n && k < CONTEST_SESSIONS; i++) {
		size_t n = pick(g, i, workload, RAW_CANDIDATE, phase, what, x);
		const double own = n ? stats_median(x, n) : NAN;
		n = pick(g, i, workload, other, phase, what, x);
		const double his = n ? stats_median(x, n) : NAN;
		if (own > 0 && his > 0) /* never with NAN */
			r[k++] = log(own / his);
	}
	free(x);
	if (k == 0)
		return q;
	const double mean = stats_mean(r, (size_t)k), low = stats_lower(r, k, 0.95);
	q.ratio = exp(mean);
	q.lo95 = exp(low);
	q.held = mean <= log(limit);
	q.broken = !q.held && low > log(limit);
	return q;
}

double engine_score(const struct engine_range *g, enum raw_arm arm)
{
	double sum = 0;
	int n = 0;
	for (int i = 0; i < g->s->tasks; i++) {
		const struct engine_task *t = &g->s->task[i];
		if (!(t->weight > 0))
			continue;
		sum += log((double)t->batch * t->steps / engine_times_of(g, i, arm).total);
		n++;
	}
	return n ? exp(sum / n) : NAN;
}

/* ---- the decision ---- */

/* -1: no more to say, 0: it holds. */
static int gate_times(const struct engine_range *g, const struct engine_limits *l, int i, struct contest *t)
{
	static const char *const CODE[ENGINE_GATED][2] = {{"bench.ttft", "confirm.ttft"}, {"bench.tpot", "confirm.tpot"}};
	static const char *const NAME[ENGINE_GATED] = {"time to the first token", "time per token"};
	for (int what = 0; what < ENGINE_GATED; what++)
		for (int other = 0; other < 2; other++) {
			const double limit = other ? l->native : l->champion;
			struct engine_ratio q = engine_ratio_of(g, i, what, other ? RAW_BASELINE : RAW_CHAMPION, limit);
			if (q.held || !DEFENCE(what == ENGINE_TTFT ? "bench.ttft" : "bench.tpot"))
				continue;
			t->kind = q.broken ? V_REJECT : V_INCONCLUSIVE;
			t->code = q.broken ? CODE[what][t->confirming]
				: t->confirming ? "confirm.inconclusive" : "bench.inconclusive";
			snprintf(t->message, sizeof t->message, "workload %s: %s is %.4fx that of the %s, over %.4gx%s",
				 t->name[i], NAME[what], q.ratio, other ? "native engine" : "champion", limit,
				 q.broken ? "" : ", not for certain");
			return -1;
		}
	return 0;
}

static int gate_spread(const struct engine_range *g, const struct engine_limits *l, int i, struct contest *t)
{
	const double own = engine_times_of(g, i, RAW_CANDIDATE).spread, his = engine_times_of(g, i, RAW_CHAMPION).spread;
	if (!(own > l->spread) || !DEFENCE("bench.spread"))
		return 0;
	const int machine = his > l->spread;
	t->kind = machine ? V_INVALID : V_REJECT;
	t->code = machine ? t->confirming ? "confirm.invalid_env" : "bench.invalid_env"
			  : t->confirming ? "confirm.spread" : "bench.spread";
	snprintf(t->message, sizeof t->message, "workload %s: times spread over %.0f %% of their session's median%s", t->name[i], 100 * own,
		 machine ? ", the champion's as well" : "");
	return -1;
}

static int gate_floor(const struct engine_range *g, const struct engine_limits *l, int i, struct contest *t)
{
	const double own = engine_times_of(g, i, RAW_CANDIDATE).total;
	const struct engine_floor *f = l->floor ? &l->floor[i] : NULL;
	if (!f || !f->binds || !(own * ENGINE_FLOOR_SLACK < f->total_s))
		return 0;
	t->kind = V_INCONCLUSIVE;
	t->code = t->confirming ? "confirm.engine_floor" : "bench.engine_floor";
	snprintf(t->message, sizeof t->message, "workload %s: %.4g ms is less than the %.4g ms that this GPU needs to read the weights and to multiply",
		 t->name[i], own * 1e3, f->total_s * 1e3);
	return -1;
}

static uint64_t most_memory(const struct engine_session *s, const struct engine_limits *l, enum raw_arm arm)
{
	uint64_t most = 0;
	for (int i = 0; i < s->tasks; i++) {
		const uint64_t is = l->gpu ? (uint64_t)s->gpu_bytes[arm][i] : s->max_rss[arm][i];
		most = is > most ? is : most;
	}
	return most;
}

void engine_gates(const struct engine_range *g, const struct engine_limits *l, struct contest *t)
{
	const uint64_t memory = most_memory(g->s, l, RAW_CANDIDATE);
	if (t->kind != V_PASS)
		return;
	if (l->memory > 0 && memory > l->memory && DEFENCE("bench.memory")) {
		t->kind = V_REJECT;
		t->code = t->confirming ? "confirm.memory" : "bench.memory";
		snprintf(t->message, sizeof t->message, "the engine holds %.0f MiB%s, over %.0f", (double)memory / 1048576,
			 l->gpu ? " of the GPU's memory" : "", (double)l->memory / 1048576);
		return;
	}
	for (int i = 0; i < t->workloads; i++)
		if (gate_floor(g, l, i, t) != 0 || (t->weight[i] > 0 && (gate_times(g, l, i, t) != 0 || gate_spread(g, l, i, t) != 0)))
			return;
}

/* ---- as JSON ---- */

static void ratio_write(const struct engine_range *g, int i, int what, enum raw_arm other, double limit, struct jsonw *w)
{
	char key[32];
	const struct engine_ratio q = engine_ratio_of(g, i, what, other, limit);
	snprintf(key, sizeof key, "%s_to_%s", WHAT[what], other == RAW_CHAMPION ? "champion" : "native");
	jw_obj(w, key);
	jw_num(w, "ratio", q.ratio);
	jw_num(w, "lo95", q.lo95);
	jw_bool(w, "held", q.held);
	jw_end(w);
}

static void floor_write(const struct engine_limits *l, int i, struct jsonw *w)
{
	const struct engine_floor *f = l->floor ? &l->floor[i] : NULL;
	if (!f || !(f->total_s > 0))
		return;
	jw_obj(w, "floor");
	jw_num(w, "total_s", f->total_s);
	jw_num(w, "ttft_s", f->prefill_s);
	jw_num(w, "tpot_s", f->step_s);
	jw_bool(w, "binds", f->binds);
	jw_end(w);
}

/* How near to the floor, 1 at it. */
static void share_write(const struct engine_limits *l, int i, const struct engine_times *x, struct jsonw *w)
{
	const struct engine_floor *f = l->floor ? &l->floor[i] : NULL;
	if (!f || !(f->total_s > 0))
		return;
	jw_num(w, "of_floor", f->total_s / x->total);
	jw_num(w, "ttft_of_floor", f->prefill_s / x->ttft);
	jw_num(w, "tpot_of_floor", f->step_s > 0 ? f->step_s / x->tpot : NAN);
}

static const char *const ROLE[RAW_ARMS] = {"champion", "candidate", "native"};

static void workload_write(const struct engine_range *g, const struct engine_limits *l, int i, struct jsonw *w)
{
	const struct engine_task *t = &g->s->task[i];
	jw_obj(w, NULL);
	jw_str(w, "name", t->name);
	jw_int(w, "batch", t->batch);
	jw_int(w, "prompt", t->prompt);
	jw_int(w, "steps", t->steps);
	floor_write(l, i, w);
	for (int a = 0; a < RAW_ARMS; a++) {
		const struct engine_times x = engine_times_of(g, i, (enum raw_arm)a);
		if (x.n == 0)
			continue;
		jw_obj(w, ROLE[a]);
		jw_int(w, "batches", x.n);
		jw_num(w, "total_s", x.total);
		jw_num(w, "ttft_s", x.ttft);
		jw_num(w, "tpot_s", x.tpot);
		jw_num(w, "tokens_per_s", (double)t->batch * t->steps / x.total);
		share_write(l, i, &x, w);
		jw_num(w, "spread", x.spread);
		const int from = a == RAW_BASELINE && !g->baseline ? RAW_CHAMPION : a;
		jw_int(w, "max_rss", (int64_t)g->s->max_rss[from][i]);
		if (l->gpu)
			jw_int(w, "gpu_bytes", g->s->gpu_bytes[from][i]);
		jw_end(w);
	}
	for (int what = 0; what < ENGINE_GATED && t->weight > 0; what++) {
		ratio_write(g, i, what, RAW_CHAMPION, l->champion, w);
		ratio_write(g, i, what, RAW_BASELINE, l->native, w);
	}
	jw_end(w);
}

void engine_gates_write(const struct engine_range *g, const struct engine_limits *l, struct jsonw *w, const char *key)
{
	jw_obj(w, key);
	jw_obj(w, "score");
	for (int a = 0; a < RAW_ARMS; a++)
		jw_num(w, ROLE[a], engine_score(g, (enum raw_arm)a));
	jw_end(w);
	jw_obj(w, "limits");
	jw_num(w, "native", l->native);
	jw_num(w, "champion", l->champion);
	jw_num(w, "spread", l->spread);
	jw_int(w, "memory_bytes", (int64_t)l->memory);
	jw_end(w);
	jw_str(w, "ceilings", l->ceilings ? l->ceilings : "none");
	const int64_t memory = (int64_t)most_memory(g->s, l, RAW_CANDIDATE);
	if (memory > 0)
		jw_int(w, "memory_bytes", memory);
	else
		jw_null(w, "memory_bytes"); /* it could not be seen */
	jw_arr(w, "workloads");
	for (int i = 0; i < g->s->tasks; i++)
		workload_write(g, l, i, w);
	jw_end(w);
	jw_end(w);
}
