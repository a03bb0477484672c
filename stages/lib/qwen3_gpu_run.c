/*
 * qwen3_gpu_run.c - what is asked of the reference on a GPU: replays, answers, logits. See qwen3_gpu.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "qwen3_gpu_part.h"

#include "buf.h"

#include <stdlib.h>
#include <string.h>

static int in_vocabulary(const struct qwen3_gpu *g, const int32_t *ids, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i] < 0 || ids[i] >= g->m->c.vocab)
			return err_set(e, EX_BADINPUT, "token %d is outside the vocabulary of %d", (int)ids[i], g->m->c.vocab);
	return 0;
}

static int fits(const struct qwen3_gpu *g, int len, struct err *e)
{
	if (len < 1 || len > g->m->c.max_positions)
		return err_set(e, EX_BADINPUT, "a sequence of %d tokens; the model has %d positions", len, g->m->c.max_positions);
	return 0;
}

static int valid(const struct qwen3_gpu *g, const struct qwen3_asked *a, int len, struct err *e)
{
	if (a->batch < 1 || a->prompt < 1 || a->steps < 1)
		return err_set(e, EX_BADINPUT, "nothing is asked: %d sequences of %d tokens, %d steps", a->batch, a->prompt, a->steps);
	return fits(g, len, e) || in_vocabulary(g, a->ids, (size_t)a->batch * (size_t)a->prompt, e) ? -1 : 0;
}

/* ---- replay ---- */

/* Of sequence b, the id at position t: the prompt's, then the answer's. */
static int32_t id_at(const struct qwen3_asked *a, const int32_t *out, int b, int t)
{
	return t < a->prompt ? a->ids[(size_t)b * (size_t)a->prompt + (size_t)t]
			     : out[(size_t)b * (size_t)a->steps + (size_t)(t - a->prompt)];
}

/* Positions [at, at + n) of the pass's sequences, the first of which is `from`. */
static int replay_chunk(struct qwen3_pass *p, const struct qwen3_asked *a, const int32_t *out, int from, int at, int n,
			struct engine_said *said, struct err *e)
{
	const int asked = at > a->prompt - 1 ? at : a->prompt - 1, last = at + n - asked, step = asked - (a->prompt - 1);
	int32_t *ids = xcalloc((size_t)p->batch * (size_t)n, sizeof *ids);
	for (int b = 0; b < p->batch; b++)
		for (int t = 0; t < n; t++)
			ids[(size_t)b * (size_t)n + (size_t)t] = id_at(a, out, from + b, at + t);
	int rc = qwen3_pass_layers(p, ids, at, n, e);
	free(ids);
	if (rc || last <= 0)
		return rc;
	const size_t l = (size_t)last;
	int32_t *token = xcalloc((size_t)p->batch * l, sizeof *token);
	struct engine_said *some = xcalloc((size_t)p->batch * l, sizeof *some);
	for (int b = 0; b < p->batch; b++)
		memcpy(token + (size_t)b * l, out + (size_t)(from + b) * (size_t)a->steps + step, l * sizeof *token);
	rc = qwen3_pass_head(p, n, last, token, some, NULL, e);
	for (int b = 0; b < p->batch && rc == 0; b++)
		memcpy(said + (size_t)(from + b) * (size_t)a->steps + step, some + (size_t)b * l, l * sizeof *some);
	free(token);
	free(some);
	return rc;
}

int qwen3_gpu_replay(struct qwen3_gpu *g, const struct qwen3_asked *a, const int32_t *out, struct engine_said *said,
		     struct err *e)
{
	const int len = a->prompt + a->steps - 1;
	struct qwen3_pass p;
	int rc = valid(g, a, len, e);
	if (rc == 0)
		rc = in_vocabulary(g, out, (size_t)a->batch * (size_t)a->steps, e);
	for (int b = 0; b < a->batch && rc == 0; b += p.batch) {
		rc = qwen3_pass_open(&p, g, QWEN3_FP32, QWEN3_RIGHT, a->batch - b, len, e);
		for (int at = 0; at < len && rc == 0; at += p.chunk)
			rc = replay_chunk(&p, a, out, b, at, len - at < p.chunk ? len - at : p.chunk, said, e);
		qwen3_pass_close(&p);
	}
	return rc;
}

/* ---- answers ---- */

/* What the pass's sequences say at a step, into out and as the next ids. */
static int take(struct qwen3_pass *p, int n, const struct qwen3_asked *a, int from, int step, int32_t *out, int32_t *next,
		struct engine_said *said, struct err *e)
{
	if (qwen3_pass_head(p, n, 1, NULL, said, NULL, e))
		return -1;
	for (int b = 0; b < p->batch; b++) {
		if (said[b].id < 0)
			return err_set(e, EX_BADINPUT, "the model's own logits are not all numbers");
		next[b] = out[(size_t)(from + b) * (size_t)a->steps + (size_t)step] = said[b].id;
	}
	return 0;
}

static int answer_group(struct qwen3_pass *p, const struct qwen3_asked *a, int from, int32_t *out, struct err *e)
{
	const size_t batch = (size_t)p->batch;
	int32_t *ids = xcalloc(batch * (size_t)p->chunk, sizeof *ids);
	struct engine_said *said = xcalloc(batch, sizeof *said);
	int rc = 0, n = 0;
	for (int at = 0; at < a->prompt && rc == 0; at += n) {
		n = a->prompt - at < p->chunk ? a->prompt - at : p->chunk;
		for (size_t b = 0; b < batch; b++)
			memcpy(ids + b * (size_t)n, a->ids + ((size_t)from + b) * (size_t)a->prompt + at,
			       (size_t)n * sizeof *ids);
		rc = qwen3_pass_layers(p, ids, at, n, e);
	}
	for (int t = 0; t < a->steps && rc == 0; t++) {
		rc = take(p, t ? 1 : n, a, from, t, out, ids, said, e);
		if (rc == 0 && t + 1 < a->steps)
			rc = qwen3_pass_layers(p, ids, a->prompt + t, 1, e);
	}
	free(ids);
	free(said);
	return rc;
}

int qwen3_gpu_answer(struct qwen3_gpu *g, enum qwen3_policy policy, enum qwen3_fault f, const struct qwen3_asked *a, int32_t *out,
		     struct err *e)
{
	struct qwen3_pass p;
	int rc = valid(g, a, a->prompt + a->steps, e);
	for (int b = 0; b < a->batch && rc == 0; b += p.batch) {
		rc = qwen3_pass_open(&p, g, policy, f, a->batch - b, a->prompt + a->steps, e);
		if (rc == 0)
			rc = answer_group(&p, a, b, out, e);
		qwen3_pass_close(&p);
	}
	return rc;
}

/* ---- logits ---- */

int qwen3_gpu_logits(struct qwen3_gpu *g, enum qwen3_policy policy, enum qwen3_fault f, const int32_t *ids, int n, float *logits,
		     struct err *e)
{
	struct qwen3_pass p;
	if (fits(g, n, e) || in_vocabulary(g, ids, (size_t)n, e))
		return -1;
	int rc = qwen3_pass_open(&p, g, policy, f, 1, n, e);
	for (int at = 0; at < n && rc == 0; at += p.chunk) {
		const int k = n - at < p.chunk ? n - at : p.chunk;
		rc = qwen3_pass_layers(&p, ids + at, at, k, e);
		if (rc == 0)
			rc = qwen3_pass_head(&p, k, k, NULL, NULL, logits + (size_t)at * (size_t)g->m->c.vocab, e);
	}
	qwen3_pass_close(&p);
	return rc;
}
