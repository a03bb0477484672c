/*
 * test_engine_power.c - tests of engine_power and engine_mutant: spread and counts by hand, mixed up answers, every mutant at
 * small shapes, and a checkpoint on which weights of eight bits cannot be told.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_power.h"

#include "buf.h"
#include "dtype.h"
#include "file.h"

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

static struct engine_model model;
static char work[] = "/tmp/test_engine_power.XXXXXX";
static const struct engine_workload SHAPES[] = {{"one", 1, 70, 16}, {"three", 3, 20, 20}};
static const uint8_t KEY[32] = {5};

static void by_hand(void **state)
{
	struct engine_asked a = {.batch = 2, .steps = 2};
	double even[] = {0, 1, 1, 0}, lumpy[] = {0, 0, 1, 1};
	struct engine_regrets r = {.regret = even, .n = 4};
	struct engine_spread s = engine_spread_of(&r, &a, 1), t;
	(void)state;
	assert_true(s.mean == 0.5 && s.tokens == 4);
	/* both sequences sum to nothing: the ids' own spread, sqrt(4 x 0.25 / 3) */
	assert_true(fabs(s.sd - sqrt(1.0 / 3)) < 1e-12);
	/* sums of -1 and 1, two clusters: sqrt(2 x 2 / 3) */
	r.regret = lumpy;
	t = engine_spread_of(&r, &a, 1);
	assert_true(fabs(t.sd - sqrt(4.0 / 3)) < 1e-12);
	const struct engine_spread good = {100, 0.01, 0.03}, bad = {100, 0.02, 0.04};
	/* (2 x 2.3263)^2 x (0.03^2 + 0.04^2) / 0.01^2 = 541.2 */
	assert_in_range(engine_needed(&bad, &good), 542, 544);
	assert_int_equal(engine_needed(&good, &good), 0);
	assert_int_equal(engine_needed(&good, &bad), 0);
	assert_int_equal(engine_needed(&(struct engine_spread){100, NAN, NAN}, &good), 0);
	assert_int_equal(engine_needed(&(struct engine_spread){100, 0.02, NAN}, &good), 0);
}

static const struct engine_mutant *named(const char *name)
{
	const struct engine_mutant *x = ENGINE_MUTANTS;
	while (x->name && strcmp(x->name, name) != 0)
		x++;
	assert_non_null(x->name);
	return x;
}

static void mixes(void **state)
{
	int32_t ids[2][12], out[4][9];
	struct engine_asked a[2] = {{3, 4, 3, ids[0], out[0]}, {3, 4, 3, ids[1], out[1]}};
	struct err e;
	(void)state;
	for (int i = 0; i < 2; i++)
		engine_replay_prompts(KEY, i ? "b" : "a", model.model.c.vocab, &a[i]);
	assert_int_equal(engine_mutant_answer(named("bfloat16"), &model, a, a, 2, &e), 0);
	memcpy(out[2], out[0], sizeof out[0]);
	memcpy(out[3], out[1], sizeof out[1]);
	assert_int_equal(engine_mutant_answer(named("swapped_rows"), &model, a, a, 1, &e), 0);
	assert_memory_equal(out[0], out[2] + 3, 6 * sizeof **out);
	assert_memory_equal(out[0] + 6, out[2], 3 * sizeof **out);
	assert_int_equal(engine_mutant_answer(named("other_prompt"), &model, a, a + 1, 1, &e), 0);
	assert_memory_equal(out[0], out[3], sizeof out[0]);
	assert_true(engine_mutant_applies(named("swapped_rows"), a, 2));
	assert_false(engine_mutant_applies(named("window"), a, 2));
	a[0].batch = 1;
	assert_false(engine_mutant_applies(named("swapped_rows"), a, 1));
	a[0].prompt = model.model.c.max_positions;
	assert_int_equal(engine_mutant_answer(named("float32"), &model, a, a, 1, &e), -1);
	assert_int_equal(e.code, EX_BADINPUT);
}

static void told(void *ctx, const struct engine_power *p, const struct engine_power_row *row)
{
	int *n = ctx;
	assert_ptr_equal(row, &p->row[*n]);
	assert_ptr_equal(row->x, &ENGINE_MUTANTS[*n]);
	++*n;
}

static void power(void **state)
{
	struct engine_power p;
	struct err e;
	int n = 0;
	(void)state;
	if (engine_power(&model, SHAPES, 2, KEY, 300, told, &n, &p, &e))
		fail_msg("%s", e.text);
	assert_int_equal(n, p.n);
	assert_null(ENGINE_MUTANTS[n].name);
	for (int i = 0; i < n; i++) {
		const struct engine_power_row *r = &p.row[i];
		if (!r->ok || !r->word)
			fail_msg("%s: %s, %zu", r->x->name, r->word ? r->word : "not tried", r->needed);
		if (r->x->due != DUE_COUNT)
			assert_int_equal(!strcmp(r->word, "ok"), r->x->due == DUE_PASS);
		else
			assert_true(r->needed > 1 && r->needed <= ENGINE_AUDIT && r->spread.mean > p.honest.mean);
	}
	assert_int_equal(p.bad, 0);
	assert_true(p.honest.tokens >= 300);
}

/* ---- weights that have eight bits already ---- */

/* A row becomes whole multiples of a power of two, the largest of them 127: quantising it changes nothing. */
static void round_rows(uint16_t *w, int rows, int n)
{
	for (int r = 0; r < rows; r++, w += n) {
		int most = 0;
		for (int i = 1; i < n; i++)
			if (fabsf(dtype_from_bf16(w[i])) > fabsf(dtype_from_bf16(w[most])))
				most = i;
		const float scale = exp2f(rintf(log2f(fabsf(dtype_from_bf16(w[most])) / 127)));
		for (int i = 0; i < n; i++) {
			const float q = fminf(127, fmaxf(-127, rintf(dtype_from_bf16(w[i]) / scale)));
			w[i] = dtype_to_bf16((i == most ? copysignf(127, q) : q) * scale);
		}
	}
}

static void blind(void **state)
{
	const struct qwen3 *q = &model.model;
	const struct qwen3_config *c = &q->c;
	const int qn = c->heads * c->head_dim, kn = c->kv_heads * c->head_dim;
	struct buf weights = BUF_INIT;
	struct engine_model m;
	struct engine_power p;
	struct err e;
	char path[PATH_MAX + 32];
	(void)state;
	snprintf(path, sizeof path, "%s/model.safetensors", model.dir);
	assert_int_equal(file_read(path, 64 << 20, &weights, &e), 0);
	const char *base = q->st.map[0].at;
#define ROWS(PART, OUT, IN) round_rows((uint16_t *)(void *)(weights.data + ((const char *)(PART)-base)), OUT, IN)
	for (int i = 0; i < c->layers; i++) {
		const struct qwen3_layer *l = &q->layer[i];
		ROWS(l->q, qn, c->hidden);
		ROWS(l->k, kn, c->hidden);
		ROWS(l->v, kn, c->hidden);
		ROWS(l->o, c->hidden, qn);
		ROWS(l->gate, c->intermediate, c->hidden);
		ROWS(l->up, c->intermediate, c->hidden);
		ROWS(l->down, c->hidden, c->intermediate);
	}
	ROWS(q->head, c->vocab, c->hidden);
	assert_int_equal(dir_make("blind", &e), 0);
	assert_int_equal(file_write("blind/model.safetensors", weights.data, weights.len, 0644, &e), 0);
	snprintf(path, sizeof path, "%s/config.json", model.dir);
	assert_int_equal(file_copy(path, "blind/config.json", &e), 0);
	assert_int_equal(engine_model_open(&m, "blind", "any", 1, NULL, &e), 0);
	if (engine_power(&m, SHAPES, 2, KEY, 100, NULL, NULL, &p, &e))
		fail_msg("%s", e.text);
	for (int i = 0; i < p.n; i++)
		if (p.row[i].ok == (p.row[i].x->due == DUE_COUNT))
			fail_msg("%s: %s, %zu", p.row[i].x->name, p.row[i].word, p.row[i].needed);
	assert_int_equal(p.bad, 2);
	engine_model_close(&m);
	buf_free(&weights);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_hand), cmocka_unit_test(mixes), cmocka_unit_test(power), cmocka_unit_test(blind),
	};
	struct err e;
	if (!mkdtemp(work) || chdir(work) || engine_model_open(&model, NULL, "tiny", 1, NULL, &e))
		return 1;
	int rc = cmocka_run_group_tests(tests, NULL, NULL);
	engine_model_close(&model);
	return dir_remove(work, &e) || rc;
}
