/*
 * test_engine_replay.c - tests of engine_replay and engine_model: prompts from a key, gates, the order and place of
 * regrets, one model under one hash.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_model.h"
#include "engine_replay.h"

#include "buf.h"
#include "file.h"
#include "qwen3_ref.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct engine_model model;

static struct engine_asked asked(int batch, int prompt, int steps)
{
	struct engine_asked a = {.batch = batch, .prompt = prompt, .steps = steps};
	a.ids = xcalloc((size_t)(batch * prompt), sizeof *a.ids);
	a.out = xcalloc((size_t)(batch * steps), sizeof *a.out);
	return a;
}

static void drop(struct engine_asked *a)
{
	free(a->ids);
	free(a->out);
}

/* Greedy answers of the reference under a policy and a fault. */
static void answer(struct engine_asked *a, enum qwen3_policy p, enum qwen3_fault f)
{
	const struct qwen3 *m = &model.model;
	float *x = xcalloc((size_t)m->c.vocab, sizeof *x);
	struct err e;
	for (int b = 0; b < a->batch; b++) {
		struct qwen3_seq *s;
		assert_int_equal(qwen3_seq_open(&s, m, p, f, a->prompt + a->steps, &e), 0);
		assert_int_equal(qwen3_seq_append(s, a->ids + b * a->prompt, a->prompt, 1, x, &e), 0);
		for (int t = 0; t < a->steps; t++) {
			a->out[b * a->steps + t] = qwen3_argmax(x, m->c.vocab);
			assert_int_equal(qwen3_seq_append(s, a->out + b * a->steps + t, 1, 1, x, &e), 0);
		}
		qwen3_seq_close(s);
	}
	free(x);
}

static void prompts(void **state)
{
	const uint8_t key[32] = {1}, other[32] = {2};
	struct engine_asked a = asked(40, 9, 1), b = asked(40, 9, 1);
	const size_t bytes = 40 * 9 * sizeof *a.ids;
	(void)state;
	engine_replay_prompts(key, "x", 512, &a);
	engine_replay_prompts(key, "x", 512, &b);
	assert_memory_equal(a.ids, b.ids, bytes);
	engine_replay_prompts(key, "y", 512, &b);
	assert_memory_not_equal(a.ids, b.ids, bytes);
	engine_replay_prompts(other, "x", 512, &b);
	assert_memory_not_equal(a.ids, b.ids, bytes);
	for (int i = 0; i < 40 * 9; i++)
		assert_in_range(a.ids[i], 0, 511);
	for (int i = 0; i < 40; i++)
		for (int k = 0; k < i; k++)
			assert_int_not_equal(a.ids[i * 9], a.ids[k * 9]);
	engine_replay_prompts(key, "x", 3, &a); /* more sequences than ids */
	for (int i = 0; i < 3; i++)
		assert_int_not_equal(a.ids[i * 9], a.ids[(i + 1) % 3 * 9]);
	drop(&a);
	drop(&b);
}

static void gates(void **state)
{
	struct engine_asked a[2] = {asked(3, 37, 24), asked(1, 5, 24)};
	struct engine_honest h;
	struct engine_figures f;
	struct engine_regrets r = {0};
	struct err e;
	(void)state;
	for (int i = 0; i < 2; i++)
		engine_replay_prompts((const uint8_t[32]){3}, i ? "1" : "0", 512, &a[i]);
	assert_int_equal(engine_honest(&model, a, 2, &h, &e), 0);
	assert_true(h.own.tokens == 96 && h.rounded.tokens == 96);
	assert_true(h.own.worst < 0.01 && h.rounded.worst > 0.01 && h.gates.margin >= 0.25 && h.gates.margin <= 2);
	for (int i = 0; i < 2; i++)
		answer(&a[i], QWEN3_FP32, QWEN3_RIGHT);
	assert_int_equal(engine_replay(&model, a, 2, &r, &e), 0);
	engine_figures(&r, &f);
	assert_true(f.tokens == 96);
	assert_string_equal(engine_judge(&f, &h.gates), "ok");
	engine_regrets_free(&r);
	/* The regret stands where the wrong id is, sequence after sequence. */
	int32_t right = a[0].out[2 * 24 + 7], best;
	a[0].out[2 * 24 + 7] = (right + 1) % 512;
	assert_int_equal(engine_replay(&model, a, 2, &r, &e), 0);
	for (size_t i = 0; i < 2 * 24 + 7; i++)
		assert_true(r.regret[i] < 0.01);
	assert_true(r.regret[2 * 24 + 7] > h.gates.margin && r.n == 96);
	engine_figures(&r, &f);
	assert_string_equal(engine_judge(&f, &h.gates), "margin");
	assert_int_equal(engine_best(&model, &a[0], 2, 7, &best, &e), 0);
	assert_int_equal(best, right);
	engine_regrets_free(&r);
	a[1].out[3] = 512;
	assert_int_equal(engine_replay(&model, a, 2, &r, &e), -1);
	assert_int_equal(e.code, EX_BADINPUT);
	engine_regrets_free(&r);
	drop(&a[0]);
	drop(&a[1]);
}

static void faults(void **state)
{
	struct engine_asked a = asked(4, 70, 24);
	struct engine_honest h;
	struct engine_figures f;
	struct err e;
	(void)state;
	engine_replay_prompts((const uint8_t[32]){4}, "0", 512, &a);
	assert_int_equal(engine_honest(&model, &a, 1, &h, &e), 0);
	for (enum qwen3_fault k = QWEN3_ROPE_PAIRS; k <= QWEN3_VOCAB; k++) {
		struct engine_regrets r = {0};
		answer(&a, QWEN3_FP32, k);
		assert_int_equal(engine_replay(&model, &a, 1, &r, &e), 0);
		engine_figures(&r, &f);
		if (!strcmp(engine_judge(&f, &h.gates), "ok"))
			fail_msg("%s passes", qwen3_fault_name(k));
		engine_regrets_free(&r);
	}
	drop(&a);
}

static void one_model(void **state)
{
	struct engine_model m;
	struct err e;
	char wrong[HASH_HEX];
	(void)state;
	memcpy(wrong, model.sha, sizeof wrong);
	wrong[0] = wrong[0] == '0' ? '1' : '0';
	assert_int_equal(engine_model_open(&m, NULL, "tiny", 1, model.sha, &e), 0);
	engine_model_close(&m);
	assert_int_equal(engine_model_open(&m, NULL, "tiny", 1, wrong, &e), -1);
	assert_int_equal(e.code, EX_BADINPUT);
	assert_non_null(strstr(e.text, "not the model that was recorded"));
	/* The user's folder with the same files is the same model. */
	assert_int_equal(engine_model_open(&m, model.dir, "any", 9, model.sha, &e), 0);
	engine_model_close(&m);
	assert_int_equal(engine_model_open(&m, NULL, "any", 1, NULL, &e), -1);
	assert_int_equal(e.code, EX_NOENV);
	assert_int_equal(engine_model_open(&m, "/no/such/folder", "tiny", 1, NULL, &e), -1);
	assert_int_equal(e.code, EX_BADINPUT);
	assert_int_equal(engine_model_open(&m, NULL, "tiny", 2, NULL, &e), 0);
	assert_string_not_equal(m.sha, model.sha);
	engine_model_close(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prompts), cmocka_unit_test(gates), cmocka_unit_test(faults), cmocka_unit_test(one_model),
	};
	char dir[] = "/tmp/test_engine_replay.XXXXXX";
	struct err e;
	if (!mkdtemp(dir) || chdir(dir) || engine_model_open(&model, NULL, "tiny", 1, NULL, &e))
		return 1;
	int rc = cmocka_run_group_tests(tests, NULL, NULL);
	engine_model_close(&model);
	return dir_remove(dir, &e) || rc;
}
