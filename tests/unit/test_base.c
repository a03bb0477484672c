/*
 * test_base.c - err, buf, file, hash, json and jsonw.
 *
 * Writes only below a directory of its own in TMPDIR.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/file.h"
#include "../../stages/lib/json.h"
#include "../../stages/lib/jsonw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[128];

static int make_dir(void **state)
{
	(void)state;
	const char *tmp = getenv("TMPDIR");
	snprintf(dir, sizeof dir, "%s/test_base.XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(dir) ? 0 : -1;
}

static int drop_dir(void **state)
{
	(void)state;
	struct err e;
	return dir_remove(dir, &e);
}

static char *at(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static void test_err_is_one_line(void **state)
{
	(void)state;
	struct err e;
	assert_int_equal(err_set(&e, EX_BADINPUT, "bad '%s'", "a\nb\x1b[2J"), -1);
	assert_string_equal(e.text, "bad 'a b [2J'");
	assert_int_equal(e.code, 3);
	assert_int_equal(err_set(NULL, EX_BADINPUT, "no place"), -1);
}

static void test_hash_known_answers(void **state)
{
	(void)state;
	char hex[HASH_HEX];
	hash_hex("abc", 3, hex); /* FIPS 180-4 example */
	assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	hash_hex(NULL, 0, hex);
	assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	uint8_t mac[32], longkey[131];
	hash_hmac("Jefe", 4, "what do ya want for nothing?", 28, mac); /* RFC 4231 case 2 */
	hash_to_hex(mac, hex);
	assert_string_equal(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(longkey, 0xaa, sizeof longkey); /* RFC 4231 case 6: key longer than a block */
	hash_hmac(longkey, sizeof longkey, "Test Using Larger Than Block-Size Key - Hash Key First", 54,
		  mac);
	hash_to_hex(mac, hex);
	assert_string_equal(hex, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
	assert_true(hash_is_hex(hex));
	hex[3] = 'G';
	assert_false(hash_is_hex(hex));
	assert_false(hash_is_hex("60e4"));
}

static void test_file_write_is_whole(void **state)
{
	(void)state;
	struct err e;
	char *p = at("a");
	assert_int_equal(file_write(p, "one", 3, 0600, &e), 0);
	assert_int_equal(file_write(p, "second", 6, 0600, &e), 0);
	struct buf b = BUF_INIT;
	assert_int_equal(file_read(p, 6, &b, &e), 0);
	assert_string_equal(b.data, "second");
	assert_int_equal(file_read(p, 5, &b, &e), -1);
	assert_int_equal(e.code, EX_BADINPUT);
	struct stat st;
	assert_int_equal(stat(p, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	char hex[HASH_HEX], same[HASH_HEX];
	assert_int_equal(hash_file(p, hex, &e), 0);
	hash_hex("second", 6, same);
	assert_string_equal(hex, same);
	buf_free(&b);
	free(p);
}

static void test_file_read_refuses_links_and_fifos(void **state)
{
	(void)state;
	struct err e;
	struct buf b = BUF_INIT;
	char *link = at("link"), *fifo = at("fifo"), *target = at("a"), *none = at("none");
	assert_int_equal(symlink(target, link), 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(file_read(link, 100, &b, &e), -1);
	assert_int_equal(file_read(fifo, 100, &b, &e), -1);
	assert_int_equal(e.code, EX_BADINPUT);
	assert_int_equal(file_read(none, 100, &b, &e), -1);
	assert_int_equal(e.code, EX_SYS);
	assert_non_null(strstr(e.text, "none"));
	buf_free(&b);
	free(link), free(fifo), free(target), free(none);
}

static void test_file_append_repairs_a_torn_line(void **state)
{
	(void)state;
	struct err e;
	char *p = at("log");
	assert_int_equal(file_write(p, "one\ntor", 7, 0644, &e), 0);
	assert_int_equal(file_append(p, "two", &e), 0);
	assert_int_equal(file_append(p, "three", &e), 0);
	struct buf b = BUF_INIT;
	assert_int_equal(file_read(p, 100, &b, &e), 0);
	assert_string_equal(b.data, "one\ntor\ntwo\nthree\n");
	buf_free(&b);
	free(p);
}

static void test_dirs_and_links(void **state)
{
	(void)state;
	struct err e;
	char *deep = at("x/y/z"), *f = at("x/y/z/f"), *top = at("x"), *out = at("out"), *l = at("x/l");
	assert_int_equal(dir_make(deep, &e), 0);
	assert_int_equal(dir_make(deep, &e), 0);
	assert_int_equal(file_write(f, "", 0, 0644, &e), 0);
	assert_int_equal(dir_make(out, &e), 0);
	assert_int_equal(link_swap(out, l, &e), 0);
	assert_int_equal(link_swap("../out", l, &e), 0);
	assert_int_equal(dir_remove(top, &e), 0);
	assert_false(file_exists(top));
	assert_true(file_exists(out)); /* the link went, its target stayed */
	assert_int_equal(dir_remove(top, &e), 0);
	free(deep), free(f), free(top), free(out), free(l);
}

static cJSON *parse(const char *s, struct err *e)
{
	static const struct json_limits lim = {200, 3};
	return json_parse(s, strlen(s), &lim, "t.json", e);
}

static void test_json_refuses(void **state)
{
	(void)state;
	static const char *const bad[][2] = {
		{"", "empty"},
		{"{\"a\":1,\"a\":2}", "duplicate key 'a'"},
		{"{\"a\":[{\"b\":1,\"b\":2}]}", "duplicate key 'b'"},
		{"{} x", "not JSON"},
		{"[[[[1]]]]", "nested deeper"},
		{"{\"a\":\"x\\u0000y\"}", "\\u0000"},
		{"{\"a\":1e400}", "out of range"},
		{"{\"a\":NaN}", "not JSON"},
		{"{\"a\":\"\xff\"}", "UTF-8"},
		{"{\"a\":\"\xed\xa0\x80\"}", "UTF-8"},
		{"{\"a\":\"x\ny\"}", "control character"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct err e = {0};
		cJSON *j = parse(bad[i][0], &e);
		if (j || !strstr(e.text, bad[i][1]))
			fail_msg("case %zu: '%s' gave '%s'", i, bad[i][0], j ? "accepted" : e.text);
		assert_int_equal(e.code, EX_BADINPUT);
	}
	char big[300];
	memset(big, ' ', sizeof big);
	big[299] = '\0';
	struct err e;
	assert_null(parse(big, &e));
}

static void test_json_getters(void **state)
{
	(void)state;
	struct err e = {0};
	cJSON *j = parse("{\"s\":\"v\",\"i\":12,\"f\":1.5,\"b\":true,\"n\":null,\"a\":[]}", &e);
	assert_non_null(j);
	int64_t i;
	double f;
	int b;
	assert_string_equal(json_str(j, "s", "t", &e), "v");
	assert_int_equal(json_int(j, "i", &i, "t", &e), 0);
	assert_int_equal(i, 12);
	assert_int_equal(json_int(j, "f", &i, "t", &e), -1);
	assert_string_equal(e.text, "t: key 'f' must be an integer");
	assert_int_equal(json_num(j, "f", &f, "t", &e), 0);
	assert_int_equal(json_bool(j, "b", &b, "t", &e), 0);
	assert_null(json_get(j, "n"));
	assert_null(json_get(j, "S"));
	assert_non_null(json_arr(j, "a", "t", &e));
	assert_null(json_obj(j, "a", "t", &e));
	static const char *const keys[] = {"s", "i", "f", "b", "n", NULL};
	assert_int_equal(json_only(j, keys, "t", &e), -1);
	assert_string_equal(e.text, "t: unknown key 'a'");
	cJSON_Delete(j);
}

static void test_jsonw_round_trip(void **state)
{
	(void)state;
	struct jsonw w = {0};
	jw_obj(&w, NULL);
	jw_num(&w, "sum", 0.1 + 0.2);
	jw_int(&w, "big", 9007199254740993);
	jw_num(&w, "inf", 1e308 * 10);
	jw_strn(&w, "s", "q\"\\\n\x01\xff\0z", 8);
	jw_arr(&w, "a");
	jw_bool(&w, NULL, 1);
	jw_null(&w, NULL);
	jw_end(&w);
	jw_obj(&w, "o");
	jw_end(&w);
	jw_end(&w);
	assert_string_equal(w.out.data,
			    "{\"sum\":0.30000000000000004,\"big\":9007199254740993,\"inf\":null,"
			    "\"s\":\"q\\\"\\\\\\n\\u0001\xef\xbf\xbd\xef\xbf\xbdz\",\"a\":[true,null],"
			    "\"o\":{}}");
	struct err e;
	cJSON *j = json_parse(w.out.data, w.out.len, &JSON_OURS, "w", &e);
	assert_non_null(j);
	struct jsonw again = {0};
	jw_item(&again, NULL, json_get(j, "a"));
	assert_string_equal(again.out.data, "[true,null]");
	cJSON_Delete(j);
	jw_free(&again);
	jw_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_err_is_one_line),
		cmocka_unit_test(test_hash_known_answers),
		cmocka_unit_test(test_file_write_is_whole),
		cmocka_unit_test(test_file_read_refuses_links_and_fifos),
		cmocka_unit_test(test_file_append_repairs_a_torn_line),
		cmocka_unit_test(test_dirs_and_links),
		cmocka_unit_test(test_json_refuses),
		cmocka_unit_test(test_json_getters),
		cmocka_unit_test(test_jsonw_round_trip),
	};
	return cmocka_run_group_tests_name("base", tests, make_dir, drop_dir);
}
