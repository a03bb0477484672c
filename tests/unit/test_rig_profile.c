/*
 * test_rig_profile.c - the floor below which no time on a GPU is believed. Reads the shipped specs.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/rig_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

static struct gpu h200(void)
{
	struct gpu g = {.sm_mhz_max = 1980, .arch = "sm_90a",
			.ceilings = {.copy_gbs = 4260, .read_gbs = 4500, .write_gbs = 4340, .bf16_tflops = 600}};
	g.facts.sm_count = 132;
	g.facts.l2_bytes = 62914560;
	return g;
}

static double floor_us(const char *dir, const char *workload, const struct gpu *g)
{
	struct spec *s;
	struct err e;
	double us = -1;
	assert_int_equal(spec_load(dir, &s, &e), 0);
	for (int i = 0; i < s->npublic; i++)
		if (strcmp(s->public[i].name, workload) == 0)
			us = 1e6 * rig_floor_s(s, &s->public[i].gpu, g);
	spec_free(s);
	return us;
}

/* What was measured on an H200 must be believed; what no H200 can do must not. */
static void test_floor(void **state)
{
	(void)state;
	struct gpu g = h200();
	double add = floor_us("specs/vector_add", "large", &g), gemm = floor_us("specs/matmul_bf16", "square", &g);
	assert_true(189.7 > RIG_FLOOR * add);  /* torch */
	assert_true(60.0 < RIG_FLOOR * add);   /* a third of the bytes */
	assert_true(175.6 > RIG_FLOOR * gemm); /* 782 TFLOP/s, above what a plain mma loop was measured to reach */
	assert_true(100.0 < RIG_FLOOR * gemm); /* 1,374 TFLOP/s */
}

/* Writes that the cache can hold are not paid for inside the window. */
static void test_small_writes(void **state)
{
	(void)state;
	struct gpu g = h200();
	double us = floor_us("specs/silu_mul", "odd", &g); /* 8 + 8 MB in, 8 MB out, bf16 */
	assert_true(us > 0.5 * 16.7e6 / 4500e9 * 1e6 && us < 1.05 * 16.8e6 / 4500e9 * 1e6);
}

static void test_unknown(void **state)
{
	(void)state;
	struct gpu g = {0};
	assert_true(floor_us("specs/vector_add", "large", &g) == 0); /* no figures: nothing is claimed */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_floor),
		cmocka_unit_test(test_small_writes),
		cmocka_unit_test(test_unknown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
