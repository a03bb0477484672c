/*
 * test_patch.c - patches of patch.h, applied again by a reader written here for the purpose.
 *
 * SPDX-License-Identifier: MIT
 */
#include "patch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* needs the headers above */
#include <cmocka.h>

static struct buf text(const char *s)
{
	struct buf b = BUF_INIT;
	buf_adds(&b, s);
	return b;
}

static const char *next_line(const char *p)
{
	const char *nl = strchr(p, '\n');
	return nl ? nl + 1 : p + strlen(p);
}

/* Apply the hunks of `patch` to `a`, insisting on every line they name. */
static void apply(const struct buf *patch, const struct buf *a, struct buf *out)
{
	const char *p = buf_str(patch), *in = buf_str(a);
	long line = 1;
	if (!*p) {
		buf_adds(out, in);
		return;
	}
	for (int i = 0; i < 3; i++)
		p = next_line(p);
	while (*p) {
		long from, count = 1, seen = 0;
		assert_int_equal(strncmp(p, "@@ -", 4), 0);
		char *end;
		from = strtol(p + 4, &end, 10);
		if (*end == ',')
			count = strtol(end + 1, NULL, 10);
		from += count == 0;
		for (; line < from; line++) {
			const char *n = next_line(in);
			buf_add(out, in, (size_t)(n - in));
			in = n;
		}
		for (p = next_line(p); *p && *p != '@';) {
			const char *n = next_line(p);
			size_t len = (size_t)(n - p) - 1;
			if (*n == '\\') {
				len--; /* the line has no '\n' */
				n = next_line(n);
			}
			if (*p != '+') {
				assert_memory_equal(in, p + 1, len);
				in += len;
				line++;
				seen++;
			}
			if (*p != '-')
				buf_add(out, p + 1, len);
			p = n;
		}
		assert_int_equal(seen, count);
	}
	buf_adds(out, in);
}

static void check(const char *from, const char *to)
{
	struct buf a = text(from), b = text(to), patch = BUF_INIT, got = BUF_INIT;
	patch_add(&patch, "x", "y", &a, &b);
	apply(&patch, &a, &got);
	assert_string_equal(buf_str(&got), buf_str(&b));
	assert_int_equal(patch.len == 0, strcmp(from, to) == 0);
	buf_free(&a);
	buf_free(&b);
	buf_free(&patch);
	buf_free(&got);
}

static void test_edges(void **state)
{
	static const char *const some[] = {"", "a\n", "a", "\n", "a\nb\n", "b\na\n", "a\nb", "b"};
	(void)state;
	for (size_t i = 0; i < sizeof some / sizeof *some; i++)
		for (size_t j = 0; j < sizeof some / sizeof *some; j++)
			check(some[i], some[j]);
}

static void test_text(void **state)
{
	struct buf a = text("1\n2\n3\n4\n5\n6\n7\n8\n9\n"), b = text("1\n2\n3\n4\nfive\n6\n7\n8\n9\n");
	struct buf out = BUF_INIT;
	(void)state;
	patch_add(&out, "x", "y", &a, &b);
	assert_string_equal(buf_str(&out), "diff --git a/x b/y\n--- a/x\n+++ b/y\n@@ -2,7 +2,7 @@\n"
			    " 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
	buf_free(&a);
	buf_free(&b);
	buf_free(&out);
}

static void test_random(void **state)
{
	uint64_t r = 1;
	(void)state;
	for (int t = 0; t < 3000; t++) {
		struct buf s[2] = {BUF_INIT, BUF_INIT};
		for (int i = 0; i < 40; i++)
			for (int k = 0; k < 2; k++) {
				r = r * 6364136223846793005u + 1442695040888963407u;
				if (r >> 61)
					buf_addf(&s[k], "%d\n", (int)(r >> 33 & (t % 2 ? 3 : 63)));
			}
		check(buf_str(&s[0]), buf_str(&s[1]));
		check("", buf_str(&s[1]));
		buf_free(&s[0]);
		buf_free(&s[1]);
	}
}

/* More edits than are searched for: one replacement. */
static void test_large(void **state)
{
	struct buf a = BUF_INIT, b = BUF_INIT;
	(void)state;
	for (int i = 0; i < PATCH_EDITS; i++) {
		buf_addf(&a, "old %d\n", i);
		buf_addf(&b, "new %d\n", i);
	}
	check(buf_str(&a), buf_str(&b));
	buf_free(&a);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edges), cmocka_unit_test(test_text),
		cmocka_unit_test(test_random), cmocka_unit_test(test_large),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
