/*
 * test_plateau.c - the rule: its states over the count, what it makes of a record it cannot use.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/plateau.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static struct run run_of(const char *settings)
{
	struct run r = {.name = "r0003"};

	r.json = r.settings = cJSON_Parse(settings);
	assert_non_null(r.settings);
	return r;
}

static struct plateau at(const char *settings, const char *after, const char *kind)
{
	struct run r = run_of(settings);
	cJSON *j = cJSON_Parse(after);
	struct plateau p = plateau_of(&r, j, kind);

	cJSON_Delete(j);
	cJSON_Delete(r.json);
	return p;
}

static void test_states(void **state)
{
	static const struct {
		int dry;
		const char *kind;
		int widen, stop, other;
	} want[] = {
		{0, "openai", 0, 0, 0}, {2, "openai", 0, 0, 0}, {3, "openai", 1, 0, 0}, {4, "command", 2, 0, 1},
		{5, "openai", 3, 0, 0}, {6, "openai", 0, 1, 0}, {9, "command", 0, 1, 0},
		{2, "sweep", 0, 0, 0},  {3, "sweep", 0, 1, 0},  {3, "replay", 0, 1, 0},
	};
	char after[100];

	(void)state;
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		snprintf(after, sizeof after, "{\"plateau\":{\"run\":\"r0003\",\"dry\":%d}}", want[i].dry);
		struct plateau p = at("{\"plateau\":3}", after, want[i].kind);
		assert_int_equal(p.widen, want[i].widen);
		assert_int_equal(p.stop, want[i].stop);
		assert_int_equal(plateau_other_parent(&p), want[i].other);
	}
}

static void test_nothing_known(void **state)
{
	(void)state;
	assert_int_equal(at("{}", "{\"plateau\":{\"run\":\"r0003\",\"dry\":9}}", "openai").k, 0);
	assert_int_equal(at("{\"plateau\":3}", "{}", "openai").dry, 0);
	assert_int_equal(at("{\"plateau\":3}", "{\"plateau\":{\"run\":\"r0002\",\"dry\":9}}", "openai").dry, 0);
	assert_int_equal(at("{\"plateau\":3}", "{\"plateau\":{\"run\":\"r0003\",\"dry\":-9}}", "openai").dry, 0);
	assert_int_equal(at("{\"plateau\":3}", "{\"plateau\":{\"run\":\"r0003\",\"dry\":\"9\"}}", "openai").dry, 0);
	assert_int_equal(at("{\"plateau\":-3}", "null", "openai").k, 0);
}

static void put(const char *settings, const char *after, int charged, int kept, const char *want)
{
	struct run r = run_of(settings);
	struct jsonw w = {0};
	cJSON *j = cJSON_Parse(after);

	jw_obj(&w, NULL);
	plateau_put(&w, &r, j, charged, kept);
	jw_end(&w);
	assert_string_equal(buf_str(&w.out), want);
	jw_free(&w);
	cJSON_Delete(j);
	cJSON_Delete(r.json);
}

static void test_count(void **state)
{
	const char *two = "{\"plateau\":{\"run\":\"r0003\",\"dry\":2}}";

	(void)state;
	put("{}", two, 1, 0, "{}");
	put("{\"plateau\":3}", two, 1, 0, "{\"plateau\":{\"run\":\"r0003\",\"dry\":3}}");
	put("{\"plateau\":3}", two, 0, 0, "{\"plateau\":{\"run\":\"r0003\",\"dry\":2}}");
	put("{\"plateau\":3}", two, 1, 1, "{\"plateau\":{\"run\":\"r0003\",\"dry\":0}}");
	put("{\"plateau\":3}", "{}", 1, 0, "{\"plateau\":{\"run\":\"r0003\",\"dry\":1}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_nothing_known),
		cmocka_unit_test(test_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
