/*
 * test_sanitizer.c - what compute-sanitizer says, and what of it counts.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/file.h"
#include "../../stages/lib/sanitizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static struct sanitizer_report of(const char *name)
{
	struct sanitizer_report r;
	struct buf b = BUF_INIT;
	struct err e;
	char *path = xasprintf("tests/fuzz/corpus/sanitizer/%s", name);

	assert_int_equal(file_read(path, 1 << 20, &b, &e), 0);
	sanitizer_parse(buf_str(&b), b.len, &r);
	buf_free(&b);
	free(path);
	return r;
}

static void accesses_count(void **state)
{
	(void)state;
	struct sanitizer_report r = of("access");
	assert_true(r.done && r.findings == 2 && r.accesses == 2);
	assert_string_equal(r.first, "Invalid __global__ write of size 4 bytes at add(const float *, float *)+0x70 in kernel.cu:9");
}

static void hazards_are_findings(void **state)
{
	(void)state;
	struct sanitizer_report r = of("race");
	assert_true(r.done && r.findings == 1 && r.accesses == 0);
	assert_non_null(strstr(r.first, "Race reported between Write access"));
}

/* A failed call is no access, nor is a line that only looks like one: no thread made it. */
static void calls_do_not(void **state)
{
	(void)state;
	struct sanitizer_report r = of("call");
	assert_true(r.done && r.findings == 1 && r.accesses == 0);
	assert_non_null(strstr(r.first, "Program hit CUDA_ERROR_NOT_SUPPORTED"));
}

static void without_its_last_line_it_did_not_look(void **state)
{
	(void)state;
	struct sanitizer_report r = of("none");
	assert_true(!r.done && r.findings == 0 && r.accesses == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accesses_count),
		cmocka_unit_test(hazards_are_findings),
		cmocka_unit_test(calls_do_not),
		cmocka_unit_test(without_its_last_line_it_did_not_look),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
