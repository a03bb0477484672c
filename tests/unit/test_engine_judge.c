/*
 * test_engine_judge.c - tests of engine_judge: regrets and gates by hand, and the power of the judge: every known
 * fault of an engine is refused on the tiny checkpoint, honest roundings are not.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_judge.h"

#include "buf.h"
#include "file.h"
#include "qwen3_ref.h"
#include "spawn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void by_hand(void **state)
{
	const float x[] = {0, 1, 3, 2.5f, /**/ 3, 3, 1, -INFINITY, /**/ 1, NAN, 0, 0, /**/ 0, INFINITY, 0, 0};
	struct engine_regrets r = {0};
	struct engine_figures f;
	struct err e;
	const struct engine_gates g = {0.5, 0.3, 0.5, 0.5};
	(void)state;
	assert_int_equal(engine_regrets_add(&r, x, 4, (const int32_t[]){3, 1}, 2, &e), 0);
	engine_figures(&r, &f);
	assert_true(f.worst == 0.5 && f.mean == 0.25 && f.argmax_rate == 0.5 && f.tokens == 2);
	assert_string_equal(engine_judge(&f, &g), "ok");
	assert_int_equal(r.distinct, 2);
	assert_int_equal(engine_regrets_add(&r, x, 4, (const int32_t[]){0, 4}, 2, &e), -1);
	assert_int_equal(engine_regrets_add(&r, x, 4, (const int32_t[]){-1}, 1, &e), -1);
	assert_int_equal(r.n, 2);
	assert_int_equal(engine_regrets_add(&r, x + 8, 4, (const int32_t[]){0, 1}, 2, &e), 0);
	engine_figures(&r, &f);
	assert_true(isinf(f.worst));
	assert_string_equal(engine_judge(&f, &(struct engine_gates){1e300, INFINITY, INFINITY, 0}), "margin");
	engine_regrets_free(&r);
	engine_figures(&r, &f);
	assert_string_equal(engine_judge(&f, &g), "no_tokens");
	f = (struct engine_figures){10, 0.1, 0.4, 0.1, 1};
	assert_string_equal(engine_judge(&f, &g), "mean_regret");
	f = (struct engine_figures){10, 0.1, 0.1, 0.6, 1};
	assert_string_equal(engine_judge(&f, &g), "p99_regret");
	f = (struct engine_figures){10, 0.1, 0.1, 0.1, 0.4};
	assert_string_equal(engine_judge(&f, &g), "argmax_rate");
	f = (struct engine_figures){10, NAN, 0, 0, 1};
	assert_string_equal(engine_judge(&f, &g), "margin");
}

static void needed(void **state)
{
	const struct engine_gates g = {.mean = 0.01};
	(void)state;
	assert_int_equal(engine_tokens_needed(0.01, 0.1, &g), 0);
	assert_int_equal(engine_tokens_needed(0.02, 0, &g), 1);
	/* (2 x 2.326 x 0.1 / 0.01)^2 */
	assert_true(engine_tokens_needed(0.02, 0.1, &g) > 2160 && engine_tokens_needed(0.02, 0.1, &g) < 2170);
}

/* ---- power ---- */

static char work[] = "/tmp/ts-engine.XXXXXX";
static struct qwen3 model;
enum { PROMPTS = 4, PROMPT = 70, OUT = 48, VOCAB = 512 };

static void prompt(int p, int32_t *ids)
{
	for (int i = 0; i < PROMPT; i++)
		ids[i] = (int32_t)(((unsigned)(i + 1000 * p) * 2654435761u >> 8) % VOCAB);
}

/* Greedy tokens of an engine that computes by this policy with this fault; ids has PROMPT + OUT. */
static void generate(enum qwen3_policy p, enum qwen3_fault f, int32_t *ids)
{
	static float x[VOCAB];
	struct qwen3_seq *s;
	struct err e;
	assert_int_equal(qwen3_seq_open(&s, &model, p, f, PROMPT + OUT, &e), 0);
	assert_int_equal(qwen3_seq_append(s, ids, PROMPT, 1, x, &e), 0);
	for (int t = 0; t < OUT; t++) {
		ids[PROMPT + t] = qwen3_argmax(x, VOCAB);
		assert_int_equal(qwen3_seq_append(s, ids + PROMPT + t, 1, 1, x, &e), 0);
	}
	qwen3_seq_close(s);
}

static void replay(const int32_t *ids, struct engine_regrets *r)
{
	static float x[OUT * VOCAB];
	struct qwen3_seq *s;
	struct err e;
	assert_int_equal(qwen3_seq_open(&s, &model, QWEN3_FP32, QWEN3_RIGHT, PROMPT + OUT, &e), 0);
	/* the logits before a token are those at the token before it */
	assert_int_equal(qwen3_seq_append(s, ids, PROMPT + OUT - 1, OUT, x, &e), 0);
	assert_int_equal(engine_regrets_add(r, x, VOCAB, ids + PROMPT, OUT, &e), 0);
	qwen3_seq_close(s);
}

static void of(enum qwen3_policy p, enum qwen3_fault f, struct engine_regrets *r)
{
	int32_t ids[PROMPT + OUT];
	*r = (struct engine_regrets){0};
	for (int i = 0; i < PROMPTS; i++) {
		prompt(i, ids);
		generate(p, f, ids);
		replay(ids, r);
	}
}

static void power(void **state)
{
	struct engine_regrets honest[2], bad;
	struct engine_figures f;
	struct engine_gates g;
	struct err e;
	(void)state;
	of(QWEN3_FP32, QWEN3_RIGHT, &honest[0]);
	of(QWEN3_BF16, QWEN3_RIGHT, &honest[1]);
	if (engine_calibrate(honest, 2, &g, &e))
		fail_msg("%s", e.text);
	print_message("gates: margin %.3f mean %.4f p99 %.3f argmax %.3f\n", g.margin, g.mean, g.p99, g.argmax_rate);
	for (int i = 0; i < 2; i++) {
		engine_figures(&honest[i], &f);
		assert_string_equal(engine_judge(&f, &g), "ok");
	}
	engine_figures(&honest[0], &f);
	assert_true(f.worst < 1e-3); /* the same code, a token at a time and all at once */
	for (int k = QWEN3_RIGHT + 1; k < QWEN3_FAULTS; k++) {
		of(QWEN3_BF16, (enum qwen3_fault)k, &bad);
		engine_figures(&bad, &f);
		const char *word = engine_judge(&f, &g);
		print_message("%-12s %-12s worst %6.2f mean %7.4f p99 %6.2f argmax %.3f\n",
			      qwen3_fault_name((enum qwen3_fault)k), word, f.worst, f.mean, f.p99, f.argmax_rate);
		if (k != QWEN3_INT8 && strcmp(word, "ok") == 0)
			fail_msg("%s passes", qwen3_fault_name((enum qwen3_fault)k));
		engine_regrets_free(&bad);
	}
	engine_regrets_free(&honest[0]);
	engine_regrets_free(&honest[1]);
}

/* A checkpoint that says the same token always, or nothing in particular, judges nobody. */
static void blind(void **state)
{
	enum { N = 100, V = 2000 };
	struct engine_regrets r = {0};
	struct engine_gates g;
	struct err e;
	float *x = xcalloc((size_t)N * V, sizeof *x);
	int32_t token[N] = {0};
	(void)state;
	assert_int_equal(engine_regrets_add(&r, x, V, token, N, &e), 0);
	assert_int_equal(engine_calibrate(&r, 1, &g, &e), -1);
	assert_non_null(strstr(e.text, "of the vocabulary"));
	engine_regrets_free(&r);
	for (int t = 0; t < N; t++)
		x[(size_t)t * V] = 5;
	assert_int_equal(engine_regrets_add(&r, x, V, token, N, &e), 0);
	assert_int_equal(engine_calibrate(&r, 1, &g, &e), -1);
	assert_non_null(strstr(e.text, "different best tokens"));
	engine_regrets_free(&r);
	for (int t = 0; t < N; t++) {
		x[(size_t)t * V] = 0;
		x[(size_t)t * V + (size_t)t] = 5;
		token[t] = t + 1;
	}
	assert_int_equal(engine_regrets_add(&r, x, V, token, N, &e), 0);
	assert_int_equal(engine_calibrate(&r, 1, &g, &e), -1);
	assert_non_null(strstr(e.text, "differ by"));
	engine_regrets_free(&r);
	assert_int_equal(engine_calibrate(&r, 1, &g, &e), -1);
	free(x);
}

static int setup(void **state)
{
	char program[256], dir[256];
	struct spawn_result r = {0};
	struct err e;
	(void)state;
	if (!mkdtemp(work))
		return -1;
	snprintf(program, sizeof program, "%s/bin/make-checkpoint", getenv("BUILD") ? getenv("BUILD") : ".build");
	snprintf(dir, sizeof dir, "%s/tiny", work);
	const char *const argv[] = {program, "tiny", dir, NULL};
	struct spawn_request q = {.argv = argv, .wall_s = 60};
	if (spawn_run(&q, &r, &e) || r.code)
		return -1;
	spawn_result_free(&r);
	return qwen3_open(&model, dir, &e);
}

static int teardown(void **state)
{
	struct err e;
	(void)state;
	qwen3_close(&model);
	return dir_remove(work, &e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_hand), cmocka_unit_test(needed), cmocka_unit_test(power), cmocka_unit_test(blind),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
