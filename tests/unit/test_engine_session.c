/*
 * test_engine_session.c - sessions, gates and score of engines whose answers and clocks are scripted. Starts nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/engine_gates.h"
#include "../../stages/lib/reason.h"
#include "../bench/noise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VOCAB = 512 };

/* The native engine takes 10 ms to the first step and 1 ms for each one more; the others that much divided by speed. */
struct fake {
	struct noise_rng rng;
	double sd;                     /* of the log of a batch's time */
	double speed[RAW_ARMS];        /* 1: as the native one */
	double first[RAW_ARMS];        /* factor of the first step alone; 0: 1 */
	int stall;                     /* every n-th batch of the candidate takes half as long again; 0: none */
	double drift;                  /* with `lasting`: the machine is so much slower in every other session; 0: it is not */
	int wrong_at;                  /* the candidate's n-th batch has a token wrong; 0: none */
	enum raw_arm wrong_arm;
	enum engine_outcome at_close;  /* of the candidate */
	uint64_t rss;
	int64_t gpu;                   /* bytes that the candidate holds of a GPU */
	int lasting;                   /* 1: the sessions of a GPU */
	int strangers;                 /* the session at which others are at work; 0: none */
	int company;                   /* batches of the champion while there was a candidate */
	int blurred;                   /* its tokens pass one by one, and not together */
	int live[RAW_ARMS], asked[RAW_ARMS], opened, closed, judged, alls, drops;
	int32_t first_id[64];          /* first prompt id of every batch of the candidate */
	int firsts;
};

static int fake_open(void *ctx, enum raw_arm arm, enum engine_outcome *o, struct err *e)
{
	struct fake *f = ctx;
	(void)o, (void)e;
	assert_false(f->live[arm]);
	f->live[arm] = 1;
	f->opened++;
	return 0;
}

/* What the model says, here: a function of prompt and place. */
static int32_t right(const int32_t *prompt, int n, int t)
{
	int64_t sum = t;
	for (int i = 0; i < n; i++)
		sum += (i + 1) * (int64_t)prompt[i];
	return (int32_t)(sum % VOCAB);
}

static int fake_ask(void *ctx, enum raw_arm arm, struct engine_batch *b, enum engine_outcome *o, struct err *e)
{
	struct fake *f = ctx;
	(void)o, (void)e;
	assert_true(f->live[arm]);
	f->asked[arm]++;
	f->company += arm == RAW_CHAMPION && f->live[RAW_CANDIDATE];
	double x = exp(f->sd * noise_normal(&f->rng)) / f->speed[arm];
	if (f->stall && arm == RAW_CANDIDATE && f->asked[arm] % f->stall == 0)
		x *= 1.5;
	if (f->drift > 0 && (f->opened - 1) / 3 % 2)
		x *= f->drift;
	for (int t = 0; t < b->steps; t++) {
		b->stamp[t] = (int64_t)(x * (1e7 * (f->first[arm] > 0 ? f->first[arm] : 1) + 1e6 * t));
		for (int i = 0; i < b->batch; i++)
			b->out[i * b->steps + t] = right(b->ids + i * b->prompt, b->prompt, t);
	}
	if (f->wrong_at && arm == f->wrong_arm && f->asked[arm] == f->wrong_at)
		b->out[0] ^= 1;
	if (arm == RAW_CANDIDATE && f->firsts < 64)
		f->first_id[f->firsts++] = b->ids[0] * VOCAB + b->ids[1];
	return 0;
}

static int fake_close(void *ctx, enum raw_arm arm, enum engine_outcome *o, struct engine_end *end, struct err *e)
{
	struct fake *f = ctx;
	(void)e;
	*end = (struct engine_end){.max_rss = arm == RAW_CANDIDATE ? f->rss : 1 << 20,
				   .gpu_bytes = arm == RAW_CANDIDATE ? f->gpu : -1};
	if (arm == RAW_CANDIDATE && *o == ENGINE_OK)
		*o = f->at_close;
	f->live[arm] = 0;
	f->closed++;
	return 0;
}

static int fake_judge(void *ctx, const struct engine_task *t, const int32_t *prompt, const int32_t *token, const char **code,
		      struct err *e)
{
	struct fake *f = ctx;
	(void)e;
	for (int a = 0; a < RAW_ARMS; a++)
		assert_false(f->live[a]); /* reaped before a token is looked at */
	f->judged++;
	for (int i = 0; i < t->batch; i++)
		for (int k = 0; k < t->steps; k++)
			if (token[i * t->steps + k] != right(prompt + i * t->prompt, t->prompt, k))
				*code = "margin";
	return 0;
}

/* Many a little wrong: asked of the candidate's alone. */
static int fake_all(void *ctx, const char **code, struct err *e)
{
	struct fake *f = ctx;
	(void)e;
	f->alls++;
	if (f->blurred)
		*code = "mean_regret";
	return 0;
}

static void fake_drop(void *ctx)
{
	((struct fake *)ctx)->drops++;
}

static int fake_disturbed(void *ctx, int session, char why[128], struct err *e)
{
	struct fake *f = ctx;
	(void)e;
	for (int a = 0; a < RAW_ARMS; a++)
		assert_false(f->live[a]);
	snprintf(why, 128, "1 other compute process on the GPU");
	return f->strangers > 0 && session + 1 == f->strangers;
}

static const struct engine_judging JUDGE = {fake_judge, fake_all, fake_drop};
static const struct engine_io IO = {fake_open, fake_ask, fake_close, fake_disturbed};
static const struct engine_task TASKS[] = {{1, 8, 20, 1, "one"}, {2, 6, 30, 1, "two"}, {3, 5, 7, 0, "odd"}};

struct bed {
	struct fake *f;
	struct engine_session s;
	struct contest t;
	struct raw raw;
};

static void set_up(struct bed *b, struct fake *f, int tasks)
{
	static const char *const NAMES[] = {"one", "two", "odd"};
	*b = (struct bed){.f = f};
	if (f->rss == 0)
		f->rss = 1 << 20;
	b->s = (struct engine_session){.tasks = tasks, .task = TASKS, .vocab = VOCAB, .seed = "5eed", .limit_s = 1,
				       .io = &IO, .io_ctx = f, .judge = &JUDGE, .judge_ctx = f, .raw = &b->raw};
	raw_begin(&b->raw, 1000000000);
	contest_init(&b->t);
	b->t.c = f->lasting ? &SESSION_ENGINE_GPU : &SESSION_ENGINE;
	b->s.lasting = b->t.c->lasting;
	b->t.rule.margin = 0.01;
	b->t.rule.s0 = b->t.c->s0_floor;
	b->t.rule.k_max = b->t.c->k_max;
	b->t.workloads = tasks;
	for (int i = 0; i < tasks; i++) {
		b->t.name[i] = NAMES[i];
		b->t.weight[i] = TASKS[i].weight;
	}
	snprintf(b->t.order_seed, sizeof b->t.order_seed, "00112233445566778899aabbccddeeff");
	b->t.anchor = 1;
	b->t.ops = &ENGINE_OPS;
	b->t.ctx = &b->s;
	b->t.raw = &b->raw;
}

static void tear_down(struct bed *b)
{
	contest_free(&b->t);
	raw_free(&b->raw);
	engine_session_free(&b->s);
}

static const struct engine_limits LIMITS = {1.05, 1.05, 0.25, 64 << 20, 0, NULL, NULL};

static void decide(struct bed *b, struct fake *f)
{
	struct err e;
	set_up(b, f, 2);
	assert_int_equal(contest_decide(&b->t, &e), 0);
	const struct engine_range g = {&b->s, 0, b->t.n, 1};
	engine_gates(&g, &LIMITS, &b->t);
	assert_non_null(reason_find(b->t.code));
	assert_int_equal(f->opened, f->closed);
}

/* The candidate and the champion this much faster than the native engine. */
static struct fake engines(uint64_t seed, double candidate, double champion)
{
	return (struct fake){.rng = {.s = seed}, .sd = 0.005, .speed = {champion, candidate, 1}};
}

static void expect(struct fake f, enum verdict_kind kind, const char *code, int sessions)
{
	struct bed b;
	decide(&b, &f);
	if (b.t.kind != kind || strcmp(b.t.code, code) != 0)
		print_message("%s: %s\n", b.t.code, b.t.message);
	assert_int_equal(b.t.kind, kind);
	assert_string_equal(b.t.code, code);
	if (sessions)
		assert_int_equal(b.t.n, sessions);
	tear_down(&b);
}

static void test_decisions(void **state)
{
	(void)state;
	expect(engines(1, 1.32, 1.2), V_PASS, "ok", 0);           /* 10 % faster */
	expect(engines(2, 1.14, 1.2), V_REJECT, "bench.slower", 1); /* 5 % slower: one session */
	for (uint64_t seed = 10; seed < 30; seed++) {             /* against itself */
		struct fake f = engines(seed, 1.2, 1.2);
		struct bed b;
		f.sd = 0.02;
		decide(&b, &f);
		assert_int_not_equal(b.t.kind, V_PASS);
		tear_down(&b);
	}
}

static void test_gates(void **state)
{
	(void)state;
	struct fake f = engines(3, 1.32, 1.2);
	f.rss = 100 << 20;
	expect(f, V_REJECT, "bench.memory", 0);
	f = engines(4, 1.6, 1.2);
	f.stall = 3;
	expect(f, V_REJECT, "bench.spread", 0);
	f = engines(5, 1.32, 1.2); /* unsteady, and so is the champion */
	f.sd = 0.15;
	struct bed b;
	decide(&b, &f);
	assert_int_not_equal(b.t.kind, V_PASS);
	tear_down(&b);
	f = engines(6, 3, 1.2); /* tokens far faster, the first one three times as late */
	f.first[RAW_CANDIDATE] = 3;
	expect(f, V_REJECT, "bench.ttft", 0);
	f = engines(7, 1.0, 0.85); /* faster than the champion by the first step, slower than the native engine by the token */
	f.first[RAW_CANDIDATE] = 0.4;
	f.speed[RAW_CANDIDATE] = 0.9;
	expect(f, V_REJECT, "bench.tpot", 0);
}

static void test_wrong_tokens(void **state)
{
	(void)state;
	struct fake f = engines(8, 1.32, 1.2);
	f.wrong_at = 7;
	f.wrong_arm = RAW_CANDIDATE;
	expect(f, V_REJECT, "bench.wrong_output", 1);
	f.wrong_arm = RAW_CHAMPION;
	expect(f, V_INVALID, "bench.rival", 1);
	f = engines(8, 1.32, 1.2);
	f.blurred = 1;
	expect(f, V_REJECT, "bench.wrong_output", 1);
	f = engines(8, 1.32, 1.2);
	f.at_close = ENGINE_EXTRA;
	expect(f, V_REJECT, "bench.protocol", 1);
	f.at_close = ENGINE_TIMEOUT;
	expect(f, V_REJECT, "bench.timeout", 1);
}

/* Same prompts in a pair, others in every pair; all samples end up verified, for the price of one arm's replay. */
static void test_prompts_and_replay(void **state)
{
	(void)state;
	struct fake f = engines(9, 1.32, 1.2);
	struct bed b;
	decide(&b, &f);
	assert_int_equal(b.t.kind, V_PASS);
	assert_int_equal(b.raw.count, (uint64_t)b.s.samples);
	for (uint64_t i = 0; i < b.raw.count; i++) {
		struct raw_rep r;
		raw_get(&b.raw, i, &r);
		assert_int_equal(r.check, RAW_RIGHT);
		assert_int_equal(r.stop - r.start, (uint64_t)b.s.sample[i].total);
	}
	assert_int_equal(f.judged, f.asked[RAW_CANDIDATE]);
	assert_int_equal(f.alls, b.t.n);
	assert_int_equal(f.drops, b.t.n);
	int twice = 0;
	for (int i = 0; i < f.firsts; i++)
		for (int k = 0; k < i; k++)
			twice += f.first_id[i] == f.first_id[k];
	assert_true(twice < 2); /* 18 bits of prompt: hardly ever by chance */
	int32_t x[20], y[20];
	engine_session_prompts("ab", 1, 2, 3, 4, VOCAB, 20, x);
	engine_session_prompts("ab", 1, 2, 3, 4, VOCAB, 20, y);
	assert_memory_equal(x, y, sizeof x);
	engine_session_prompts("ab", 1, 2, 3, 5, VOCAB, 20, y);
	assert_memory_not_equal(x, y, sizeof x);
	for (int i = 0; i < 20; i++)
		assert_in_range(x[i], 0, VOCAB - 1);
	tear_down(&b);
}

static void test_score(void **state)
{
	(void)state;
	struct fake f = engines(9, 2, 1);
	struct bed b;
	f.sd = 0;
	decide(&b, &f);
	const struct engine_range g = {&b.s, 0, b.t.n, 1};
	/* 20 tokens in 29 ms, 60 in 39 ms */
	const double native = sqrt(20 / 0.029 * (60 / 0.039));
	assert_true(fabs(engine_score(&g, RAW_BASELINE) / native - 1) < 1e-6);
	assert_true(fabs(engine_score(&g, RAW_CANDIDATE) / native - 2) < 1e-6);
	const struct engine_times t = engine_times_of(&g, 0, RAW_CANDIDATE);
	assert_true(fabs(t.ttft - 0.005) < 1e-9 && fabs(t.tpot - 0.0005) < 1e-9 && fabs(t.spread) < 1e-6);
	const struct engine_range own = {&b.s, 0, b.t.n, 0}; /* were the champion the native engine */
	assert_true(fabs(engine_score(&own, RAW_BASELINE) / native - 1) < 1e-6);
	tear_down(&b);
}

/* A confirmation also runs what is held out, guards it, and gates it not. */
static void test_confirmation(void **state)
{
	(void)state;
	struct fake f = engines(11, 1.32, 1.2);
	struct bed b;
	struct err e;
	set_up(&b, &f, 3);
	b.t.confirming = 1;
	assert_int_equal(contest_fixed(&b.t, CONTEST_CONFIRM, &e), 0);
	contest_confirm(&b.t);
	const struct engine_range g = {&b.s, 0, b.t.n, 1};
	engine_gates(&g, &LIMITS, &b.t);
	assert_int_equal(b.t.kind, V_PASS);
	assert_int_equal(engine_times_of(&g, 2, RAW_BASELINE).n, 0);
	assert_true(engine_times_of(&g, 2, RAW_CANDIDATE).n > 0);
	tear_down(&b);
}

/* A processor at another clock in every other session: no fault of an engine, which is as steady as the one beside it. */
static void test_drift(void **state)
{
	(void)state;
	struct fake f = engines(23, 1.32, 1.2);
	f.lasting = 1, f.sd = 0.01, f.drift = 1.6;
	expect(f, V_PASS, "ok", 0);
	f.stall = 3, f.speed[RAW_CANDIDATE] = 2.4;
	expect(f, V_REJECT, "bench.spread", 0);
}

/* One process of each arm in a session: what that costs, and that it says the same. */
static void test_lasting(void **state)
{
	(void)state;
	struct fake f = engines(21, 1.32, 1.2);
	struct bed b;
	f.lasting = 1, f.gpu = 7 << 20, f.sd = 0.01;
	decide(&b, &f);
	assert_int_equal(b.t.kind, V_PASS);
	const int n = b.t.n;
	assert_true(n <= 6);
	assert_int_equal(f.opened, 3 * n);
	/* two workloads: alone 2, warm 1, measured 2; candidate also 2 beside the native engine, which warms up as well */
	assert_int_equal(f.asked[RAW_CHAMPION], 2 * 5 * n);
	assert_int_equal(f.company, 2 * 3 * n);
	assert_int_equal(f.asked[RAW_CANDIDATE], 2 * 5 * n);
	assert_int_equal(f.asked[RAW_BASELINE], 2 * 3 * n);
	assert_int_equal(f.judged, f.asked[RAW_CANDIDATE]);
	assert_true(b.s.gpu_bytes[RAW_CANDIDATE][0] == f.gpu && b.s.gpu_bytes[RAW_CANDIDATE][1] == f.gpu);
	for (uint64_t i = 0; i < b.raw.count; i++) {
		struct raw_rep r;
		raw_get(&b.raw, i, &r);
		assert_int_equal(r.check, RAW_RIGHT);
	}
	tear_down(&b);
	f = engines(22, 1.14, 1.2);
	f.lasting = 1;
	expect(f, V_REJECT, "bench.slower", 1);
	f = engines(23, 1.32, 1.2);
	f.lasting = 1, f.wrong_at = 4, f.wrong_arm = RAW_CANDIDATE;
	expect(f, V_REJECT, "bench.wrong_output", 1);
	f.wrong_at = 0, f.at_close = ENGINE_EXTRA;
	expect(f, V_REJECT, "bench.protocol", 1);
	f.at_close = ENGINE_OK, f.strangers = 2;
	expect(f, V_INVALID, "bench.invalid_env", 2);
	for (uint64_t seed = 40; seed < 60; seed++) { /* against itself */
		f = engines(seed, 1.2, 1.2);
		f.lasting = 1, f.sd = 0.02;
		decide(&b, &f);
		assert_int_not_equal(b.t.kind, V_PASS);
		tear_down(&b);
	}
}

/* Below what the machine can do is a fault of the measurement, where the model is too large for its caches. */
static void test_floor(void **state)
{
	(void)state;
	struct engine_floor floor[] = {{.prefill_s = 0.001, .step_s = 0.001, .total_s = 0.021, .binds = 1}, {.binds = 1}};
	struct engine_limits l = LIMITS;
	l.floor = floor, l.ceilings = "measured";
	for (int k = 0; k < 3; k++) {
		struct fake f = engines(24, 1.32, 1.2); /* 29 ms / 1.32 is 22 ms */
		struct bed b;
		decide(&b, &f);
		assert_int_equal(b.t.kind, V_PASS);
		const struct engine_range g = {&b.s, 0, b.t.n, 1};
		floor[0].total_s = k == 0 ? 0.0215 : 0.025;
		floor[0].binds = k < 2;
		engine_gates(&g, &l, &b.t);
		assert_string_equal(b.t.code, k == 1 ? "bench.engine_floor" : "ok");
		assert_int_equal(b.t.kind, k == 1 ? V_INCONCLUSIVE : V_PASS);
		tear_down(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decisions),       cmocka_unit_test(test_gates),
		cmocka_unit_test(test_wrong_tokens),    cmocka_unit_test(test_prompts_and_replay),
		cmocka_unit_test(test_score),           cmocka_unit_test(test_confirmation),
		cmocka_unit_test(test_drift),
		cmocka_unit_test(test_lasting),         cmocka_unit_test(test_floor),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
