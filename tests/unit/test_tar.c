/*
 * test_tar.c - tests of tar: what is written reads back, here and by tar itself; what is refused and how.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char deep[] = "trials/runs/r0001/spec/a-folder-with-a-rather-long-name-for-a-test/and-another-one/"
			   "and-a-file-whose-name-is-long-as-well.json";

static void make(struct buf *b)
{
	struct err e;
	assert_int_equal(tar_add(b, "request.json", "{}", 2, 0644, &e), 0);
	assert_int_equal(tar_add(b, "trials/0001/a0/empty", "", 0, 0600, &e), 0);
	assert_int_equal(tar_add(b, deep, "deep", 4, 0755, &e), 0);
	tar_end(b);
}

static void reads_back(void **state)
{
	struct buf b = BUF_INIT;
	struct tar t;
	struct err e;
	(void)state;
	make(&b);
	assert_int_equal(b.len % 512, 0);
	assert_int_equal(tar_parse(b.data, b.len, &t, &e), 0);
	assert_int_equal(t.n, 3);
	const struct tar_file *f = tar_find(&t, deep);
	assert_non_null(f);
	assert_int_equal(f->mode, 0755);
	assert_memory_equal(f->data, "deep", 4);
	assert_int_equal(tar_find(&t, "trials/0001/a0/empty")->len, 0);
	assert_null(tar_find(&t, "trials/0001/a0"));
	tar_free(&t);
	buf_free(&b);
}

static void names(void **state)
{
	static const char *const bad[] = {"", "/", "/etc/passwd", "..", "../x", "a/../b", "a/..", "a//b", "a/",
		".hidden", "a/.b", "a\\b", "a\nb", "a:b", "~x", "a*"};
	struct buf b = BUF_INIT;
	struct err e;
	char lengthy[300];
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_false(tar_name_ok(bad[i]));
		assert_int_equal(tar_add(&b, bad[i], "", 0, 0644, &e), -1);
	}
	memset(lengthy, 'x', sizeof lengthy);
	lengthy[150] = '\0'; /* no place to cut it */
	assert_true(tar_name_ok(lengthy));
	assert_int_equal(tar_add(&b, lengthy, "", 0, 0644, &e), -1);
	lengthy[150] = 'x';
	lengthy[201] = '\0';
	assert_false(tar_name_ok(lengthy));
	assert_int_equal(b.len, 0);
	assert_true(tar_name_ok("a b/c-d_e.f+g,h=i@j"));
	buf_free(&b);
}

static void seal(char *h)
{
	unsigned sum = 0;
	memset(h + 148, ' ', 8);
	for (int i = 0; i < 512; i++)
		sum += (unsigned char)h[i];
	snprintf(h + 148, 7, "%06o", sum & 0777777u);
}

/* One byte of the first header changed, with a checksum that fits. */
static int with(size_t at, const char *bytes, size_t n, struct err *e)
{
	struct buf b = BUF_INIT;
	struct tar t;
	make(&b);
	memcpy(b.data + at, bytes, n);
	seal(b.data);
	int rc = tar_parse(b.data, b.len, &t, e);
	if (!rc)
		tar_free(&t);
	buf_free(&b);
	return rc;
}

static void refuses(void **state)
{
	struct err e = {0};
	(void)state;
	assert_int_equal(with(0, "q", 1, &e), 0);
	assert_int_equal(with(0, "/", 1, &e), -1);
	assert_int_equal(e.code, EX_BADINPUT);
	assert_int_equal(with(0, "../x", 5, &e), -1);   /* and the rest of the name behind its NUL */
	assert_int_equal(with(156, "1", 1, &e), -1);    /* hard link */
	assert_int_equal(with(156, "2", 1, &e), -1);    /* symbolic link */
	assert_int_equal(with(156, "5", 1, &e), -1);    /* folder */
	assert_int_equal(with(156, "x", 1, &e), -1);    /* extended header */
	assert_int_equal(with(156, "L", 1, &e), -1);    /* long name of GNU */
	assert_int_equal(with(157, "z", 1, &e), -1);    /* a link's target */
	assert_int_equal(with(257, "gnu  ", 5, &e), -1);
	assert_int_equal(with(124, "-", 1, &e), -1);
	assert_int_equal(with(124, "\x80", 1, &e), -1); /* binary size */
	assert_int_equal(with(345, "..", 2, &e), -1);   /* prefix */
	assert_int_equal(with(514, "x", 1, &e), -1);    /* padding */
	assert_int_equal(e.code, EX_BADINPUT);
	assert_int_equal(with(124, "77777777777", 11, &e), -1);
	assert_int_equal(e.code, EX_AGAIN);
}

static void cut_anywhere(void **state)
{
	struct buf b = BUF_INIT;
	struct tar t;
	struct err e;
	(void)state;
	make(&b);
	for (size_t n = 0; n < b.len; n++) {
		assert_int_equal(tar_parse(b.data, n, &t, &e), -1);
		assert_int_equal(e.code, EX_AGAIN);
	}
	buf_add(&b, "x", 1);
	assert_int_equal(tar_parse(b.data, b.len, &t, &e), -1);
	assert_int_equal(e.code, EX_BADINPUT);
	buf_free(&b);
}

static void twice(void **state)
{
	struct buf b = BUF_INIT;
	struct tar t;
	struct err e;
	(void)state;
	assert_int_equal(tar_add(&b, "a", "1", 1, 0644, &e), 0);
	assert_int_equal(tar_add(&b, "a", "2", 1, 0644, &e), 0);
	tar_end(&b);
	assert_int_equal(tar_parse(b.data, b.len, &t, &e), -1);
	assert_non_null(strstr(e.text, "twice"));
	buf_free(&b);
}

static void tar_reads_it(void **state)
{
	struct buf b = BUF_INIT;
	char line[512], all[2048] = "";
	(void)state;
	make(&b);
	FILE *f = fopen("test_tar.tmp.tar", "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(b.data, 1, b.len, f), b.len);
	fclose(f);
	f = popen("tar tf test_tar.tmp.tar 2>&1", "r");
	while (f && fgets(line, sizeof line, f) && strlen(all) < 1500)
		strcat(all, line);
	assert_int_equal(pclose(f), 0);
	remove("test_tar.tmp.tar");
	snprintf(line, sizeof line, "request.json\ntrials/0001/a0/empty\n%s\n", deep);
	assert_string_equal(all, line);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_back), cmocka_unit_test(names), cmocka_unit_test(refuses),
		cmocka_unit_test(cut_anywhere), cmocka_unit_test(twice), cmocka_unit_test(tar_reads_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
