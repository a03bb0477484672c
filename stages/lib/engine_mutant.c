/*
 * engine_mutant.c - see engine_mutant.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_mutant.h"

#include "buf.h"
#include "engine_replay_gpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 64 };

const struct engine_mutant ENGINE_MUTANTS[] = {
	{"float32", "right, in float32", QWEN3_FP32, QWEN3_RIGHT, MIX_NONE, DUE_PASS},
	{"bfloat16", "right, rounded as transformers rounds", QWEN3_BF16, QWEN3_RIGHT, MIX_NONE, DUE_PASS},
	{"rope_pairs", "RoPE turns neighbours, not halves", QWEN3_BF16, QWEN3_ROPE_PAIRS, MIX_NONE, DUE_REFUSE},
	{"no_rope", "no RoPE", QWEN3_BF16, QWEN3_NO_ROPE, MIX_NONE, DUE_REFUSE},
	{"no_qk_norm", "queries and keys not normed", QWEN3_BF16, QWEN3_NO_QK_NORM, MIX_NONE, DUE_REFUSE},
	{"q_late", "queries one position late", QWEN3_BF16, QWEN3_Q_LATE, MIX_NONE, DUE_REFUSE},
	{"drop_newest", "a token does not see itself", QWEN3_BF16, QWEN3_DROP_NEWEST, MIX_NONE, DUE_REFUSE},
	{"window", "only the last 64 tokens are seen", QWEN3_BF16, QWEN3_WINDOW, MIX_NONE, DUE_REFUSE},
	{"gqa_map", "query heads use the wrong key head", QWEN3_BF16, QWEN3_GQA_MAP, MIX_NONE, DUE_REFUSE},
	{"skip_layer", "the last layer left out", QWEN3_BF16, QWEN3_SKIP_LAYER, MIX_NONE, DUE_REFUSE},
	{"stale_kv", "one slot of the cache not written", QWEN3_BF16, QWEN3_STALE_KV, MIX_NONE, DUE_REFUSE},
	{"vocab", "half of the vocabulary left out", QWEN3_BF16, QWEN3_VOCAB, MIX_NONE, DUE_REFUSE},
	{"swapped_rows", "each answer is another sequence's", QWEN3_BF16, QWEN3_RIGHT, MIX_ROWS, DUE_REFUSE},
	{"other_prompt", "right answers to another prompt", QWEN3_BF16, QWEN3_RIGHT, MIX_PROMPT, DUE_REFUSE},
	{"int4", "weights of 4 bits", QWEN3_BF16, QWEN3_INT4, MIX_NONE, DUE_REFUSE},
	{"fp8", "weights of 8 bits, floating", QWEN3_BF16, QWEN3_FP8, MIX_NONE, DUE_REFUSE},
	{"int8", "weights of 8 bits", QWEN3_BF16, QWEN3_INT8, MIX_NONE, DUE_COUNT},
	{"int8_float32", "weights of 8 bits, the rest in float32", QWEN3_FP32, QWEN3_INT8, MIX_NONE, DUE_COUNT},
	{NULL, NULL, QWEN3_FP32, QWEN3_RIGHT, MIX_NONE, DUE_PASS},
};

/* Greedy, a token at a time, as an engine with a cache does it. */
static int generate(const struct engine_mutant *x, const struct qwen3 *m, const struct engine_asked *a, int sequence,
		    struct err *e)
{
	const int32_t *prompt = a->ids + (size_t)sequence * (size_t)a->prompt;
	int32_t *out = a->out + (size_t)sequence * (size_t)a->steps;
	struct qwen3_seq *s;
	if (qwen3_seq_open(&s, m, x->policy, x->fault, a->prompt + a->steps, e))
		return -1;
	float *logits = xcalloc((size_t)m->c.vocab, sizeof *logits);
	int rc = qwen3_seq_append(s, prompt, a->prompt, 1, logits, e);
	for (int t = 0; t < a->steps && rc == 0; t++) {
		out[t] = qwen3_argmax(logits, m->c.vocab);
		if (out[t] < 0)
			rc = err_set(e, EX_BADINPUT, "%s: logits that are not all numbers", x->name);
		else if (t + 1 < a->steps)
			rc = qwen3_seq_append(s, out + t, 1, 1, logits, e);
	}
	free(logits);
	qwen3_seq_close(s);
	return rc;
}

/* ---- many, on threads ---- */

struct pool {
	const struct engine_mutant *x;
	const struct qwen3 *m;
	const struct engine_asked *a;
	int n;              /* batches */
	int sequences;
	atomic_int next;
	pthread_mutex_t lock;
	struct err e;       /* of the first sequence that failed, under the lock */
	int failed;
};

static void *work(void *at)
{
	struct pool *p = at;
	struct err e = {0};
	for (int k; (k = atomic_fetch_add(&p->next, 1)) < p->sequences;) {
		int i = 0;
		while (k >= p->a[i].batch)
			k -= p->a[i++].batch;
		if (generate(p->x, p->m, &p->a[i], k, &e) == 0)
			continue;
		pthread_mutex_lock(&p->lock);
		if (!p->failed++)
			p->e = e;
		pthread_mutex_unlock(&p->lock);
	}
	return NULL;
}

/* A thread that cannot be had is not missed: this one does what is left. */
static int answer(const struct engine_mutant *x, const struct qwen3 *m, const struct engine_asked *a, int n, struct err *e)
{
	struct pool p = {.x = x, .m = m, .a = a, .n = n};
	pthread_t thread[THREADS];
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int started = 0, most = cpus < 1 ? 0 : cpus > THREADS ? THREADS : (int)cpus - 1;
	for (int i = 0; i < n; i++)
		p.sequences += a[i].batch;
	pthread_mutex_init(&p.lock, NULL);
	while (started < most && started + 1 < p.sequences && pthread_create(&thread[started], NULL, work, &p) == 0)
		started++;
	work(&p);
	for (int i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	pthread_mutex_destroy(&p.lock);
	if (p.failed)
		*e = p.e;
	return p.failed ? -1 : 0;
}

/* ---- answers that go astray ---- */

static void swap_rows(const struct engine_asked *a)
{
	const size_t row = (size_t)a->steps * sizeof *a->out, rest = row * (size_t)(a->batch - 1);
	int32_t *first = xcalloc(1, row);
	memcpy(first, a->out, row);
	memmove(a->out, a->out + a->steps, rest);
	memcpy((char *)a->out + rest, first, row);
	free(first);
}

int engine_mutant_answer(const struct engine_mutant *x, const struct engine_model *m, const struct engine_asked *a,
			 const struct engine_asked *other, int n, struct err *e)
{
	const struct engine_asked *to = x->mix == MIX_PROMPT ? other : a;
	if (m->gpu ? engine_gpu_answer(m, x->policy, x->fault, to, n, e) : answer(x, &m->model, to, n, e))
		return -1;
	for (int i = 0; i < n; i++) {
		if (x->mix == MIX_ROWS)
			swap_rows(&a[i]);
		if (x->mix == MIX_PROMPT)
			memcpy(a[i].out, other[i].out, (size_t)a[i].batch * (size_t)a[i].steps * sizeof *a[i].out);
	}
	return 0;
}

int engine_mutant_applies(const struct engine_mutant *x, const struct engine_asked *a, int n)
{
	int longest = 0, widest = 0;
	for (int i = 0; i < n; i++) {
		longest = a[i].prompt + a[i].steps > longest ? a[i].prompt + a[i].steps : longest;
		widest = a[i].batch > widest ? a[i].batch : widest;
	}
	return x->mix == MIX_ROWS ? widest > 1 : x->fault == QWEN3_WINDOW ? longest > 64 + 1 : 1;
}
