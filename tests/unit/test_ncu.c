/*
 * test_ncu.c - the table that Nsight Compute writes, with everything that stands around it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/json.h"
#include "../../stages/lib/ncu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char GOOD[] =
	"==PROF== Connected to process 4242 (/x/bare)\n"
	"==PROF== Profiling \"vector_add\": 0%....50%....100% - 5 passes\n"
	"\"ID\",\"Process ID\",\"Kernel Name\",\"Context\",\"dram__bytes_read.sum\",\"gpu__time_duration.sum\","
	"\"lts__t_sector_hit_rate.pct\",\"something__new.sum\"\r\n"
	"\"\",\"\",\"\",\"\",\"byte\",\"us\",\"%\",\"\"\r\n"
	"\"0\",\"4242\",\"vector_add\",\"1\",\"536,870,912\",\"182.8\",\"0.5\",\"7\"\r\n"
	"==PROF== Disconnected from process 4242\n"
	"\"1\",\"4242\",\"say \"\"hi\"\", <b>\",\"1\",\"n/a\",\"1,215.5\",\"\",\"7\"\n";

static int parse(const char *text, struct ncu_report *r, struct err *e)
{
	memset(e, 0, sizeof *e);
	return ncu_parse(text, strlen(text), r, e);
}

static void test_table(void **state)
{
	(void)state;
	struct ncu_report r;
	struct err e;
	assert_int_equal(parse(GOOD, &r, &e), 0);
	assert_int_equal(r.n, 2);
	assert_string_equal(r.launch[0].kernel, "vector_add");
	assert_true(fabs(r.launch[0].value[0] - 182800) < 1e-6); /* us, in ns */
	assert_true(fabs(r.launch[0].value[1] - 536870912) < 1e-6);
	assert_true(isnan(r.launch[0].value[2])); /* no such column */
	assert_string_equal(r.launch[1].kernel, "say \"hi\", <b>");
	assert_true(isnan(r.launch[1].value[1]));
	assert_true(fabs(r.launch[1].value[0] - 1215500) < 1e-6);
}

static void test_told(void **state)
{
	(void)state;
	struct ncu_report r;
	struct err e;
	struct jsonw w = {0};
	struct buf out = BUF_INIT;
	assert_int_equal(parse(GOOD, &r, &e), 0);
	jw_obj(&w, NULL);
	ncu_write(&r, &w, "launches");
	jw_end(&w);
	cJSON *j = json_parse(w.out.data, w.out.len, &JSON_OURS, "x", &e);
	assert_non_null(j);
	ncu_tell(json_get(j, "launches"), &out);
	assert_non_null(strstr(buf_str(&out), "ncu, vector_add: 182800 ns under the profiler, DRAM read 536870912 bytes, L2 hits 0.5 %\n"));
	ncu_tell(NULL, &out);
	cJSON_Delete(j);
	jw_free(&w);
	buf_free(&out);
}

static void test_not_to_be_had(void **state)
{
	(void)state;
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"", "no table"},
		{"==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n", "ERR_NVGPUCTRPERM"},
		{"==ERROR== \x1b[31mred\n", "[31mred"},
		{"\"ID\",\"Kernel Name\",\"x\"\n\"0\",\"k\",\"1\"\n", "no table"},
		{"\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n\"\",\"\",\"ns\"\n", "no launch"},
		{"\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n\"0\",\"k\"\n", "does not fit"},
		{"\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n\"0\",\"k\",\"1\",\"2\"\n", "does not fit"},
		{"\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n\"0\",\"k\",\"1\n", "does not fit"},
		{"\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n\"0\",\"k\"x,\"1\"\n", "does not fit"},
	};
	struct ncu_report r;
	struct err e;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(parse(bad[i].text, &r, &e), -1);
		assert_int_equal(e.code, EX_BADINPUT);
		assert_non_null(strstr(e.text, bad[i].says));
		assert_null(strchr(e.text, '\x1b'));
	}
}

/* A plan may launch more often than there is room for. */
static void test_many(void **state)
{
	(void)state;
	struct buf b = BUF_INIT;
	struct ncu_report r;
	struct err e;
	buf_adds(&b, "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n\"\",\"\",\"ns\"\n");
	for (int i = 0; i < 2 * NCU_LAUNCHES; i++)
		buf_addf(&b, "\"%d\",\"k%d\",\"%d\"\n", i, i, i);
	assert_int_equal(ncu_parse(b.data, b.len, &r, &e), 0);
	assert_int_equal(r.n, NCU_LAUNCHES);
	assert_string_equal(r.launch[NCU_LAUNCHES - 1].kernel, "k31");
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_not_to_be_had),
		cmocka_unit_test(test_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
