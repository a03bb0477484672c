/*
 * test_expr.c - values, laziness, overflow, caps and messages of expressions.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/expr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int name(void *ctx, const char *n, int64_t *out)
{
	(void)ctx;
	static const struct {
		const char *name;
		int64_t v;
	} table[] = {{"M", 100}, {"N", 64}, {"ZERO", 0}, {"BIG", INT64_MAX}, {"NEG", -7}, {"max_shared", 232448}};
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		if (!strcmp(table[i].name, n)) {
			*out = table[i].v;
			return 0;
		}
	return -1;
}

static int call(void *ctx, enum expr_call c, const char *entry, int64_t *out, struct err *e)
{
	(void)ctx;
	if (strcmp(entry, "gemm"))
		return err_set(e, EX_BADINPUT, "no entry '%s'", entry);
	*out = c == EXPR_OCCUPANCY ? 3 : c == EXPR_MAX_CLUSTERS ? 30 : 2;
	return 0;
}

static const struct expr_env ENV = {name, call, NULL};

static void test_values(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t v;
	} good[] = {
		{"1", 1}, {"1+2*3", 7}, {"(1+2)*3", 9}, {"10-3-2", 5}, {"100/7/2", 7}, {"-7/2", -3}, {"NEG%4", -3},
		{"7%-4", 3}, {"- - 3", 3}, {"+3", 3}, {"!0", 1}, {"!5", 0}, {"!!5", 1}, {"-!0", -1},
		{"1<2", 1}, {"2<=2", 1}, {"3>4", 0}, {"4>=5", 0}, {"1==1", 1}, {"1!=1", 0},
		{"1<2==1", 1}, {"2>1&&1>0", 1}, {"0||0", 0}, {"7||0", 1}, {"7&&8", 1},
		{"1||1&&0", 1}, {"(1||1)&&0", 0}, {"1?2:3", 2}, {"0?2:0?4:5", 5}, {"1?0?6:7:8", 7},
		{"0 && 1/ZERO", 0}, {"1 || 1/ZERO", 1}, {"1 ? 4 : 1/ZERO", 4}, {"select(0, 1/ZERO, 9)", 9},
		{"ceil_div(M, N)", 2}, {"ceil_div(0, 5)", 0}, {"ceil_div(128, 64)", 2}, {"align_up(100, 64)", 128},
		{"align_up(128,64)", 128}, {"min(3,1,2)", 1}, {"max(3, 1, 7, 2)", 7}, {"min(4)", 4},
		{"log2(1)", 0}, {"log2(1023)", 9}, {"log2(1024)", 10}, {"next_pow2(1)", 1}, {"next_pow2(5)", 8},
		{"next_pow2(64)", 64}, {"occupancy(gemm)*2", 6},
		{"max_clusters( gemm ) + occupancy(gemm)", 33}, {"16/sizeof(gemm)", 8}, {" \t M \t+ N ", 164}, {"9223372036854775807", INT64_MAX},
		{"-9223372036854775807-1", INT64_MIN}, {"4*(M+N)*2 <= max_shared", 1},
	};
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		struct err e = {0};
		int64_t v = 0;
		struct expr *x = expr_parse(good[i].text, "plan.json", "grid[0]", &e);
		if (!x || expr_eval(x, &ENV, &v, &e) || v != good[i].v)
			fail_msg("%s: got %lld (%s)", good[i].text, (long long)v, e.text);
		assert_string_equal(expr_text(x), good[i].text);
		expr_free(x);
	}
}

static void test_parse_errors(void **state)
{
	(void)state;
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"", "column 1: the expression ends too early"},
		{"1+", "column 3: the expression ends too early"},
		{"(1", "column 3: ')' expected"},
		{"1 2", "column 3: unexpected '2'"},
		{"1)", "column 2: unexpected ')'"},
		{"a.b", "column 2: unexpected '.'"},
		{"1.5", "column 1: only decimal integers are numbers here"},
		{"0x10", "column 1: only decimal integers are numbers here"},
		{"1e9", "column 1: only decimal integers are numbers here"},
		{"010", "column 1: a number may not start with 0"},
		{"9223372036854775808", "column 1: the number does not fit 64 bits"},
		{"foo(1)", "column 1: unknown function 'foo'"},
		{"min", "column 1: '(' expected after 'min'"},
		{"min()", "column 5: a value is expected here"},
		{"ceil_div(1)", "column 1: wrong number of arguments for 'ceil_div'"},
		{"ceil_div(1,2,3)", "column 1: wrong number of arguments for 'ceil_div'"},
		{"occupancy(3)", "column 11: occupancy() takes the name of an entry"},
		{"occupancy(a+b)", "column 12: ')' expected"},
		{"max_clusters()", "column 14: max_clusters() takes the name of an entry"},
		{"sizeof(2)", "column 8: sizeof() takes the name of an input or output"},
		{"sizeof", "column 1: '(' expected after 'sizeof'"},
		{"1 ? 2", "column 6: ':' expected"},
		{"1 = 2", "column 3: unexpected '='"},
		{"1 & 2", "column 3: unexpected '&'"},
		{"a; b", "column 2: unexpected ';'"},
		{"1 << 2", "column 4: a value is expected here"},
		{"\n1", "column 1: a value is expected here"},
		{"a2345678901234567890123456789012345678901234567890123456789012345",
		 "column 1: a name has at most 64 characters"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct err e = {0};
		char want[200];
		struct expr *x = expr_parse(bad[i].text, "plan.json", "grid[0]", &e);
		if (x)
			fail_msg("accepted: %s", bad[i].text);
		snprintf(want, sizeof want, "plan.json: grid[0]: %s", bad[i].why);
		assert_string_equal(e.text, want);
		assert_int_equal(e.code, EX_BADINPUT);
	}
}

static void test_eval_errors(void **state)
{
	(void)state;
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"1+Q", "column 3: unknown name 'Q'"},
		{"1/ZERO", "column 2: division by zero"},
		{"1%ZERO", "column 2: division by zero"},
		{"BIG+1", "column 4: overflow"},
		{"-BIG-2", "column 5: overflow"},
		{"BIG*2", "column 4: overflow"},
		{"(-BIG-1)/-1", "column 9: overflow"},
		{"(-BIG-1)%-1", "column 9: overflow"},
		{"-(-BIG-1)", "column 1: overflow"},
		{"align_up(BIG, 2)", "column 1: overflow"},
		{"ceil_div(NEG, 2)", "column 1: ceil_div(a, b) needs a >= 0 and b > 0"},
		{"ceil_div(2, 0)", "column 1: ceil_div(a, b) needs a >= 0 and b > 0"},
		{"align_up(2, NEG)", "column 1: align_up(a, b) needs a >= 0 and b > 0"},
		{"log2(0)", "column 1: log2(n) needs n >= 1"},
		{"next_pow2(0)", "column 1: next_pow2(n) needs n >= 1"},
		{"next_pow2(BIG)", "column 1: overflow"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct err e = {0};
		int64_t v;
		char want[200];
		struct expr *x = expr_parse(bad[i].text, "f", "p", &e);
		assert_non_null(x);
		if (!expr_eval(x, &ENV, &v, &e))
			fail_msg("evaluated: %s", bad[i].text);
		snprintf(want, sizeof want, "f: p: %s", bad[i].why);
		assert_string_equal(e.text, want);
		expr_free(x);
	}
}

static void test_caps(void **state)
{
	(void)state;
	struct err e;
	char deep[200], wide[1200];
	memset(deep, '(', 100);
	strcpy(deep + 100, "1");
	assert_null(expr_parse(deep, "f", "p", &e));
	assert_string_equal(e.text, "f: p: column 33: the expression is nested too deep");
	memset(deep, '-', 100);
	assert_null(expr_parse(deep, "f", "p", &e));
	for (int i = 0; i < 500; i++)
		memcpy(wide + 2 * i, "1+", 2);
	strcpy(wide + 1000, "1");
	assert_null(expr_parse(wide, "f", "p", &e));
	assert_non_null(strstr(e.text, "the expression is too large"));
	memset(wide, ' ', 1100);
	wide[1100] = '\0';
	assert_null(expr_parse(wide, "f", "p", &e));
	assert_string_equal(e.text, "f: p: an expression has at most 1024 characters");
}

static void test_names_used(void **state)
{
	(void)state;
	struct err e;
	struct expr *x = expr_parse("M*N + M + occupancy(gemm) + sizeof(gemm) + sizeof(gemm) + occupancy(b)", "f", "p", &e);
	assert_non_null(x);
	assert_string_equal(expr_name_used(x, 0), "M");
	assert_string_equal(expr_name_used(x, 1), "N");
	assert_null(expr_name_used(x, 2));
	enum expr_call c = EXPR_OCCUPANCY;
	assert_string_equal(expr_call_used(x, 1, &c), "gemm");
	assert_int_equal(c, EXPR_SIZEOF);
	assert_string_equal(expr_call_used(x, 2, &c), "b");
	assert_int_equal(c, EXPR_OCCUPANCY);
	assert_null(expr_call_used(x, 3, &c));
	int64_t v;
	struct expr_env none = {name, NULL, NULL};
	assert_int_equal(expr_eval(x, &none, &v, &e), -1);
	assert_string_equal(e.text, "f: p: column 11: occupancy() may not be used here");
	expr_free(x);
	x = expr_number(-5, "f", "p");
	assert_int_equal(expr_eval(x, NULL, &v, &e), 0);
	assert_int_equal(v, -5);
	assert_true(expr_is_number(x, &v));
	assert_string_equal(expr_text(x), "-5");
	expr_free(x);
}

static void test_identifiers(void **state)
{
	(void)state;
	assert_true(expr_is_identifier("_a9"));
	assert_true(expr_is_identifier("BLOCK_M"));
	assert_false(expr_is_identifier(""));
	assert_false(expr_is_identifier("9a"));
	assert_false(expr_is_identifier("a-b"));
	assert_false(expr_is_identifier("a b"));
	assert_false(expr_is_identifier("\xc3\xa9"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),	     cmocka_unit_test(test_parse_errors),
		cmocka_unit_test(test_eval_errors),  cmocka_unit_test(test_caps),
		cmocka_unit_test(test_names_used),   cmocka_unit_test(test_identifiers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
