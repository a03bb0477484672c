/*
 * recheck_engine.h - the gates of an engine problem, recomputed from the line of each batch (*.engine.jsonl).
 *
 * A line must be that of the sample with its number in the raw file. Memory is taken as it is recorded: no sample holds it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_RECHECK_ENGINE_H
#define TS_RECHECK_ENGINE_H

#include "buf.h"
#include "recheck_math.h"
#include "recheck_plan.h"
#include "recheck_say.h"

#include <stdlib.h>
#include <string.h>

/* Of sample i, s; tpot NAN for a single step. */
struct batch {
	double total, ttft, tpot;
};
static struct batch *batch;

static void engine_line(size_t i, const char *text, size_t len)
{
	struct err e;
	cJSON *j = json_parse(text, len, &JSON_OURS, "a line of batches", &e);
	const cJSON *stamp = j ? json_arr(j, "stamp_ns", "a line of batches", &e) : NULL;
	const int steps = stamp ? cJSON_GetArraySize(stamp) : 0;
	if (steps < 1)
		die(EX_BADINPUT, "line %zu of the batches has no steps", i + 1);
	const double first = cJSON_GetArrayItem(stamp, 0)->valuedouble, last = cJSON_GetArrayItem(stamp, steps - 1)->valuedouble;
	const struct sample *s = &all[i];
	batch[i] = (struct batch){last * 1e-9, first * 1e-9, steps > 1 ? (last - first) * 1e-9 / (steps - 1) : NAN};
	expect(same((double)s->ticks, last) && json_get_num(j, "session", -1) == s->session &&
		       json_get_num(j, "workload", -1) == s->workload && json_get_num(j, "arm", -1) == s->arm &&
		       json_get_num(j, "phase", -1) == s->phase,
	       "line %zu of the batches is not that of its sample", i + 1);
	cJSON_Delete(j);
}

static void engine_load(const struct buf *lines)
{
	const char *p = buf_str(lines), *end = p + lines->len;
	size_t n = 0;
	batch = xcalloc(count + 1, sizeof *batch);
	for (const char *nl; p < end && (nl = memchr(p, '\n', (size_t)(end - p))) && n < count; p = nl + 1)
		engine_line(n++, p, (size_t)(nl - p));
	if (n != count || p != end)
		die(EX_BADINPUT, "the batches are not as many as the samples");
}

/* Values of the samples of an arm in a phase; session -1: of all from `from` on, n of them. what: 0 ttft, 1 tpot, 2 total. */
static int engine_pick(int session, int from, int n, int w, unsigned arm, unsigned phase, int what, double *x)
{
	int k = 0;
	for (size_t i = 0; i < count && k < MAXC; i++) {
		const struct sample *s = &all[i];
		const int at = (int)s->session;
		if ((int)s->workload == w && s->arm == arm && s->phase == phase &&
		    (session < 0 ? at >= from && at < from + n : at == session))
			x[k++] = what == 0 ? batch[i].ttft : what == 1 ? batch[i].tpot : batch[i].total;
	}
	return k;
}

/* "reject", "inconclusive", or NULL when the candidate is not beyond `limit` times the other. */
static const char *engine_times(const struct plan *p, int from, int n, int w, int what, int native, double limit)
{
	static double x[MAXC];
	const unsigned other = native && p->anchor ? 2 : 0, phase = native && p->anchor ? 3 : 2;
	double r[MAXS];
	int k = 0;
	for (int s = from; s < from + n && k < MAXS; s++) {
		int m = engine_pick(s, 0, 0, w, 1, phase, what, x);
		const double own = m ? middle(x, m) : NAN;
		m = engine_pick(s, 0, 0, w, other, phase, what, x);
		const double his = m ? middle(x, m) : NAN;
		if (own > 0 && his > 0)
			r[k++] = log(own / his);
	}
	const double m = k ? average(r, 0, k) : NAN;
	if (!(m > log(limit)))
		return NULL;
	return k > 1 && m - t_value(0.95, k - 1) * spread(r, k) / sqrt(k) > log(limit) ? "reject" : "inconclusive";
}

/* In parts of each session's median. */
static double engine_spread(int from, int n, int w, unsigned arm)
{
	static double x[MAXC], part[MAXC];
	int total = 0;
	for (int s = from; s < from + n; s++) {
		int k = engine_pick(s, 0, 0, w, arm, 2, 2, part);
		if (k > MAXC - total)
			k = MAXC - total;
		for (int i = 0; i < k; i++)
			x[total + i] = part[i];
		const double m = k ? middle(part, k) : NAN;
		for (int i = 0; i < k; i++)
			x[total++] /= m;
	}
	if (total == 0)
		return NAN;
	order(x, total);
	return x[(int)ceil(0.9 * total) - 1] - x[(int)ceil(0.1 * total) - 1];
}

/* Below what the machine can do? */
static int engine_impossible(const cJSON *gates, int from, int n, int w)
{
	static double x[MAXC];
	const cJSON *least = cJSON_GetArrayItem(json_get(gates, "floor_s"), w);
	const int k = cJSON_IsNumber(least) ? engine_pick(-1, from, n, w, 1, 2, 2, x) : 0;
	return k > 0 && middle(x, k) * 1.05 < least->valuedouble;
}

/* The verdict of a contest that passed. */
static const char *engine_gated(const struct plan *p, const cJSON *contest, const cJSON *gates, const cJSON *engine)
{
	const int from = (int)json_get_num(contest, "first_session", 0), n = cJSON_GetArraySize(json_get(contest, "sessions"));
	const double native = number(gates, "native"), champion = number(gates, "champion"), most = number(gates, "spread");
	const double memory = number(gates, "memory_bytes");
	if (memory > 0 && json_get_num(engine, "memory_bytes", 0) > memory)
		return "reject";
	for (int w = 0; w < p->nw; w++) {
		if (engine_impossible(gates, from, n, w))
			return "inconclusive";
		if (!(p->weight[w] > 0))
			continue;
		for (int i = 0; i < 4; i++) {
			const char *word = engine_times(p, from, n, w, i / 2, i % 2, i % 2 ? native : champion);
			if (word)
				return word;
		}
		if (engine_spread(from, n, w, 1) > most)
			return engine_spread(from, n, w, 0) > most ? "invalid" : "reject";
	}
	return "pass";
}

#endif
