/*
 * test_minutes.c - what a run's wall minutes come to by its lines.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/minutes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#define L(t, kind, trial, s) "{\"t\":" #t ",\"kind\":\"" kind "\",\"trial\":" trial ",\"s\":" #s "}\n"

static struct minutes fold(const char *text)
{
	static struct minutes m;

	minutes_fold(text, strlen(text), &m);
	return m;
}

static void near(double got, double want)
{
	assert_true(got > want - 1e-9 && got < want + 1e-9);
}

static void test_one_make(void **state)
{
	(void)state;
	struct minutes m = fold("");
	near(m.charged, 0);
	m = fold(L(100, "begin", "null", 0) L(100, "reserve", "\"0001\"", 0) L(110, "settle", "\"0001\"", 10)
		 L(110, "reserve", "\"0002\"", 10));
	near(m.charged, 20);
	near(m.open, 10);
	near(m.median, 10);
	near(m.last, 110);
	m = fold(L(100, "begin", "null", 0) L(100, "reserve", "\"0001\"", 0) L(110, "settle", "\"0001\"", 10)
		 L(110, "reserve", "\"0002\"", 10) L(114, "settle", "\"0002\"", 4) L(116, "end", "null", 2));
	near(m.charged, 16);
	near(m.median, 7);
	assert_int_equal(m.nopen, 0);
}

/* A make that was killed: what it had reserved stays charged; one that was stopped knows what passed. */
static void test_resumed(void **state)
{
	(void)state;
	struct minutes m = fold(L(100, "begin", "null", 0) L(110, "settle", "\"0001\"", 10) L(110, "reserve", "\"0002\"", 10)
				L(500, "begin", "null", 3));
	near(m.charged, 23);
	near(m.open, 0);
	near(m.last, 500);
	m = fold(L(100, "begin", "null", 0) L(110, "settle", "\"0001\"", 10) L(110, "reserve", "\"0002\"", 10)
		 L(117, "end", "null", 7) L(500, "begin", "null", 0));
	near(m.charged, 17);
}

static void test_twice_and_torn(void **state)
{
	(void)state;
	struct minutes m = fold(L(100, "begin", "null", 0) L(101, "reserve", "\"0001\"", 5) L(102, "reserve", "\"0001\"", 6)
				"{\"t\":1,\"ki\n[]\n" L(103, "reserve", "\"../x\"", 9) L(104, "what", "null", 9)
				L(105, "settle", "\"0009\"", -4) L(106, "reserve", "\"0002\"", 1e300) "{\"t\":107");
	near(m.charged, 6);
	assert_int_equal(m.nopen, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_make),
		cmocka_unit_test(test_resumed),
		cmocka_unit_test(test_twice_and_torn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
