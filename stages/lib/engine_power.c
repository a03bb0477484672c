/*
 * engine_power.c - see engine_power.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_power.h"

#include "buf.h"
#include "stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- how many ids ---- */

/*
 * The error of a mean over clusters (here: sequences), Kish, Survey Sampling (1965), 5.4: with S_c the sum of deviations in
 * cluster c of C, and N ids, var(mean) = C / (C - 1) * sum S_c^2 / N^2. Given as the sd of one id of a plain sample with
 * that error; never less than the sd of the ids themselves.
 */
struct engine_spread engine_spread_of(const struct engine_regrets *r, const struct engine_asked *a, int n)
{
	struct engine_spread s = {.tokens = r->n};
	double squares = 0, clusters = 0;
	size_t at = 0;
	int count = 0;
	for (size_t i = 0; i < r->n; i++)
		s.mean += r->regret[i] / (double)r->n;
	for (int i = 0; i < n; i++)
		for (int b = 0; b < a[i].batch; b++, count++) {
			double sum = 0;
			for (int t = 0; t < a[i].steps && at < r->n; t++, at++) {
				const double d = r->regret[at] - s.mean;
				sum += d;
				squares += d * d;
			}
			clusters += sum * sum;
		}
	if (count > 1)
		clusters *= count / (count - 1.0);
	s.sd = r->n > 1 ? sqrt(fmax(squares, clusters) / ((double)r->n - 1)) : NAN;
	return s;
}

/*
 * One-sided test of a mean, NIST/SEMATECH e-Handbook of Statistical Methods, 7.2.2.2 (sample sizes required):
 * n = (z_a + z_b)^2 sd^2 / d^2; z_a = z_b, of 99 %. What is tested is the difference of two means of n ids each, as
 * the honest one is measured on the audit's prompts as well: sd^2 is the sum of both variances.
 */
size_t engine_needed(const struct engine_spread *bad, const struct engine_spread *good)
{
	const double d = bad->mean - good->mean, z = 2 * stats_normal_quantile(0.99);
	if (!(d > 0) || !(bad->sd >= 0) || !(good->sd >= 0))
		return 0;
	return (size_t)fmin(1e15, ceil(z * z * (bad->sd * bad->sd + good->sd * good->sd) / (d * d)) + 1);
}

/* ---- prompts ---- */

struct sets {
	int n;
	struct engine_asked *a;
};

static struct sets sets_make(const struct engine_model *m, const struct engine_workload *w, int n, int draws,
			     const char *label, const uint8_t key[32])
{
	struct sets s = {.n = n * draws, .a = xcalloc((size_t)n * (size_t)draws, sizeof *s.a)};
	char text[128];
	for (int i = 0; i < s.n; i++) {
		struct engine_asked *a = &s.a[i];
		const struct engine_workload *of = &w[i % n];
		*a = (struct engine_asked){.batch = of->batch, .prompt = of->prompt, .steps = of->steps};
		a->ids = xcalloc((size_t)a->batch * (size_t)a->prompt, sizeof *a->ids);
		a->out = xcalloc((size_t)a->batch * (size_t)a->steps, sizeof *a->out);
		snprintf(text, sizeof text, "check/%s/%.64s/%d", label, of->name, i / n);
		engine_replay_prompts(key, text, m->model.c.vocab, a);
	}
	return s;
}

static void sets_free(struct sets *s)
{
	for (int i = 0; i < s->n; i++) {
		free(s->a[i].ids);
		free(s->a[i].out);
	}
	free(s->a);
}

/* ---- rows ---- */

static int regrets_of(const struct engine_mutant *x, const struct engine_model *m, const struct sets *s,
		      const struct sets *other, struct engine_regrets *r, struct err *e)
{
	*r = (struct engine_regrets){0};
	if (engine_mutant_answer(x, m, s->a, other ? other->a : s->a, s->n, e) == 0 &&
	    engine_replay(m, s->a, s->n, r, e) == 0)
		return 0;
	engine_regrets_free(r);
	return -1;
}

static int judge(const struct engine_model *m, const struct sets *s, const struct sets *other, const struct engine_power *p,
		 struct engine_power_row *row, struct err *e)
{
	struct engine_regrets r;
	if (!engine_mutant_applies(row->x, s->a, s->n)) {
		row->ok = 1;
		return 0;
	}
	if (regrets_of(row->x, m, s, other, &r, e))
		return -1;
	engine_figures(&r, &row->f);
	row->word = engine_judge(&row->f, &p->gates);
	row->ok = row->x->due == DUE_COUNT || (row->x->due == DUE_PASS) == !strcmp(row->word, "ok");
	engine_regrets_free(&r);
	return 0;
}

static int count(const struct engine_model *m, const struct sets *sample, struct engine_power *p, struct engine_power_row *row,
		 struct err *e)
{
	static const struct engine_mutant honest = {"bfloat16", "", QWEN3_BF16, QWEN3_RIGHT, MIX_NONE, DUE_PASS};
	struct engine_regrets r;
	if (p->honest.tokens == 0) {
		if (regrets_of(&honest, m, sample, NULL, &r, e))
			return -1;
		p->honest = engine_spread_of(&r, sample->a, sample->n);
		engine_regrets_free(&r);
	}
	if (regrets_of(row->x, m, sample, NULL, &r, e))
		return -1;
	row->spread = engine_spread_of(&r, sample->a, sample->n);
	row->needed = engine_needed(&row->spread, &p->honest);
	row->ok = row->needed > 0 && row->needed <= ENGINE_AUDIT;
	engine_regrets_free(&r);
	return 0;
}

int engine_power(const struct engine_model *m, const struct engine_workload *w, int n, const uint8_t key[32], int sample,
		 void (*done)(void *ctx, const struct engine_power *p, const struct engine_power_row *row), void *ctx,
		 struct engine_power *p, struct err *e)
{
	struct engine_honest h;
	int tokens = 0;
	memset(p, 0, sizeof *p);
	for (int i = 0; i < n; i++)
		tokens += w[i].batch * w[i].steps;
	struct sets s = sets_make(m, w, n, 1, "asked", key), other = sets_make(m, w, n, 1, "other", key),
		    many = sets_make(m, w, n, (sample + tokens - 1) / tokens, "sample", key);
	int rc = engine_honest(m, s.a, s.n, &h, e);
	p->gates = h.gates;
	for (const struct engine_mutant *x = ENGINE_MUTANTS; rc == 0 && x->name && p->n < ENGINE_POWER_ROWS; x++) {
		struct engine_power_row *row = &p->row[p->n++];
		row->x = x;
		rc = judge(m, &s, &other, p, row, e);
		if (rc == 0 && x->due == DUE_COUNT)
			rc = count(m, &many, p, row, e);
		p->bad += rc == 0 && !row->ok;
		if (rc == 0 && done)
			done(ctx, p, row);
	}
	sets_free(&s);
	sets_free(&other);
	sets_free(&many);
	return rc;
}
