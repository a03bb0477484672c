/*
 * test_gpu_fill.c - inputs as the checker's kernels draw them, built for the host: distributions,
 * regimes, and the changes of a rep, which are those of fill.c. Writes nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#include "host_check.h"
#include "../../stages/lib/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

static const struct check_runner RUN = {host_launch, NULL};
static uint8_t key[32] = {3};

static uint64_t here(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static struct spec *spec_of(const char *inputs)
{
	struct spec *s;
	struct err e = {0};
	char *text = xasprintf(
		"{\"schema\":\"touchstone/spec/1\",\"name\":\"t\",\"op_type\":\"t\",\"description\":\"d\","
		"\"axes\":{\"N\":{\"type\":\"var\"},\"K\":{\"type\":\"var\"}},\"inputs\":{%s},"
		"\"outputs\":{\"y\":{\"shape\":[\"N\"],\"dtype\":\"float32\"}},"
		"\"compute\":{\"operand\":\"float32\",\"accumulator\":\"float32\",\"intermediate\":\"float32\"},"
		"\"reference\":{\"source\":\"reference.cu\",\"plan\":\"reference.json\"},"
		"\"workloads\":{\"public\":[{\"name\":\"w\",\"axes\":{\"N\":1024,\"K\":64}}],\"tiny\":[{\"N\":8,\"K\":1}]}}",
		inputs);
	if (spec_parse(text, strlen(text), "t", &s, &e) < 0)
		fail_msg("%s", e.text);
	free(text);
	return s;
}

static float x[65536], y[65536];

static void fill(const struct spec *s, enum fill_regime g, const uint8_t k[32], void *out)
{
	struct err e;

	assert_int_equal(check_queue_fill(&RUN, s, &s->public[0].gpu, 0, g, k, here(out), &e), 0);
}

static void normals(void **state)
{
	(void)state;
	struct spec *s = spec_of("\"x\":{\"shape\":[\"N\",\"K\"],\"dtype\":\"float32\",\"fill\":{\"kind\":\"normal\"}}");
	double sum = 0, square = 0, below1 = 0, below2 = 0, below3 = 0;
	uint8_t other[32] = {9};

	fill(s, REGIME_SPEC, key, x);
	for (int i = 0; i < 65536; i++) {
		sum += x[i];
		square += x[i] * x[i];
		below1 += fabsf(x[i]) < 1;
		below2 += fabsf(x[i]) < 2;
		below3 += fabsf(x[i]) > 3;
	}
	assert_true(fabs(sum / 65536) < 0.02 && fabs(square / 65536 - 1) < 0.03);
	assert_true(fabs(below1 / 65536 - 0.6827) < 0.01 && fabs(below2 / 65536 - 0.9545) < 0.005);
	assert_true(fabs(below3 / 65536 - 0.0027) < 0.001);
	/* The quantile itself, by the error function. */
	for (int k = 1; k < 200; k++) {
		double p = ldexp(1, -k / 8) * (1 + (k % 8) / 9.0) / 2.5, z = normal((uint64_t)(p * 0x1p64));
		assert_true(fabs(0.5 * erfc(-z / sqrt(2)) / p - 1) < 1e-6);
	}
	fill(s, REGIME_SPEC, key, y);
	assert_memory_equal(x, y, sizeof x);
	fill(s, REGIME_SPEC, other, y);
	int same = 0;
	for (int i = 0; i < 65536; i++)
		same += x[i] == y[i];
	assert_true(same < 10);
	spec_free(s);
}

static void regimes(void **state)
{
	(void)state;
	struct spec *s = spec_of("\"x\":{\"shape\":[\"N\",\"K\"],\"dtype\":\"float32\",\"fill\":{\"kind\":\"normal\"}},"
				 "\"z\":{\"shape\":[\"N\",\"K\"],\"dtype\":\"float32\",\"fill\":{\"kind\":\"uniform\"}}");
	int zeros = 0, differ = 0, small = 0;

	fill(s, REGIME_MIXED, key, x);
	for (int i = 0; i < 65536; i++) {
		zeros += x[i] == 0;
		small += fabsf(x[i]) < 0x1p-4f;
	}
	assert_true(zeros > 60 && zeros < 250 && small > 20000);
	fill(s, REGIME_NEAR_EQUAL, key, x);
	for (int r = 1; r < 1024; r++) {
		int d = 0;
		for (int c = 0; c < 64; c++)
			d += x[r * 64 + c] != x[c];
		assert_true(d <= 2);
		differ += d;
	}
	assert_true(differ > 1800);
	fill(s, REGIME_EXACT_A, key, x);
	int wide = 0;
	for (int i = 0; i < 65536; i++) {
		assert_true(x[i] == rintf(x[i]) && fabsf(x[i]) <= 8192);
		wide += fabsf(x[i]) > 100;
	}
	assert_true(wide > 50000);
	fill(s, REGIME_EXACT_B, key, x);
	for (int i = 0; i < 65536; i++)
		assert_true(x[i] == -1 || x[i] == 0 || x[i] == 1);
	spec_free(s);
}

/* The rep's changes are those that fill_input makes. */
static void changes_agree(void **state)
{
	(void)state;
	static const char *const INPUT[] = {
		"\"x\":{\"shape\":[\"N\",\"K\"],\"dtype\":\"float32\",\"fill\":{\"kind\":\"normal\"}}",
		"\"x\":{\"shape\":[\"N\",\"K\"],\"dtype\":\"float32\",\"fill\":{\"kind\":\"uniform\"}}",
		"\"x\":{\"shape\":[\"N\",\"K\"],\"dtype\":\"int32\",\"fill\":{\"kind\":\"permutation\"}}",
	};
	struct check_op op[FILL_CHANGES];
	struct err e;

	for (size_t k = 0; k < 3; k++)
		for (uint8_t rep = 0; rep < 60; rep++) {
			struct spec *s = spec_of(INPUT[k]);
			enum fill_regime g = k == 0 && rep % 2 ? REGIME_EXACT_A : REGIME_SPEC;
			uint8_t rk[32] = {rep};
			uint32_t n = 0;
			assert_int_equal(fill_input(s, &s->public[0].gpu, 0, g, key, NULL, x, &e), 0);
			memcpy(y, x, sizeof y);
			assert_int_equal(fill_input(s, &s->public[0].gpu, 0, g, NULL, rk, y, &e), 0);
			assert_int_equal(check_ops(s, &s->public[0].gpu, 0, g, rk, here(x), op, &n, &e), 0);
			assert_int_equal(check_queue_ops(&RUN, here(op), n, &e), 0);
			assert_memory_equal(x, y, sizeof x);
			spec_free(s);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(normals),
		cmocka_unit_test(regimes),
		cmocka_unit_test(changes_agree),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
