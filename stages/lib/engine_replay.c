/*
 * engine_replay.c - see engine_replay.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_replay.h"

#include "buf.h"
#include "engine_replay_gpu.h"
#include "qwen3_ref.h"
#include "rng.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 64 };

void engine_replay_prompts(const uint8_t key[32], const char *label, int vocab, struct engine_asked *a)
{
	unsigned char *used = xcalloc((size_t)vocab, 1);
	struct rng r;
	rng_open(&r, key, label);
	for (int b = 0; b < a->batch; b++) {
		int32_t *ids = a->ids + (size_t)b * (size_t)a->prompt;
		do
			ids[0] = (int32_t)rng_below(&r, (uint64_t)vocab);
		while (used[ids[0]] && b < vocab);
		used[ids[0]] = 1;
		for (int i = 1; i < a->prompt; i++)
			ids[i] = (int32_t)rng_below(&r, (uint64_t)vocab);
	}
	rng_close(&r);
	free(used);
}

/* ---- one sequence ---- */

/* Teacher-forced: logits [n, vocab] before each of the last n of ids[len + 1]. */
static int forced(const struct qwen3 *m, const int32_t *ids, int len, int n, float *logits, struct err *e)
{
	struct qwen3_seq *s;
	if (qwen3_seq_open(&s, m, QWEN3_FP32, QWEN3_RIGHT, len, e))
		return -1;
	int rc = qwen3_seq_append(s, ids, len, n, logits, e);
	qwen3_seq_close(s);
	return rc;
}

static int replay(const struct qwen3 *m, const int32_t *prompt, int len, const int32_t *out, int steps,
		  struct engine_regrets *r, struct err *e)
{
	int32_t *ids = xcalloc((size_t)len + (size_t)steps, sizeof *ids);
	float *x = xcalloc((size_t)steps * (size_t)m->c.vocab, sizeof *x);
	memcpy(ids, prompt, (size_t)len * sizeof *ids);
	memcpy(ids + len, out, (size_t)steps * sizeof *ids);
	int rc = forced(m, ids, len + steps - 1, steps, x, e);
	if (rc == 0)
		rc = engine_regrets_add(r, x, m->c.vocab, out, steps, e);
	free(ids);
	free(x);
	return rc;
}

/* Greedy, a token at a time: the path of an engine with a cache, not that of the replay. */
static int generate(const struct qwen3 *m, enum qwen3_policy p, const int32_t *prompt, int len, int steps, int32_t *out,
		    struct err *e)
{
	struct qwen3_seq *s;
	float *x = xcalloc((size_t)m->c.vocab, sizeof *x);
	int rc = qwen3_seq_open(&s, m, p, QWEN3_RIGHT, len + steps, e);
	if (rc) {
		free(x);
		return -1;
	}
	rc = qwen3_seq_append(s, prompt, len, 1, x, e);
	for (int t = 0; t < steps && rc == 0; t++) {
		out[t] = qwen3_argmax(x, m->c.vocab);
		if (out[t] < 0)
			rc = err_set(e, EX_BADINPUT, "the model's own logits are not all numbers");
		else if (t + 1 < steps)
			rc = qwen3_seq_append(s, out + t, 1, 1, x, e);
	}
	qwen3_seq_close(s);
	free(x);
	return rc;
}

int engine_best(const struct engine_model *m, const struct engine_asked *a, int sequence, int step, int32_t *id, struct err *e)
{
	const int len = a->prompt + step;
	if (m->gpu)
		return engine_gpu_best(m, a, sequence, step, id, e);
	int32_t *ids = xcalloc((size_t)len, sizeof *ids);
	float *x = xcalloc((size_t)m->model.c.vocab, sizeof *x);
	memcpy(ids, a->ids + (size_t)sequence * (size_t)a->prompt, (size_t)a->prompt * sizeof *ids);
	memcpy(ids + a->prompt, a->out + (size_t)sequence * (size_t)a->steps, (size_t)step * sizeof *ids);
	int rc = forced(&m->model, ids, len, 1, x, e);
	if (rc == 0)
		*id = qwen3_argmax(x, m->model.c.vocab);
	free(ids);
	free(x);
	return rc;
}

/* ---- many, on threads ---- */

enum way { ANSWER, OWN, ROUNDED };

struct share {
	const struct qwen3 *m;
	const struct engine_asked *a; /* of the task's sequence */
	int sequence;
	enum way way;
	struct engine_regrets r;
	struct err e;
	int rc;
};

struct pool {
	struct share *share;
	size_t n;
	atomic_size_t next;
};

static void one(struct share *s)
{
	const struct engine_asked *a = s->a;
	const int32_t *prompt = a->ids + (size_t)s->sequence * (size_t)a->prompt;
	if (s->way == ANSWER) {
		s->rc = replay(s->m, prompt, a->prompt, a->out + (size_t)s->sequence * (size_t)a->steps, a->steps, &s->r, &s->e);
		return;
	}
	int32_t *out = xcalloc((size_t)a->steps, sizeof *out);
	s->rc = generate(s->m, s->way == OWN ? QWEN3_FP32 : QWEN3_BF16, prompt, a->prompt, a->steps, out, &s->e);
	if (s->rc == 0)
		s->rc = replay(s->m, prompt, a->prompt, out, a->steps, &s->r, &s->e);
	free(out);
}

static void *work(void *at)
{
	struct pool *p = at;
	for (size_t i; (i = atomic_fetch_add(&p->next, 1)) < p->n;)
		one(&p->share[i]);
	return NULL;
}

/* A thread that cannot be had is not missed: this one does what is left. */
static void all(struct pool *p)
{
	pthread_t thread[THREADS];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	size_t started = 0, most = cpus < 1 ? 0 : cpus > THREADS ? THREADS : (size_t)cpus - 1;
	while (started < most && started + 1 < p->n && pthread_create(&thread[started], NULL, work, p) == 0)
		started++;
	work(p);
	for (size_t i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
}

static size_t shares(const struct qwen3 *m, const struct engine_asked *a, int n, enum way way, struct share *to)
{
	size_t k = 0;
	for (int i = 0; i < n; i++)
		for (int b = 0; b < a[i].batch; b++, k++)
			if (to)
				to[k] = (struct share){.m = m, .a = &a[i], .sequence = b, .way = way};
	return k;
}

/* In order, so that the sum is the same on every machine. */
static int gather(struct share *s, size_t n, struct engine_regrets *r, struct err *e)
{
	int rc = 0;
	for (size_t i = 0; i < n; i++) {
		if (rc == 0 && s[i].rc) {
			*e = s[i].e;
			rc = -1;
		}
		if (rc == 0)
			rc = engine_regrets_merge(r, &s[i].r, e);
		engine_regrets_free(&s[i].r);
	}
	return rc;
}

int engine_replay(const struct engine_model *m, const struct engine_asked *a, int n, struct engine_regrets *r, struct err *e)
{
	if (m->gpu)
		return engine_gpu_replay(m, a, n, r, e);
	struct pool p = {.n = shares(&m->model, a, n, ANSWER, NULL)};
	p.share = xcalloc(p.n, sizeof *p.share);
	shares(&m->model, a, n, ANSWER, p.share);
	all(&p);
	int rc = gather(p.share, p.n, r, e);
	free(p.share);
	return rc;
}

/* On the processor: both ways at once. */
static int honest(const struct engine_model *m, const struct engine_asked *a, int n, struct engine_regrets r[2], struct err *e)
{
	const size_t k = shares(&m->model, a, n, OWN, NULL);
	struct pool p = {.n = 2 * k};
	p.share = xcalloc(p.n, sizeof *p.share);
	shares(&m->model, a, n, OWN, p.share);
	shares(&m->model, a, n, ROUNDED, p.share + k);
	all(&p);
	struct err other;
	int own = gather(p.share, k, &r[0], e);
	int rc = gather(p.share + k, k, &r[1], own ? &other : e);
	free(p.share);
	return own || rc ? -1 : 0;
}

int engine_honest(const struct engine_model *m, const struct engine_asked *a, int n, struct engine_honest *h, struct err *e)
{
	struct engine_regrets r[2] = {{0}, {0}};
	int rc;
	if (m->gpu)
		rc = engine_gpu_honest(m, QWEN3_FP32, a, n, &r[0], e) || engine_gpu_honest(m, QWEN3_BF16, a, n, &r[1], e) ? -1 : 0;
	else
		rc = honest(m, a, n, r, e);
	*h = (struct engine_honest){0};
	engine_figures(&r[0], &h->own);
	engine_figures(&r[1], &h->rounded);
	if (rc == 0)
		rc = engine_calibrate(r, 2, &h->gates, e);
	engine_regrets_free(&r[0]);
	engine_regrets_free(&r[1]);
	return rc;
}
