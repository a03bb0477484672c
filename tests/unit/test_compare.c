/*
 * test_compare.c - comparators refuse NaN, infinities, single wrong elements, and accept what
 * has more than one right answer. Writes nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/compare.h"
#include "../../stages/lib/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

enum { N = 1024 };

static float got[N], base[N];
static double ref[N];
static struct compare_bounds bounds = {1e-5, 1e-5, 1e-5, 2e-5, 8, 0x1p-24, INFINITY};
static struct spec_compare tolerance = {.kind = COMPARE_TOLERANCE, .source = -1, .values = -1};

static int setup(void **state)
{
	(void)state;
	uint8_t key[32] = {9};
	struct rng r;

	rng_open(&r, key, "compare");
	for (int i = 0; i < N; i++) {
		ref[i] = rng_normal(&r);
		got[i] = base[i] = (float)ref[i];
	}
	rng_close(&r);
	return 0;
}

static struct compare_side side(void)
{
	return (struct compare_side){.name = "y", .dtype = DT_F32, .n = N, .row = 64, .got = got,
				     .ref = ref, .slack = 1};
}

static const char *code(const struct compare_side *s, const struct spec_compare *c)
{
	static struct compare_result r;

	compare_begin(&r);
	compare_output(&r, c, &bounds, s);
	assert_int_equal(r.pass, !strcmp(r.code, "ok"));
	return r.code;
}

static void accepts_right(void **state)
{
	(void)state;
	struct compare_side s = side();
	assert_string_equal(code(&s, &tolerance), "ok");
}

/* Any single element beyond its bound, anywhere, by either sign. */
static void refuses_one_element(void **state)
{
	(void)state;
	struct compare_side s = side();

	for (int i = 0; i < N; i += 31)
		for (int sign = -1; sign <= 1; sign += 2) {
			float was = got[i];
			got[i] += (float)sign * 1e-4f * (1 + fabsf(was));
			assert_string_equal(code(&s, &tolerance), "judge.element");
			got[i] = was;
		}
}

static void refuses_nan_and_inf(void **state)
{
	(void)state;
	struct compare_side s = side();

	got[N - 1] = NAN;
	assert_string_equal(code(&s, &tolerance), "judge.nan");
	got[N - 1] = INFINITY;
	assert_string_equal(code(&s, &tolerance), "judge.nonfinite");
	got[N - 1] = base[N - 1];
	/* An infinite reference wants that infinity and nothing else; it must not widen bounds. */
	ref[3] = INFINITY;
	assert_string_equal(code(&s, &tolerance), "judge.element");
	got[3] = -INFINITY;
	assert_string_equal(code(&s, &tolerance), "judge.nonfinite");
	got[3] = INFINITY;
	assert_string_equal(code(&s, &tolerance), "ok");
	got[4] += 1;
	assert_string_equal(code(&s, &tolerance), "judge.element");
	ref[3] = NAN;
	assert_string_equal(code(&s, &tolerance), "judge.reference");
	setup(NULL);
}

/* Within every element's bound, but all off by the same: relative L2 and rows tell. */
static void refuses_drift(void **state)
{
	(void)state;
	struct compare_side s = side();
	struct compare_bounds was = bounds;

	bounds.rel_l2 = 1e-6;
	for (int i = 0; i < N; i++)
		got[i] = (float)(ref[i] * (1 + 5e-6));
	assert_string_equal(code(&s, &tolerance), "judge.rel_l2");
	bounds.rel_l2 = 1;
	bounds.row_rel_l2 = 4e-6;
	assert_string_equal(code(&s, &tolerance), "judge.row");
	bounds = was;
	s.base = base; /* a native kernel is 40 times better */
	assert_string_equal(code(&s, &tolerance), "judge.error_ratio");
	bounds.ratio_floor = 0x1p-19; /* 32 roundings of fp32: what a plain loop may drift */
	assert_string_equal(code(&s, &tolerance), "ok");
	for (int i = 0; i < N; i++)
		got[i] = (float)(ref[i] * (1 + 2e-5)); /* and no more than 8 times that */
	bounds.atol_rms = bounds.rtol = bounds.rel_l2 = bounds.row_rel_l2 = 1;
	assert_string_equal(code(&s, &tolerance), "judge.error_ratio");
	bounds = was;
	for (int i = 0; i < N; i++)
		got[i] = (float)(ref[i] * (1 + 5e-6));
	s.slack = 100;
	assert_string_equal(code(&s, &tolerance), "ok");
	setup(NULL);
}

/* bfloat16 results of one row length 256; `factor` by row, an inner rounding first if asked. */
static void narrow_fill(uint16_t *y, double factor, int inner)
{
	for (int i = 0; i < N; i++) {
		double v = ref[i] * (i / 256 % 2 ? factor : 1);
		y[i] = dtype_to_bf16(inner ? dtype_from_bf16(dtype_to_bf16((float)(v / 1.37))) * 1.37f : (float)v);
	}
}

/* What hides under the rounding of a narrow output but moves rows: a sum in fewer bits, a crude
 * reciprocal. Roundings themselves, even two of them, move nothing. */
static void narrow_rows_are_unbiased(void **state)
{
	(void)state;
	static uint16_t y[N];
	struct compare_bounds was = bounds;
	struct compare_side s = side();

	bounds = (struct compare_bounds){4e-3, 8e-3, 4e-3, 8e-3, 8, 4e-3, 1.5e-5};
	s.got = y;
	s.dtype = DT_BF16;
	s.row = 256;
	narrow_fill(y, 1, 0);
	assert_string_equal(code(&s, &tolerance), "ok");
	narrow_fill(y, 1, 1);
	assert_string_equal(code(&s, &tolerance), "ok");
	narrow_fill(y, 1 + 1e-5, 0);
	assert_string_equal(code(&s, &tolerance), "ok");
	narrow_fill(y, 1 - 3e-3, 0);
	assert_string_equal(code(&s, &tolerance), "judge.bias");
	narrow_fill(y, 1 + 3e-3, 0);
	assert_string_equal(code(&s, &tolerance), "judge.bias");
	bounds.bias = INFINITY;
	assert_string_equal(code(&s, &tolerance), "ok");
	bounds.bias = 1.5e-5;
	/* One value all along: its one rounding is no bias. */
	for (int i = 0; i < N; i++) {
		ref[i] = 1.00390624; /* just below a tie */
		y[i] = dtype_to_bf16(1.0078125f);
	}
	assert_string_equal(code(&s, &tolerance), "ok");
	bounds = was;
	setup(NULL);
}

static void poison_is_unwritten(void **state)
{
	(void)state;
	struct compare_side s = side();
	float poison[N];

	memset(poison, 0x7f, sizeof poison);
	s.poison = poison;
	memcpy(got, poison, sizeof poison / 2);
	assert_string_equal(code(&s, &tolerance), "judge.unwritten");
	setup(NULL);
}

static void exact_means_equal(void **state)
{
	(void)state;
	struct spec_compare exact = {.kind = COMPARE_EXACT, .source = -1, .values = -1};
	struct compare_side s = side();

	assert_string_equal(code(&s, &exact), "ok");
	got[5] = nextafterf(got[5], 2);
	assert_string_equal(code(&s, &exact), "judge.exact");
	got[5] = -0.0f;
	ref[5] = 0;
	assert_string_equal(code(&s, &exact), "ok");
	setup(NULL);
}

/* Integers beyond 2^53 differ by one. */
static void integers_natively(void **state)
{
	(void)state;
	int64_t a[2] = {1, (1LL << 60) + 1}, b[2] = {1, 1LL << 60};
	struct compare_side s = {.name = "i", .dtype = DT_I64, .n = 2, .row = 2, .got = a, .ref = b,
				 .slack = 1};

	assert_string_equal(code(&s, &tolerance), "judge.exact");
	b[1]++;
	assert_string_equal(code(&s, &tolerance), "ok");
}

static const float keys[2][4] = {{3, 1, 3, 2}, {5, 6, 7, 8}};

static struct compare_side indices(const int32_t *g, const int32_t *r, size_t n, size_t row)
{
	return (struct compare_side){.name = "i", .dtype = DT_I32, .n = n, .row = row, .got = g, .ref = r,
				     .source = keys, .source_dtype = DT_F32, .source_row = 4, .slack = 1};
}

static void ties(void **state)
{
	(void)state;
	struct spec_compare c = {.kind = COMPARE_TIES, .source = 0, .values = -1};
	int32_t r[2] = {0, 3}, g[2] = {2, 3};
	struct compare_side s = indices(g, r, 2, 1);

	assert_string_equal(code(&s, &c), "ok");
	g[0] = 1;
	assert_string_equal(code(&s, &c), "judge.ties");
	g[0] = -1;
	assert_string_equal(code(&s, &c), "judge.index");
	g[0] = 4;
	assert_string_equal(code(&s, &c), "judge.index");
}

static void topk(void **state)
{
	(void)state;
	struct spec_compare c = {.kind = COMPARE_TOPK, .source = 0, .values = -1};
	int32_t r[4] = {0, 2, 3, 2}, g[4] = {2, 0, 2, 3};
	struct compare_side s = indices(g, r, 4, 2);

	assert_string_equal(code(&s, &c), "ok");
	c.sorted = 1;
	assert_string_equal(code(&s, &c), "judge.ties");
	c.sorted = 0;
	g[1] = 2; /* the same element twice */
	assert_string_equal(code(&s, &c), "judge.ties");
	g[1] = 3; /* a smaller one */
	assert_string_equal(code(&s, &c), "judge.ties");
}

static void sorts(void **state)
{
	(void)state;
	struct spec_compare c = {.kind = COMPARE_SORT, .source = 0, .values = -1};
	int32_t g[8] = {1, 3, 2, 0, 0, 1, 2, 3};
	struct compare_side s = indices(g, g, 8, 4);

	assert_string_equal(code(&s, &c), "ok");
	c.stable = 1; /* 3 at 0 comes before 3 at 2 */
	assert_string_equal(code(&s, &c), "judge.order");
	g[2] = 0;
	g[3] = 2;
	assert_string_equal(code(&s, &c), "ok");
	g[3] = 0;
	assert_string_equal(code(&s, &c), "judge.order");
}

static void samples(void **state)
{
	(void)state;
	enum { DRAWS = 4000 };
	static int32_t g[DRAWS];
	static const float p[4] = {0.5f, 0.25f, 0.25f, 0};
	struct spec_compare c = {.kind = COMPARE_DISTRIBUTION, .source = 0, .values = -1, .alpha = 1e-6};
	struct compare_side s = indices(g, g, DRAWS, DRAWS);
	uint8_t key[32] = {4};
	struct rng r;

	s.source = p;
	rng_open(&r, key, "draws");
	for (int i = 0; i < DRAWS; i++) {
		double u = rng_unit(&r);
		g[i] = u < 0.5 ? 0 : u < 0.75 ? 1 : 2;
	}
	assert_string_equal(code(&s, &c), "ok");
	for (int i = 0; i < DRAWS; i++)
		g[i] = (int32_t)rng_below(&r, 3);
	assert_string_equal(code(&s, &c), "judge.distribution");
	for (int i = 0; i < DRAWS; i++)
		g[i] = i % 4 == 3 ? 0 : i % 4; /* the right shares, and one outside the support */
	g[0] = 3;
	assert_string_equal(code(&s, &c), "judge.distribution");
	rng_close(&r);
	assert_true(fabs(compare_chi2_tail(3.841459, 1) - 0.05) < 1e-6);
	assert_true(fabs(compare_chi2_tail(124.342, 100) - 0.05) < 1e-5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts_right),       cmocka_unit_test(refuses_one_element),
		cmocka_unit_test(refuses_nan_and_inf), cmocka_unit_test(refuses_drift),
		cmocka_unit_test(narrow_rows_are_unbiased),
		cmocka_unit_test(poison_is_unwritten), cmocka_unit_test(exact_means_equal),
		cmocka_unit_test(integers_natively),   cmocka_unit_test(ties),
		cmocka_unit_test(topk),                cmocka_unit_test(sorts),
		cmocka_unit_test(samples),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
