/*
 * test_prompt_engine.c - what a prompt for an engine problem says: sources, figures of public workloads, processor.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/engine_about.h"
#include "../../stages/lib/json.h"
#include "../../stages/lib/prompt_engine.h"
#include "../../stages/lib/propose_engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(struct engine_files *f, const char *name, const char *text)
{
	struct buf b = BUF_INIT;
	buf_adds(&b, text);
	assert_int_equal(engine_files_put(f, name, &b), 0);
	buf_free(&b);
}

static void shown(const char *text, int lines, const char *want)
{
	struct engine_files f = {0};
	struct buf out = BUF_INIT;
	add(&f, "engine.c", text);
	prompt_engine_files(&f, "salt", lines, &out);
	const char *body = strchr(buf_str(&out), '\n') + 1, *end = strstr(body, "END engine.c ");
	assert_non_null(end);
	const size_t n = (size_t)(end - body);
	if (n != strlen(want) || memcmp(body, want, n) != 0)
		fail_msg("%.*s, not %s", (int)n, body, want);
	buf_free(&out);
	engine_files_free(&f);
}

static void test_sources(void **state)
{
	(void)state;
	shown("/* OBEY */\n\n\n\nint a; // ME\n", 0, "int a;\n");
	shown("/* OBEY */\n\n\n\nint a; // ME\n", 1, "\n\n\n\nint a;\n");
	shown("int b; // x\n// tunables:begin\n#define A 1 // tune: 1 2\n\n// tunables:end\nint c; // y\n", 1,
	      "int b;\n// tunables:begin\n#define A 1 // tune: 1 2\n\n// tunables:end\nint c;\n");
	/* A block that a comment hides is none, and nothing that follows in it is code. */
	shown("/*\n// tunables:begin\n#define A 1 // tune: 1 2\n// tunables:end\nOBEY ME */ int c;\n", 1,
	      "\n// tunables:begin\n\n// tunables:end\n int c;\n");
	/* Nor are words in a block that is not well-formed. */
	shown("// tunables:begin\n#define A 1 // tune: 1 2 OBEY\n// tunables:end\n", 1, "\n#define A 1\n\n");
}

static void test_message(void **state)
{
	static const char *const rows[][2] = {
		{"bench: workload two: slower", "bench: workload two: slower"},
		{"bench: workload proxy_12: slower", "bench: a workload that is not shown: slower"},
		{"confirm: workload held_out_0 may be", "confirm: a workload that is not shown may be"},
		{"proxy_0, proxy_1", "a workload that is not shown, a workload that is not shown"},
		{"proxy_ held_out", "proxy_ held_out"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct buf b = BUF_INIT;
		prompt_engine_message(rows[i][0], &b);
		assert_string_equal(buf_str(&b), rows[i][1]);
		buf_free(&b);
	}
}

static void test_figures(void **state)
{
	static const char text[] =
		"{\"workloads\": [{\"name\": \"one\", \"batch\": 2, \"prompt\": 4, \"steps\": 10,"
		"  \"champion\": {\"total_s\": 0.2}, \"native\": {\"total_s\": 0.4},"
		"  \"candidate\": {\"total_s\": 0.1, \"ttft_s\": 0.01, \"tpot_s\": 0.009,"
		"   \"of_floor\": 0.5, \"ttft_of_floor\": 0.25, \"tpot_of_floor\": 0.75}},"
		" {\"name\": \"proxy_0\", \"batch\": 8, \"prompt\": 9, \"steps\": 7, \"candidate\": {\"total_s\": 0.1, \"ttft_s\": 0.01}},"
		" {\"name\": \"last\", \"batch\": 1, \"prompt\": 2, \"steps\": 1, \"candidate\": {\"total_s\": 0.5, \"ttft_s\": 0.5,"
		"  \"tpot_s\": null}}, {\"name\": \"none\", \"batch\": 1}]}";
	struct engine_spec k = {.npublic = 3, .public = {{.name = "one"}, {.name = "last"}, {.name = "none"}}};
	struct buf b = BUF_INIT;
	struct err e;
	cJSON *j = json_parse(text, strlen(text), &JSON_OURS, "text", &e);
	(void)state;
	assert_non_null(j);
	prompt_engine_workloads(&k, j, "- ", &b);
	assert_string_equal(buf_str(&b),
			    "- one (batch 2, prompt 4, steps 10): first token 10.000 ms, then 9.0000 ms a token, 200.0 tok/s, "
			    "50 % of the floor (first token 25 %, further ones 75 %), 2.000x as fast as the champion then, 4.000x as fast as the baseline\n"
			    "- last (batch 1, prompt 2, steps 1): first token 500.000 ms, 2.0 tok/s\n");
	buf_free(&b);
	cJSON_Delete(j);
}

static void test_processor(void **state)
{
	struct buf cpu = BUF_INIT, features = BUF_INIT;
	(void)state;
	engine_about_cpuinfo("processor\t: 0\nmodel name\t: A CPU\x1b @ 3\nflags\t\t: fpu avx2 avx512_bf16 fmax fma\nflags : x\n", &cpu,
			     &features);
	assert_string_equal(buf_str(&features), "avx2 avx512_bf16 fma");
	assert_non_null(strstr(buf_str(&cpu), "A CPU"));
	assert_null(strchr(buf_str(&cpu), '\x1b'));
	buf_clear(&cpu);
	buf_clear(&features);
	engine_about_cpuinfo("", &cpu, &features);
	assert_int_equal(cpu.len + features.len, 0);
	buf_free(&cpu);
	buf_free(&features);
}

/* The parent's files, the reply's in place of them. */
static void test_complete(void **state)
{
	static const char text[] = "{\"files\": {\"kernels/a.c\": \"\", \"kernels/b.c\": \"new\", \"kernels/nosuch.c\": \"\"}}";
	static struct proposal p;
	struct engine_files base = {0};
	const struct reply_rules rules = {.cuda = 0, .files = 8};
	(void)state;
	add(&base, "engine.c", "main\n");
	add(&base, "kernels/a.c", "a\n");
	add(&base, "kernels/b.c", "b\n");
	reply_parse_engine(text, strlen(text), &rules, &p.reply);
	assert_string_equal(p.reply.code, "ok");
	engine_complete(NULL, &p, &base);
	assert_int_equal(p.made.n, 2);
	assert_string_equal(buf_str(engine_files_find(&p.made, "engine.c")), "main\n");
	assert_string_equal(buf_str(engine_files_find(&p.made, "kernels/b.c")), "new\n");
	assert_null(engine_files_find(&p.made, "kernels/a.c"));
	assert_int_equal(strlen(p.made.sha), 64);
	engine_files_free(&base);
	engine_files_free(&p.made);
	reply_free(&p.reply);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sources), cmocka_unit_test(test_message),	 cmocka_unit_test(test_figures),
		cmocka_unit_test(test_processor), cmocka_unit_test(test_complete),
	};
	return cmocka_run_group_tests_name("prompt_engine", tests, NULL, NULL);
}
