/*
 * test_confine.c - layer lists, limits, and a policy applied to a shell.
 *
 * What an attacker can still do is the business of tests/isolation.
 *
 * SPDX-License-Identifier: MIT
 */
#include "confine.h"
#include "file.h"
#include "spawn.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void lists(void **state)
{
	(void)state;
	char both[CONFINE_LIST];
	assert_true(confine_has("a,landlock:7,b", "landlock"));
	assert_true(confine_has("a,b", "b"));
	assert_false(confine_has("a,bb", "b"));
	assert_false(confine_has("", "b"));
	confine_common("no_new_privs,uid,landlock:7,seccomp", "seccomp,landlock:7,no_new_privs", both);
	assert_string_equal(both, "no_new_privs,landlock:7,seccomp");
	confine_common("a,b", "", both);
	assert_string_equal(both, "");
}

static void minimum(void **state)
{
	(void)state;
	assert_true(confine_minimum("no_new_privs,landlock:1,rlimits,seccomp"));
	assert_true(confine_minimum("no_new_privs,mountns,rlimits,seccomp"));
	assert_true(confine_minimum("no_new_privs,uid,rlimits,seccomp"));
	assert_false(confine_minimum("no_new_privs,netns,pidns,rlimits,seccomp"));
	assert_false(confine_minimum("no_new_privs,landlock:7,uid,mountns,rlimits"));
	assert_false(confine_minimum("landlock:7,rlimits,seccomp"));
	assert_false(confine_minimum("no_new_privs,landlock:7,seccomp"));
	assert_false(confine_minimum(""));
}

static void namespace_names(void **state)
{
	(void)state;
	char names[CONFINE_LIST];
	confine_ns_names(CONFINE_NS_MOUNT | CONFINE_NS_PID | CONFINE_NS_USER, names);
	assert_string_equal(names, "mount,pid,user");
	assert_int_equal(confine_ns_parse(names), CONFINE_NS_MOUNT | CONFINE_NS_PID | CONFINE_NS_USER);
	confine_ns_names(0, names);
	assert_string_equal(names, "");
	assert_int_equal(confine_ns_parse(""), 0);
	assert_int_equal(confine_ns_parse(NULL), 0);
}

static char base[64];

static int setup(void **state)
{
	struct err e = {0};
	char path[128];
	(void)state;
	snprintf(base, sizeof base, "/tmp/confine.XXXXXX");
	if (!mkdtemp(base) || chmod(base, 0755))
		return -1;
	snprintf(path, sizeof path, "%s/open", base);
	if (dir_make(path, &e) || chmod(path, 0777))
		return -1;
	snprintf(path, sizeof path, "%s/shown", base);
	if (file_write(path, "shown\n", 6, 0644, &e))
		return -1;
	snprintf(path, sizeof path, "%s/hidden", base);
	return file_write(path, "hidden\n", 7, 0644, &e);
}

static int teardown(void **state)
{
	struct err e;
	(void)state;
	return dir_remove(base, &e);
}

static struct spawn_result shell(const char *script, enum confine_calls calls, unsigned namespaces, uid_t uid)
{
	char shown[128], open[128];
	snprintf(shown, sizeof shown, "%s/shown", base);
	snprintf(open, sizeof open, "%s/open", base);
	const struct confine_path paths[] = {
		{"/usr", NULL, CONFINE_EXEC, 0}, {"/bin", NULL, CONFINE_EXEC, 0}, {"/lib", NULL, CONFINE_EXEC, 0},
		{"/lib64", NULL, CONFINE_EXEC, 0}, {"/no/such/place", NULL, CONFINE_READ, 0},
		{"/dev/null", NULL, CONFINE_WRITE, 0}, {shown, NULL, CONFINE_READ, 0}, {open, NULL, CONFINE_WRITE, 0},
	};
	const struct confine c = {.calls = calls, .paths = paths, .path_count = sizeof paths / sizeof *paths,
				  .namespaces = namespaces, .uid = uid};
	const struct spawn_request q = {
		.argv = (const char *const[]){"sh", "-c", script, "sh", base, NULL}, .cwd = "/",
		.out = SPAWN_CAPTURE, .flags = SPAWN_STDOUT_TOO, .confine = &c, .wall_s = 20};
	struct spawn_result r;
	struct err e = {0};
	if (spawn_run(&q, &r, &e))
		fail_msg("%s", e.text);
	return r;
}

static void policy_is_what_it_says(void **state)
{
	(void)state;
	const char *script = "cat $1/shown; cat $1/hidden 2>/dev/null && echo LEAK; echo x >$1/open/f && cat $1/open/f; "
			     "(echo x >$1/shown) 2>/dev/null && echo LEAK; exit 0";
	for (unsigned ns = 0; ns <= CONFINE_NS_ALL; ns += CONFINE_NS_ALL) {
		struct spawn_result r = shell(script, CONFINE_CALLS_COMMAND, ns, 0);
		if (confine_has(r.layers, "landlock") || confine_has(r.layers, "mountns"))
			assert_string_equal(buf_str(&r.out), "shown\nx\n");
		assert_true(confine_has(r.layers, "no_new_privs"));
		assert_true(confine_has(r.layers, "rlimits"));
		if (!ns)
			assert_false(confine_has(r.layers, "mountns"));
		spawn_result_free(&r);
	}
}

static void uid_changes_as_root(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	struct spawn_result r = shell("id -u; id -G", CONFINE_CALLS_COMMAND, 0, 0);
	assert_string_equal(buf_str(&r.out), "65534\n65534\n");
	assert_true(confine_has(r.layers, "uid"));
	spawn_result_free(&r);
	r = shell("id -u", CONFINE_CALLS_COMMAND, CONFINE_NS_ALL, 4321);
	assert_string_equal(buf_str(&r.out), "4321\n");
	spawn_result_free(&r);
}

/* Killed where no honest program goes, refused where one may ask. */
static void kill_or_refuse(void **state)
{
	(void)state;
	struct spawn_result r = shell("exec unshare -U true", CONFINE_CALLS_BOX, 0, 0);
	if (!confine_has(r.layers, "seccomp")) {
		spawn_result_free(&r);
		skip();
	}
	assert_int_equal(r.signal, SIGSYS);
	spawn_result_free(&r);
	r = shell("exec unshare -U true", CONFINE_CALLS_COMMAND, 0, 0);
	assert_int_equal(r.signal, 0);
	assert_int_equal(r.code, 1);
	spawn_result_free(&r);
}

static void reports_are_complete(void **state)
{
	(void)state;
	struct spawn_result r = shell(":", CONFINE_CALLS_BOX, CONFINE_NS_ALL, 0);
	printf("# layers here: %s\n", r.layers);
	assert_true(strlen(r.layers) + 1 < CONFINE_LIST);
	spawn_result_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists),
		cmocka_unit_test(minimum),
		cmocka_unit_test(namespace_names),
		cmocka_unit_test_setup_teardown(policy_is_what_it_says, setup, teardown),
		cmocka_unit_test_setup_teardown(uid_changes_as_root, setup, teardown),
		cmocka_unit_test_setup_teardown(kill_or_refuse, setup, teardown),
		cmocka_unit_test_setup_teardown(reports_are_complete, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
