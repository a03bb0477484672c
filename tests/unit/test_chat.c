/*
 * test_chat.c - bodies of chat completions, addresses, UTF-8 repair.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/chat.h"
#include "../../stages/lib/client_call.h"
#include "../../stages/lib/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK(d, f) "data: {\"choices\":[{\"index\":0,\"delta\":" d ",\"finish_reason\":" f "}]}\n\n"

static int parse(const char *body, struct chat *c)
{
	struct err e;
	*c = (struct chat)CHAT_INIT;
	return chat_parse(body, strlen(body), c, "test", &e);
}

static void test_object(void **state)
{
	struct chat c;
	(void)state;
	assert_int_equal(parse("\xef\xbb\xbf {\"model\":\"m\",\"choices\":[{\"index\":0,\"message\":{\"content\":\"hi\","
			       "\"reasoning\":\"why\"},\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":7,"
			       "\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":3}}}", &c), 0);
	assert_string_equal(c.text.data, "hi");
	assert_string_equal(c.reasoning.data, "why");
	assert_string_equal(c.finish, "length");
	assert_string_equal(c.model, "m");
	assert_int_equal(c.usage.prompt, 7);
	assert_int_equal(c.usage.cached, 3);
	assert_int_equal(c.usage.total, -1);
	assert_int_equal(c.complete, 1);
	chat_free(&c);
}

static void test_odd_objects(void **state)
{
	struct chat c;
	(void)state;
	assert_int_equal(parse("{\"choices\":[{\"message\":{\"content\":null},\"finish_reason\":\"stop\"}],\"usage\":null}", &c), 0);
	assert_int_equal(c.text.len, 0);
	assert_int_equal(c.complete, 1);
	assert_int_equal(c.usage.prompt, -1);
	chat_free(&c);
	assert_int_equal(parse("{\"error\":{\"message\":\"slow\\ndown\",\"code\":429}}", &c), 0);
	assert_string_equal(c.error.data, "slow down");
	assert_int_equal(c.error_code, 429);
	assert_int_equal(c.complete, 0);
	chat_free(&c);
	assert_int_equal(parse("{\"choices\":[]}", &c), 0);
	assert_int_equal(c.complete, 0);
	chat_free(&c);
	assert_int_equal(parse("{\"choices\":[{\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
			       "{\"type\":\"text\",\"text\":\"b\"}]}}]}", &c), 0);
	assert_string_equal(c.text.data, "ab");
	chat_free(&c);
	assert_int_equal(parse("<html>502</html>", &c), -1);
	chat_free(&c);
	assert_int_equal(parse("{\"choices\":[{\"message\":{\"content\":\"cut", &c), -1);
	chat_free(&c);
	assert_int_equal(parse("", &c), -1);
	chat_free(&c);
}

static void test_stream(void **state)
{
	struct chat c;
	(void)state;
	assert_int_equal(parse(": keep-alive\r\n\r\n" CHUNK("{\"role\":\"assistant\"}", "null")
			       CHUNK("{\"reasoning_content\":\"r\"}", "null") CHUNK("{\"content\":\"a\"}", "null")
			       "event: x\nid: 3\n" CHUNK("{\"content\":\"b\",\"obfuscation\":\"zz\"}", "null")
			       CHUNK("{}", "\"stop\"")
			       "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\n"
			       "data: [DONE]\n\n", &c), 0);
	assert_string_equal(c.text.data, "ab");
	assert_string_equal(c.reasoning.data, "r");
	assert_int_equal(c.streamed, 1);
	assert_int_equal(c.complete, 1);
	assert_int_equal(c.usage.completion, 2);
	chat_free(&c);
}

static void test_cut_stream(void **state)
{
	static const char text[] = CHUNK("{\"content\":\"a\"}", "null") CHUNK("{\"content\":\"b\"}", "null")
		CHUNK("{}", "\"stop\"") "data: [DONE]\n\n";
	size_t whole = (size_t)(strstr(text, "\"stop\"") - text);
	(void)state;
	for (size_t n = 6; n < strlen(text); n++) {
		struct chat c = CHAT_INIT;
		int rc = chat_parse(text, n, &c, "test", NULL);
		if (n < whole)
			assert_true(rc || !c.complete);
		chat_free(&c);
	}
}

static void test_url(void **state)
{
	static const char *const rows[][3] = {
		{"http://h/v1", "v1/chat", "http://h/v1/chat"}, {"http://h/v1/", "/v1/chat", "http://h/v1/chat"},
		{"http://h", "v1/chat", "http://h/v1/chat"},    {"https://h:8/x/v1", "chat", "https://h:8/x/v1/chat"},
		{"HTTPS://h", "search", "HTTPS://h/search"},    {"http://h/v11", "v1/chat", "http://h/v11/v1/chat"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char *u = client_url(rows[i][0], rows[i][1], NULL);
		assert_string_equal(u, rows[i][2]);
		free(u);
	}
	assert_null(client_url("file:///etc/passwd", "x", NULL));
	assert_null(client_url("http://user:pw@h", "x", NULL));
	assert_null(client_url("", "x", NULL));
}

static void test_utf8(void **state)
{
	struct buf b = BUF_INIT;
	(void)state;
	assert_int_equal(utf8_repair(&b, "a\xff\xc3\xa9\xc0\x80\xed\xa0\x80z", 10), 6);
	assert_true(utf8_valid(b.data, b.len));
	buf_clear(&b);
	utf8_line(&b, "  a\t\n b\xe2\x80\xae" "c  ", 12, 50);
	assert_string_equal(b.data, "a b c");
	buf_clear(&b);
	utf8_line(&b, "aaaa\xc3\xa9\xc3\xa9\xc3\xa9", 10, 8);
	assert_string_equal(b.data, "aaaa...");
	assert_int_equal(utf8_cut("a\xc3\xa9", 3, 2), 1);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_object), cmocka_unit_test(test_odd_objects), cmocka_unit_test(test_stream),
		cmocka_unit_test(test_cut_stream), cmocka_unit_test(test_url), cmocka_unit_test(test_utf8),
	};
	return cmocka_run_group_tests_name("chat", tests, NULL, NULL);
}
