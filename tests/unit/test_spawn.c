/*
 * test_spawn.c - a process gets exactly what the request says, and nothing of it is left behind.
 *
 * SPDX-License-Identifier: MIT
 */
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static struct spawn_result run(struct spawn_request q)
{
	struct spawn_result r;
	struct err e = {0};
	if (spawn_run(&q, &r, &e))
		fail_msg("%s", e.text);
	return r;
}

#define SH(script) ((const char *const[]){"sh", "-c", script, NULL})

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Gone, or a zombie that a lazy init has not reaped: nothing of it runs any more. */
static int gone(pid_t pid)
{
	char path[64], text[256] = "";
	for (int i = 0; i < 200; i++) {
		snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
		FILE *f = fopen(path, "r");
		if (!f)
			return 1;
		size_t n = fread(text, 1, sizeof text - 1, f);
		fclose(f);
		text[n] = '\0';
		const char *end = strrchr(text, ')');
		if (end && end[1] && end[2] == 'Z')
			return 1;
		usleep(10000);
	}
	return 0;
}

static void outputs_and_code(void **state)
{
	(void)state;
	struct spawn_result r = run((struct spawn_request){
		.argv = SH("cat; echo oops >&2; exit 3"), .in = "hello\n", .in_len = 6,
		.out = SPAWN_CAPTURE, .err = SPAWN_CAPTURE});
	assert_int_equal(r.code, 3);
	assert_int_equal(r.signal, 0);
	assert_string_equal(buf_str(&r.out), "hello\n");
	assert_string_equal(buf_str(&r.err), "oops\n");
	spawn_result_free(&r);
	r = run((struct spawn_request){.argv = SH("echo a; echo b >&2; kill -9 $$"),
				       .out = SPAWN_SPILL, .flags = SPAWN_STDOUT_TOO});
	assert_int_equal(r.signal, SIGKILL);
	assert_int_equal(r.code, -1);
	assert_string_equal(buf_str(&r.out), "a\nb\n");
	spawn_result_free(&r);
}

static void environment_is_ours_alone(void **state)
{
	(void)state;
	setenv("TS_SECRET", "key", 1);
	struct spawn_result r = run((struct spawn_request){.argv = (const char *const[]){"env", NULL},
							   .out = SPAWN_CAPTURE});
	assert_string_equal(buf_str(&r.out), "PATH=" SPAWN_PATH "\nLC_ALL=C\n");
	spawn_result_free(&r);
	r = run((struct spawn_request){.argv = (const char *const[]){"env", NULL},
				       .env = (const char *const[]){"A=1", NULL}, .out = SPAWN_CAPTURE});
	assert_string_equal(buf_str(&r.out), "A=1\n");
	spawn_result_free(&r);
}

static void descriptors_are_mapped_and_the_rest_closed(void **state)
{
	(void)state;
	int a[2], b[2];
	assert_int_equal(pipe(a), 0);
	assert_int_equal(pipe(b), 0);
	assert_int_equal(write(a[1], "A", 1), 1);
	assert_int_equal(write(b[1], "B", 1), 1);
	/* crossed on purpose: each target is the other's source */
	struct spawn_fd cross[] = {{a[0], b[0]}, {b[0], a[0]}};
	char script[160];
	snprintf(script, sizeof script, "head -c1 <&%d; head -c1 <&%d; for f in /proc/self/fd/*; do "
		 "echo; echo -n ${f##*/}; done | wc -l", b[0], a[0]);
	struct spawn_result r = run((struct spawn_request){.argv = SH(script), .fds = cross, .fd_count = 2,
							   .out = SPAWN_CAPTURE});
	assert_memory_equal(buf_str(&r.out), "AB", 2);
	/* 0 1 2, the two mapped ones, and what sh itself holds for the pipe and the listing */
	assert_true(atoi(buf_str(&r.out) + 2) <= 7);
	spawn_result_free(&r);
	for (int i = 0; i < 2; i++) {
		close(a[i]);
		close(b[i]);
	}
}

static void a_missing_program_is_an_error_that_names_it(void **state)
{
	(void)state;
	struct spawn_result r;
	struct err e = {0};
	assert_int_equal(spawn_run(&(struct spawn_request){.argv = (const char *const[]){"no-such-tool", NULL}}, &r, &e), -1);
	assert_int_equal(e.code, EX_NOENV);
	assert_non_null(strstr(e.text, "'no-such-tool'"));
	assert_int_equal(spawn_run(&(struct spawn_request){.argv = (const char *const[]){"/no/such", NULL}}, &r, &e), -1);
	assert_int_equal(e.code, EX_NOENV);
	assert_string_equal(e.text, "cannot start '/no/such': No such file or directory");
	assert_int_equal(spawn_run(&(struct spawn_request){.argv = SH("true"), .cwd = "/no/dir"}, &r, &e), -1);
	assert_non_null(strstr(e.text, "cannot enter '/no/dir'"));
	/* none of the failures left a zombie */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void wall_limit_kills_the_whole_group(void **state)
{
	(void)state;
	double t = now();
	struct spawn_result r = run((struct spawn_request){
		.argv = SH("sleep 100 & echo $!; wait"), .out = SPAWN_CAPTURE, .wall_s = 0.2});
	assert_true(r.timed_out);
	assert_true(now() - t < 2);
	pid_t grandchild = (pid_t)atoi(buf_str(&r.out));
	assert_true(grandchild > 1);
	assert_true(gone(grandchild));
	char words[96];
	assert_string_equal(spawn_words(&r, words), "time limit");
	spawn_result_free(&r);
}

static void background_processes_do_not_outlive_it(void **state)
{
	(void)state;
	double t = now();
	/* the sleeper keeps the pipe open: the end of the program still ends the wait */
	struct spawn_result r = run((struct spawn_request){.argv = SH("sleep 100 & echo $!"), .out = SPAWN_CAPTURE});
	assert_true(now() - t < 2);
	pid_t left = (pid_t)atoi(buf_str(&r.out));
	assert_true(gone(left));
	spawn_result_free(&r);
}

static void floods_are_capped(void **state)
{
	(void)state;
	struct spawn_result r = run((struct spawn_request){
		.argv = SH("head -c 10000000 /dev/zero"), .out = SPAWN_CAPTURE, .out_cap = 1000});
	assert_int_equal(r.code, 0);
	assert_int_equal(r.out.len, 1000);
	assert_true(r.out_over);
	spawn_result_free(&r);
	r = run((struct spawn_request){.argv = SH("head -c 10000000 /dev/zero"), .out = SPAWN_SPILL, .out_cap = 1000});
	assert_int_equal(r.out.len, 1000);
	assert_true(r.out_over);
	spawn_result_free(&r);
}

static void limits_hold(void **state)
{
	(void)state;
	struct spawn_result r = run((struct spawn_request){
		.argv = SH("while :; do :; done"), .limits = {.cpu_s = 1}, .wall_s = 20});
	assert_true(r.signal == SIGKILL || r.signal == SIGXCPU);
	assert_false(r.timed_out);
	assert_true(r.user_s + r.sys_s > 0.4);
	spawn_result_free(&r);
	r = run((struct spawn_request){.argv = SH("ulimit -c; ulimit -n"), .limits = {.files = 64}, .out = SPAWN_CAPTURE});
	assert_string_equal(buf_str(&r.out), "0\n64\n");
	spawn_result_free(&r);
}

static void start_wait_kill(void **state)
{
	(void)state;
	struct spawn_proc p;
	struct spawn_result r;
	struct err e = {0};
	struct spawn_request q = {.argv = SH("sleep 100")};
	assert_int_equal(spawn_start(&q, &p, &e), 0);
	assert_int_equal(spawn_wait(&p, 0, &r, &e), 1);
	assert_int_equal(spawn_wait(&p, 0.05, &r, &e), 1);
	spawn_kill(&p);
	assert_int_equal(spawn_wait(&p, -1, &r, &e), 0);
	assert_int_equal(r.signal, SIGKILL);
	assert_false(r.timed_out);
	spawn_result_free(&r);
	assert_int_equal(spawn_wait(&p, -1, &r, &e), -1);
}

/* A parent killed outright takes its child along, in a pid namespace or not. */
static void dies_with_its_parent(unsigned namespaces)
{
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t middle = fork();
	if (middle == 0) {
		struct spawn_proc p;
		struct err e;
		struct spawn_request q = {.argv = SH("sleep 100"), .namespaces = namespaces};
		int rc = spawn_start(&q, &p, &e);
		pid_t pid = rc ? -1 : p.pid;
		rc = write(ready[1], &pid, sizeof pid) != (ssize_t)sizeof pid;
		pause();
		_exit(rc);
	}
	pid_t pid = -1;
	assert_int_equal(read(ready[0], &pid, sizeof pid), sizeof pid);
	assert_true(pid > 1);
	kill(middle, SIGKILL);
	waitpid(middle, NULL, 0);
	assert_true(gone(pid));
	close(ready[0]);
	close(ready[1]);
}

static void death_signal(void **state)
{
	(void)state;
	dies_with_its_parent(0);
	dies_with_its_parent(CONFINE_NS_ALL);
}

static void namespaces_are_named(void **state)
{
	(void)state;
	struct spawn_result r = run((struct spawn_request){
		.argv = SH("echo $TS_NAMESPACES; echo $$"), .namespaces = CONFINE_NS_PID, .out = SPAWN_CAPTURE});
	if (strncmp(buf_str(&r.out), "pid", 3) == 0)
		assert_non_null(strstr(buf_str(&r.out), "\n1\n"));
	else
		assert_int_equal(buf_str(&r.out)[0], '\n'); /* none on this machine: said so */
	spawn_result_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outputs_and_code),
		cmocka_unit_test(environment_is_ours_alone),
		cmocka_unit_test(descriptors_are_mapped_and_the_rest_closed),
		cmocka_unit_test(a_missing_program_is_an_error_that_names_it),
		cmocka_unit_test(wall_limit_kills_the_whole_group),
		cmocka_unit_test(background_processes_do_not_outlive_it),
		cmocka_unit_test(floods_are_capped),
		cmocka_unit_test(limits_hold),
		cmocka_unit_test(start_wait_kill),
		cmocka_unit_test(death_signal),
		cmocka_unit_test(namespaces_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
