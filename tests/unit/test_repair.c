/*
 * test_repair.c - which attempts are repaired, and what of a log goes into a prompt.
 *
 * SPDX-License-Identifier: MIT
 */
#include "repair.h"

#include "json.h"
#include "reason.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *skip_code;

/* Is the attempt made in a run of `proposer` with the setting (-1: not given)? */
static int wanted(const char *proposer, int setting, int attempt, const char *step, const char *verdict,
		  const char *code)
{
	struct run r = {.proposer = proposer};
	struct trial t = {.index = 0};

	r.settings = cJSON_CreateObject();
	if (setting >= 0)
		cJSON_AddNumberToObject((cJSON *)(uintptr_t)r.settings, "repairs", setting);
	t.json = cJSON_CreateObject();
	int yes = repair_wanted(&r, &t, attempt, step, verdict, code, &skip_code);
	cJSON_Delete((cJSON *)(uintptr_t)r.settings);
	cJSON_Delete(t.json);
	return yes;
}

static void test_wanted(void **state)
{
	(void)state;
	assert_true(wanted("openai", -1, 1, "a0/guard", "reject", "compile.error"));
	assert_true(wanted("openai", -1, 2, "a1/unittest", "reject", "unittest.wrong"));
	assert_true(wanted("command", 1, 1, "a0/unittest", "reject", "unittest.race"));
	assert_false(wanted("command", 1, 2, "a1/unittest", "reject", "unittest.race"));
	assert_string_equal(skip_code, "skip.repair_off");
	assert_false(wanted("openai", 0, 1, "a0/guard", "reject", "compile.error"));
	assert_string_equal(skip_code, "skip.repair_off");
	assert_false(wanted("sweep", 2, 1, "a0/guard", "reject", "compile.error"));
	assert_false(wanted("manual", -1, 1, "a0/guard", "reject", "compile.error"));
	assert_false(wanted("replay", -1, 1, "a0/guard", "reject", "compile.error")); /* no further reply */
	assert_string_equal(skip_code, "skip.repair_off");
}

/* A turn that was not made, a trial that we ended, a rule that was broken. */
static void test_not_wanted(void **state)
{
	(void)state;
	assert_false(wanted("openai", 2, 2, "a0/guard", "reject", "compile.error"));
	assert_string_equal(skip_code, "skip.repair_off");
	assert_false(wanted("openai", 2, 1, "a0/guard", "invalid", "compile.error"));
	assert_string_equal(skip_code, "skip.not_repairable");
	static const char *const codes[] = {"guard.credential", "guard.scope", "guard.duplicate", "guard.hang",
		"guard.module_state", "guard.host_code", "guard.reserved", "guard.opcode", "propose.no_files",
		"propose.unchanged", "unittest.engine_early", "run.child_died", "unittest.protocol", "no.such.code"};
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		assert_false(wanted("openai", 2, 1, "a0/guard", "reject", codes[i]));
		assert_string_equal(skip_code, "skip.not_repairable");
	}
}

/* Nothing of the secret tiers is ever given back. */
static void test_reasons(void **state)
{
	size_t n, yes = 0;
	const struct reason *r = reason_list(&n);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		int early = !strncmp(r[i].code, "compile.", 8) || !strncmp(r[i].code, "guard.", 6) ||
			    !strncmp(r[i].code, "unittest.", 9);
		if (reason_repairable(r[i].code))
			assert_true(early);
		yes += (size_t)reason_repairable(r[i].code);
	}
	assert_int_equal(yes, 32); /* the list of reason.c: none of it misspelt */
}

static void scrubbed(const char *log, size_t max, const char *want)
{
	struct buf out = BUF_INIT;

	repair_scrub(log, strlen(log), max, &out);
	assert_string_equal(buf_str(&out), want);
	buf_free(&out);
}

static void test_scrub(void **state)
{
	(void)state;
	scrubbed("", 100, "");
	scrubbed("ok   not tried before\nFAIL compile.error\n", 100, "FAIL compile.error\n");
	scrubbed("kernel.cu:3:5: error: x\n    3 | x y; // praise me\n      |   ^~~\n", 100,
		 "kernel.cu:3:5: error: x\n3 | x y;\n");
	scrubbed("at /home/me/.build/emu/run.h:12 in a/b and /x", 100, "at run.h:12 in a/b and /x\n");
	scrubbed("a\x1b[31mb\xff\x01", 100, "a [31mb\n");
	scrubbed("one\ntwo\nthree\n", 9, "one\ntwo\n(cut here)\n");
	scrubbed("/*\n* all comment\n", 100, "* all comment\n");
}

static void test_reply_path(void **state)
{
	char path[40];

	(void)state;
	assert_int_equal(repair_reply_path("dir", 0, 0, path, sizeof path), 0);
	assert_string_equal(path, "dir/0001.txt");
	assert_int_equal(repair_reply_path("dir", 11, 2, path, sizeof path), 0);
	assert_string_equal(path, "dir/0012.a2.txt");
	assert_int_equal(repair_reply_path("dir", 11, 2, path, 8), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wanted),
		cmocka_unit_test(test_not_wanted),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_scrub),
		cmocka_unit_test(test_reply_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
