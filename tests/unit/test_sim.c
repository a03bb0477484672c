/*
 * test_sim.c - the invented device is smooth, repeatable and as noisy as it says. Reads
 * specs/vector_add; writes nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/file.h"
#include "../../stages/lib/sim.h"
#include "../../stages/lib/stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

static struct spec *spec;
static struct plan *plan;

static int load(void **state)
{
	(void)state;
	struct err e = {0};
	struct buf text = BUF_INIT;
	const char *file = "specs/vector_add/baseline/plan.json";
	if (spec_load("specs/vector_add", &spec, &e) != 0 || file_read(file, 65536, &text, &e) != 0 ||
	    plan_parse(text.data, text.len, file, &plan, &e) != 0) {
		print_error("%s\n", e.text);
		return -1;
	}
	buf_free(&text);
	return 0;
}

static int unload(void **state)
{
	(void)state;
	plan_free(plan);
	spec_free(spec);
	return 0;
}

static struct sim at(const char *key)
{
	struct sim s;
	struct err e = {0};
	assert_int_equal(sim_open(&s, spec, plan, &spec->public[0].gpu, key, &e), 0);
	return s;
}

static void test_repeatable(void **state)
{
	(void)state;
	struct sim a = at("1:abc"), b = at("1:abc"), c = at("1:abd");
	assert_int_equal(sim_ns(&a, 3, 4), sim_ns(&b, 3, 4));
	assert_true(a.true_ns == c.true_ns); /* the key moves the noise, not the truth */
	assert_int_not_equal(sim_ns(&a, 3, 4), sim_ns(&c, 3, 4));
	assert_int_not_equal(sim_ns(&a, 3, 4), sim_ns(&a, 3, 5));
}

static void test_noise_is_as_stated(void **state)
{
	(void)state;
	struct sim s = at("1:abc");
	double x[2000], between[200];
	for (int i = 0; i < 2000; i++)
		x[i] = log((double)sim_ns(&s, 1, (uint64_t)i));
	double sd = stats_sd(x, 2000);
	assert_true(sd > 0.9 * SIM_REP_SD && sd < 1.1 * SIM_REP_SD);
	for (int k = 0; k < 200; k++) {
		for (int i = 0; i < 400; i++)
			x[i] = log((double)sim_ns(&s, (uint64_t)k, (uint64_t)i));
		between[k] = stats_mean(x, 400) - log(s.true_ns);
	}
	sd = stats_sd(between, 200);
	assert_true(sd > 0.8 * SIM_SESSION_SD && sd < 1.25 * SIM_SESSION_SD);
	assert_true(fabs(stats_mean(between, 200)) < 0.0003);
}

/* One optimum, not at the corner where the baseline starts, and worth climbing to. */
static void test_there_is_something_to_find(void **state)
{
	(void)state;
	struct err e = {0};
	struct plan_config was, c;
	int64_t n;
	double start = at("k").true_ns, best = start, worst = start;
	plan_config_current(plan, &was);
	assert_int_equal(plan_space(plan, &n, &e), 0);
	for (int64_t i = 0; i < n; i++) {
		plan_config_at(plan, i, &c);
		assert_int_equal(plan_config_set(plan, &c, &e), 0);
		double ns = at("k").true_ns;
		best = fmin(best, ns);
		worst = fmax(worst, ns);
	}
	assert_int_equal(plan_config_set(plan, &was, &e), 0);
	assert_true(start / best > 1.05);
	assert_true(worst / best > 1.2 && worst / best < 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_repeatable),
		cmocka_unit_test(test_noise_is_as_stated),
		cmocka_unit_test(test_there_is_something_to_find),
	};
	return cmocka_run_group_tests(tests, load, unload);
}
