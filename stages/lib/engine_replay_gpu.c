/*
 * engine_replay_gpu.c - see engine_replay_gpu.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_replay_gpu.h"

#include "buf.h"
#include "qwen3_gpu.h"

#include <stdlib.h>

static int replay(const struct engine_model *m, const struct engine_asked *a, const int32_t *out, struct engine_regrets *r,
		  struct err *e)
{
	const struct qwen3_asked q = {a->batch, a->prompt, a->steps, a->ids};
	const size_t n = (size_t)a->batch * (size_t)a->steps;
	struct engine_said *said = xcalloc(n, sizeof *said);
	int rc = qwen3_gpu_replay(m->gpu, &q, out, said, e);
	if (rc == 0)
		rc = engine_regrets_say(r, said, m->model.c.vocab, (int)n, e);
	free(said);
	return rc;
}

int engine_gpu_replay(const struct engine_model *m, const struct engine_asked *a, int n, struct engine_regrets *r, struct err *e)
{
	int rc = 0;
	for (int i = 0; i < n && rc == 0; i++)
		rc = replay(m, &a[i], a[i].out, r, e);
	return rc;
}

int engine_gpu_answer(const struct engine_model *m, enum qwen3_policy p, enum qwen3_fault f, const struct engine_asked *a, int n,
		      struct err *e)
{
	int rc = 0;
	for (int i = 0; i < n && rc == 0; i++) {
		const struct qwen3_asked q = {a[i].batch, a[i].prompt, a[i].steps, a[i].ids};
		rc = qwen3_gpu_answer(m->gpu, p, f, &q, a[i].out, e);
	}
	return rc;
}

int engine_gpu_honest(const struct engine_model *m, enum qwen3_policy p, const struct engine_asked *a, int n,
		      struct engine_regrets *r, struct err *e)
{
	int rc = 0;
	for (int i = 0; i < n && rc == 0; i++) {
		const struct qwen3_asked q = {a[i].batch, a[i].prompt, a[i].steps, a[i].ids};
		int32_t *out = xcalloc((size_t)a[i].batch * (size_t)a[i].steps, sizeof *out);
		rc = qwen3_gpu_answer(m->gpu, p, QWEN3_RIGHT, &q, out, e);
		if (rc == 0)
			rc = replay(m, &a[i], out, r, e);
		free(out);
	}
	return rc;
}

int engine_gpu_best(const struct engine_model *m, const struct engine_asked *a, int sequence, int step, int32_t *id,
		    struct err *e)
{
	const int32_t *out = a->out + (size_t)sequence * (size_t)a->steps;
	const struct qwen3_asked q = {1, a->prompt, step + 1, a->ids + (size_t)sequence * (size_t)a->prompt};
	struct engine_said *said = xcalloc((size_t)step + 1, sizeof *said);
	int32_t *own = xcalloc((size_t)step + 1, sizeof *own); /* its own last id is not looked at: it may be any */
	for (int t = 0; t < step; t++)
		own[t] = out[t];
	int rc = qwen3_gpu_replay(m->gpu, &q, own, said, e);
	if (rc == 0)
		*id = said[step].id;
	free(own);
	free(said);
	return rc;
}
