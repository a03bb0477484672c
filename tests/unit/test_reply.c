/*
 * test_reply.c - what a model's answer is taken for: reply.h over a table of answers.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/reply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define K "extern \"C\" __global__ void k(float *y)\n{\n\ty[0] = 1;\n}\n"
#define P "{\"schema\": \"touchstone/plan/1\", \"entries\": [\"k\"], \"launches\": []}\n"
#define H "```json\n{\"item\": \"tile\", \"hypothesis\": \"reuse\", \"files\": [\"kernel.cu\"], \"risk\": \"none\"}\n```\n"
#define FK "```cuda kernel.cu\n" K "```\n"
#define FP "```json plan.json\n" P "```\n"

struct row {
	const char *name, *text, *code;
	const char *kernel, *plan; /* NULL: absent */
	const char *item;
};

static const struct row ROWS[] = {
	{"plain", H "\n" FK, "ok", K, NULL, "tile"},
	{"both files", FK "\n" FP, "ok", K, P, ""},
	{"plan alone", FP, "ok", NULL, P, ""},
	{"prose around", "Sure! I think\n" H "because {x}\n" FK "\nHope that helps {y.\n", "ok", K, NULL, "tile"},
	{"bare header", "{\"item\": \"tile\", \"files\": [\"kernel.cu\"]}\n" FK, "ok", K, NULL, "tile"},
	{"crlf", "```cuda kernel.cu\r\n__global__\r\n```\r\n", "ok", "__global__\n", NULL, ""},
	{"longer fence", "````cuda kernel.cu\n" K "```\n````\n", "ok", K "```\n", NULL, ""},
	{"tilde fence", "~~~cuda kernel.cu\n" K "~~~\n", "ok", K, NULL, ""},
	{"indented", "1. do\n\n   ```cuda kernel.cu\n   a\n     b\n   ```\n", "ok", "a\n  b\n", NULL, ""},
	{"name as title", "```cpp title=\"kernel.cu\"\n" K "```\n", "ok", K, NULL, ""},
	{"name after colon", "```cuda:kernel.cu\n" K "```\n", "ok", K, NULL, ""},
	{"name before", "**File: `kernel.cu`**\n\n```cuda\n" K "```\n", "ok", K, NULL, ""},
	{"heading before", "### plan.json\n```json\n" P "```\n", "ok", NULL, P, ""},
	{"unnamed single", H "```cuda\n" K "```\n", "ok", K, NULL, "tile"},
	{"unnamed plan", "```json\n" P "```\n", "ok", NULL, P, ""},
	{"snippet beside", H "for example\n```cuda\n__global__ void other() {}\n```\nso\n" FK, "ok", K, NULL, "tile"},
	{"same twice", FK "again\n" FK, "ok", K, NULL, ""},
	{"think", "<think>\n" FK "no\n</think>\n" FP, "ok", NULL, P, ""},
	{"think tail", "so I wonder ```\n</think>\n" FK, "ok", K, NULL, ""},
	{"wrapped in markdown", "````markdown\n" H FK "````\n", "ok", K, NULL, "tile"},
	{"one object", "{\"item\": \"a\", \"files\": {\"kernel.cu\": \"__global__\\n\", \"plan.json\": {\"launches\": []}}}",
	 "ok", "__global__\n", "{\n  \"launches\": []\n}\n", "a"},
	{"object of a list", "{\"files\": [{\"name\": \"kernel.cu\", \"content\": \"x\"}]}", "ok", "x\n", NULL, ""},
	{"header null file", "{\"files\": {\"kernel.cu\": \"x\", \"plan.json\": null}}", "ok", "x\n", NULL, ""},
	{"stray fence at end", FK "```\n", "ok", K, NULL, ""},
	{"words that are no text", "{\"item\": 3, \"hypothesis\": [\"a\"], \"files\": {\"kernel.cu\": \"x\"}}", "ok",
	 "x\n", NULL, "3"},

	{"two kernels", FK "or\n```cuda kernel.cu\n__global__ void other();\n```\n", "propose.ambiguous", 0, 0, 0},
	{"two unnamed", "```cuda\n" K "```\n```cuda\n__global__ void b();\n```\n", "propose.ambiguous", 0, 0, 0},
	{"two headers", H H FK, "propose.ambiguous", 0, 0, 0},
	{"forgotten end", "```cuda kernel.cu\n" K "```json plan.json\n" P "```\n", "propose.ambiguous", 0, 0, 0},
	{"cut in file", H "```cuda kernel.cu\n__global__ void k(", "propose.truncated", 0, 0, 0},
	{"cut in second file", FK "```json plan.json\n{\"entries\"", "propose.truncated", 0, 0, 0},
	{"cut object", "{\"item\": \"a\", \"files\": {\"kernel.cu\": \"__glo", "propose.truncated", 0, 0, 0},
	{"cut in thinking", "<think> and then ", "propose.truncated", 0, 0, 0},
	{"announced and absent", "```json\n{\"item\": \"a\", \"files\": [\"kernel.cu\", \"plan.json\"]}\n```\n" FP,
	 "propose.missing_file", 0, 0, 0},
	{"empty file", "```cuda kernel.cu\n```\n", "propose.missing_file", 0, 0, 0},
	{"other file", "```cuda main.cu\n" K "```\n", "propose.file_name", 0, 0, 0},
	{"path", "```cuda ../kernel.cu\n" K "```\n", "propose.file_name", 0, 0, 0},
	{"absolute path", "```cuda /etc/kernel.cu\n" K "```\n", "propose.file_name", 0, 0, 0},
	{"listed other", "{\"item\": \"a\", \"files\": [\"Makefile\"]}\n" FK, "propose.file_name", 0, 0, 0},
	{"object other", "{\"files\": {\"../../stages/guard.c\": \"x\"}}", "propose.file_name", 0, 0, 0},
	{"files not text", "{\"files\": {\"kernel.cu\": 3}}", "propose.header", 0, 0, 0},
	{"prose only", "I would use shared memory.", "propose.no_files", 0, 0, 0},
	{"header only", "```json\n{\"item\": \"a\", \"hypothesis\": \"b\"}\n```\n", "propose.no_files", 0, 0, 0},
	{"empty", "", "propose.empty", 0, 0, 0},
	{"blank", " \r\n\t\n", "propose.empty", 0, 0, 0},
	{"duplicate keys", "{\"files\": {\"kernel.cu\": \"a\", \"kernel.cu\": \"b\"}}", "propose.no_files", 0, 0, 0},
};

static void expect_file(const struct reply *r, int slot, const char *want)
{
	assert_int_equal(r->has[slot], want != NULL);
	if (want)
		assert_string_equal(r->file[slot].data, want);
}

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
		const struct row *t = &ROWS[i];
		struct reply r;
		reply_parse(t->text, strlen(t->text), &r);
		if (strcmp(r.code, t->code))
			fail_msg("%s: %s (%s), not %s", t->name, r.code, r.message, t->code);
		if (!strcmp(t->code, "ok")) {
			expect_file(&r, REPLY_KERNEL, t->kernel);
			expect_file(&r, REPLY_PLAN, t->plan);
			if (strcmp(buf_str(&r.words.item), t->item))
				fail_msg("%s: item '%s'", t->name, buf_str(&r.words.item));
		} else {
			assert_true(r.message[0]);
		}
		reply_free(&r);
	}
}

/* ---- engines ---- */

#define E "#include \"engine_protocol.h\"\nint main(void) { engine_ready(); engine_next(0); }\n"
#define EH "```json\n{\"item\": \"tile\", \"files\": [\"engine.c\", \"kernels/a.h\"]}\n```\n"
#define FE "```c engine.c\n" E "```\n"

struct engine_row {
	const char *name, *text, *code;
	int cuda;
	const char *file[3]; /* "NAME=TEXT", in the order of their slots; "NAME" has no text */
};

static const struct engine_row ENGINES[] = {
	{"plain", FE, "ok", 0, {"engine.c=" E}},
	{"two", EH FE "```c kernels/a.h\nint a;\n```\n", "ok", 0, {"engine.c=" E, "kernels/a.h=int a;\n"}},
	{"deleted", FE "```c kernels/a.h\n```\n", "ok", 0, {"engine.c=" E, "kernels/a.h"}},
	{"deleted in an object", "{\"files\": {\"kernels/a.c\": \"\", \"kernels/b.c\": \"x\"}}", "ok", 0,
	 {"kernels/a.c", "kernels/b.c=x\n"}},
	{"left as it is", "{\"files\": {\"kernels/a.c\": null, \"kernels/b.c\": \"x\"}}", "ok", 0,
	 {"kernels/a.c-", "kernels/b.c=x\n"}},
	{"list of objects", "{\"files\": [{\"path\": \"kernels/a.c\", \"content\": \"x\"}]}", "ok", 0, {"kernels/a.c=x\n"}},
	{"name before", "### kernels/a.h\n```c\nint a;\n```\n", "ok", 0, {"kernels/a.h=int a;\n"}},
	{"unnamed engine", "```c\n" E "```\n", "ok", 0, {"engine.c=" E}},
	{"cuda", "```cuda engine.cu\n" E "```\n```cuda kernels/a.cuh\nx\n```\n", "ok", 1,
	 {"engine.cu=" E, "kernels/a.cuh=x\n"}},
	{"think, then the engine", "<think>" FE "hm</think>\n```c kernels/a.h\nint a;\n```\n", "ok", 0, {"kernels/a.h=int a;\n"}},

	{"empty engine", "```c engine.c\n```\n", "propose.missing_file", 0, {0}},
	{"the other language", "```cuda engine.cu\n" E "```\n", "propose.file_name", 0, {0}},
	{"a C engine in CUDA", FE, "propose.file_name", 1, {0}},
	{"a kernel's file", "```cuda kernel.cu\n" K "```\n", "propose.file_name", 0, {0}},
	{"a plan", FP, "propose.file_name", 0, {0}},
	{"a plan unnamed", "```json\n" P "```\n", "propose.no_files", 0, {0}},
	{"up", "{\"files\": {\"kernels/../engine.c\": \"x\"}}", "propose.file_name", 0, {0}},
	{"up and out", "```c ../../stages/guard.c\nx\n```\n", "propose.file_name", 0, {0}},
	{"absolute", "{\"files\": {\"/etc/passwd.c\": \"x\"}}", "propose.file_name", 0, {0}},
	{"absolute with a prefix", "{\"files\": {\"/kernels/a.c\": \"x\"}}", "propose.file_name", 0, {0}},
	{"deeper", "{\"files\": {\"kernels/a/b.c\": \"x\"}}", "propose.file_name", 0, {0}},
	{"hidden", "{\"files\": {\"kernels/.c\": \"x\"}}", "propose.file_name", 0, {0}},
	{"dots", "{\"files\": {\"kernels/a.b.c\": \"x\"}}", "propose.file_name", 0, {0}},
	{"two slashes", "{\"files\": {\"kernels//a.c\": \"x\"}}", "propose.file_name", 0, {0}},
	{"backslash", "{\"files\": {\"kernels\\\\a.c\": \"x\"}}", "propose.file_name", 0, {0}},
	{"capitals", "{\"files\": {\"kernels/A.c\": \"x\"}}", "propose.file_name", 0, {0}},
	{"NUL in a name", "{\"files\": {\"kernels/a.c\\u0000/../../x\": \"x\"}}", "propose.no_files", 0, {0}},
	{"NUL in a file", "{\"files\": {\"engine.c\": \"x\\u0000y\"}}", "propose.no_files", 0, {0}},
	{"a script", "{\"files\": {\"kernels/a.py\": \"x\"}}", "propose.file_name", 0, {0}},
	{"a Makefile", "{\"item\": \"x\", \"files\": [\"Makefile\"]}\n" FE, "propose.file_name", 0, {0}},
	{"listed and absent", EH FE, "propose.missing_file", 0, {0}},
	{"two answers", FE "```c engine.c\nint x;\n```\n", "propose.ambiguous", 0, {0}},
	{"emptied and given", "```c kernels/a.h\nint a;\n```\n```c kernels/a.h\n```\n", "propose.ambiguous", 0, {0}},
	{"cut", "```c engine.c\nint main(", "propose.truncated", 0, {0}},
	{"an object as a file", "{\"files\": {\"engine.c\": {\"launches\": []}}}", "propose.header", 0, {0}},
	{"too many", "{\"files\": {\"kernels/a.c\": \"x\", \"kernels/b.c\": \"x\", \"kernels/c.c\": \"x\", \"kernels/d.c\": \"x\", "
	 "\"engine.c\": \"x\"}}", "propose.too_large", 0, {0}},
	{"prose", "Use more threads.", "propose.no_files", 0, {0}},
};

static void expect_slot(const struct engine_row *t, const struct reply *r, int i)
{
	const char *want = t->file[i], *mark = want + strcspn(want, "=-");
	const size_t n = (size_t)(mark - want);
	if (i >= r->n || strlen(r->name[i]) != n || memcmp(r->name[i], want, n))
		fail_msg("%s: file %d is not '%s'", t->name, i, want);
	assert_int_equal(r->has[i], *mark != '-');
	assert_string_equal(buf_str(&r->file[i]), *mark == '=' ? mark + 1 : "");
}

static void test_engines(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof ENGINES / sizeof *ENGINES; i++) {
		const struct engine_row *t = &ENGINES[i];
		const struct reply_rules rules = {.cuda = t->cuda, .files = 4};
		struct reply r;
		reply_parse_engine(t->text, strlen(t->text), &rules, &r);
		if (strcmp(r.code, t->code))
			fail_msg("%s: %s (%s), not %s", t->name, r.code, r.message, t->code);
		for (int k = 0; k < 3 && t->file[k]; k++)
			expect_slot(t, &r, k);
		reply_free(&r);
	}
}

/* A thousand files, in either form. */
static void test_many(void **state)
{
	const struct reply_rules rules = {.cuda = 0, .files = 100000};
	struct buf one = BUF_INIT, two = BUF_INIT;
	struct reply r;
	(void)state;
	buf_adds(&one, "{\"files\": {");
	for (int i = 0; i < 1000; i++) {
		buf_addf(&one, "%s\"kernels/f%d.c\": \"x\"", i ? ", " : "", i);
		buf_addf(&two, "```c kernels/f%d.c\nx\n```\n", i);
	}
	buf_adds(&one, "}}");
	reply_parse_engine(one.data, one.len, &rules, &r);
	assert_string_equal(r.code, "propose.too_large");
	assert_int_equal(r.n, REPLY_FILES);
	reply_free(&r);
	reply_parse_engine(two.data, two.len, &rules, &r);
	assert_string_not_equal(r.code, "ok");
	reply_free(&r);
	buf_free(&one);
	buf_free(&two);
}

static void test_words_are_lines(void **state)
{
	static const char text[] = "{\"item\": \"a\\nb\\u202e\\u0007 c\", \"files\": {\"kernel.cu\": \"x\"}}";
	struct reply r;
	(void)state;
	reply_parse(text, strlen(text), &r);
	assert_string_equal(r.words.item.data, "a b c");
	reply_free(&r);
}

static void test_nul(void **state)
{
	struct reply r;
	(void)state;
	reply_parse("a\0b", 3, &r);
	assert_string_equal(r.code, "propose.malformed");
	reply_free(&r);
}

static void test_large(void **state)
{
	struct buf b = BUF_INIT;
	struct reply r;
	(void)state;
	buf_adds(&b, "```cuda kernel.cu\n");
	for (int i = 0; i < REPLY_MAX_FILE / 10 + 10; i++)
		buf_adds(&b, "012345678\n");
	buf_adds(&b, "```\n");
	reply_parse(b.data, b.len, &r);
	assert_string_equal(r.code, "propose.too_large");
	reply_free(&r);
	while (b.len <= REPLY_MAX_TEXT)
		buf_adds(&b, "more and more text to read\n");
	reply_parse(b.data, b.len, &r);
	assert_string_equal(r.code, "propose.too_large");
	reply_free(&r);
	buf_free(&b);
}

/* Cut anywhere, a reply of two files never yields other files than the whole one. */
static void test_every_cut(void **state)
{
	static const char text[] = H FK FP;
	(void)state;
	for (size_t n = 0; n < strlen(text); n++) {
		struct reply r;
		reply_parse(text, n, &r);
		if (r.has[REPLY_KERNEL] && !strcmp(r.code, "ok"))
			assert_string_equal(r.file[REPLY_KERNEL].data, K);
		if (r.has[REPLY_PLAN] && !strcmp(r.code, "ok"))
			assert_string_equal(r.file[REPLY_PLAN].data, P);
		reply_free(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),   cmocka_unit_test(test_words_are_lines),
		cmocka_unit_test(test_nul),     cmocka_unit_test(test_large),
		cmocka_unit_test(test_every_cut), cmocka_unit_test(test_engines),
		cmocka_unit_test(test_many),
	};
	return cmocka_run_group_tests_name("reply", tests, NULL, NULL);
}
