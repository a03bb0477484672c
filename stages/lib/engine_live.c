/*
 * engine_live.c - see engine_live.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_live.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { DRAWS = 3 };

/* ---- engines ---- */

static int io_open(void *ctx, enum raw_arm arm, enum engine_outcome *o, struct err *e)
{
	struct engine_live *l = ctx;
	const struct engine_start q = {.program = l->program[arm], .model_dir = l->model->dir, .load_s = l->load_s,
				       .memory = l->memory, .gpu = l->gpu, .vocab = l->model->model.c.vocab};
	if (engine_open(&q, &l->child[arm], o, e) != 0)
		return -1;
	if (l->layered)
		confine_common(l->isolation, l->child[arm].isolation, l->isolation);
	else
		snprintf(l->isolation, sizeof l->isolation, "%s", l->child[arm].isolation);
	l->layered = 1;
	return 0;
}

static int io_ask(void *ctx, enum raw_arm arm, struct engine_batch *q, enum engine_outcome *o, struct err *e)
{
	return engine_ask(&((struct engine_live *)ctx)->child[arm], q, o, e);
}

static int io_close(void *ctx, enum raw_arm arm, enum engine_outcome *o, struct engine_end *end, struct err *e)
{
	return engine_close(&((struct engine_live *)ctx)->child[arm], o, end, e);
}

static int io_disturbed(void *ctx, int session, char why[128], struct err *e)
{
	struct engine_live *l = ctx;
	(void)session;
	if (!l->gpu)
		return 0;
	struct gpu_state *g = &l->state[l->states < ENGINE_STATES ? l->states++ : ENGINE_STATES - 1];
	if (gpu_state(l->gpu, g, e) != 0)
		return -1;
	if (g->foreign <= 0) /* -1: cannot be told here, as the record says */
		return 0;
	snprintf(why, 128, "%d other compute processes on the GPU (pid %d)", g->foreign, g->foreign_pid);
	return 1;
}

const struct engine_io ENGINE_LIVE_IO = {io_open, io_ask, io_close, io_disturbed};

/* ---- tokens ---- */

static int judge_batch(void *ctx, const struct engine_task *t, const int32_t *prompt, const int32_t *token, const char **code,
		       struct err *e)
{
	struct engine_live *l = ctx;
	struct engine_regrets own = {0};
	struct engine_figures f;
	/* What needs many tokens is asked of many: judge_all. */
	const struct engine_gates one = {l->honest.gates.margin, INFINITY, INFINITY, 0};
	/* Neither is written to. */
	const struct engine_asked a = {t->batch, t->prompt, t->steps, (int32_t *)(uintptr_t)prompt,
				       (int32_t *)(uintptr_t)token};
	int rc = engine_replay(l->model, &a, 1, &own, e);
	if (rc == 0) {
		engine_figures(&own, &f);
		*code = engine_judge(&f, &one);
		rc = engine_regrets_merge(&l->regrets, &own, e);
	}
	engine_regrets_free(&own);
	return rc;
}

static int judge_all(void *ctx, const char **code, struct err *e)
{
	struct engine_live *l = ctx;
	(void)e;
	engine_figures(&l->regrets, &l->figures);
	*code = engine_judge(&l->figures, &l->honest.gates);
	return 0;
}

static void judge_drop(void *ctx)
{
	engine_regrets_free(&((struct engine_live *)ctx)->regrets);
}

const struct engine_judging ENGINE_LIVE_JUDGING = {judge_batch, judge_all, judge_drop};

static void draw(const struct engine_session *s, int workload, int pair, struct engine_asked *a)
{
	const struct engine_task *t = &s->task[workload];
	const int n = t->batch * t->prompt;
	free(a->ids);
	free(a->out);
	*a = (struct engine_asked){t->batch, t->prompt, t->steps, xcalloc((size_t)n, sizeof *a->ids),
				   xcalloc((size_t)t->batch * (size_t)t->steps, sizeof *a->out)};
	engine_session_prompts(s->seed, 0, workload, RAW_MEASURE * 65536, pair, s->vocab, n, a->ids);
}

int engine_live_calibrate(struct engine_live *l, const struct engine_session *s, int n, struct err *e)
{
	struct engine_asked *a = xcalloc((size_t)n, sizeof *a);
	int rc = -1;
	for (int pair = 0; pair < DRAWS && rc != 0; pair++) {
		for (int i = 0; i < n; i++)
			draw(s, i, pair, &a[i]);
		l->pair = pair;
		rc = engine_honest(l->model, a, n, &l->honest, e);
		if (rc != 0 && e->code != EX_BADINPUT)
			break;
	}
	for (int i = 0; i < n; i++) {
		free(a[i].ids);
		free(a[i].out);
	}
	free(a);
	return rc;
}

void engine_live_free(struct engine_live *l)
{
	engine_regrets_free(&l->regrets);
}
