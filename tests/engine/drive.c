/*
 * drive.c - an engine on one batch, its tokens replayed and judged: what the stages will do, in one program.
 *
 *   drive ENGINE MODEL_DIR BATCH PROMPT STEPS [LIMIT_S]   one JSON line: outcome, figures, times, isolation
 *
 * Two batches are asked of one process, with other prompts; both are judged. Gates are calibrated on the same prompts first (float32 a token at a time, bfloat16 as transformers rounds).
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_call.h"
#include "engine_judge.h"
#include "jsonw.h"
#include "qwen3_ref.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct qwen3 m;

static void must(int rc, const struct err *e)
{
	if (rc)
		die_err(e);
}

static void replay(const int32_t *prompt, int n, const int32_t *token, int steps, struct engine_regrets *r)
{
	struct qwen3_seq *s;
	struct err e;
	int32_t *ids = xcalloc((size_t)(n + steps), sizeof *ids);
	float *x = xcalloc((size_t)steps * (size_t)m.c.vocab, sizeof *x);
	memcpy(ids, prompt, (size_t)n * sizeof *ids);
	memcpy(ids + n, token, (size_t)steps * sizeof *ids);
	must(qwen3_seq_open(&s, &m, QWEN3_FP32, QWEN3_RIGHT, n + steps, &e), &e);
	must(qwen3_seq_append(s, ids, n + steps - 1, steps, x, &e), &e);
	must(engine_regrets_add(r, x, m.c.vocab, token, steps, &e), &e);
	qwen3_seq_close(s);
	free(ids);
	free(x);
}

static void honest(enum qwen3_policy p, const int32_t *prompt, int n, int steps, struct engine_regrets *r)
{
	struct qwen3_seq *s;
	struct err e;
	int32_t *out = xcalloc((size_t)steps, sizeof *out);
	float *x = xcalloc((size_t)m.c.vocab, sizeof *x);
	must(qwen3_seq_open(&s, &m, p, QWEN3_RIGHT, n + steps, &e), &e);
	must(qwen3_seq_append(s, prompt, n, 1, x, &e), &e);
	for (int t = 0; t < steps; t++) {
		out[t] = qwen3_argmax(x, m.c.vocab);
		must(qwen3_seq_append(s, out + t, 1, 1, x, &e), &e);
	}
	replay(prompt, n, out, steps, r);
	qwen3_seq_close(s);
	free(out);
	free(x);
}

/* Asks once, with prompts of `seed`. */
static void ask(struct engine *g, struct engine_batch *b, unsigned seed, enum engine_outcome *o)
{
	struct err e;
	int32_t *ids = xcalloc((size_t)(b->batch * b->prompt), sizeof *ids);
	for (int i = 0; i < b->batch * b->prompt; i++)
		ids[i] = (int32_t)((((unsigned)i * 2654435761u + seed * 40503u) >> 7) % (unsigned)m.c.vocab);
	b->ids = ids;
	b->out = xcalloc((size_t)(b->batch * b->steps), sizeof *b->out);
	b->stamp = xcalloc((size_t)b->steps, sizeof *b->stamp);
	if (*o == ENGINE_OK)
		must(engine_ask(g, b, o, &e), &e);
}

static const char *judge(const struct engine_batch *b, int n, struct engine_figures *f)
{
	static struct engine_regrets own[2], theirs;
	struct engine_gates g;
	struct err e;
	for (int k = 0; k < n; k++)
		for (int i = 0; i < b->batch; i++) {
			const int32_t *prompt = b[k].ids + i * b->prompt;
			honest(QWEN3_FP32, prompt, b->prompt, b->steps, &own[0]);
			honest(QWEN3_BF16, prompt, b->prompt, b->steps, &own[1]);
			replay(prompt, b->prompt, b[k].out + i * b->steps, b->steps, &theirs);
		}
	must(engine_calibrate(own, 2, &g, &e), &e);
	engine_figures(&theirs, f);
	engine_regrets_free(&own[0]);
	engine_regrets_free(&own[1]);
	engine_regrets_free(&theirs);
	return engine_judge(f, &g);
}

int main(int argc, char **argv)
{
	struct engine_batch b[2] = {{.limit_s = argc > 6 ? atof(argv[6]) : 60}};
	struct engine_figures f = {0};
	struct engine_end end;
	struct engine engine;
	enum engine_outcome o;
	struct err e;
	char program[PATH_MAX], folder[PATH_MAX];
	prog_name(argv[0]);
	if (argc < 6 || !realpath(argv[1], program) || !realpath(argv[2], folder))
		die(EX_BADUSE, "usage: drive ENGINE MODEL_DIR BATCH PROMPT STEPS [LIMIT_S]");
	b[0].batch = atoi(argv[3]), b[0].prompt = atoi(argv[4]), b[0].steps = atoi(argv[5]);
	b[1] = b[0];
	must(qwen3_open(&m, folder, &e), &e);
	const struct engine_start q = {.program = program, .model_dir = folder, .load_s = 20, .vocab = m.c.vocab,
				       .memory = UINT64_C(2) << 30};
	must(engine_open(&q, &engine, &o, &e), &e);
	for (unsigned k = 0; k < 2; k++)
		ask(&engine, &b[k], k + 1, &o);
	must(engine_close(&engine, &o, &end, &e), &e);
	struct jsonw w = {0};
	jw_obj(&w, NULL);
	jw_str(&w, "verdict", o == ENGINE_OK ? judge(b, 2, &f) : engine_outcome_name(o));
	jw_num(&w, "worst", f.worst);
	jw_num(&w, "mean", f.mean);
	jw_num(&w, "argmax_rate", f.argmax_rate);
	jw_num(&w, "ready_ms", (double)engine.ready_ns * 1e-6);
	jw_num(&w, "first_ms", (double)b[0].stamp[0] * 1e-6);
	jw_num(&w, "last_ms", (double)b[0].stamp[b[0].steps - 1] * 1e-6);
	jw_int(&w, "max_rss", (int64_t)end.max_rss);
	jw_str(&w, "end", end.words);
	jw_str(&w, "isolation", engine.isolation);
	jw_strn(&w, "log", buf_str(&end.log), end.log.len < 200 ? end.log.len : 200);
	jw_end(&w);
	puts(w.out.data);
	jw_free(&w);
	engine_end_free(&end);
	for (int k = 0; k < 2; k++) {
		free((void *)(uintptr_t)b[k].ids);
		free(b[k].out);
		free(b[k].stamp);
	}
	qwen3_close(&m);
	return 0;
}
