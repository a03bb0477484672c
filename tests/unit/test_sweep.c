/*
 * test_sweep.c - the sweep never repeats, covers small spaces whole, and does not depend on the
 * order in which trials in flight are proposed.
 *
 * Writes only below a directory of its own in TMPDIR.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/file.h"
#include "../../stages/lib/facts.h"
#include "../../stages/lib/sweep.h"
#include "../../stages/lib/trial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static char dir[128], cache[160], tsv[160];
static const char KERNEL[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

static int setup(void **state)
{
	const char *tmp = getenv("TMPDIR");
	(void)state;
	snprintf(dir, sizeof dir, "%s/test_sweep.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		return -1;
	snprintf(cache, sizeof cache, "%s/sweep.json", dir);
	snprintf(tsv, sizeof tsv, "%s/index.tsv", dir);
	return 0;
}

static int teardown(void **state)
{
	struct err e;
	(void)state;
	return dir_remove(dir, &e);
}

static void values(struct buf *t, const char *name, int n, int first)
{
	buf_addf(t, "%s\"%s\": {\"values\": [", t->data[t->len - 1] == '{' ? "" : ", ", name);
	for (int i = 0; i < n; i++)
		buf_addf(t, "%s%d", i ? "," : "", 1 << i);
	buf_addf(t, "], \"value\": %d}", first);
}

static struct plan *make_plan(int tunables, int each, const char *constraint)
{
	struct buf t = BUF_INIT;
	struct plan *p = NULL;
	struct err e = {0};
	buf_adds(&t, "{\"schema\": \"touchstone/plan/1\", \"entries\": [\"k\"], \"tunables\": {");
	for (int i = 0; i < tunables; i++) {
		char name[16];
		snprintf(name, sizeof name, "T%d", i);
		values(&t, name, each, 1);
	}
	buf_addf(&t, "}, \"constraints\": [%s], \"launches\": [{\"entry\": \"k\", \"grid\": [1], \"block\": [32], "
		 "\"args\": []}]}", constraint);
	if (plan_parse(t.data, t.len, "test plan", &p, &e))
		fail_msg("%s", e.text);
	buf_free(&t);
	return p;
}

struct bed {
	struct plan *p;
	struct spec *spec;
	struct facts facts;
	struct sweep s;
};

static void bed_open(struct bed *b, int tunables, int each, const char *constraint)
{
	struct err e;
	memset(b, 0, sizeof *b);
	b->p = make_plan(tunables, each, constraint);
	b->spec = xcalloc(1, sizeof *b->spec);
	snprintf(b->spec->name, sizeof b->spec->name, "test");
	assert_int_equal(facts_find("emu", &b->facts, &e), 0);
	b->s = (struct sweep){.base = b->p, .spec = b->spec, .facts = &b->facts, .device = "emu",
			      .kernel_sha = KERNEL, .base_tried = 1, .seed = 1, .width = 1, .first = 1,
			      .cache = cache, .tried = tsv};
	remove(cache);
	remove(tsv);
}

static void bed_close(struct bed *b)
{
	plan_free(b->p);
	free(b->spec);
}

static int64_t next(struct bed *b, long index, long sees)
{
	struct sweep_pick k;
	struct err e = {0};
	int64_t at = -1;
	int legal;
	b->s.index = index;
	b->s.sees = sees;
	if (sweep_next(&b->s, &k, &e))
		fail_msg("%s", e.text);
	if (!k.done) {
		at = plan_config_index(b->p, &k.config);
		assert_true(at >= 0);
		assert_int_equal(plan_config_legal(b->p, b->spec, NULL, &b->facts, &k.config, &legal, &e), 0);
		assert_true(legal);
	}
	buf_free(&k.plan);
	return at;
}

static void close_trial(struct bed *b, long number, int64_t at)
{
	char plan[HASH_HEX], cand[HASH_HEX], *line, id[TRIAL_ID];
	struct buf t = BUF_INIT;
	struct plan_config c;
	struct err e;
	plan_config_at(b->p, at, &c);
	assert_int_equal(plan_config_set(b->p, &c, &e), 0);
	sweep_plan_text(b->p, &t);
	hash_hex(t.data, t.len, plan);
	trial_candidate_sha(KERNEL, plan, cand);
	trial_id(id, number);
	line = xasprintf("%s\ttest\temu\t%s\treject\tbench.slower", id, cand);
	assert_int_equal(file_append(tsv, line, &e), 0);
	free(line);
	buf_free(&t);
	plan_config_at(b->p, 0, &c);
	plan_config_set(b->p, &c, &e);
}

/* 4^3 points, a constraint: every legal one but the champion's, once. */
static void test_small(void **state)
{
	struct bed b;
	char seen[64] = {0};
	int n = 0, legal = 0;
	int64_t at;
	(void)state;
	bed_open(&b, 3, 4, "\"T0 * T1 <= 16\"");
	for (int64_t i = 0; i < 64; i++) {
		struct plan_config c;
		struct err e;
		int yes;
		plan_config_at(b.p, i, &c);
		assert_int_equal(plan_config_legal(b.p, b.spec, NULL, &b.facts, &c, &yes, &e), 0);
		legal += yes;
	}
	while ((at = next(&b, n, 0)) >= 0) {
		assert_int_equal(seen[at]++, 0);
		n++;
	}
	assert_int_equal(n, legal - 1);
	assert_int_equal(seen[0], 0); /* the champion's own */
	bed_close(&b);
}

static void test_across_runs(void **state)
{
	struct bed b;
	char seen[64] = {0};
	int64_t at;
	(void)state;
	bed_open(&b, 3, 4, "");
	for (int i = 0; i < 20; i++) {
		at = next(&b, i, i);
		seen[at]++;
		close_trial(&b, i + 1, at);
	}
	b.s.first = 21; /* a new run, same seed */
	for (int i = 0; i < 43; i++) {
		at = next(&b, i, 20 + i);
		assert_true(at >= 0);
		assert_int_equal(seen[at]++, 0);
	}
	assert_int_equal(next(&b, 43, 63), -1);
	bed_close(&b);
}

static void test_start_goes_first(void **state)
{
	struct bed b;
	(void)state;
	bed_open(&b, 2, 4, "");
	b.s.base_tried = 0;
	assert_int_equal(next(&b, 0, 0), 0);
	assert_true(next(&b, 1, 0) > 0);
	bed_close(&b);
}

static void test_seed_orders(void **state)
{
	struct bed b;
	int64_t one[10];
	int same = 0;
	(void)state;
	bed_open(&b, 3, 4, "");
	for (int i = 0; i < 10; i++)
		one[i] = next(&b, i, 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(next(&b, i, 0), one[i]);
	b.s.seed = 2;
	for (int i = 0; i < 10; i++)
		same += next(&b, i, 0) == one[i];
	assert_true(same < 5);
	bed_close(&b);
}

/* 5^7 points, four in flight: proposals made in any order, from what was closed WIDTH before. */
static void test_large(void **state)
{
	struct bed b;
	struct plan_config champion;
	int64_t got[120];
	(void)state;
	bed_open(&b, 7, 5, "\"T0 + T1 < 24\"");
	plan_config_at(b.p, 31111, &champion);
	b.s.width = 4;
	b.s.champion = &champion;
	for (int i = 0; i < 120; i++) {
		if (i >= 4)
			close_trial(&b, i - 3, got[i - 4]);
		got[i] = next(&b, i, i >= 4 ? i - 3 : 0);
		assert_true(got[i] >= 0);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(got[k], got[i]);
		/* once more, after later trials have closed too: the same */
		if (i >= 8)
			assert_int_equal(next(&b, i - 4, i - 7), got[i - 4]);
	}
	bed_close(&b);
}

/* A source that was never tried is tried as it stands first, and by nobody else. */
static void test_large_own(void **state)
{
	struct bed b;
	struct plan_config own;
	(void)state;
	bed_open(&b, 7, 5, "");
	plan_config_current(b.p, &own);
	int64_t at = plan_config_index(b.p, &own);
	b.s.base_tried = 0;
	b.s.width = 4;
	assert_int_equal(next(&b, 0, 0), at);
	assert_int_equal(next(&b, 0, 0), at);
	for (int i = 1; i < 40; i++)
		assert_int_not_equal(next(&b, i, 0), at);
	close_trial(&b, 1, at);
	b.s.first = 2; /* the next run: it was tried */
	assert_int_not_equal(next(&b, 0, 1), at);
	bed_close(&b);
}

static void test_cost(void **state)
{
	struct bed b;
	struct timespec t0, t1;
	double ms;
	(void)state;
	bed_open(&b, 6, 4, ""); /* 4096 points */
	for (int i = 0; i < 5000; i++) {
		char *line = xasprintf("%04d\ttest\temu\t%064d\treject\tbench.slower", i + 1, i);
		struct err e;
		struct buf all = BUF_INIT;
		if (i == 0)
			remove(tsv);
		buf_adds(&all, line);
		if (i % 1000 == 0)
			assert_int_equal(file_append(tsv, line, &e), 0);
		buf_free(&all);
		free(line);
	}
	b.s.first = 5001;
	next(&b, 0, 5000);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t0);
	for (int i = 1; i <= 50; i++)
		next(&b, i, 5000);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t1);
	ms = ((double)(t1.tv_sec - t0.tv_sec) * 1e3 + (double)(t1.tv_nsec - t0.tv_nsec) / 1e6) / 50;
	print_message("# sweep: %.2f ms of CPU a proposal, 4096 points\n", ms);
	assert_true(ms < 60); /* sanitizers and slow machines; 1 ms or less is usual */
	bed_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small), cmocka_unit_test(test_across_runs),
		cmocka_unit_test(test_start_goes_first), cmocka_unit_test(test_seed_orders),
		cmocka_unit_test(test_large), cmocka_unit_test(test_large_own),
		cmocka_unit_test(test_cost),
	};
	return cmocka_run_group_tests_name("sweep", tests, setup, teardown);
}
