/*
 * test_engine_spec.c - tests of engine_spec: what a whole problem becomes, and what is refused by its place.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_spec.h"

#include "buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "{\"schema\": \"touchstone/spec/1\", \"kind\": \"engine\", \"name\": \"q\", \"description\": \"d\", \"language\": \"c\","
#define MODEL "\"model\": {\"family\": \"qwen3\", \"shape\": \"tiny\", \"seed\": 3},"
#define ONE "[{\"name\": \"a\", \"batch\": 2, \"prompt\": 7, \"steps\": 5}]"
#define TINY "[{\"name\": \"t\", \"batch\": 4, \"prompt\": 7, \"steps\": 16}]"
#define WORK "\"workloads\": {\"public\": " ONE ", \"tiny\": " TINY "}"

static void whole(void **state)
{
	static const char text[] = HEAD MODEL "\"workloads\": {\"public\": " ONE ", \"proxy\": " ONE ", \"odd\": [], \"tiny\": " TINY "},"
		"\"promotion\": {\"margin\": 0.02}, \"gates\": {\"native\": 1.1}, \"limits\": {\"files\": 3, \"step_s\": 0.5}}";
	struct engine_spec *s;
	struct err e;
	(void)state;
	assert_int_equal(engine_spec_parse(text, sizeof text - 1, "spec.json", &s, &e), 0);
	assert_string_equal(s->name, "q");
	assert_string_equal(s->shape, "tiny");
	assert_true(s->seed == 3 && !s->cuda && s->npublic == 1 && s->nproxy == 1 && s->nodd == 0 && s->ntiny == 1);
	assert_true(s->public[0].batch == 2 && s->public[0].prompt == 7 && s->public[0].steps == 5);
	assert_true(s->margin == 0.02 && s->guard == -0.03 && s->gate_native == 1.1 && s->gate_spread == 0.25);
	assert_true(s->files == 3 && s->step_s == 0.5 && s->load_s == 60);
	engine_spec_free(s);
	engine_spec_free(NULL);
}

static void cuda(void **state)
{
	static const char text[] = "{\"schema\": \"touchstone/spec/1\", \"kind\": \"engine\", \"name\": \"q\", \"description\": \"d\", "
		"\"language\": \"cuda\", \"model\": {\"family\": \"qwen3\", \"shape\": \"any\"},"
		"\"workloads\": {\"public\": [{\"name\": \"a\", \"batch\": 1, \"prompt\": 100000, \"steps\": 8}], \"tiny\": " TINY "},"
		"\"limits\": {\"load_s\": 120}}";
	struct engine_spec *s;
	struct err e;
	(void)state;
	assert_int_equal(engine_spec_parse(text, sizeof text - 1, "spec.json", &s, &e), 0);
	assert_true(s->cuda && s->load_s == 120 && s->memory_bytes == INT64_C(64) << 30 && s->seed == 1);
	assert_string_equal(s->shape, "any");
	engine_spec_free(s);
}

static void kinds(void **state)
{
	static const struct {
		const char *text;
		int rc;
		enum spec_kind kind;
	} t[] = {{"{}", 0, SPEC_KERNEL}, {"{\"kind\": \"kernel\"}", 0, SPEC_KERNEL}, {HEAD MODEL WORK "}", 0, SPEC_ENGINE},
		 {"{\"kind\": \"motor\"}", -1, SPEC_KERNEL}, {"{\"kind\": 1}", -1, SPEC_KERNEL}, {"[", -1, SPEC_KERNEL}};
	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		enum spec_kind k;
		struct err e;
		assert_int_equal(spec_kind(t[i].text, strlen(t[i].text), &k, &e), t[i].rc);
		if (t[i].rc)
			assert_int_equal(e.code, EX_BADINPUT);
		else
			assert_int_equal(k, t[i].kind);
	}
}

static void refused(void **state)
{
	static const char *const t[][2] = {
		{HEAD MODEL WORK ", \"plan\": 1}", "plan"},
		{HEAD WORK "}", "model"},
		{HEAD MODEL "\"workloads\": {\"public\": " ONE "}}", "tiny"},
		{HEAD MODEL "\"workloads\": {\"public\": [], \"tiny\": " ONE "}}", "public"},
		{HEAD MODEL "\"workloads\": {\"public\": [{\"name\": \"a\", \"batch\": 257, \"prompt\": 7, \"steps\": 5}], \"tiny\": " TINY "}}",
		 "public[0].batch"},
		{HEAD MODEL "\"workloads\": {\"public\": [{\"name\": \"a\", \"batch\": 200, \"prompt\": 1000000, \"steps\": 5}], \"tiny\": "
		 TINY "}}", "public[0]"},
		{HEAD MODEL "\"workloads\": {\"public\": [{\"name\": \"a\", \"batch\": 2, \"prompt\": 7}], \"tiny\": " TINY "}}", "steps"},
		{HEAD MODEL "\"workloads\": {\"public\": " ONE ", \"tiny\": " ONE "}}", "10 ids"},
		{HEAD MODEL "\"workloads\": {\"public\": [{\"name\": \"a\", \"batch\": 1, \"prompt\": 4096, \"steps\": 1}], \"tiny\": " TINY
		 "}}", "4096 positions"},
		{HEAD "\"model\": {\"family\": \"qwen3\", \"shape\": \"4B\"},\"workloads\": {\"public\": [{\"name\": \"a\", \"batch\": 1, "
		 "\"prompt\": 40900, \"steps\": 61}], \"tiny\": " TINY "}}", "40960 positions"},
		{HEAD MODEL WORK ", \"limits\": {\"load_s\": 121}}", "load_s"},
		{HEAD "\"model\": {\"family\": \"qwen3\", \"shape\": \"huge\"}," WORK "}", "shape"},
		{HEAD "\"model\": {\"family\": \"llama\", \"shape\": \"tiny\"}," WORK "}", "family"},
		{HEAD MODEL WORK ", \"limits\": {\"step_s\": 0}}", "step_s"},
		{HEAD MODEL WORK ", \"gates\": {\"native\": -1}}", "native"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct engine_spec *s;
		struct err e;
		assert_int_equal(engine_spec_parse(t[i][0], strlen(t[i][0]), "spec.json", &s, &e), -1);
		assert_int_equal(e.code, EX_BADINPUT);
		if (!strstr(e.text, t[i][1]))
			fail_msg("'%s' does not name '%s'", e.text, t[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(whole), cmocka_unit_test(cuda), cmocka_unit_test(kinds), cmocka_unit_test(refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
