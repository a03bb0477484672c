/*
 * replay_time.c - how long the reference on a GPU takes, and what gates it sets: for gpu.py.
 *
 *   replay_time MODEL_DIR BATCH/PROMPT/STEPS...
 *
 * A line of JSON for the load and for each workload: seconds of a replay of nobody's answers, of the honest answers
 * under both policies with their replays, the honest figures and the gates. A last line: all replays once more, in
 * one call.
 *
 * SPDX-License-Identifier: MIT
 */
#include "buf.h"
#include "engine_model.h"
#include "engine_replay.h"
#include "jsonw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void figures(struct jsonw *w, const char *name, const struct engine_figures *f)
{
	jw_obj(w, name);
	jw_num(w, "mean", f->mean);
	jw_num(w, "p99", f->p99);
	jw_num(w, "worst", f->worst);
	jw_num(w, "argmax_rate", f->argmax_rate);
	jw_end(w);
}

static void say(struct jsonw *w)
{
	jw_end(w);
	printf("%s\n", buf_str(&w->out));
	fflush(stdout);
	jw_free(w);
}

static struct engine_asked asked(const char *text, int vocab)
{
	struct engine_asked a = {0};
	if (sscanf(text, "%d/%d/%d", &a.batch, &a.prompt, &a.steps) != 3 || a.batch < 1 || a.prompt < 1 || a.steps < 1)
		die(EX_BADUSE, "not BATCH/PROMPT/STEPS: '%s'", text);
	const size_t n = (size_t)a.batch * (size_t)a.steps;
	a.ids = xcalloc((size_t)a.batch * (size_t)a.prompt, sizeof *a.ids);
	a.out = xcalloc(n, sizeof *a.out);
	engine_replay_prompts((const uint8_t[32]){9}, text, vocab, &a);
	for (size_t i = 0; i < n; i++)
		a.out[i] = (int32_t)((uint32_t)i * 2654435761u >> 8) % vocab;
	return a;
}

static void one(const struct engine_model *m, const struct engine_asked *a, const char *name)
{
	struct engine_regrets r = {0};
	struct engine_honest h = {0};
	struct engine_figures f;
	struct jsonw w = {0};
	struct err e;
	double t = now();
	jw_obj(&w, NULL);
	jw_str(&w, "workload", name);
	if (engine_replay(m, a, 1, &r, &e))
		die_err(&e);
	jw_num(&w, "replay_s", now() - t);
	engine_figures(&r, &f);
	figures(&w, "nobody", &f);
	t = now();
	int rc = engine_honest(m, a, 1, &h, &e);
	jw_num(&w, "honest_s", now() - t);
	if (rc)
		jw_str(&w, "refused", e.text);
	figures(&w, "own", &h.own);
	figures(&w, "rounded", &h.rounded);
	jw_num(&w, "margin", h.gates.margin);
	say(&w);
	engine_regrets_free(&r);
}

int main(int argc, char **argv)
{
	struct engine_model m = {0};
	struct engine_regrets r = {0};
	struct jsonw w = {0};
	struct err e;
	prog_name(argv[0]);
	if (argc < 3)
		die(EX_BADUSE, "usage: replay_time MODEL_DIR BATCH/PROMPT/STEPS...");
	double t = now();
	if (qwen3_open(&m.model, argv[1], &e)) /* no hash: gigabytes */
		die_err(&e);
	if (engine_model_gpu(&m, NULL, &e))
		die_err(&e);
	jw_obj(&w, NULL);
	jw_num(&w, "load_s", now() - t);
	jw_int(&w, "weight_bytes", (int64_t)(2 * qwen3_parameters(&m.model.c)));
	say(&w);
	const int n = argc - 2;
	struct engine_asked *a = xcalloc((size_t)n, sizeof *a);
	for (int i = 0; i < n; i++) {
		a[i] = asked(argv[i + 2], m.model.c.vocab);
		one(&m, &a[i], argv[i + 2]);
	}
	t = now();
	if (engine_replay(&m, a, n, &r, &e))
		die_err(&e);
	struct jsonw all = {0};
	jw_obj(&all, NULL);
	jw_num(&all, "all_replays_s", now() - t);
	jw_int(&all, "tokens_judged", (int64_t)r.n);
	say(&all);
	engine_regrets_free(&r);
	for (int i = 0; i < n; i++) {
		free(a[i].ids);
		free(a[i].out);
	}
	free(a);
	engine_model_close(&m);
	return 0;
}
