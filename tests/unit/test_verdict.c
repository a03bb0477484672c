/*
 * test_verdict.c - trials, verdicts, locks, the ledger, failures and remembered hashes.
 *
 * Works in a directory of its own in TMPDIR, which becomes the working directory.
 *
 * SPDX-License-Identifier: MIT
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../stages/lib/failure.h"
#include "../../stages/lib/file.h"
#include "../../stages/lib/json.h"
#include "../../stages/lib/ledger.h"
#include "../../stages/lib/lock.h"
#include "../../stages/lib/reason.h"
#include "../../stages/lib/tool.h"
#include "../../stages/lib/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

static char scratch[256];

static int enter(void **state)
{
	const char *tmp = getenv("TMPDIR");
	struct err e;
	(void)state;
	snprintf(scratch, sizeof scratch, "%.200s/test_verdict.XXXXXX", tmp ? tmp : "/tmp");
	return !mkdtemp(scratch) || chdir(scratch) || dir_make("trials/0042/a0", &e) ||
	       dir_make("trials/runs/r0001", &e);
}

static int leave(void **state)
{
	(void)state;
	return chdir("/") || dir_remove(scratch, NULL);
}

static void test_targets(void **state)
{
	char id[TRIAL_ID];
	enum step step;
	struct err e;
	(void)state;
	static const char *const bad[] = {
		"", "trials", "trials/0042", "trials/0042/", "trials/0042/a0/guard",
		"trials/0042/a3/guard.json", "trials/42/a0/guard.json", "trials/../a0/guard.json",
		"trials/0042/guard.json", "trials/0042/a0/a0/guard.json", "x/0042/a0/guard.json",
		"trials/0042/promote.json.", "trials/00042/promote.json", "trials/0000/promote.json",
	};
	for (int i = 0; i < STEP_COUNT; i++) {
		char path[TRIAL_PATH];
		trial_step_path(path, "10042", (enum step)i);
		assert_int_equal(trial_target(path, id, &step, &e), 0);
		assert_int_equal(step, i);
		assert_string_equal(id, "10042");
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(trial_target(bad[i], id, &step, &e), -1);
		assert_int_equal(e.code, EX_BADUSE);
	}
	trial_id(id, 7);
	assert_string_equal(id, "0007");
	assert_int_equal(trial_number("0007"), 7);
	assert_true(trial_name_ok("vector_add"));
	assert_false(trial_name_ok("Vector"));
	assert_false(trial_name_ok("a/b"));
	assert_false(trial_name_ok(""));
}

static void make(struct verdict *v)
{
	char sha[HASH_HEX];
	hash_hex("x", 1, sha);
	verdict_init(v, "r0001", "0042", STEP_A0_GUARD);
	verdict_set(v, V_REJECT, "promote.chain", "two\nlines and a \"quote\"");
	verdict_input(v, "spec", sha);
	verdict_input(v, "spec", sha);
	verdict_isolation(v, "seccomp");
	verdict_isolation(v, "seccomp");
	snprintf(v->tool, sizeof v->tool, "guard");
	jw_num(&v->data, "third", 0.1 + 0.2);
	jw_obj(&v->data, "nested");
	jw_int(&v->data, "big", 9007199254740991);
	jw_end(&v->data);
}

static void test_envelope(void **state)
{
	static const char *const order[] = {"schema", "run", "stage", "trial", "attempt", "verdict",
		"status", "reason", "inputs", "outputs", "device", "proposer", "simulated", "emulated",
		"started", "elapsed_s", "tool", "isolation", "data"};
	struct verdict v;
	struct verdict_in in;
	struct err e;
	size_t i = 0;
	(void)state;
	make(&v);
	assert_int_equal(file_write("trials/0042/a0/side", "hello", 5, 0644, &e), 0);
	assert_int_equal(verdict_output(&v, "a0/side", &e), 0);
	assert_int_equal(verdict_write(&v, &e), 0);
	verdict_free(&v);
	assert_int_equal(verdict_read("0042", STEP_A0_GUARD, &in, &e), 0);
	for (const cJSON *k = in.json->child; k; k = k->next)
		assert_string_equal(k->string, order[i++]);
	assert_int_equal(i, sizeof order / sizeof *order);
	assert_int_equal(in.kind, V_REJECT);
	assert_string_equal(in.message, "two lines and a \"quote\"");
	assert_int_equal(cJSON_GetArraySize(in.inputs), 1);
	assert_non_null(verdict_in_output(&in, "a0/side"));
	assert_null(verdict_in_output(&in, "a0/other"));
	assert_true(json_get_num(in.data, "third", 0) == 0.1 + 0.2);
	verdict_in_free(&in);
}

static void test_refusals(void **state)
{
	struct verdict v;
	struct err e;
	(void)state;
	verdict_init(&v, "r0001", "0042", STEP_A0_GUARD);
	assert_int_equal(verdict_write(&v, &e), -1); /* undecided */
	assert_int_equal(e.code, EX_HARNESS);
	verdict_set(&v, V_PASS, "no.such_code", "x");
	assert_int_equal(verdict_write(&v, &e), -1);
	assert_int_equal(verdict_output(&v, "a0/missing", &e), -1);
	verdict_free(&v);
}

/* Whatever make -t, a full disk or a crash of another program leaves counts as missing. */
static void test_strict_reading(void **state)
{
	struct verdict v;
	struct verdict_in in;
	struct err e;
	struct buf text = BUF_INIT;
	(void)state;
	make(&v);
	assert_int_equal(verdict_write(&v, &e), 0);
	verdict_free(&v);
	assert_int_equal(file_read("trials/0042/a0/guard.json", 1 << 20, &text, &e), 0);
	for (size_t n = 0; n < text.len - 1; n += 7) { /* torn at every place */
		assert_int_equal(file_write("trials/0042/a0/guard.json", text.data, n, 0644, &e), 0);
		assert_int_equal(verdict_read("0042", STEP_A0_GUARD, &in, &e), -1);
		assert_int_equal(e.code, EX_BADINPUT);
	}
	assert_int_equal(file_write("trials/0042/a0/unittest.json", text.data, text.len, 0644, &e), 0);
	assert_int_equal(verdict_read("0042", STEP_A0_UNITTEST, &in, &e), -1); /* another step's */
	assert_int_equal(dir_make("trials/0043/a0", &e), 0);
	assert_int_equal(file_write("trials/0043/a0/guard.json", text.data, text.len, 0644, &e), 0);
	assert_int_equal(verdict_read("0043", STEP_A0_GUARD, &in, &e), -1); /* another trial's */
	assert_int_equal(e.code, EX_BADINPUT);
	assert_int_equal(verdict_read("0042", STEP_JUDGE, &in, &e), -1);
	buf_free(&text);
}

static int fake_mac(void *ctx, const void *body, size_t len, char mac[HASH_HEX], struct err *e)
{
	(void)ctx;
	(void)e;
	hash_hex(body, len, mac);
	return 0;
}

static void test_mac(void **state)
{
	struct verdict v;
	struct verdict_in in;
	struct err e;
	struct buf body = BUF_INIT;
	char mac[HASH_HEX], want[HASH_HEX];
	(void)state;
	make(&v);
	v.mac = fake_mac;
	assert_int_equal(verdict_write(&v, &e), 0);
	verdict_free(&v);
	assert_int_equal(verdict_read("0042", STEP_A0_GUARD, &in, &e), 0);
	assert_string_equal(json_get_str(in.json, "mac", ""), json_get_str(in.json, "mac", "-"));
	assert_int_equal(verdict_body(&in, &body, mac, &e), 0);
	hash_hex(body.data, body.len, want);
	assert_string_equal(mac, want);
	verdict_in_free(&in);
	make(&v);
	assert_int_equal(verdict_write(&v, &e), 0);
	verdict_free(&v);
	assert_int_equal(verdict_read("0042", STEP_A0_GUARD, &in, &e), 0);
	assert_int_equal(verdict_body(&in, &body, mac, &e), -1); /* there is none */
	verdict_in_free(&in);
	buf_free(&body);
}

static void test_reasons(void **state)
{
	size_t n;
	const struct reason *list = reason_list(&n);
	(void)state;
	for (size_t i = 0; i < n; i++) {
		assert_ptr_equal(reason_find(list[i].code), &list[i]); /* sorted */
		assert_true(strlen(list[i].code) < 64 && *list[i].text);
	}
}

/* A lock dies with its process however it dies, and names its holder. */
static void test_lock(void **state)
{
	struct lock l = LOCK_INIT;
	struct err e;
	int pipes[2], status;
	char byte;
	(void)state;
	assert_int_equal(pipe(pipes), 0);
	pid_t pid = fork();
	if (pid == 0) {
		byte = lock_take(&l, "one", LOCK_ALONE, 0, NULL) == 0;
		_exit(write(pipes[1], &byte, 1) == 1 ? pause() : 1);
	}
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	assert_int_equal(byte, 1);
	assert_int_equal(lock_holder("one"), pid);
	assert_int_equal(lock_take(&l, "one", LOCK_ALONE, 0, &e), -1);
	assert_int_equal(e.code, EX_AGAIN);
	char want[32];
	snprintf(want, sizeof want, "process %ld", (long)pid);
	assert_non_null(strstr(e.text, want));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	assert_int_equal(lock_take(&l, "one", LOCK_ALONE, 0, &e), 0);
	lock_drop(&l);
	assert_int_equal(lock_holder("one"), 0);
	close(pipes[0]);
	close(pipes[1]);
}

static void test_lane(void **state)
{
	struct lock l = LOCK_INIT;
	struct err e;
	int pipes[2], status;
	char byte;
	(void)state;
	assert_int_equal(pipe(pipes), 0);
	pid_t pid = fork();
	if (pid == 0) {
		byte = lock_lane(&l, "emu", LOCK_SHARED, 0, NULL) == 0;
		_exit(write(pipes[1], &byte, 1) == 1 ? pause() : 1);
	}
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	assert_int_equal(lock_lane(&l, "emu", LOCK_ALONE, 0, &e), -1);
	assert_int_equal(lock_lane(&l, "emu", LOCK_SHARED, 0, &e), 0);
	lock_drop(&l);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	assert_int_equal(lock_lane(&l, "emu", LOCK_ALONE, 0, &e), 0);
	lock_drop(&l);
	close(pipes[0]);
	close(pipes[1]);
}

static void write_run(void)
{
	static const char text[] =
		"{\"schema\":\"touchstone/run/1\",\"run\":\"r0001\",\"settings\":{\"spec\":\"s\","
		"\"device\":\"sim\",\"proposer\":\"sweep\",\"n\":1,\"width\":1,\"seed\":1,"
		"\"allow_weak\":false,\"max_tokens\":1000,\"max_usd\":1.5},\"key_sha256\":\"%s\","
		"\"spec_sha256\":\"%s\",\"pins\":{\"spec\":{},\"tools\":{\"guard\":\"%s\"}}}";
	char sha[HASH_HEX];
	struct err e;
	hash_hex("k", 1, sha);
	char *s = xasprintf(text, sha, sha, sha);
	assert_int_equal(file_write("trials/runs/r0001/run.json", s, strlen(s), 0644, &e), 0);
	free(s);
}

static void test_run(void **state)
{
	struct run r;
	struct err e;
	char sha[HASH_HEX], other[HASH_HEX];
	(void)state;
	write_run();
	hash_hex("k", 1, sha);
	hash_hex("o", 1, other);
	assert_int_equal(run_read("r0001", &r, &e), 0);
	assert_int_equal(run_int(&r, "max_tokens", 0), 1000);
	assert_int_equal(run_tool_ok(&r, "guard", sha, &e), 1);
	assert_int_equal(run_tool_ok(&r, "guard", other, &e), 0);
	char *line = xasprintf("{\"t\":\"\",\"tools\":{\"guard\":\"%s\"}}", other);
	assert_int_equal(file_append("trials/runs/r0001/pins.jsonl", line, &e), 0);
	free(line);
	assert_int_equal(run_tool_ok(&r, "guard", other, &e), 1);
	assert_int_equal(run_tool_ok(&r, "judge", other, &e), 0);
	run_free(&r);
	assert_int_equal(run_read("r0002", &r, &e), -1);
}

static void test_ledger(void **state)
{
	struct run r;
	struct err e;
	struct ledger_amount most = {.calls = 1, .tokens_in = 300, .tokens_out = 300, .usd = 0.5};
	struct ledger_amount spent = {.calls = 1, .tokens_in = 100, .tokens_out = 50, .usd = 0.1};
	struct ledger_amount t;
	char first[LEDGER_ID], second[LEDGER_ID], third[LEDGER_ID];
	int marked;
	(void)state;
	write_run();
	assert_int_equal(run_read("r0001", &r, &e), 0);
	assert_int_equal(ledger_total(&r, &t, &e), 0);
	assert_int_equal(t.calls, 0);
	assert_int_equal(ledger_reserve(&r, "0042", "model_call", &most, first, &e), 0);
	assert_int_equal(ledger_reserve(&r, "0042", "model_call", &most, second, &e), -1);
	assert_int_equal(e.code, EX_NOENV); /* 1,200 tokens would be over 1,000 */
	assert_non_null(strstr(e.text, "max_tokens=1000 of run r0001: 600 are charged, the next step may take 600"));
	assert_int_equal(ledger_total(&r, &t, &e), 0);
	assert_int_equal(t.tokens_in, 300); /* what was refused is not charged */
	assert_int_equal(ledger_settle(&r, "0042", "model_call", first, &most, &spent, &e), 0);
	assert_int_equal(ledger_reserve(&r, "0042", "model_call", &most, second, &e), 0);
	assert_string_not_equal(first, second);
	struct ledger_amount was = {0};
	assert_int_equal(ledger_reserved(&r, first, &was, &e), 0);
	assert_int_equal(ledger_reserved(&r, second, &was, &e), 1);
	assert_int_equal(was.tokens_in, 300);
	/* A torn line, as a kill leaves it: the next one starts afresh. */
	FILE *f = fopen("trials/runs/r0001/ledger.jsonl", "a");
	assert_non_null(f);
	fputs("{\"t\":\"20", f);
	fclose(f);
	assert_int_equal(ledger_interrupt(&r, &marked, &e), 0);
	assert_int_equal(marked, 1);
	assert_int_equal(ledger_interrupt(&r, &marked, &e), 0);
	assert_int_equal(marked, 0);
	/* Its reply may still turn up. */
	assert_int_equal(ledger_reserved(&r, second, &was, &e), 1);
	assert_int_equal(ledger_total(&r, &t, &e), 0);
	assert_int_equal(t.calls, 2); /* the interrupted one stays charged */
	assert_int_equal(t.tokens_in, 400);
	assert_true(t.usd > 0.599 && t.usd < 0.601);
	assert_int_equal(ledger_reserve(&r, "0043", "model_call", &spent, third, &e), 0);
	run_free(&r);
}

static void test_failures(void **state)
{
	int child;
	char text[480];
	struct failure f = {"ours", "", "t", 70, "first"};
	(void)state;
	assert_int_equal(failure_count("0042", STEP_JUDGE, "", "t", &child, NULL), 0);
	failure_note("0042", STEP_JUDGE, &f);
	f.who = "world";
	failure_note("0042", STEP_JUDGE, &f);
	f.who = "child";
	f.message = "second";
	failure_note("0042", STEP_JUDGE, &f);
	assert_int_equal(failure_count("0042", STEP_JUDGE, "", "t", &child, text), 2);
	assert_int_equal(child, 1);
	assert_string_equal(text, "second");
	assert_int_equal(failure_count("0042", STEP_JUDGE, "", "another", &child, NULL), 0);
	assert_int_equal(failure_count("0042", STEP_BENCH, "", "t", &child, NULL), 0);
}

/* A remembered hash is never that of an older file. */
static void test_tool_hash(void **state)
{
	char got[HASH_HEX], want[HASH_HEX];
	struct err e;
	(void)state;
	assert_int_equal(dir_make("bin", &e), 0);
	time_t begun = time(NULL);
	for (int i = 0; i < 4; i++) {
		char text[8];
		snprintf(text, sizeof text, "tool%d", i);
		assert_int_equal(file_write("bin/tool", text, 5, 0755, &e), 0);
		hash_hex(text, 5, want);
		for (int k = 0; k < 3; k++) {
			assert_int_equal(tool_hash("bin/tool", got, &e), 0);
			assert_string_equal(got, want);
		}
	}
	if (time(NULL) == begun) /* too young to be remembered, unless the machine is very slow */
		assert_false(file_exists("bin/.sha/tool"));
	sleep(3);
	assert_int_equal(tool_hash("bin/tool", got, &e), 0);
	assert_true(file_exists("bin/.sha/tool"));
	assert_int_equal(tool_hash("bin/tool", got, &e), 0);
	assert_string_equal(got, want);
	/* somebody else's file leaves its trace with us */
	char path[PATH_MAX], kept[HASH_HEX];
	assert_non_null(realpath("bin/tool", path));
	hash_hex(path, strlen(path), kept);
	char *memory = xasprintf("kept/.sha/%s", kept);
	assert_int_equal(dir_make("kept", &e), 0);
	for (int k = 0; k < 2; k++) {
		assert_int_equal(tool_hash_in("kept", path, got, &e), 0);
		assert_string_equal(got, want);
		assert_true(file_exists(memory));
	}
	free(memory);
	FILE *f = fopen("bin/tool", "r+"); /* in place, same size, old mtime put back */
	assert_non_null(f);
	fputs("TOOL3", f);
	fclose(f);
	struct utimbuf old = {1, 1};
	assert_int_equal(utime("bin/tool", &old), 0);
	hash_hex("TOOL3", 5, want);
	assert_int_equal(tool_hash("bin/tool", got, &e), 0);
	assert_string_equal(got, want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_targets), cmocka_unit_test(test_envelope),
		cmocka_unit_test(test_refusals), cmocka_unit_test(test_strict_reading),
		cmocka_unit_test(test_mac), cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_lock), cmocka_unit_test(test_lane),
		cmocka_unit_test(test_run), cmocka_unit_test(test_ledger),
		cmocka_unit_test(test_failures), cmocka_unit_test(test_tool_hash),
	};
	return cmocka_run_group_tests(tests, enter, leave);
}
