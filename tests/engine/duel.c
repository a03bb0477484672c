/*
 * duel.c - two engines (and a native one) through bench's own sessions, rule, gates and replay.
 *
 *   duel MODEL_DIR CHAMPION CANDIDATE [NATIVE]   one JSON line: verdict, code, message, sessions, ratio, engine
 *
 * Without NATIVE the champion is it. Two small workloads; a memory limit of 192 MiB. Seeds are fixed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_gates.h"
#include "engine_live.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct engine_task TASK[] = {{2, 4, 16, 1, "two"}, {3, 5, 20, 1, "three"}};
enum { TASKS = sizeof TASK / sizeof *TASK };

static void plan(struct contest *t, struct engine_session *s, struct raw *raw, int native)
{
	raw_begin(raw, 1000000000);
	contest_init(t);
	t->c = &SESSION_ENGINE;
	t->rule.margin = 0.01;
	t->rule.s0 = SESSION_ENGINE.s0_floor;
	t->rule.k_max = SESSION_ENGINE.k_max;
	t->workloads = TASKS;
	for (int i = 0; i < TASKS; i++) {
		t->name[i] = TASK[i].name;
		t->weight[i] = TASK[i].weight;
	}
	snprintf(t->order_seed, sizeof t->order_seed, "000102030405060708090a0b0c0d0e0f");
	t->anchor = native;
	t->ops = &ENGINE_OPS;
	t->ctx = s;
	t->raw = raw;
}

static void print(const struct contest *t, const struct engine_range *g, const struct engine_limits *l)
{
	struct jsonw w = {0};
	double lo, hi;
	jw_obj(&w, NULL);
	jw_str(&w, "verdict", verdict_kind_name(t->kind));
	jw_str(&w, "code", t->code);
	jw_str(&w, "message", t->message);
	jw_int(&w, "sessions", t->n);
	jw_num(&w, "ratio", t->k ? contest_ratio(t, &lo, &hi) : NAN);
	engine_gates_write(g, l, &w, "engine");
	jw_end(&w);
	puts(w.out.data);
	jw_free(&w);
}

int main(int argc, char **argv)
{
	static struct engine_live live;
	static struct contest t;
	char program[RAW_ARMS][PATH_MAX];
	struct engine_model model;
	struct raw raw;
	struct err e;
	prog_name(argv[0]);
	if (argc < 4)
		die(EX_BADUSE, "usage: duel MODEL_DIR CHAMPION CANDIDATE [NATIVE]");
	for (int a = 0; a < RAW_ARMS && a + 2 < argc; a++) {
		if (!realpath(argv[a + 2], program[a]))
			die(EX_BADINPUT, "no such engine: %s", argv[a + 2]);
		live.program[a] = program[a];
	}
	if (engine_model_open(&model, argv[1], "any", 1, NULL, &e))
		die_err(&e);
	live.model = &model;
	live.load_s = 20;
	struct engine_session s = {.tasks = TASKS, .task = TASK, .vocab = model.model.c.vocab, .seed = "5eed", .limit_s = 10,
				   .step_s = 2, .io = &ENGINE_LIVE_IO, .io_ctx = &live, .judge = &ENGINE_LIVE_JUDGING,
				   .judge_ctx = &live, .raw = &raw};
	plan(&t, &s, &raw, argc > 4);
	if (engine_live_calibrate(&live, &s, TASKS, &e) || contest_decide(&t, &e))
		die_err(&e);
	const struct engine_limits limits = {1.05, 1.05, 0.25, 192 << 20};
	const struct engine_range g = {&s, 0, t.n, argc > 4};
	engine_gates(&g, &limits, &t);
	print(&t, &g, &limits);
	contest_free(&t);
	raw_free(&raw);
	engine_session_free(&s);
	engine_live_free(&live);
	engine_model_close(&model);
	return 0;
}
