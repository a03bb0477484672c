/*
 * engine_judge.c - see engine_judge.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_judge.h"

#include "buf.h"
#include "stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int32_t best_of(const float *x, int vocab)
{
	int32_t best = 0;
	for (int i = 0; i < vocab; i++) {
		if (!isfinite(x[i]) && !(x[i] < 0 && isinf(x[i]))) /* minus infinity is a token that is never said */
			return -1;
		if (x[i] > x[best])
			best = i;
	}
	return isfinite(x[best]) ? best : -1;
}

static int make_room(struct engine_regrets *r, int vocab, size_t n, struct err *e)
{
	if (!r->seen) {
		r->vocab = vocab;
		r->seen = xcalloc((size_t)vocab, 1);
	}
	if (r->vocab != vocab)
		return err_set(e, EX_HARNESS, "regrets of two vocabularies in one judgement");
	if (r->n + n > r->cap) {
		r->cap = 2 * r->cap + n;
		r->regret = xrealloc(r->regret, r->cap * sizeof *r->regret);
	}
	return 0;
}

void engine_said_of(const float *x, int vocab, int32_t token, struct engine_said *s)
{
	const int32_t best = best_of(x, vocab);
	*s = (struct engine_said){.id = best};
	if (best < 0)
		return;
	s->best = x[best];
	s->own = x[token < 0 ? best : token];
	for (int i = 0; i < vocab; i++)
		s->near += (double)x[best] - x[i] <= ENGINE_MARGIN_LEAST;
}

int engine_regrets_say(struct engine_regrets *r, const struct engine_said *s, int vocab, int n, struct err *e)
{
	if (make_room(r, vocab, (size_t)n, e))
		return -1;
	for (int t = 0; t < n; t++) {
		const double regret = s[t].id < 0 ? INFINITY : (double)s[t].best - s[t].own;
		if (s[t].id >= 0 && !r->seen[s[t].id]) {
			r->seen[s[t].id] = 1;
			r->distinct++;
		}
		r->near += (double)s[t].near / vocab;
		r->argmax += regret == 0;
		r->regret[r->n++] = regret;
	}
	return 0;
}

int engine_regrets_add(struct engine_regrets *r, const float *logits, int vocab, const int32_t *token, int n,
		       struct err *e)
{
	for (int i = 0; i < n; i++)
		if (token[i] < 0 || token[i] >= vocab)
			return err_set(e, EX_BADINPUT, "token %d is outside the vocabulary of %d", (int)token[i], vocab);
	struct engine_said *s = xcalloc((size_t)n, sizeof *s);
	for (int t = 0; t < n; t++)
		engine_said_of(logits + (size_t)t * (size_t)vocab, vocab, token[t], &s[t]);
	int rc = engine_regrets_say(r, s, vocab, n, e);
	free(s);
	return rc;
}

int engine_regrets_merge(struct engine_regrets *r, const struct engine_regrets *from, struct err *e)
{
	if (from->n == 0)
		return 0;
	if (make_room(r, from->vocab, from->n, e))
		return -1;
	memcpy(r->regret + r->n, from->regret, from->n * sizeof *r->regret);
	r->n += from->n;
	r->argmax += from->argmax;
	r->near += from->near;
	for (int i = 0; i < r->vocab; i++)
		if (from->seen[i] && !r->seen[i]) {
			r->seen[i] = 1;
			r->distinct++;
		}
	return 0;
}

void engine_regrets_free(struct engine_regrets *r)
{
	free(r->regret);
	free(r->seen);
	*r = (struct engine_regrets){0};
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

void engine_figures(const struct engine_regrets *r, struct engine_figures *f)
{
	*f = (struct engine_figures){.tokens = r->n};
	if (r->n == 0)
		return;
	double *x = xcalloc(r->n, sizeof *x);
	memcpy(x, r->regret, r->n * sizeof *x);
	qsort(x, r->n, sizeof *x, ascending);
	for (size_t i = 0; i < r->n; i++)
		f->mean += x[i] / (double)r->n;
	f->worst = x[r->n - 1];
	f->p99 = x[(size_t)ceil(0.99 * (double)r->n) - 1];
	f->argmax_rate = (double)r->argmax / (double)r->n;
	free(x);
}

/* Every comparison is written so that NaN fails. */
const char *engine_judge(const struct engine_figures *f, const struct engine_gates *g)
{
	if (f->tokens == 0)
		return "no_tokens";
	if (!(f->worst <= g->margin))
		return "margin";
	if (!(f->mean <= g->mean))
		return "mean_regret";
	if (!(f->p99 <= g->p99))
		return "p99_regret";
	if (!(f->argmax_rate >= g->argmax_rate))
		return "argmax_rate";
	return "ok";
}

/* Twice what the worst honest way costs, and a floor for each, so that a handful of near ties never convicts:
 * engine.md 4.3. */
static struct engine_gates gates_from(const struct engine_figures *most)
{
	return (struct engine_gates){
		.margin = fmin(ENGINE_MARGIN_MOST, fmax(ENGINE_MARGIN_LEAST, 4 * most->worst)),
		.mean = fmax(0.002, 2 * most->mean),
		.p99 = fmax(0.05, 2 * most->p99),
		.argmax_rate = fmax(0, fmin(0.98, 1 - 2 * (1 - most->argmax_rate))),
	};
}

int engine_calibrate(const struct engine_regrets *honest, size_t n, struct engine_gates *g, struct err *e)
{
	struct engine_figures most = {.argmax_rate = 1}, f;
	*g = (struct engine_gates){0};
	if (n == 0 || honest[0].n < 64)
		return err_set(e, EX_BADINPUT, "too few tokens to calibrate with: %zu", n ? honest[0].n : 0);
	for (size_t i = 0; i < n; i++) {
		engine_figures(&honest[i], &f);
		most.worst = fmax(most.worst, f.worst);
		most.mean = fmax(most.mean, f.mean);
		most.p99 = fmax(most.p99, f.p99);
		most.argmax_rate = fmin(most.argmax_rate, f.argmax_rate);
	}
	if (!(most.worst <= ENGINE_NOISE))
		return err_set(e, EX_BADINPUT, "honest ways to compute this model differ by %.2f logits, over %.2f", most.worst,
			       ENGINE_NOISE);
	const double share = honest[0].near / (double)honest[0].n, apart = (double)honest[0].distinct / (double)honest[0].n;
	/* One token is always near itself. */
	if (share - 1.0 / honest[0].vocab > 0.001 + 1.0 / honest[0].vocab)
		return err_set(e, EX_BADINPUT, "%.2f %% of the vocabulary is as good as the best: wrong tokens would pass",
			       100 * share);
	if (apart < 0.25 && honest[0].distinct < (size_t)honest[0].vocab / 4)
		return err_set(e, EX_BADINPUT, "only %zu different best tokens in %zu: an engine could guess them",
			       honest[0].distinct, honest[0].n);
	*g = gates_from(&most);
	return 0;
}

size_t engine_tokens_needed(double bad, double sd, const struct engine_gates *g)
{
	if (!(bad > g->mean) || !(sd >= 0))
		return 0;
	const double z = stats_normal_quantile(0.99) * 2;
	return (size_t)ceil(pow(z * sd / (bad - g->mean), 2)) + 1;
}
