/*
 * test_engine_floor.c - tests of engine_floor: the floors of the known shapes on an H200's data sheet, and whose ceilings hold.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_floor.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { L2 = 60 << 20 };
static const struct qwen3_config SHAPE[] = {
	{1024, 28, 16, 8, 128, 3072, 151936, 40960, 1, 1e6, 1e-6},
	{2048, 28, 16, 8, 128, 6144, 151936, 40960, 1, 1e6, 1e-6},
	{2560, 36, 32, 8, 128, 9728, 151936, 40960, 1, 1e6, 1e-6},
	{4096, 36, 32, 8, 128, 12288, 151936, 40960, 0, 1e6, 1e-6},
};

static void near(double is, double want, double by)
{
	if (!(fabs(is / want - 1) <= by))
		fail_msg("%.6g is not %.6g", is, want);
}

/* ms of the prefill, us of a step, ms in all, tokens a second. Computed apart from this code. */
static void test_table(void **state)
{
	static const struct {
		int shape, batch, prompt, steps;
		double prefill, step, total, rate;
	} t[] = {
		{0, 1, 512, 32, 0.61, 261, 8.70, 3678},    {0, 4, 2048, 32, 11.57, 446, 25.39, 5042},
		{0, 16, 512, 128, 9.75, 469, 69.26, 29571}, {1, 1, 512, 32, 1.87, 730, 24.48, 1307},
		{1, 4, 2048, 32, 31.67, 914, 60.01, 2133},  {1, 16, 512, 128, 29.85, 937, 148.86, 13758},
		{2, 1, 512, 32, 4.81, 1692, 57.27, 559},    {2, 4, 2048, 32, 81.62, 1930, 141.44, 905},
		{2, 16, 512, 128, 76.94, 1959, 325.75, 6287}, {3, 1, 512, 32, 9.1, 3170, 107, 298},
		{3, 4, 2048, 32, 150, 3407, 256, 500},      {3, 16, 512, 128, 146, 3437, 582, 3518},
	};
	const struct engine_ceilings k = {4.8e12, 790e12, "data sheet"};
	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		const struct engine_floor f = engine_floor_of(&SHAPE[t[i].shape], &k, L2, t[i].batch, t[i].prompt, t[i].steps);
		near(f.prefill_s * 1e3, t[i].prefill, 0.01);
		near(f.step_s * 1e6, t[i].step, 0.002);
		near(f.total_s * 1e3, t[i].total, 0.005);
		near(t[i].batch * t[i].steps / f.total_s, t[i].rate, 0.002);
		assert_true(f.binds);
	}
}

static void test_edges(void **state)
{
	const struct engine_ceilings k = {4.8e12, 790e12, "data sheet"}, none = {0, 0, "none"};
	const struct qwen3_config tiny = {64, 4, 4, 2, 32, 192, 512, 4096, 1, 1e6, 1e-6};
	(void)state;
	struct engine_floor f = engine_floor_of(&SHAPE[0], &k, L2, 1, 1, 1);
	assert_true(f.step_s == 0 && f.total_s == f.prefill_s);
	near(f.prefill_s * 1e6, 248.3, 0.002); /* weights once */
	f = engine_floor_of(&tiny, &k, L2, 1, 16, 16);
	assert_true(f.total_s > 0 && !f.binds);
	f = engine_floor_of(&SHAPE[0], &none, L2, 1, 16, 16);
	assert_true(f.total_s == 0 && f.prefill_s == 0 && !f.binds);
	/* 256 sequences: products bind, not reading */
	f = engine_floor_of(&SHAPE[0], &(struct engine_ceilings){4.8e12, 10e12, "measured"}, L2, 256, 1, 2);
	near(f.step_s * 1e3, 2 * (440401920.0 + 155582464.0) * 256 / 10e12 * 1e3, 0.01);
}

static void test_ceilings(void **state)
{
	struct gpu g = {0};
	(void)state;
	assert_string_equal(engine_ceilings_of(NULL).from, "none");
	strcpy(g.facts.name, "NVIDIA L4");
	assert_string_equal(engine_ceilings_of(&g).from, "none");
	strcpy(g.facts.name, "NVIDIA H200");
	struct engine_ceilings k = engine_ceilings_of(&g);
	assert_string_equal(k.from, "data sheet");
	assert_true(k.bytes_s == 4.8e12 && k.flops_s == 790e12);
	g.ceilings.copy_gbs = 4230, g.ceilings.read_gbs = 4400, g.ceilings.bf16_tflops = 963;
	k = engine_ceilings_of(&g);
	assert_string_equal(k.from, "measured");
	assert_true(k.bytes_s == 4400e9 && k.flops_s == 963e12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_table), cmocka_unit_test(test_edges), cmocka_unit_test(test_ceilings)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
