/*
 * lock.c - see lock.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lock.h"

#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 20 };

/* A step that a runner sent works in a folder of its own (tools/far.c), where `lanes` leads to the locks
 * of the machine's own record: a GPU is one lane whoever asks. */
static int lock_path(char path[160], const char *name)
{
	int lane = strncmp(name, "lane-", 5) == 0 || strncmp(name, "gate-", 5) == 0;
	int shared = lane && access("trials/.lock/lanes", F_OK) == 0;
	return snprintf(path, 160, "trials/.lock/%s%s", shared ? "lanes/" : "", name) < 160 ? 0 : -1;
}

static int open_file(const char *name, struct err *e)
{
	char path[160];
	if (lock_path(path, name))
		return err_set(e, EX_BADUSE, "lock name '%.60s' is too long", name);
	int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
	int fd = open(path, flags, 0666);
	if (fd < 0 && errno == ENOENT && dir_make("trials/.lock", e) == 0)
		fd = open(path, flags, 0666);
	if (fd < 0)
		return err_sys(e, "cannot open lock '%s'", path);
	return fd;
}

/* "process 123 (bench)", as far as /proc tells. */
static int held_by_other(int fd, const char *name, short type, struct err *e)
{
	struct flock f = {.l_type = type, .l_whence = SEEK_SET};
	char path[64], comm[32] = "?";
	long pid = 0;
	if (fcntl(fd, F_GETLK, &f) == 0 && f.l_type != F_UNLCK)
		pid = f.l_pid;
	snprintf(path, sizeof path, "/proc/%ld/comm", pid);
	int c = open(path, O_RDONLY | O_CLOEXEC);
	if (c >= 0) {
		ssize_t n = read(c, comm, sizeof comm - 1);
		comm[n > 0 ? n : 0] = '\0';
		comm[strcspn(comm, "\n")] = '\0';
		close(c);
	}
	return err_set(e, EX_AGAIN, "'%s' is held by process %ld (%s)", name, pid, comm);
}

static int try_lock(int fd, int cmd, short type)
{
	struct flock f = {.l_type = type, .l_whence = SEEK_SET};
	int rc;
	while ((rc = fcntl(fd, cmd, &f)) != 0 && errno == EINTR)
		;
	return rc;
}

static void sleep_ms(int ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
	nanosleep(&t, NULL);
}

static int wait_lock(int fd, const char *name, short type, int wait_ms, struct err *e)
{
	for (int waited = 0;; waited += POLL_MS) {
		/* The kernel may see a deadlock where two lanes are involved: then poll. */
		if (wait_ms < 0 && try_lock(fd, F_SETLKW, type) == 0)
			return 0;
		if (try_lock(fd, F_SETLK, type) == 0)
			return 0;
		if (errno != EAGAIN && errno != EACCES && errno != EDEADLK)
			return err_sys(e, "cannot lock '%s'", name);
		if (wait_ms >= 0 && waited >= wait_ms)
			return held_by_other(fd, name, type, e);
		sleep_ms(POLL_MS);
	}
}

int lock_take(struct lock *l, const char *name, enum lock_mode mode, int wait_ms, struct err *e)
{
	short type = mode == LOCK_ALONE ? F_WRLCK : F_RDLCK;
	l->fd = -1;
	int fd = open_file(name, e);
	if (fd < 0)
		return -1;
	if (wait_lock(fd, name, type, wait_ms, e)) {
		close(fd);
		return -1;
	}
	l->fd = fd;
	return 0;
}

void lock_drop(struct lock *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

long lock_holder(const char *name)
{
	char path[160];
	struct flock f = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	int fd = lock_path(path, name) ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return 0;
	long pid = fcntl(fd, F_GETLK, &f) == 0 && f.l_type != F_UNLCK ? (long)f.l_pid : 0;
	close(fd);
	return pid;
}

int lock_lane(struct lock *l, const char *device, enum lock_mode mode, int wait_ms, struct err *e)
{
	char gate_name[96], lane_name[96];
	struct lock gate;
	snprintf(gate_name, sizeof gate_name, "gate-%.70s", device);
	snprintf(lane_name, sizeof lane_name, "lane-%.70s", device);
	l->fd = -1;
	if (lock_take(&gate, gate_name, LOCK_ALONE, wait_ms, e))
		return -1;
	int rc = lock_take(l, lane_name, mode, wait_ms, e);
	lock_drop(&gate);
	return rc;
}
