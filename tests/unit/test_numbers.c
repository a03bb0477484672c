/*
 * test_numbers.c - conversions round to nearest even and keep NaN; streams are keyed and fair.
 * Writes nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/dtype.h"
#include "../../stages/lib/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

/* Every 16-bit and 8-bit pattern survives load and store; NaN stays NaN. */
static void round_trips(void **state)
{
	(void)state;
	static const enum dtype T[] = {DT_F16, DT_BF16, DT_E4M3, DT_E5M2};

	for (int k = 0; k < 4; k++)
		for (uint32_t v = 0; v < (dtype_size(T[k]) == 2 ? 65536u : 256u); v++) {
			uint16_t in = (uint16_t)v, out = 0;
			double d = dtype_load(T[k], &in, 0);
			dtype_store(T[k], &out, 0, d);
			if (isnan(d))
				assert_true(isnan(dtype_load(T[k], &out, 0)));
			else
				assert_int_equal(in, out);
		}
}

/* A value between two neighbours goes to the nearer, a tie to the even one. */
static void rounds_to_even(void **state)
{
	(void)state;
	static const enum dtype T[] = {DT_F16, DT_BF16, DT_E4M3, DT_E5M2};

	for (int k = 0; k < 4; k++) {
		uint32_t top = dtype_size(T[k]) == 2 ? 0x7c00 : 0x78;
		for (uint32_t v = 0; v + 1 < top; v++) {
			uint16_t a = (uint16_t)v, b = (uint16_t)(v + 1), out = 0;
			double lo = dtype_load(T[k], &a, 0), hi = dtype_load(T[k], &b, 0);
			if (!isfinite(hi) || (float)((lo + hi) / 2) != (lo + hi) / 2)
				continue;
			dtype_store(T[k], &out, 0, (lo + hi) / 2);
			assert_int_equal(out, v % 2 ? v + 1 : v);
			assert_true(dtype_ulp(T[k], lo) == hi - lo);
		}
	}
}

static void extremes(void **state)
{
	(void)state;
	int32_t i;
	uint8_t u;

	assert_int_equal(dtype_to_f16(65519.9f), 0x7bff);
	assert_int_equal(dtype_to_f16(65520.0f), 0x7c00);
	assert_int_equal(dtype_to_bf16(-INFINITY), 0xff80);
	assert_true(isnan(dtype_from_e4m3(dtype_to_e4m3(1000.0f))));
	assert_true(isinf(dtype_from_e5m2(dtype_to_e5m2(1e6f))));
	assert_int_equal(dtype_to_f16(0x1p-24f), 1);
	assert_int_equal(dtype_to_f16(0x1p-25f), 0);
	dtype_store(DT_I32, &i, 0, NAN);
	assert_int_equal(i, INT32_MIN);
	dtype_store(DT_I32, &i, 0, 1e12);
	assert_int_equal(i, INT32_MAX);
	dtype_store(DT_U8, &u, 0, -3);
	assert_int_equal(u, 0);
	assert_int_equal(dtype_parse("float8_e4m3fn"), DT_E4M3);
	assert_int_equal(dtype_parse("i32"), DT_I32);
	assert_int_equal(dtype_parse("int4"), DT_NONE);
}

static void streams_are_keyed(void **state)
{
	(void)state;
	uint8_t key[32] = {1}, other[32] = {2}, a[5000], b[5000];
	struct rng r;

	rng_open(&r, key, "x");
	rng_bytes(&r, a, sizeof a);
	rng_close(&r);
	rng_open(&r, key, "x");
	rng_bytes(&r, b, 17); /* in pieces, mixed with words: the same stream */
	rng_bytes(&r, b + 17, sizeof b - 17);
	rng_close(&r);
	assert_memory_equal(a, b, sizeof a);
	rng_open(&r, key, "y");
	rng_bytes(&r, b, sizeof b);
	rng_close(&r);
	assert_memory_not_equal(a, b, 64);
	rng_open(&r, other, "x");
	rng_bytes(&r, b, sizeof b);
	rng_close(&r);
	assert_memory_not_equal(a, b, 64);
}

static void draws_are_fair(void **state)
{
	(void)state;
	enum { N = 400000 };
	uint8_t key[32] = {3};
	double m1 = 0, m2 = 0, m4 = 0, count[7] = {0}, tail = 0;
	struct rng r;

	rng_open(&r, key, "moments");
	for (int i = 0; i < N; i++) {
		double x = rng_normal(&r);
		m1 += x;
		m2 += x * x;
		m4 += x * x * x * x;
		tail += fabs(x) > 3.442619855899;
		count[rng_below(&r, 7)]++;
	}
	rng_close(&r);
	assert_true(fabs(m1 / N) < 5 / sqrt(N));
	assert_true(fabs(m2 / N - 1) < 5 * sqrt(2.0 / N));
	assert_true(fabs(m4 / N - 3) < 5 * sqrt(96.0 / N));
	assert_true(fabs(tail - N * 0.000576) < 5 * sqrt(N * 0.000576)); /* beyond the last layer */
	for (int i = 0; i < 7; i++)
		assert_true(fabs(count[i] - N / 7.0) < 5 * sqrt(N / 7.0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trips),       cmocka_unit_test(rounds_to_even),
		cmocka_unit_test(extremes),          cmocka_unit_test(streams_are_keyed),
		cmocka_unit_test(draws_are_fair),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
