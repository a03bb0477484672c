/*
 * test_gitstore.c - objects and refs as git names them. That git reads them, tests/pipeline says.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file.h"
#include "gitstore.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* needs the headers above */
#include <cmocka.h>

static char dir[64];

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "%s", "/tmp/touchstone-gitstore.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return dir_remove(dir, NULL);
}

/* Ids that git itself gives. */
static void test_ids(void **state)
{
	char id[GIT_HEX], path[256];
	struct buf tree = BUF_INIT;
	struct err e;
	(void)state;
	assert_int_equal(gitstore_object(dir, "blob", "", 0, id, &e), 0);
	assert_string_equal(id, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
	assert_int_equal(gitstore_object(dir, "blob", "hello\n", 6, id, &e), 0);
	assert_string_equal(id, "ce013625030ba8dba906f756967f9e9ca394464a");
	snprintf(path, sizeof path, "%s/objects/ce/013625030ba8dba906f756967f9e9ca394464a", dir);
	assert_true(file_exists(path));
	gitstore_entry(&tree, "hello", id);
	assert_int_equal(gitstore_object(dir, "tree", tree.data, tree.len, id, &e), 0);
	assert_string_equal(id, "b4d01e9b0c4a9356736dfddf8830ba9a54f5271c");
	buf_free(&tree);
}

/* Stored blocks: two whole ones, an empty or short last one, the sum at the end. */
static void test_blocks(void **state)
{
	static char text[3 * 65535];
	static const size_t sizes[] = {65535 - 11, 65535 - 10, 2 * 65535 - 12, 3 * 65535};
	(void)state;
	memset(text, 'x', sizeof text);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		char id[GIT_HEX], path[256], head[40];
		struct buf got = BUF_INIT, plain = BUF_INIT;
		struct err e;
		size_t at = 2, last = 0;
		assert_int_equal(gitstore_object(dir, "blob", text, sizes[i], id, &e), 0);
		snprintf(path, sizeof path, "%s/objects/%.2s/%s", dir, id, id + 2);
		assert_int_equal(file_read(path, 1 << 20, &got, &e), 0);
		while (!last) {
			const unsigned char *p = (const unsigned char *)got.data + at;
			size_t n = p[1] | (size_t)p[2] << 8;
			assert_int_equal(p[3] | p[4] << 8, n ^ 0xffff);
			last = p[0];
			buf_add(&plain, p + 5, n);
			at += 5 + n;
		}
		assert_int_equal(at + 4, got.len);
		int n = snprintf(head, sizeof head, "blob %zu", sizes[i]) + 1;
		assert_int_equal(plain.len, (size_t)n + sizes[i]);
		assert_memory_equal(plain.data, head, (size_t)n);
		assert_memory_equal(plain.data + n, text, sizes[i]);
		buf_free(&got);
		buf_free(&plain);
	}
}

static void test_refs(void **state)
{
	static const char a[] = "ce013625030ba8dba906f756967f9e9ca394464a";
	static const char packed[] = "# pack-refs with: peeled fully-peeled sorted\n"
		"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 refs/heads/old\n";
	char id[GIT_HEX], path[256];
	struct err e;
	(void)state;
	assert_int_equal(gitstore_ref(dir, "heads/trial/0001", id), 0);
	assert_string_equal(id, "");
	assert_int_equal(gitstore_set_ref(dir, "heads/trial/0001", a, &e), 0);
	assert_int_equal(gitstore_ref(dir, "heads/trial/0001", id), 1);
	assert_string_equal(id, a);
	snprintf(path, sizeof path, "%s/packed-refs", dir);
	assert_int_equal(file_write(path, packed, sizeof packed - 1, 0644, &e), 0);
	assert_int_equal(gitstore_ref(dir, "heads/old", id), 1);
	assert_string_equal(id, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
	assert_int_equal(gitstore_ref(dir, "heads/ol", id), 0);
	assert_int_equal(gitstore_set_ref(dir, "heads/old", a, &e), 0);
	assert_int_equal(gitstore_ref(dir, "heads/old", id), 1);
	assert_string_equal(id, a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids), cmocka_unit_test(test_blocks), cmocka_unit_test(test_refs),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
