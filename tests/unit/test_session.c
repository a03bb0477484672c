/*
 * test_session.c - raw files, sessions and contests over a made-up device. Writes nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/contest.h"
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

static void test_raw_round_trip(void **state)
{
	(void)state;
	struct raw w, r;
	struct raw_rep in = {.start = 0x0102030405060708, .stop = 0xf102030405060709, .session = 65535,
			     .workload = 2, .block = 300, .slot = 7, .set = 0xdeadbeef,
			     .arm = 1, .phase = 2, .check = 1}, out;
	struct err e;
	size_t len;
	raw_begin(&w, 1000000000);
	raw_add(&w, &in);
	raw_add(&w, &(struct raw_rep){0});
	const uint8_t *bytes = raw_bytes(&w, &len);
	assert_int_equal(len, RAW_HEADER + 2 * RAW_RECORD);
	assert_memory_equal(bytes, "TSRAW1\n", 8);
	assert_int_equal(bytes[16], 2);
	assert_int_equal(bytes[32], 8); /* little-endian whatever the host */
	assert_int_equal(raw_parse(bytes, len, "x", &r, &e), 0);
	assert_int_equal(r.count, 2);
	raw_get(&r, 0, &out);
	assert_memory_equal(&in, &out, sizeof in);
	raw_free(&r);
	assert_int_equal(raw_parse(bytes, len - 1, "x", &r, &e), -1);
	assert_int_equal(e.code, EX_BADINPUT);
	assert_int_equal(raw_parse(bytes, 31, "x", &r, &e), -1);
	assert_int_equal(raw_parse("", 0, "x", &r, &e), -1);
	raw_free(&w);
}

/* A device whose arms have given speeds and noise. */
struct fake {
	struct noise_rng rng;
	double log_ratio[8];   /* by workload: candidate faster by this */
	double sd, between;
	double company;        /* champion's slow-down once the candidate lives */
	int break_at;          /* rep at which the outcome below happens; -1 never */
	enum shot_outcome outcome;
	enum raw_arm breaks;
	double scale;          /* times a millisecond; 0: once */
	int stray;             /* the candidate's first rep takes 50 times as long */
	double drain, sustained; /* the candidate's gain in the guards */
	int other;             /* the one that breaks is run before a rep of its rival */
	int lump, both;        /* one in so many of the candidate's reps (both: of either arm's) does the work of all */
	int lumps[RAW_ARMS];
	int void_at;           /* session that the machine spoils, from 1; 0 none */
	int open, live[RAW_ARMS], shots, starts[RAW_ARMS], alone_with_candidate;
	double offset;
};

static int fake_open(void *ctx, int session, int workload, struct err *e)
{
	struct fake *f = ctx;
	(void)session, (void)workload, (void)e;
	assert_false(f->open);
	f->open = 1;
	f->offset = f->between * noise_normal(&f->rng);
	return 0;
}

static int fake_start(void *ctx, enum raw_arm arm, enum shot_outcome *o, char text[256],
		      struct err *e)
{
	struct fake *f = ctx;
	(void)o, (void)text, (void)e;
	f->live[arm] = 1;
	f->starts[arm]++;
	return 0;
}

static int fake_stop(void *ctx, enum raw_arm arm, struct err *e)
{
	struct fake *f = ctx;
	(void)e;
	f->live[arm] = 0;
	return 0;
}

static int fake_shoot(void *ctx, struct shot *s, struct err *e)
{
	struct fake *f = ctx;
	(void)e;
	assert_true(f->open && f->live[s->arm]);
	if (s->phase == RAW_SOLO && f->live[RAW_CANDIDATE])
		f->alone_with_candidate = 1;
	double x = log(1e6) + f->sd * noise_normal(&f->rng);
	if (s->arm == RAW_CANDIDATE && s->phase == RAW_DRAIN)
		x -= f->drain;
	else if (s->arm == RAW_CANDIDATE && s->phase == RAW_SUSTAINED)
		x -= f->sustained;
	else if (s->arm == RAW_CANDIDATE)
		x -= f->log_ratio[s->workload] + f->offset;
	if (s->arm == RAW_BASELINE)
		x += log(3);
	if (s->arm == RAW_CHAMPION && s->phase == RAW_MEASURE)
		x += f->company;
	if (f->lump && s->phase == RAW_MEASURE && (f->both || s->arm == RAW_CANDIDATE))
		x += ++f->lumps[s->arm] % f->lump ? log(0.24) : log(f->lump - 0.24 * (f->lump - 1));
	if (f->scale > 0)
		x += log(f->scale);
	if (f->stray && s->arm == RAW_CANDIDATE) {
		x += log(50);
		f->stray = 0;
	}
	s->start = 1000 * s->rep;
	s->stop = s->start + (uint64_t)exp(x);
	s->check = RAW_RIGHT;
	if (f->break_at >= 0 && f->shots >= f->break_at && (s->arm == f->breaks) != f->other) {
		s->outcome = f->outcome;
		s->arm = f->breaks;
		snprintf(s->text, sizeof s->text, "broken on purpose");
	}
	f->shots++;
	return 0;
}

static void fake_close(void *ctx)
{
	struct fake *f = ctx;
	f->open = 0;
	memset(f->live, 0, sizeof f->live);
}

static int fake_end(void *ctx, struct shot *s, struct err *e)
{
	struct fake *f = ctx;
	(void)e;
	if (f->void_at && s->session + 1 == f->void_at) {
		s->outcome = SHOT_ENV;
		snprintf(s->text, sizeof s->text, "somebody else is on the GPU");
	}
	return 0;
}

static const struct session_ops FAKE = {fake_open, fake_start, fake_stop, fake_shoot, fake_close, fake_end};
static const char *const NAMES[] = {"a", "b", "c"};

static void set_up(struct contest *t, struct fake *f, struct raw *raw, int workloads)
{
	contest_init(t);
	raw_begin(raw, 1000000000);
	t->c = &SESSION_SIM;
	t->rule.s0 = 0.003;
	t->workloads = workloads;
	for (int i = 0; i < workloads; i++) {
		t->name[i] = NAMES[i];
		t->weight[i] = 1;
	}
	snprintf(t->order_seed, sizeof t->order_seed, "00112233445566778899aabbccddeeff");
	t->ops = &FAKE;
	t->ctx = f;
	t->raw = raw;
}

static struct fake quiet(uint64_t seed, double a, double b)
{
	return (struct fake){.rng = {.s = seed}, .log_ratio = {a, b}, .sd = 0.01,
			     .between = 0.001, .break_at = -1};
}

static enum verdict_kind decide(struct fake f, int workloads, char code[64], int *sessions)
{
	struct contest t;
	struct raw raw;
	struct err e;
	set_up(&t, &f, &raw, workloads);
	assert_int_equal(contest_decide(&t, &e), 0);
	assert_non_null(t.code);
	snprintf(code, 64, "%s", t.code);
	*sessions = t.n;
	enum verdict_kind kind = t.kind;
	assert_false(f.open);
	assert_false(f.alone_with_candidate);
	contest_free(&t);
	raw_free(&raw);
	return kind;
}

static void test_decisions(void **state)
{
	(void)state;
	char code[64];
	int n;
	assert_int_equal(decide(quiet(1, 0.06, 0.06), 2, code, &n), V_PASS);
	assert_string_equal(code, "ok");
	assert_true(n >= 4);
	assert_int_equal(decide(quiet(2, -0.10, -0.10), 2, code, &n), V_REJECT);
	assert_string_equal(code, "bench.slower");
	assert_int_equal(n, 1); /* a loser costs one session */
	assert_int_equal(decide(quiet(3, 0.004, 0.004), 2, code, &n), V_REJECT);
	assert_string_equal(code, "bench.below_margin");
	/* Wins on average, loses 8 % on one workload. */
	assert_int_equal(decide(quiet(4, 0.25, -0.08), 2, code, &n), V_REJECT);
	assert_string_equal(code, "bench.workload");
}

static void test_failures_are_charged_to_the_guilty(void **state)
{
	(void)state;
	char code[64];
	int n;
	struct fake f = quiet(1, 0.06, 0.06);
	f.break_at = 20;
	f.breaks = RAW_CANDIDATE;
	f.outcome = SHOT_WRONG;
	assert_int_equal(decide(f, 2, code, &n), V_REJECT);
	assert_string_equal(code, "bench.wrong_output");
	f.outcome = SHOT_LATE;
	assert_int_equal(decide(f, 2, code, &n), V_REJECT);
	assert_string_equal(code, "bench.late_work");
	f.breaks = RAW_CHAMPION;
	assert_int_equal(decide(f, 2, code, &n), V_INVALID);
	assert_string_equal(code, "bench.rival");
	/* A rig may run the other arm, to warm it up, before the rep that it was asked for. */
	f.other = 1;
	assert_int_equal(decide(f, 2, code, &n), V_INVALID);
	assert_string_equal(code, "bench.rival");
	f.breaks = RAW_CANDIDATE;
	f.outcome = SHOT_FAULT;
	assert_int_equal(decide(f, 2, code, &n), V_REJECT);
	assert_string_equal(code, "bench.fault");
}

/* What is hopeless ends after two warm pairs, or once it has cost 20 s more than the champion; what
 * is merely slow is measured, and a single slow rep (a burst of other work) is not held against it. */
static void test_hopeless(void **state)
{
	(void)state;
	const struct {
		double slower, sd;
		int confirming, slow, most;
		const char *code;
	} cell[] = {
		{25, 0.01, 0, 1, 40, "bench.slower"},   /* at most both workloads' solo and warm reps */
		{15, 0.01, 0, 0, 1000, "bench.slower"},
		{25, 0.01, 1, 1, 100, "confirm.workload"},
	};
	for (size_t i = 0; i < sizeof cell / sizeof *cell; i++) {
		struct fake f = quiet(5, 0.05, -log(cell[i].slower));
		struct contest t;
		struct raw raw;
		struct err e;
		set_up(&t, &f, &raw, 2);
		t.confirming = cell[i].confirming;
		assert_int_equal(t.confirming ? contest_fixed(&t, 4, &e) : contest_decide(&t, &e), 0);
		assert_int_equal(t.kind, V_REJECT);
		assert_string_equal(t.code, cell[i].code);
		assert_int_equal(t.slow, cell[i].slow);
		assert_true(f.shots <= cell[i].most);
		contest_free(&t);
		raw_free(&raw);
	}
	/* 19 times slower than a champion of a second: under the factor, over the time. */
	struct fake f = quiet(6, -log(19), 0);
	struct contest t;
	struct raw raw;
	struct err e;
	set_up(&t, &f, &raw, 1);
	f.scale = 1000;
	assert_int_equal(contest_decide(&t, &e), 0);
	assert_string_equal(t.code, "bench.slower");
	assert_true(t.slow && t.behind > 20000000000 && t.behind < 60000000000);
	contest_free(&t);
	raw_free(&raw);
	/* One stray rep. */
	f = quiet(7, 0.06, 0);
	f.stray = 1;
	set_up(&t, &f, &raw, 1);
	assert_int_equal(contest_decide(&t, &e), 0);
	assert_int_equal(t.kind, V_PASS);
	contest_free(&t);
	raw_free(&raw);
	/* The champion against itself is never given up. */
	f = quiet(8, -log(25), 0);
	set_up(&t, &f, &raw, 1);
	t.whole = 1;
	assert_int_equal(contest_fixed(&t, 2, &e), 0);
	assert_false(t.slow);
	contest_free(&t);
	raw_free(&raw);
}

/* A candidate that slows its rival down must not win by it. */
static void test_company_is_compared_with_solitude(void **state)
{
	(void)state;
	char code[64];
	int n;
	struct fake f = quiet(1, 0, 0);
	f.company = 0.2;
	assert_int_equal(decide(f, 2, code, &n), V_INVALID);
	assert_string_equal(code, "bench.champion_solo");
	f.company = 0.04; /* all that it wins by */
	f.sd = 0.004;
	assert_int_equal(decide(f, 2, code, &n), V_INVALID);
}

/* What one rep in ten does ahead for the others is no gain, and no outlier; a machine on which one rep in ten is
 * slow, whoever makes it, costs no winner its win. */
static void test_two_groups_of_times(void **state)
{
	(void)state;
	char code[64];
	int n;
	struct fake f = quiet(1, 0.01, 0);
	f.lump = 10;
	assert_int_equal(decide(f, 1, code, &n), V_REJECT);
	assert_string_equal(code, "bench.bimodal");
	f = quiet(1, 0.06, 0);
	f.lump = 10;
	f.both = 1;
	assert_int_equal(decide(f, 1, code, &n), V_PASS);
}

static void test_confirmation(void **state)
{
	(void)state;
	const struct {
		double public, secret;
		const char *code;
	} cell[] = {{0.05, 0.01, "ok"}, {0.05, -0.06, "confirm.held_out"}, {0.004, 0.1, "confirm.below_margin"}};
	for (size_t i = 0; i < sizeof cell / sizeof *cell; i++) {
		struct fake f = quiet(9, cell[i].public, cell[i].secret);
		struct contest t;
		struct raw raw;
		struct err e;
		double lo, hi;
		set_up(&t, &f, &raw, 2);
		t.weight[1] = 0;
		t.anchor = 1;
		t.confirming = 1;
		assert_int_equal(contest_fixed(&t, CONTEST_CONFIRM, &e), 0);
		contest_confirm(&t);
		assert_string_equal(t.code, cell[i].code);
		assert_true(t.k == CONTEST_CONFIRM && !strstr(t.message, "second look"));
		double ratio = contest_anchor(&t, &lo, &hi);
		assert_true(fabs(log(ratio) - log(3) - cell[i].public) < 0.02);
		assert_true(lo < ratio && ratio < hi);
		contest_free(&t);
		raw_free(&raw);
	}
}

/* Each quad is ABBA or BAAB as drawn, and both occur. */
static void test_order(void **state)
{
	(void)state;
	int seen[2] = {0};
	for (int b = 0; b < 64; b++)
		seen[session_order("seed", 0, 0, b, 0)]++;
	assert_true(seen[0] > 16 && seen[1] > 16);
	assert_int_equal(session_arm(0, 0, RAW_CHAMPION, RAW_CANDIDATE), RAW_CHAMPION);
	assert_int_equal(session_arm(0, 1, RAW_CHAMPION, RAW_CANDIDATE), RAW_CANDIDATE);
	assert_int_equal(session_arm(1, 3, RAW_CHAMPION, RAW_CANDIDATE), RAW_CANDIDATE);
	/* the documented derivation, by hand: printf 'seed:order:0:0:0:0' | sha256sum */
	assert_int_equal(session_word("seed", "order", 0, 0, 0, 0) & 0xff, 0xc5);
}

/* Swapping the arms' speeds mirrors theta: no label is favoured. */
static void test_sessions_are_symmetric(void **state)
{
	(void)state;
	double sum = 0;
	for (int i = 0; i < 40; i++) {
		struct fake f = quiet((uint64_t)i, 0, 0);
		struct contest t;
		struct raw raw;
		struct err e;
		set_up(&t, &f, &raw, 1);
		snprintf(t.order_seed, sizeof t.order_seed, "seed%d", i);
		assert_int_equal(contest_fixed(&t, 1, &e), 0);
		sum += t.theta[0];
		contest_free(&t);
		raw_free(&raw);
	}
	assert_true(fabs(sum / 40) < 0.0025);
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

/* Whoever remembers results must not meet their inputs again (S02 of the catalogue of cheats). */
static void test_no_set_twice(void **state)
{
	(void)state;
	static uint32_t set[4 * SESSION_BLOCKS];
	const struct session_class *c = &SESSION_EMU;
	int n = 0;
	for (int block = 0; block < c->blocks_max; block++)
		for (int slot = 0; slot < 4 * c->block_quads && n < 4 * SESSION_BLOCKS; slot++)
			set[n++] = session_set("seed", 1, 0, RAW_MEASURE * 65536 + block, slot, c->ring);
	qsort(set, (size_t)n, sizeof *set, by_number);
	for (int i = 1; i < n; i++)
		assert_true(set[i] != set[i - 1]);
}

/* Sizes of a GPU's workload, by the champion's window: 2.7 us are an empty launch's. */
static void test_sizes(void **state)
{
	(void)state;
	const struct {
		double rep, cost, prepare;
		int windows, fresh, quads, least, most;
	} cell[] = {
		{46600, 0.8e6, 0.3e6, 1, 1, 8, 128, 128},   /* 2,048 pairs are within reach */
		{12000, 0.8e6, 0.3e6, 1, 1, 8, 128, 128},
		{10700, 0.8e6, 0.3e6, 2, 1, 8, 80, 128},
		{4240, 0.8e6, 0.3e6, 6, 1, 8, 30, 80},
		{2800, 0.8e6, 0.3e6, 16, 1, 2, 30, 80},     /* hardly more than an empty launch */
		{5e6, 30e6, 24e6, 1, 0, 2, 8, 128},         /* slow reference: sets of a ring */
		{200e6, 400e6, 1e6, 1, 1, 1, 8, 8},
	};
	for (size_t i = 0; i < sizeof cell / sizeof *cell; i++) {
		struct session_size z;
		session_size_for(cell[i].rep, 2700, cell[i].cost, cell[i].prepare, &z);
		assert_int_equal(z.windows, cell[i].windows);
		assert_int_equal(z.fresh, cell[i].fresh);
		assert_int_equal(z.ring, z.fresh ? SESSION_CUDA.ring : 8);
		assert_int_equal(z.block_quads, cell[i].quads);
		assert_true(z.blocks_max >= cell[i].least && z.blocks_max <= cell[i].most);
		assert_true(z.blocks_max >= SESSION_CUDA.blocks_min && z.solo_reps >= 6 && z.anchor_quads >= 5);
		/* where windows are not at their cap, three quarters of one are the kernel's */
		double own = cell[i].rep - 2700;
		if (z.windows < 16)
			assert_true(own * z.windows / (own * z.windows + 2700) >= 0.749);
	}
}

static void test_classes(void **state)
{
	(void)state;
	assert_ptr_equal(session_class_of("emu"), &SESSION_EMU);
	assert_ptr_equal(session_class_of("sim"), &SESSION_SIM);
	assert_ptr_equal(session_class_of("nvidia-h200"), &SESSION_CUDA);
	assert_int_equal(2 * SESSION_CUDA.block_quads, 16);
	assert_int_equal(SESSION_CUDA.blocks_max * 2 * SESSION_CUDA.block_quads, 2048);
	assert_true(SESSION_CUDA.blocks_max <= SESSION_BLOCKS && SESSION_CUDA.k_max <= CONTEST_SESSIONS);
}

/* A GPU's confirmation: a win that is only borrowed from the memory behind, or from a cool chip. */
static void test_guards(void **state)
{
	(void)state;
	const struct {
		double drain, sustained;
		enum verdict_kind kind;
		const char *code;
	} cell[] = {
		{0.04, 0.04, V_PASS, "ok"},
		{-0.005, -0.02, V_PASS, "ok"}, /* within what is borne */
		{-0.03, 0.04, V_REJECT, "confirm.drain"},
		{0.04, -0.06, V_REJECT, "confirm.sustained"},
	};
	for (size_t i = 0; i < sizeof cell / sizeof *cell; i++) {
		struct fake f = quiet(21, 0.05, 0.05);
		struct session_size size[2];
		struct contest t;
		struct raw raw;
		struct err e;
		f.sd = 0.002;
		f.drain = cell[i].drain;
		f.sustained = cell[i].sustained;
		set_up(&t, &f, &raw, 2);
		session_size_for(46600, 2700, 0.8e6, 0.3e6, &size[0]);
		size[1] = size[0];
		size[1].block_quads = 2;
		t.size = size;
		t.c = &SESSION_CUDA;
		t.confirming = t.guards = 1;
		assert_int_equal(contest_fixed(&t, CONTEST_CONFIRM, &e), 0);
		contest_confirm(&t);
		assert_string_equal(t.code, cell[i].code);
		assert_int_equal(t.kind, cell[i].kind);
		assert_true(fabs(t.session[0].w[0].drain - cell[i].drain) < 0.002);
		assert_true(isnan(t.session[1].w[0].drain) && isnan(t.session[1].w[0].sustained));
		contest_free(&t);
		raw_free(&raw);
	}
}

/* What the machine spoils is nobody's fault, and no evidence. */
static void test_void_session(void **state)
{
	(void)state;
	char code[64];
	int n;
	struct fake f = quiet(1, 0.06, 0.06);
	f.void_at = 2;
	assert_int_equal(decide(f, 2, code, &n), V_INVALID);
	assert_string_equal(code, "bench.invalid_env");
	assert_int_equal(n, 2);
	/* but a wrong output is wrong on any machine */
	f.break_at = 20;
	f.void_at = 1;
	f.breaks = RAW_CANDIDATE;
	f.outcome = SHOT_WRONG;
	assert_int_equal(decide(f, 2, code, &n), V_REJECT);
	assert_string_equal(code, "bench.wrong_output");
	f.outcome = SHOT_TIMEOUT;
	assert_int_equal(decide(f, 2, code, &n), V_INVALID);
}

/* GPU class, by its noise: losers end in one short session, winners of 3 % in few. */
static void test_gpu_costs(void **state)
{
	(void)state;
	const struct {
		double gain;
		enum verdict_kind kind;
		int sessions, shots; /* at most */
	} cell[] = {{-0.30, V_REJECT, 1, 110}, {-0.10, V_REJECT, 1, 400}, {0.0, V_REJECT, 1, 500}, {0.03, V_PASS, 6, 6000}};
	for (size_t i = 0; i < sizeof cell / sizeof *cell; i++) {
		struct fake f = quiet(31 + i, cell[i].gain, 0);
		struct session_size size;
		struct contest t;
		struct raw raw;
		struct err e;
		f.sd = 0.015; /* a streaming kernel's rep */
		f.between = 0.0005;
		set_up(&t, &f, &raw, 1);
		session_size_for(46600, 2700, 0.8e6, 0.3e6, &size);
		t.size = &size;
		t.c = &SESSION_CUDA;
		t.rule.s0 = 0.001;
		assert_int_equal(contest_decide(&t, &e), 0);
		assert_int_equal(t.kind, cell[i].kind);
		assert_true(t.n <= cell[i].sessions && f.shots <= cell[i].shots);
		contest_free(&t);
		raw_free(&raw);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_set_twice),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_guards),
		cmocka_unit_test(test_void_session),
		cmocka_unit_test(test_gpu_costs),
		cmocka_unit_test(test_raw_round_trip),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_decisions),
		cmocka_unit_test(test_failures_are_charged_to_the_guilty),
		cmocka_unit_test(test_hopeless),
		cmocka_unit_test(test_company_is_compared_with_solitude),
		cmocka_unit_test(test_two_groups_of_times),
		cmocka_unit_test(test_confirmation),
		cmocka_unit_test(test_sessions_are_symmetric),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
