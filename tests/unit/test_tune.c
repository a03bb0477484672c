/*
 * test_tune.c - which configuration where: rules from timings, and the plan they make.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/tune_gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static const char SPEC[] =
	"{\"schema\":\"touchstone/spec/1\",\"name\":\"t\",\"op_type\":\"t\",\"description\":\"d\","
	"\"axes\":{\"M\":{\"type\":\"var\"},\"N\":{\"type\":\"var\"}},\"constraints\":[],"
	"\"inputs\":{\"x\":{\"shape\":[\"M\",\"N\"],\"dtype\":\"float32\","
	"\"fill\":{\"kind\":\"normal\",\"mean\":0,\"std\":1}}},"
	"\"outputs\":{\"y\":{\"shape\":[\"M\",\"N\"],\"dtype\":\"float32\",\"compare\":{\"kind\":\"tolerance\"}}},"
	"\"compute\":{\"operand\":\"float32\",\"accumulator\":\"float32\",\"intermediate\":\"float32\"},"
	"\"reference\":{\"source\":\"reference.cu\",\"plan\":\"reference.json\"},"
	"\"workloads\":{\"public\":[{\"name\":\"a\",\"axes\":{\"M\":16,\"N\":1024}},"
	"{\"name\":\"b\",\"axes\":{\"M\":64,\"N\":1024}},{\"name\":\"c\",\"axes\":{\"M\":1024,\"N\":1024}},"
	"{\"name\":\"d\",\"axes\":{\"M\":4096,\"N\":512}}],"
	"\"held_out\":{\"count\":1,\"axes\":{\"M\":{\"min\":1,\"max\":64},\"N\":{\"min\":1,\"max\":64}}},"
	"\"tiny\":[{\"M\":2,\"N\":3}]},"
	"\"cost\":{\"bytes\":\"8 * M * N\",\"flops\":\"M * N\"},"
	"\"promotion\":{\"margin\":0.02,\"guard\":-0.03}}";

static const char PLAN[] =
	"{\"schema\":\"touchstone/plan/1\",\"entries\":[\"k\"],"
	"\"tunables\":{\"B\":{\"values\":[32,64,128],\"value\":32},\"ONE\":{\"values\":[1],\"value\":1},"
	"\"U\":{\"values\":[1,2],\"value\":1}},"
	"\"launches\":[{\"entry\":\"k\",\"grid\":[\"M\"],\"block\":[\"B\"],\"args\":[{\"in\":\"x\"},"
	"{\"out\":\"y\"},{\"axis\":\"N\",\"type\":\"i32\"}]}]}";

static struct spec *spec;

static int setup(void **state)
{
	(void)state;
	struct err e = {0};

	if (spec_parse(SPEC, sizeof SPEC - 1, "spec.json", &spec, &e) < 0) {
		print_error("%s\n", e.text);
		return -1;
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	spec_free(spec);
	return 0;
}

static struct tune_timing of(double a, double b, double c, double d)
{
	return (struct tune_timing){.right = 1, .ns = {a, b, c, d}};
}

static int axis(const char *name)
{
	for (int i = 0; i < spec->naxes; i++)
		if (!strcmp(spec->axis[i].name, name))
			return i;
	return -1;
}

static void small_sizes_differ(void **state)
{
	(void)state;
	struct tune_timing t[2] = {of(100, 100, 100, 100), of(50, 60, 150, 150)};
	struct tune_rule r[TUNE_RULES];

	assert_int_equal(tune_rules(spec, t, 2, 0, r), 1);
	assert_int_equal(r[0].config, 1);
	assert_int_equal(r[0].axis, axis("M"));
	assert_true(r[0].below);
	assert_int_equal(r[0].at, 64 + (1024 - 64) / 2); /* halfway to the size that it loses at */
}

static void little_is_nothing(void **state)
{
	(void)state;
	struct tune_timing close[2] = {of(100, 100, 100, 100), of(97, 97, 130, 130)};
	/* In the middle only: no bound on one axis tells b from its neighbours on both sides. */
	struct tune_timing middle[2] = {of(100, 100, 100, 100), of(130, 50, 130, 130)};
	struct tune_timing wrong[2] = {of(100, 100, 100, 100), of(10, 10, 100, 100)};
	struct tune_rule r[TUNE_RULES];

	wrong[1].right = 0;
	assert_int_equal(tune_rules(spec, close, 2, 0, r), 0);
	assert_int_equal(tune_rules(spec, middle, 2, 0, r), 0);
	assert_int_equal(tune_rules(spec, wrong, 2, 0, r), 0);
}

static void two_rules_and_their_plan(void **state)
{
	(void)state;
	struct tune_timing t[3] = {of(100, 100, 100, 100), of(40, 120, 150, 150), of(150, 150, 150, 70)};
	struct plan_config c[3] = {{3, {32, 1, 1}}, {3, {64, 1, 1}}, {3, {128, 1, 2}}}, now, all[PLAN_MAX_CONFIGS];
	const struct plan_config *config[3] = {&c[0], &c[1], &c[2]};
	static const int want[4] = {1, 0, 0, 2};
	struct tune_rule r[TUNE_RULES];
	struct facts f;
	struct plan *p;
	struct err e = {0};
	int n = tune_rules(spec, t, 3, 0, r), images;

	assert_int_equal(n, 2);
	assert_int_equal(plan_parse(PLAN, sizeof PLAN - 1, "plan.json", &p, &e), 0);
	assert_int_equal(tune_rules_apply(p, spec, r, n, config, &e), 0);
	assert_int_equal(facts_find("emu", &f, &e), 0);
	f.one_config = 0;
	for (int k = 0; k < 4; k++) {
		assert_int_equal(plan_config_for(p, spec, &spec->public[k].gpu, &f, &now, &e), 0);
		assert_true(plan_config_equal(&now, &c[want[k]]));
	}
	assert_int_equal(plan_configs(p, all, &images, &e), 0);
	assert_true(images >= 3 && images <= PLAN_MAX_CONFIGS);
	plan_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_sizes_differ),
		cmocka_unit_test(little_is_nothing),
		cmocka_unit_test(two_rules_and_their_plan),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
