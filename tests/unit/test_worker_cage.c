/*
 * test_worker_cage.c - what a process in a worker's cage can still do, and what a driver needs of it.
 *
 * No driver here: the needs were seen on real ones (threads named through /proc, ioctl on devices, a
 * local socket, memory files), the attacks are those of a process that has been taken over.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/worker_cage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char mine[64]; /* a file that everybody may read and write */

static int named, waiting[2];

/* As drivers do it: by process and thread number, for another thread than the caller. */
static void *name_thread(void *main_tid)
{
	char path[96];

	snprintf(path, sizeof path, "/proc/%d/task/%d/comm", (int)getpid(), *(int *)main_tid);
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	named = fd >= 0 && write(fd, "worker", 6) == 6;
	return NULL;
}

static int fails(long rc, int code)
{
	return rc < 0 && errno == code;
}

static const char *needs(void)
{
	int tid = (int)syscall(SYS_gettid), zero = open("/dev/null", O_RDWR | O_CLOEXEC), room;
	pthread_t t;

	if (pthread_create(&t, NULL, name_thread, &tid) || pthread_join(t, NULL))
		return "no threads";
	if (!named)
		return "cannot name its threads";
	if (zero < 0)
		return "cannot open a device";
	if (!fails(ioctl(zero, FIONREAD, &room), ENOTTY))
		return "no ioctl on a device";
	if (memfd_create("x", MFD_CLOEXEC) < 0)
		return "no memory files";
	if (socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0) < 0)
		return "no local socket";
	return write(waiting[1], "x", 1) == 1 ? NULL : "lost its descriptors";
}

static const char *powers(int cage, const char *layers)
{
	char *const argv[] = {(char *)(uintptr_t) "/bin/true", NULL}, *const env[] = {NULL};
	struct sockaddr_un where = {.sun_family = AF_UNIX, .sun_path = "/tmp/none"};
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (!fails(execve(argv[0], argv, env), EPERM))
		return "may execute";
	if (!fails(syscall(SYS_clone, (unsigned long)SIGCHLD, 0, 0, 0, 0), EPERM))
		return "may fork";
	if (!fails(socket(AF_INET, SOCK_STREAM, 0), EPERM))
		return "has a network socket";
	if (!fails(connect(s, (struct sockaddr *)&where, sizeof where), ENOENT))
		return "may connect";
	if (!fails(ptrace(PTRACE_ATTACH, getppid(), 0, 0), EPERM))
		return "may trace";
	if (!fails(kill(getppid(), 0), EPERM))
		return "may signal";
	if (!fails(syscall(SYS_bpf, 0, NULL, 0), EPERM) || !fails(syscall(SYS_userfaultfd, 0), EPERM) ||
	    !fails(syscall(SYS_io_uring_setup, 1, NULL), EPERM))
		return "has calls it does not need";
	int fences = confine_has(layers, "landlock") || confine_has(layers, "mountns");
	if (fences && cage < WORKER_CAGE_DEVICES && open(mine, O_RDONLY | O_CLOEXEC) >= 0)
		return "reads files of others";
	if (fences && cage <= WORKER_CAGE_DEVICES && open(mine, O_WRONLY | O_CLOEXEC) >= 0)
		return "writes files of others";
	return NULL;
}

/* Exit code 0, or 1 with a word on stderr. */
static int child(int cage, unsigned got)
{
	struct confine_report r;
	struct err e = {0};

	if (confine_enter(got, &e) || worker_cage_enter(cage, got, &r, &e)) {
		fprintf(stderr, "cage %d: %s\n", cage, e.text);
		/* no filter in this build, or an unprivileged user on a machine without Landlock */
		return strstr(e.text, "cannot confine itself") ? 77 : 1;
	}
	/* in a chroot there is no mount namespace to be had: with processes of its own but another's /proc the
	 * driver could not start either, and the worker takes the next cage */
	if (cage == WORKER_CAGE_VIEW && !confine_has(r.layers, "mountns"))
		return 77;
	const char *wrong = needs();
	if (!wrong)
		wrong = powers(cage, r.layers);
	if (wrong)
		fprintf(stderr, "cage %d (%s): %s\n", cage, r.layers, wrong);
	return wrong != NULL;
}

static void cage_holds(int cage)
{
	unsigned got = 0;
	int status;

	fflush(NULL);
	pid_t pid = confine_fork(worker_cage_namespaces(cage), &got);
	if (pid == 0)
		_exit(child(cage, got));
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void view(void **state)
{
	(void)state;
	cage_holds(WORKER_CAGE_VIEW);
}

static void net(void **state)
{
	(void)state;
	cage_holds(WORKER_CAGE_NET);
}

static void devices(void **state)
{
	(void)state;
	cage_holds(WORKER_CAGE_DEVICES);
}

static void plain(void **state)
{
	(void)state;
	cage_holds(WORKER_CAGE_PLAIN);
}

static int setup(void **state)
{
	(void)state;
	snprintf(mine, sizeof mine, "/tmp/worker-cage.XXXXXX");
	int fd = mkstemp(mine);
	return fd < 0 || fchmod(fd, 0666) || close(fd) || pipe2(waiting, O_CLOEXEC) ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(mine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(view), cmocka_unit_test(net), cmocka_unit_test(devices), cmocka_unit_test(plain),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
