/*
 * spawn_wait.c - see spawn.h. Reading, timing out, killing and reaping a started process.
 *
 * SPDX-License-Identifier: MIT
 */
#include "spawn.h"
#include "spawn_part.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Without pidfd (kernels before 5.3) we look again this often. */
#define LOOK_S 0.005
/* How long a pipe may stay open after its program has ended and its group is killed. */
#define DRAIN_S 0.2

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void spawn_close(struct spawn_proc *s)
{
	shut(&s->pidfd);
	shut(&s->out_fd);
	shut(&s->err_fd);
	buf_free(&s->out);
	buf_free(&s->err);
}

void spawn_kill(struct spawn_proc *s)
{
	if (s->pid <= 0 || s->done)
		return;
	s->killed = 1;
	if (s->group)
		kill(-s->pid, SIGKILL);
	kill(s->pid, SIGKILL);
}

/* The word behind the name, which may hold anything. */
int spawn_stopped(const struct spawn_proc *s)
{
	char path[64], text[512];
	if (s->pid <= 0 || s->done)
		return 0;
	snprintf(path, sizeof path, "/proc/%ld/stat", (long)s->pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	const char *p = strrchr(text, ')');
	return p && p[1] == ' ' && p[2] == 'T';
}

/* Read what is there; beyond the cap it is thrown away, so that a flood neither fills our memory
 * nor blocks the program. */
static void pump(int *fd, struct buf *b, size_t cap, int *over)
{
	char chunk[65536];
	ssize_t n = read(*fd, chunk, sizeof chunk);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		shut(fd);
		return;
	}
	size_t room = cap > b->len ? cap - b->len : 0;
	buf_add(b, chunk, (size_t)n < room ? (size_t)n : room);
	if ((size_t)n > room)
		*over = 1;
}

/* Wait until something can be read, the program ends or `until` passes. */
static void wait_once(struct spawn_proc *s, double until)
{
	struct pollfd f[3];
	nfds_t n = 0;
	int out = !s->out_spill && s->out_fd >= 0, err = !s->err_spill && s->err_fd >= 0;
	if (out)
		f[n++] = (struct pollfd){.fd = s->out_fd, .events = POLLIN};
	if (err)
		f[n++] = (struct pollfd){.fd = s->err_fd, .events = POLLIN};
	double left = until > 0 ? until - spawn_now() : 3600;
	if (s->pidfd >= 0 && !s->done)
		f[n++] = (struct pollfd){.fd = s->pidfd, .events = POLLIN};
	else if (left > LOOK_S)
		left = LOOK_S;
	int ms = left <= 0 ? 0 : left > 3600 ? 3600000 : (int)(left * 1000) + 1;
	if (poll(f, n, ms) <= 0)
		return;
	n = 0;
	if (out && f[n++].revents)
		pump(&s->out_fd, &s->out, s->out_cap, &s->out_over);
	if (err && f[n++].revents)
		pump(&s->err_fd, &s->err, s->err_cap, &s->err_over);
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

/* 1 when it has ended: its group is killed while its zombie still holds the number, so that no
 * stranger can be hit; then it is reaped. */
static int reap(struct spawn_proc *s)
{
	siginfo_t info;
	struct rusage u;
	memset(&info, 0, sizeof info);
	int rc = waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOHANG | WNOWAIT);
	if (rc == 0 && info.si_pid == 0)
		return 0;
	if (s->group && rc == 0)
		kill(-s->pid, SIGKILL);
	memset(&u, 0, sizeof u);
	while (wait4(s->pid, &s->status, 0, &u) < 0 && errno == EINTR)
		;
	s->ended = spawn_now();
	s->user_s = seconds(u.ru_utime);
	s->sys_s = seconds(u.ru_stime);
	s->max_rss = (uint64_t)u.ru_maxrss * 1024;
	s->done = 1;
	return 1;
}

static void spill_read(int fd, struct buf *b, size_t cap, int *over)
{
	char chunk[16384];
	ssize_t n;
	while (b->len < cap && (n = pread(fd, chunk, sizeof chunk, (off_t)b->len)) > 0)
		buf_add(b, chunk, (size_t)n < cap - b->len ? (size_t)n : cap - b->len);
	*over = b->len >= cap;
}

long spawn_oom_kills(void)
{
	static char text[65536];
	int fd = open("/proc/vmstat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	const char *at = strstr(text, "\noom_kill ");
	return at ? strtol(at + 10, NULL, 10) : -1;
}

/* A person or a supervisor ended it: that says nothing about the program. When the kernel killed
 * for want of memory meanwhile, or does not say, the program itself is suspected. */
static int outside(const struct spawn_proc *s)
{
	int sig = WIFSIGNALED(s->status) ? WTERMSIG(s->status) : 0;
	if (s->killed || (sig != SIGKILL && sig != SIGTERM && sig != SIGINT && sig != SIGHUP))
		return 0;
	if (s->cpu_s && s->user_s + s->sys_s >= 0.5 * (double)s->cpu_s)
		return 0;
	return s->oom >= 0 && spawn_oom_kills() == s->oom;
}

static void finish(struct spawn_proc *s, struct spawn_result *r)
{
	double until = spawn_now() + DRAIN_S;
	while (((!s->out_spill && s->out_fd >= 0) || (!s->err_spill && s->err_fd >= 0)) &&
	       spawn_now() < until)
		wait_once(s, until);
	if (s->out_spill)
		spill_read(s->out_fd, &s->out, s->out_cap, &s->out_over);
	if (s->err_spill)
		spill_read(s->err_fd, &s->err, s->err_cap, &s->err_over);
	memset(r, 0, sizeof *r);
	r->code = WIFEXITED(s->status) ? WEXITSTATUS(s->status) : -1;
	r->signal = WIFSIGNALED(s->status) ? WTERMSIG(s->status) : 0;
	r->timed_out = s->timed_out;
	r->outside = outside(s);
	r->out_over = s->out_over;
	r->err_over = s->err_over;
	r->out = s->out;
	r->err = s->err;
	s->out = s->err = (struct buf)BUF_INIT;
	r->wall_s = s->ended - s->started;
	r->user_s = s->user_s;
	r->sys_s = s->sys_s;
	r->max_rss = s->max_rss;
	memcpy(r->layers, s->layers, sizeof r->layers);
	s->pid = 0;
	spawn_close(s);
}

int spawn_wait(struct spawn_proc *s, double timeout_s, struct spawn_result *r, struct err *e)
{
	if (s->pid <= 0)
		return err_set(e, EX_HARNESS, "no process to wait for");
	double stop = timeout_s < 0 ? 0 : spawn_now() + timeout_s;
	while (!reap(s)) {
		double now = spawn_now();
		if (s->deadline > 0 && now >= s->deadline && !s->killed) {
			s->timed_out = 1;
			spawn_kill(s);
		}
		if (timeout_s >= 0 && now >= stop)
			return 1;
		double until = timeout_s < 0 ? 0 : stop;
		if (s->deadline > 0 && !s->killed && (until <= 0 || s->deadline < until))
			until = s->deadline;
		wait_once(s, until);
	}
	finish(s, r);
	return 0;
}

int spawn_run(const struct spawn_request *q, struct spawn_result *r, struct err *e)
{
	struct spawn_proc s;
	memset(r, 0, sizeof *r);
	if (spawn_start(q, &s, e))
		return -1;
	return spawn_wait(&s, -1, r, e);
}

void spawn_result_free(struct spawn_result *r)
{
	buf_free(&r->out);
	buf_free(&r->err);
}

const char *spawn_words(const struct spawn_result *r, char out[96])
{
	if (r->timed_out)
		snprintf(out, 96, "time limit");
	else if (r->signal)
		snprintf(out, 96, "signal %d (%s)", r->signal, strsignal(r->signal));
	else
		snprintf(out, 96, "exit %d", r->code);
	return out;
}
