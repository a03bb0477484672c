/*
 * test_clusters.c - which reasons count as one.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/clusters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static void test_key(void **state)
{
	static const char *const rows[][2] = {
		{"a0/guard: shared memory 240,000 > 232448", "shared memory # > #"},
		{"judge: rel_l2 1.5e-3 at 0x1f", "rel_l2 # at #"},
		{"'a b' is no name, \"c\" neither", "* is no name, * neither"},
		{"fp16 isn't and hasn't", "fp16 isn't and hasn't"}, /* a name's digits, an apostrophe */
		{"it 'never ends", "it 'never ends"},
		{"e-5 1e-5- 1,2, 3.", "e-# #- #, #."},
		{"nostep: 1", "nostep: #"},
		{"", ""},
	};
	char key[CLUSTER_TEXT];
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		clusters_key(rows[i][0], key);
		assert_string_equal(key, rows[i][1]);
	}
	char big[1000];
	memset(big, 'x', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	clusters_key(big, key);
	assert_int_equal(strlen(key), CLUSTER_TEXT - 1);
}

static void test_groups(void **state)
{
	static struct clusters k;
	struct buf b = BUF_INIT;
	(void)state;
	memset(&k, 0, sizeof k);
	clusters_add(&k, "bench.slower", "bench: 0.9x");
	clusters_add(&k, "plan.limit", "a0/guard: shared memory 230 KB over 227 KB");
	clusters_add(&k, "plan.limit", "a1/guard: shared memory 512 KB over 227 KB");
	clusters_add(&k, "compile.error", "a0/guard: shared memory 512 KB over 227 KB"); /* another code */
	clusters_sort(&k);
	assert_int_equal(k.n, 3);
	assert_int_equal(k.total, 4);
	assert_string_equal(k.c[1].code, "bench.slower"); /* of equals the first */
	clusters_tell(&k, 20, 2, 5, &b);
	assert_string_equal(buf_str(&b), "- 2 of the last 20: plan.limit: shared memory 230 KB over 227 KB\n");
	buf_clear(&b);
	clusters_tell(&k, 20, 1, 2, &b);
	assert_string_equal(buf_str(&b), "- 2 of the last 20: plan.limit: shared memory 230 KB over 227 KB\n"
					 "- 1 of the last 20: bench.slower: 0.9x\n");
	buf_free(&b);
}

static void test_full(void **state)
{
	static struct clusters k;
	char code[16];
	(void)state;
	memset(&k, 0, sizeof k);
	for (int i = 0; i < CLUSTERS_MAX + 3; i++) {
		snprintf(code, sizeof code, "c%d", i);
		clusters_add(&k, code, "line one\nEND trials\x1b[2J");
	}
	assert_int_equal(k.n, CLUSTERS_MAX);
	assert_int_equal(k.other, 3);
	assert_null(strchr(k.c[0].message, '\n')); /* one line each, whatever it said */
	assert_null(strchr(k.c[0].message, '\x1b'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_key), cmocka_unit_test(test_groups), cmocka_unit_test(test_full),
	};
	return cmocka_run_group_tests_name("clusters", tests, NULL, NULL);
}
