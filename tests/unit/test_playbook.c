/*
 * test_playbook.c - playbooks: their form, what ships, what is open, closed and waiting.
 * Runs in the repository's root for prompts/ and specs/.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/file.h"
#include "../../stages/lib/json.h"
#include "../../stages/lib/playbook.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define BODY "- when: w\n- how: h\n  more\n- measure: m\n"

static struct playbook b;

static int parse(const char *text, struct err *e)
{
	memset(e, 0, sizeof *e);
	playbook_free(&b);
	return playbook_parse(&b, text, strlen(text), "p", e);
}

static void test_form(void **state)
{
	static const char *const bad[] = {
		"", "# t\n", "## a: b\n" BODY, "# t\n# t\n## a: b\n" BODY, "# t\n## a\n" BODY, "# t\n## A: b\n" BODY,
		"# t\n## a: \n" BODY, "# t\n## 1a: b\n" BODY, "# t\n## a: b\n- how: h\n- when: w\n- measure: m\n",
		"# t\n## a: b\n- when: w\n- how: h\n", "# t\n## a: b\n" BODY "## a: b\n" BODY, "# t\n- when: w\n",
		"# t\n## a: b\n" BODY "- needs: a\n", "# t\n## a: b\n" BODY "- needs: z\n", "# t\n## a: b\n" BODY "- needs: \n",
		"# t\n## a: b\n" BODY "- more: x\n", "# t\nwords\n## a: b\n" BODY, "# t\n  more\n## a: b\n" BODY,
		"# t\n## a: b\n- when: \n- how: h\n- measure: m\n", "# t\n## a: \x01\n" BODY, "# t\n## a: b\xc3\xa4\n" BODY,
	};
	struct err e;
	(void)state;
	assert_int_equal(parse("# t\n\n## a: b\n" BODY "\n## c-2: d\n" BODY "- needs: a\n", &e), 0);
	assert_int_equal(b.n, 2);
	assert_string_equal(buf_str(&b.item[0].part[PLAYBOOK_HOW]), "h more");
	assert_int_equal(b.item[1].need[0], 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (!parse(bad[i], &e))
			fail_msg("accepted: %s", bad[i]);
		assert_int_equal(e.code, EX_BADINPUT);
	}
	playbook_free(&b);
}

static void test_standing(void **state)
{
	struct err e;
	struct buf t = BUF_INIT;
	(void)state;
	assert_int_equal(parse("# t\n## a: A\n" BODY "## c: C\n" BODY "- needs: a\n", &e), 0);
	playbook_count(&b, NULL);
	playbook_tell(&b, &t);
	assert_non_null(strstr(buf_str(&t), "- a: A\n  when: w\n  how: h more\n  measure: m\n"));
	assert_non_null(strstr(buf_str(&t), "- c: C WAITS for a,"));
	cJSON *j = cJSON_Parse("{\"a\": {\"tried\": 4, \"kept\": 0, \"failed\": 4}, \"other\": {\"failed\": 9}}");
	playbook_count(&b, j);
	assert_false(playbook_closed(&b.item[0]));
	assert_int_equal(playbook_waits(&b, &b.item[1]), 0);
	cJSON_SetNumberValue(json_get(json_get(j, "a"), "failed"), 5);
	playbook_count(&b, j);
	assert_true(playbook_closed(&b.item[0]));
	assert_int_equal(playbook_waits(&b, &b.item[1]), -1);
	buf_clear(&t);
	playbook_tell(&b, &t);
	assert_non_null(strstr(buf_str(&t), "- a: A [tried 4, kept 0, failed 5] CLOSED: do not propose it again\n- c: C\n  when: w\n"));
	cJSON_SetNumberValue(json_get(json_get(j, "a"), "failed"), 0);
	cJSON_SetNumberValue(json_get(json_get(j, "a"), "kept"), 1);
	playbook_count(&b, j);
	assert_int_equal(playbook_waits(&b, &b.item[1]), -1);
	assert_ptr_equal(playbook_named(&b, "c"), &b.item[1]);
	assert_ptr_equal(playbook_named(&b, "c: with words"), &b.item[1]);
	assert_null(playbook_named(&b, "cc"));
	assert_null(playbook_named(&b, "c/x"));
	assert_null(playbook_named(&b, ""));
	cJSON_Delete(j);
	buf_free(&t);
	playbook_free(&b);
}

/* Every op_type of a problem that ships has its playbooks, all that ship read, and no two share an id. */
static void test_shipped(void **state)
{
	static const char *const ops[] = {"elementwise", "gemm", "attention", "paged", "engine", "softmax"};
	static const char *const files[] = {"memory", "reduction", "gemm", "attention", "decode", "engine"};
	const char *name[2];
	char path[96];
	struct err e;
	(void)state;
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
		playbook_for(ops[i], name);
		assert_non_null(name[0]);
	}
	playbook_for("no such", name);
	assert_null(name[0]);
	playbook_free(&b);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct buf t = BUF_INIT;
		snprintf(path, sizeof path, "prompts/playbook/%s.md", files[i]);
		if (file_read(path, 1 << 20, &t, &e) || playbook_parse(&b, buf_str(&t), t.len, path, &e))
			fail_msg("%s", e.text);
		buf_free(&t);
	}
	assert_true(b.n > 30);
	playbook_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_form), cmocka_unit_test(test_standing), cmocka_unit_test(test_shipped),
	};
	return cmocka_run_group_tests_name("playbook", tests, NULL, NULL);
}
