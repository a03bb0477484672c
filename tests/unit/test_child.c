/*
 * test_child.c - a kernel through box and child: start, talk, limits, end.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/emu/protocol.h"
#include "box_call.h"
#include "child_call.h"
#include "file.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 1000, PAGE = 4096 };

#define BASE 0x3000000000ull

static const char source[] =
	"__global__ void scale(const float *x, float *y, int n)\n"
	"{\n"
	"	__shared__ float s[128];\n"
	"	int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
	"	s[threadIdx.x] = i < n ? x[i] : 0;\n"
	"	__syncthreads();\n"
	"	if (i < n)\n"
	"		y[i] = 2 * s[threadIdx.x];\n"
	"}\n";

static struct box_result build(const char *mode, const char *text, const char *name)
{
	struct box_result r;
	struct err e = {0};
	struct box_request q = {.mode = mode, .source = text, .source_len = strlen(text),
				.entries = &name, .entry_count = 1};
	if (box_compile(&q, &r, &e))
		fail_msg("%s", e.text);
	if (!r.ok)
		fail_msg("%s: %s", r.code, r.log);
	return r;
}

static int memory(size_t bytes)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	return fd;
}

/* One launch of kernel(x, y, n) over N elements. */
static int script_make(void)
{
	struct {
		struct emu_script head;
		struct emu_buffer buffer[2];
		struct emu_launch launch;
		struct emu_arg arg[3];
	} s;
	memset(&s, 0, sizeof s);
	s.head = (struct emu_script){.magic = EMU_MAGIC, .version = EMU_VERSION, .bytes = sizeof s, .n_buffers = 2,
				     .n_launches = 1, .n_args = 3, .sm_count = 4, .residency = 4, .max_shared = 48 * 1024};
	s.buffer[0] = (struct emu_buffer){.fd = EMU_FD_RO, .bytes = N * 4, .base = BASE};
	s.buffer[1] = (struct emu_buffer){.fd = EMU_FD_RW, .bytes = N * 4, .base = BASE + PAGE * 16};
	s.launch = (struct emu_launch){.grid = {(N + 127) / 128, 1, 1}, .block = {128, 1, 1}, .cluster = {1, 1, 1}, .n_args = 3};
	s.arg[0] = (struct emu_arg){.kind = EMU_ARG_POINTER, .bytes = 8, .buffer = 0};
	s.arg[1] = (struct emu_arg){.kind = EMU_ARG_POINTER, .bytes = 8, .buffer = 1};
	s.arg[2] = (struct emu_arg){.kind = EMU_ARG_VALUE, .bytes = 4};
	int n = N;
	memcpy(s.arg[2].value, &n, sizeof n);
	int fd = memory(sizeof s);
	assert_int_equal(pwrite(fd, &s, sizeof s, 0), (ssize_t)sizeof s);
	return fd;
}

static int ask(struct child *c, uint32_t kind, struct emu_reply *r)
{
	struct emu_command q = {.magic = EMU_MAGIC, .kind = kind};
	char text[EMU_MAX_TEXT + EMU_MAX_LOG];
	memset(r, 0, sizeof *r);
	if (write(c->to, &q, sizeof q) != (ssize_t)sizeof q)
		return -1;
	for (size_t had = 0; had < sizeof *r;) {
		ssize_t n = read(c->from, (char *)r + had, sizeof *r - had);
		if (n <= 0)
			return -1;
		had += (size_t)n;
	}
	for (size_t left = r->text_bytes + r->log_bytes; left;) {
		ssize_t n = read(c->from, text, left < sizeof text ? left : sizeof text);
		if (n <= 0)
			return -1;
		left -= (size_t)n;
	}
	return 0;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct session {
	int ro, rw, script;
	struct child c;
};

static void session_start(struct session *s, const struct box_result *image, int sanitize)
{
	struct err e = {0};
	s->ro = memory(PAGE);
	s->rw = memory(PAGE);
	s->script = script_make();
	float x[N];
	for (int i = 0; i < N; i++)
		x[i] = (float)i;
	assert_int_equal(pwrite(s->ro, x, sizeof x, 0), (ssize_t)sizeof x);
	struct spawn_fd fds[] = {{s->ro, EMU_FD_RO}, {s->rw, EMU_FD_RW}, {s->script, EMU_FD_SCRIPT}};
	struct child_request q = {.image = image->path, .sha256 = image->sha256, .sanitize = sanitize,
				  .fds = fds, .fd_count = 3, .cpu = -1, .cpu_s = 10, .wall_s = 10};
	double t = now();
	if (child_start(&q, &s->c, &e))
		fail_msg("%s", e.text);
	printf("# child started in %.1f ms: %s\n", 1e3 * (now() - t), s->c.isolation);
}

static struct child_end session_end(struct session *s)
{
	struct child_end end;
	struct err e = {0};
	assert_int_equal(child_wait(&s->c, 5, &end, &e), 0);
	assert_int_equal(s->c.to, -1);
	close(s->ro);
	close(s->rw);
	close(s->script);
	return end;
}

static void a_kernel_runs(const char *mode, int sanitize)
{
	struct box_result image = build(mode, source, "scale");
	struct session s;
	struct emu_reply r;
	float y[N];
	double cpu = -1;
	session_start(&s, &image, sanitize);
	assert_int_equal(ask(&s.c, EMU_CMD_MAP, &r), 0);
	assert_int_equal(r.status, EMU_OK);
	assert_int_equal(ask(&s.c, EMU_CMD_RUN, &r), 0);
	assert_int_equal(r.status, EMU_OK);
	assert_int_equal(pread(s.rw, y, sizeof y, 0), (ssize_t)sizeof y);
	for (int i = 0; i < N; i++)
		assert_true(y[i] == 2 * (float)i);
	assert_int_equal(child_cpu(&s.c, &cpu), 0);
	assert_true(cpu >= 0 && cpu < 5);
	assert_false(child_over(&s.c));
	ask(&s.c, EMU_CMD_QUIT, &r);
	struct child_end end = session_end(&s);
	assert_string_equal(end.words, "exit 0");
	assert_int_equal(end.log.len, 0);
	child_end_free(&end);
	box_result_free(&image);
}

static void fast(void **state)
{
	(void)state;
	a_kernel_runs("emu-fast", 0);
}

static void sanitize(void **state)
{
	(void)state;
	a_kernel_runs("emu-sanitize", 1);
}

static void race(void **state)
{
	(void)state;
	a_kernel_runs("emu-race", 1);
}

static void an_endless_kernel_is_killed(void **state)
{
	(void)state;
	struct box_result image = build("emu-fast",
					"__global__ void spin(const float *x, float *y, int n)\n"
					"{ volatile int i = 0; while (i >= 0) i = n; }\n", "spin");
	struct session s;
	struct emu_reply r;
	session_start(&s, &image, 0);
	assert_int_equal(ask(&s.c, EMU_CMD_MAP, &r), 0);
	struct emu_command q = {.magic = EMU_MAGIC, .kind = EMU_CMD_RUN};
	assert_int_equal(write(s.c.to, &q, sizeof q), (ssize_t)sizeof q);
	struct child_end end;
	struct err e = {0};
	assert_int_equal(child_wait(&s.c, 0.1, &end, &e), 1);
	child_kill(&s.c);
	end = session_end(&s);
	assert_int_equal(end.signal, 9);
	child_end_free(&end);
	box_result_free(&image);
}

static void the_image_must_be_the_one_judged(void **state)
{
	(void)state;
	struct box_result image = build("emu-fast", source, "scale");
	struct child c;
	struct err e = {0};
	struct child_request q = {.image = image.path, .sha256 = image.sha256, .cpu = -1};
	image.sha256[0] = image.sha256[0] == '0' ? '1' : '0';
	assert_int_equal(child_start(&q, &c, &e), -1);
	assert_int_equal(e.code, EX_BADINPUT);
	q.image = "/no/such/image";
	assert_int_equal(child_start(&q, &c, &e), -1);
	box_result_free(&image);
}

static void what_is_no_program_is_an_error(void **state)
{
	(void)state;
	char path[] = "/tmp/child-test.XXXXXX", sha[HASH_HEX];
	struct child c;
	struct err e = {0};
	int fd = mkstemp(path);
	assert_int_equal(write(fd, "not a program", 13), 13);
	close(fd);
	hash_hex("not a program", 13, sha);
	struct child_request q = {.image = path, .sha256 = sha, .cpu = -1};
	assert_int_equal(child_start(&q, &c, &e), -1);
	assert_non_null(strstr(e.text, "cannot start the image"));
	unlink(path);
}

/* Whoever started it may be killed at any moment; changing its uid must not lose the tie. */
static void dies_with_its_parent(void **state)
{
	(void)state;
	struct box_result image = build("emu-fast", source, "scale");
	int pipes[2];
	assert_int_equal(pipe(pipes), 0);
	pid_t middle = fork();
	if (middle == 0) {
		struct child c;
		struct err e;
		struct child_request q = {.image = image.path, .sha256 = image.sha256, .cpu = -1};
		pid_t pids[2] = {child_start(&q, &c, &e) ? -1 : c.proc.pid, fork()};
		/* the copy holds the control pipe open: its end must not be what ends the image */
		if (pids[1] == 0 || write(pipes[1], pids, sizeof pids) == (ssize_t)sizeof pids)
			pause();
		_exit(1);
	}
	pid_t pids[2] = {-1, -1};
	assert_int_equal(read(pipes[0], pids, sizeof pids), (ssize_t)sizeof pids);
	pid_t pid = pids[0];
	assert_true(pid > 1 && pids[1] > 1);
	char path[64], text[64] = "";
	snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
	assert_int_equal(access(path, F_OK), 0);
	kill(middle, SIGKILL);
	waitpid(middle, NULL, 0);
	int gone = 0;
	snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
	for (int i = 0; i < 200 && !gone; i++, usleep(10000)) {
		FILE *f = fopen(path, "r");
		gone = !f || !fgets(text, sizeof text, f) || strncmp(text, "0 ", 2) == 0;
		if (f)
			fclose(f);
	}
	kill(pids[1], SIGKILL);
	assert_true(gone);
	close(pipes[0]);
	close(pipes[1]);
	box_result_free(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fast),
		cmocka_unit_test(sanitize),
		cmocka_unit_test(race),
		cmocka_unit_test(an_endless_kernel_is_killed),
		cmocka_unit_test(the_image_must_be_the_one_judged),
		cmocka_unit_test(dies_with_its_parent),
		cmocka_unit_test(what_is_no_program_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
