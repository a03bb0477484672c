/*
 * test_prompt.c - templates, fences and profiles. Runs in the repository's root for prompts/.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/file.h"
#include "../../stages/lib/json.h"
#include "../../stages/lib/profile.h"
#include "../../stages/lib/prompt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[128], home[512];

/* A folder with prompts/ of its own; returns to the root afterwards. */
static int setup(void **state)
{
	const char *tmp = getenv("TMPDIR");
	struct err e;
	(void)state;
	snprintf(dir, sizeof dir, "%s/test_prompt.XXXXXX", tmp ? tmp : "/tmp");
	if (!getcwd(home, sizeof home) || !mkdtemp(dir) || chdir(dir))
		return -1;
	return dir_make("prompts/profiles", &e);
}

static int teardown(void **state)
{
	struct err e;
	(void)state;
	return chdir(home) || dir_remove(dir, &e);
}

static void put(const char *name, const char *text)
{
	char path[160];
	struct err e;
	snprintf(path, sizeof path, "prompts/%s", name);
	assert_int_equal(file_write(path, text, strlen(text), 0644, &e), 0);
}

static int expand(const char *text, struct buf *out, struct err *e)
{
	static struct proposal p; /* large */
	struct prompt_value v[] = {{"a", BUF_INIT}, {"empty", BUF_INIT}, {"block", BUF_INIT}};
	int rc;
	memset(&p, 0, sizeof p);
	buf_clear(out);
	buf_adds(&v[0].text, "{{empty}}x");
	buf_adds(&v[2].text, "one\ntwo\n");
	put("t.md", text);
	rc = prompt_expand(&p, "t.md", v, 3, out, e);
	for (int i = 0; i < 3; i++)
		buf_free(&v[i].text);
	return rc;
}

static void test_expand(void **state)
{
	static const char *const rows[][2] = {
		{"plain\n", "plain\n"},
		{"no newline", "no newline\n"},
		{"<{{a}}>\n", "<{{empty}}x>\n"}, /* what is put in is not read again */
		{"1\n{{empty}}\n2\n", "1\n2\n"},
		{"1 {{empty}}\n2\n", "1 \n2\n"},
		{"{{block}}\n3\n", "one\ntwo\n3\n"},
		{"{{a}}{{a}}\n", "{{empty}}x{{empty}}x\n"},
		{"{{>inner.md}}\n", "in {{empty}}x\n"},
		{"}} { {\n", "}} { {\n"},
	};
	static const char *const bad[] = {"{{nosuch}}\n", "{{a\n", "{{>../x}}\n", "{{>/etc/passwd}}\n",
					  "{{>nosuch.md}}\n", "{{>t.md}}\n", "{{}}\n"};
	struct buf b = BUF_INIT;
	struct err e;
	(void)state;
	put("inner.md", "in {{a}}\n");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (expand(rows[i][0], &b, &e))
			fail_msg("%s: %s", rows[i][0], e.text);
		assert_string_equal(b.data, rows[i][1]);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(expand(bad[i], &b, &e), -1);
	buf_free(&b);
}

static void test_fence(void **state)
{
	struct buf a = BUF_INIT, b = BUF_INIT;
	(void)state;
	prompt_fence(&a, "x", "text", 4, "s");
	prompt_fence(&b, "x", "text", 4, "s");
	assert_string_equal(a.data, b.data);
	assert_int_equal(strncmp(a.data, "BEGIN x ", 8), 0);
	assert_non_null(strstr(a.data, "\ntext\nEND x "));
	buf_clear(&b);
	/* Text that quotes the fence of another text gets another nonce. */
	prompt_fence(&b, "x", a.data, a.len, "s");
	assert_int_not_equal(strncmp(a.data, b.data, 24), 0);
	buf_free(&a);
	buf_free(&b);
}

static void test_profile(void **state)
{
	struct profile p;
	struct err e;
	(void)state;
	put("profiles/p.json", "{\"schema\": \"touchstone/profile/1\", \"base_url\": \"http://h/v1beta/openai\", "
	    "\"key_env\": \"TEST_P_KEY\", \"stream\": false, \"prices\": {\"in\": 1, \"cached_in\": 0.5, \"out\": 10}, "
	    "\"extra\": {\"temperature\": 0, \"max_tokens\": 5}, \"limits\": {\"retries\": 1}}");
	put("profiles/openai.json", "{\"base_url\": \"http://o\", \"key_env\": \"OPENAI_API_KEY\"}");
	put("profiles/bad.json", "{\"base_ur\": \"http://o\"}");
	assert_int_equal(profile_load("p", "m", NULL, &p, &e), 0);
	assert_string_equal(p.path, "chat/completions");
	assert_string_equal(p.model, "m");
	assert_int_equal(p.limits.retries, 1);
	assert_int_equal(p.limits.idle_ms, p.limits.total_ms);
	struct chat_usage u = {.prompt = 1000000, .completion = 100000, .cached = 500000};
	int known;
	assert_true(profile_cost(&p, &u, &known) > 1.749 && profile_cost(&p, &u, &known) < 1.751 && known);
	struct buf b = BUF_INIT;
	profile_body(&p, "sys", "user \"x\"\n", 7, &b);
	assert_string_equal(b.data, "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"sys\"},"
			    "{\"role\":\"user\",\"content\":\"user \\\"x\\\"\\n\"}],\"temperature\":0,\"max_tokens\":5}");
	buf_free(&b);
	profile_free(&p);
	assert_int_equal(profile_ready("p"), 0);
	setenv("TEST_P_KEY", "k", 1);
	assert_int_equal(profile_ready("p"), 1);
	setenv("OPENAI_BASE_URL", "http://mine", 1);
	setenv("OPENAI_MODEL", "mm", 1);
	unsetenv("OPENAI_API_KEY");
	assert_int_equal(profile_ready("openai"), 0);
	assert_int_equal(profile_load("openai", NULL, NULL, &p, &e), 0);
	assert_string_equal(p.base_url, "http://mine");
	assert_string_equal(p.model, "mm");
	assert_string_equal(p.path, "v1/chat/completions");
	profile_free(&p);
	assert_int_equal(profile_load("p", NULL, NULL, &p, &e), 0);
	assert_string_equal(p.base_url, "http://h/v1beta/openai"); /* OPENAI_* is for openai alone */
	assert_null(p.model);
	profile_free(&p);
	assert_int_equal(profile_load("bad", NULL, NULL, &p, &e), -1);
	assert_int_equal(profile_load("../p", NULL, NULL, &p, &e), -1);
}

/* Every profile that ships reads, and none holds a key. */
static void test_shipped(void **state)
{
	static const char *const names[] = {"openai", "nvidia", "nebius", "baseten", "vllm", "llamacpp", "ollama"};
	struct profile p;
	struct err e;
	(void)state;
	unsetenv("OPENAI_BASE_URL");
	assert_int_equal(chdir(home), 0);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (profile_load(names[i], "m", NULL, &p, &e))
			fail_msg("%s", e.text);
		char *u = client_url(p.base_url, p.path, &e);
		assert_non_null(u);
		assert_null(strstr(u, "/v1/v1"));
		assert_non_null(strstr(u, "/v1/chat/completions"));
		free(u);
		profile_free(&p);
	}
	assert_int_equal(chdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_expand), cmocka_unit_test(test_fence), cmocka_unit_test(test_profile),
		cmocka_unit_test(test_shipped),
	};
	return cmocka_run_group_tests_name("prompt", tests, setup, teardown);
}
