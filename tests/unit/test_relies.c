/*
 * test_relies.c - the rules that a passing kernel's status depends on: found where they are, and only there.
 *
 * Reads specs/vector_add below the working directory (the root of the repository).
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/plan.h"
#include "../../stages/lib/relies.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static struct spec *spec;
static struct facts facts;

#define ARGS "\"args\":[{\"in\":\"x\"},{\"in\":\"y\"},{\"out\":\"out\"},{\"axis\":\"N\",\"type\":\"i32\"}]"
#define LAUNCH(entry, when) \
	"{\"entry\":\"" entry "\",\"grid\":[\"ceil_div(N, 64)\"],\"block\":[64]," when ARGS "}"

/* What is found in a plan of these launches and members. */
static struct relies of_plan(const char *more, const char *launches)
{
	char text[4096];
	struct plan *p;
	struct err e = {0};
	struct relies r = {0};
	snprintf(text, sizeof text, "{\"schema\":\"touchstone/plan/1\",\"entries\":[\"a\",\"b\"],%s\"launches\":[%s]}",
		 more, launches);
	if (plan_parse(text, strlen(text), "plan.json", &p, &e) || plan_check(p, spec, &e))
		fail_msg("%s", e.text);
	relies_plan(&r, p, spec, &facts);
	plan_free(p);
	return r;
}

static void knobs(void **state)
{
	(void)state;
	struct relies r = of_plan("", LAUNCH("a", "") "," LAUNCH("b", ""));
	assert_int_equal(r.n, 0);
	r = of_plan("\"compile\":{\"fast_math\":true},", LAUNCH("a", "") "," LAUNCH("b", ""));
	assert_int_equal(r.n, 1);
	assert_string_equal(r.item[0].rule, "fast_math");
	assert_non_null(strstr(r.item[0].words, "compiled with fast_math"));
	r = of_plan("\"compile\":{\"prec_div\":false},", LAUNCH("a", "") "," LAUNCH("b", ""));
	assert_non_null(strstr(r.item[0].words, "prec_div"));
	r = of_plan("\"compile\":{\"prec_div\":true,\"ftz\":false,\"fmad\":false},",
		    LAUNCH("a", "") "," LAUNCH("b", ""));
	assert_int_equal(r.n, 0);
}

#define ON(when) "\"when\":\"" when "\","

/* 131109 is a public size of vector_add on emu, 16777253 on a GPU. */
static void sizes_in_the_plan(void **state)
{
	static const char *const fine[][2] = {
		{"N > 4096", "N <= 4096"},
		{"N % 4 == 0", "N % 4 != 0"},
		{"N % 3 == 0", "N % 3 != 0"},
		{"N >= 100000 && N < 190000", "N < 100000 || N >= 190000"},
	};
	(void)state;
	struct relies r = of_plan("", LAUNCH("a", ON("N == 131109")) "," LAUNCH("b", ON("N != 131109")));
	assert_int_equal(r.n, 1);
	assert_string_equal(r.item[0].rule, "public_sizes");
	assert_non_null(strstr(r.item[0].words, "N=131109"));
	r = of_plan("", LAUNCH("a", ON("N * 2 + 1 == 262219")) "," LAUNCH("b", ON("N * 2 + 1 != 262219")));
	assert_int_equal(r.n, 1);
	for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
		char launches[1024];
		snprintf(launches, sizeof launches,
			 "{\"entry\":\"a\",\"grid\":[1],\"block\":[64],\"when\":\"%s\"," ARGS "},"
			 "{\"entry\":\"b\",\"grid\":[1],\"block\":[64],\"when\":\"%s\"," ARGS "}",
			 fine[i][0], fine[i][1]);
		r = of_plan("", launches);
		if (r.n)
			fail_msg("%s: %s", fine[i][0], r.item[0].words);
	}
}

static struct relies of_source(const char *text)
{
	struct relies r = {0};
	relies_source(&r, text, strlen(text), spec);
	return r;
}

static void sizes_in_the_source(void **state)
{
	(void)state;
	struct relies r = of_source("int f(int n) {\n\treturn n == 16777253u; }");
	assert_int_equal(r.n, 1);
	assert_string_equal(r.item[0].rule, "public_sizes");
	assert_non_null(strstr(r.item[0].words, "kernel.cu:2: asks whether something is 16777253"));
	assert_int_equal(of_source("0x1000025 != n;").n, 1);
	assert_int_equal(of_source("switch (n) { case 131'109: break; }").n, 1);
	assert_int_equal(of_source("n > 16777253; n = 16777253; n == 16777254; /* n == 16777253 */").n, 0);
	assert_int_equal(of_source("#if N == 16777253\n#endif\nchar s[] = \"n == 16777253\";").n, 0);
}

static void hints(void **state)
{
	(void)state;
	struct relies r = of_source("x = __ldcs(p);");
	assert_int_equal(r.n, 1);
	assert_string_equal(r.item[0].rule, "cache_hints");
	assert_int_equal(of_source("x = __ldg(p); // __ldcs").n, 0);
	struct {
		const char *ptx, *rule;
	} const t[] = {
		{"ld.global.L2::evict_last.f32 %f1, [%rd1];", "cache_hints"},
		{"createpolicy.fractional.L2::evict_last.b64 %rd2, 0f3F800000;", "cache_hints"},
		{"st.global.cs.f32 [%rd1], %f1;", "cache_hints"},
		{"prefetch.global.L2 [%rd1];", "cache_hints"},
		{"mov.u32 %r1, %smid;", "placement"},
		{"prefetch.tensormap [%rd1];", NULL},
		{"cp.async.cg.shared.global.L2::128B [%r1], [%rd1], 16;", NULL},
		{"ld.global.nc.f32 %f1, [%rd1]; // evict_last", NULL},
	};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct relies p = {0};
		relies_ptx(&p, t[i].ptx, strlen(t[i].ptx));
		if (!t[i].rule)
			assert_int_equal(p.n, 0);
		else
			assert_string_equal(p.n ? p.item[0].rule : "none", t[i].rule);
	}
}

/* Once each, known names alone, and through JSON and back. */
static void the_list(void **state)
{
	(void)state;
	struct relies r = {0}, back = {0};
	struct jsonw w = {0};
	relies_add(&r, "order", "%s", "first \"words\"");
	relies_add(&r, "order", "%s", "second");
	relies_add(&r, "no such rule", "%s", "x");
	assert_int_equal(r.n, 1);
	jw_obj(&w, NULL);
	relies_write(&r, &w, "relies");
	jw_end(&w);
	cJSON *j = cJSON_Parse(buf_str(&w.out));
	relies_join(&back, cJSON_GetObjectItem(j, "relies"));
	assert_int_equal(back.n, 1);
	assert_string_equal(back.item[0].words, "first \"words\"");
	relies_join(&back, NULL);
	cJSON_Delete(j);
	jw_free(&w);
}

static int setup(void **state)
{
	struct err e;
	(void)state;
	return spec_load("specs/vector_add", &spec, &e) || facts_find("emu", &facts, &e);
}

static int teardown(void **state)
{
	(void)state;
	spec_free(spec);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knobs),
		cmocka_unit_test(sizes_in_the_plan),
		cmocka_unit_test(sizes_in_the_source),
		cmocka_unit_test(hints),
		cmocka_unit_test(the_list),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
