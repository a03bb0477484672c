/*
 * test_engine_tunables.c - tunables of an engine: what is read, what is refused, each configuration once.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/engine_tunables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static const char TEXT[] = "int a;\n// tunables:begin\n#define TILE 8 // tune: 4 8 16\n\n#define SKEW -1 // tune: -1 0\n"
			   "// tunables:end\nint b;\n";

static void reads_and_writes(void **state)
{
	(void)state;
	struct engine_tunables t, again;
	struct err e;
	struct buf out = BUF_INIT, words = BUF_INIT;
	int choice[TUNABLES_MOST];
	assert_int_equal(engine_tunables_parse(TEXT, strlen(TEXT), &t, &e), 0);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.space, 6);
	engine_tunables_at(&t, engine_tunables_current(&t), choice);
	engine_tunables_text(TEXT, strlen(TEXT), &t, choice, &out);
	assert_string_equal(buf_str(&out), TEXT);
	choice[0] = 2, choice[1] = 1;
	buf_clear(&out);
	engine_tunables_text(TEXT, strlen(TEXT), &t, choice, &out);
	assert_non_null(strstr(buf_str(&out), "#define TILE 16 // tune: 4 8 16\n\n#define SKEW 0 // tune: -1 0\n"));
	assert_int_equal(engine_tunables_parse(buf_str(&out), out.len, &again, &e), 0);
	assert_int_equal(again.space, 6);
	engine_tunables_words(&t, choice, &words);
	assert_string_equal(buf_str(&words), "TILE 8 -> 16, SKEW -1 -> 0");
	buf_free(&out);
	buf_free(&words);
}

static void each_once(void **state)
{
	(void)state;
	struct engine_tunables t;
	struct err e;
	int seen[6] = {0}, other = 0;
	assert_int_equal(engine_tunables_parse(TEXT, strlen(TEXT), &t, &e), 0);
	for (long i = 0; i < 5; i++) {
		const int at = engine_tunables_pick(&t, 1, i);
		assert_in_range(at, 0, 5);
		assert_int_equal(seen[at]++, 0);
		other |= at != engine_tunables_pick(&t, 2, i);
	}
	assert_int_equal(seen[engine_tunables_current(&t)], 0);
	assert_int_equal(engine_tunables_pick(&t, 1, 5), -1);
	assert_true(other);
}

static void refuses(void **state)
{
	(void)state;
	static const struct {
		const char *line, *why;
	} bad[] = {
		{"#define TILE 8 // tune: 4 16\n", "not among those to try"},
		{"#define TILE 8 // tune: 8 8\n", "twice"},
		{"#define TILE 8 // tune: 8 x\n", "integers"},
		{"#define TILE 8\n", "stand lines"},
		{"#define tile 8 // tune: 8\n", "A-Z"},
		{"#define TILE 08 // tune: 8\n", "stand lines"},
		{"#define TILE 9999999999 // tune: 8\n", "stand lines"},
		{"int x;\n", "stand lines"},
		{"#define A 1 // tune: 1\n#define A 1 // tune: 1\n", "declared twice"},
		{"// tunables:begin\n", "there once"},
	};
	struct engine_tunables t;
	struct err e;
	char text[256];
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(text, sizeof text, "// tunables:begin\n%s// tunables:end\n", bad[i].line);
		assert_int_equal(engine_tunables_parse(text, strlen(text), &t, &e), -1);
		if (!strstr(e.text, bad[i].why) || strncmp(e.text, "engine.c:", 9) != 0)
			fail_msg("'%s': %s", bad[i].line, e.text);
	}
	assert_int_equal(engine_tunables_parse("// tunables:begin\n", 18, &t, &e), -1);
	assert_int_equal(engine_tunables_parse("int x;\n", 7, &t, &e), 0);
	assert_int_equal(t.space, 1);
	assert_int_equal(engine_tunables_pick(&t, 1, 0), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_and_writes),
		cmocka_unit_test(each_once),
		cmocka_unit_test(refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
