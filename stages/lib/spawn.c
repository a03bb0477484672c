/*
 * spawn.c - see spawn.h. Starting a process; spawn_wait.c has the other half of its life.
 *
 * SPDX-License-Identifier: MIT
 */
#include "spawn.h"

#include "spawn_part.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOVES_MAX = 32, CAP_DEFAULT = 1 << 20 };

/* What the child says over a close-on-exec pipe; end of file without a failure means that exec
 * worked. Small enough to be written in one piece. */
struct report {
	int failed;
	struct err e;
	char layers[CONFINE_LIST];
};

struct plan {
	const struct spawn_request *q;
	char exe[PATH_MAX];
	struct spawn_fd moves[MOVES_MAX]; /* the whole descriptor table of the child */
	size_t count;
	int mine[8]; /* descriptors to close here once it runs */
	size_t mine_count;
	int status[2];
	uint64_t file_bytes;
	unsigned got;
	sigset_t mask; /* ours, before the fork */
};

double spawn_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int find(const char *name, char out[PATH_MAX], struct err *e)
{
	if (strchr(name, '/')) {
		snprintf(out, PATH_MAX, "%s", name);
		return 0;
	}
	for (const char *dir = SPAWN_PATH; *dir; dir += strcspn(dir, ":"), dir += *dir == ':') {
		snprintf(out, PATH_MAX, "%.*s/%s", (int)strcspn(dir, ":"), dir, name);
		if (access(out, X_OK) == 0)
			return 0;
	}
	return err_set(e, EX_NOENV, "cannot find the program '%s' in %s", name, SPAWN_PATH);
}

/* --- before the fork --- */

static void plan_close(struct plan *p)
{
	while (p->mine_count)
		close(p->mine[--p->mine_count]);
}

static int plan_move(struct plan *p, int parent, int child, struct err *e)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->moves[i].child == child) {
			p->moves[i].parent = parent;
			return 0;
		}
	if (p->count == MOVES_MAX)
		return err_set(e, EX_HARNESS, "too many descriptors for '%s'", p->q->argv[0]);
	p->moves[p->count++] = (struct spawn_fd){parent, child};
	return 0;
}

/* The descriptor stays ours until the child has its copy. */
static int plan_own(struct plan *p, int fd, int child, const char *what, struct err *e)
{
	if (fd < 0)
		return err_sys(e, "cannot open %s for '%s'", what, p->q->argv[0]);
	p->mine[p->mine_count++] = fd;
	return plan_move(p, fd, child, e);
}

static int memory_file(const void *data, size_t len)
{
	int fd = memfd_create("spawn", MFD_CLOEXEC);
	for (size_t done = 0; fd >= 0 && done < len;) {
		ssize_t n = write(fd, (const char *)data + done, len - done);
		if (n <= 0) {
			close(fd);
			return -1;
		}
		done += (size_t)n;
	}
	if (fd >= 0)
		lseek(fd, 0, SEEK_SET);
	return fd;
}

/* One of stdout and stderr. *ours is the end we read, or -1. */
static int plan_output(struct plan *p, enum spawn_to to, int child, size_t cap, int *ours,
		       int *spill, struct err *e)
{
	int ends[2] = {-1, -1};
	switch (to) {
	case SPAWN_NULL:
		return plan_own(p, open("/dev/null", O_WRONLY | O_CLOEXEC), child, "/dev/null", e);
	case SPAWN_KEEP:
		return plan_move(p, child, child, e);
	case SPAWN_CAPTURE:
		if (pipe2(ends, O_CLOEXEC))
			return err_sys(e, "cannot make a pipe for '%s'", p->q->argv[0]);
		*ours = ends[0];
		fcntl(ends[0], F_SETFL, O_NONBLOCK);
		return plan_own(p, ends[1], child, "a pipe", e);
	case SPAWN_SPILL:
		*ours = memory_file(NULL, 0);
		*spill = 1;
		if (*ours < 0)
			return err_sys(e, "cannot make a memory file for '%s'", p->q->argv[0]);
		if (!p->file_bytes || p->file_bytes < cap)
			p->file_bytes = cap;
		/* appending: neither end of stdout and stderr in one file overwrites the other */
		fcntl(*ours, F_SETFL, O_APPEND);
		return plan_move(p, *ours, child, e);
	}
	return -1;
}

static int plan_make(struct plan *p, struct spawn_proc *s, struct err *e)
{
	const struct spawn_request *q = p->q;
	p->file_bytes = q->limits.file_bytes;
	if (find(q->argv[0], p->exe, e))
		return -1;
	int in = q->in ? memory_file(q->in, q->in_len) : open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (plan_own(p, in, 0, "stdin", e) ||
	    plan_output(p, q->out, 1, s->out_cap, &s->out_fd, &s->out_spill, e))
		return -1;
	if (q->flags & SPAWN_STDOUT_TOO) {
		if (plan_move(p, p->moves[p->count - 1].parent, 2, e))
			return -1;
	} else if (plan_output(p, q->err, 2, s->err_cap, &s->err_fd, &s->err_spill, e)) {
		return -1;
	}
	for (size_t i = 0; i < q->fd_count; i++)
		if (plan_move(p, q->fds[i].parent, q->fds[i].child, e))
			return -1;
	if (pipe2(p->status, O_CLOEXEC))
		return err_sys(e, "cannot make a pipe for '%s'", q->argv[0]);
	return 0;
}

/* --- in the child --- */

static void close_gap(unsigned from, unsigned to)
{
	if (from > to)
		return;
	if (syscall(SYS_close_range, from, to, 0) == 0)
		return;
	long last = sysconf(_SC_OPEN_MAX); /* a kernel before 5.9 */
	for (unsigned fd = from; fd <= to && (long)fd < last; fd++)
		close((int)fd);
}

/* Every source first moves above every target, so that no move overwrites a later source. */
static int table_set(struct plan *p, struct err *e)
{
	int top = 3;
	for (size_t i = 0; i < p->count; i++)
		if (p->moves[i].child >= top)
			top = p->moves[i].child + 1;
	for (size_t i = 0; i < p->count; i++) {
		p->moves[i].parent = fcntl(p->moves[i].parent, F_DUPFD_CLOEXEC, top);
		if (p->moves[i].parent < 0)
			return err_sys(e, "cannot copy descriptor for %d", p->moves[i].child);
	}
	int status = fcntl(p->status[1], F_DUPFD_CLOEXEC, top);
	if (status < 0)
		return err_sys(e, "cannot copy the status pipe");
	for (size_t i = 0; i < p->count; i++)
		if (dup2(p->moves[i].parent, p->moves[i].child) < 0)
			return err_sys(e, "cannot set descriptor %d", p->moves[i].child);
	if (status != top && dup3(status, top, O_CLOEXEC) < 0)
		return err_sys(e, "cannot set the status pipe");
	p->status[1] = top;
	close_gap((unsigned)top + 1, ~0u);
	int gap = 0;
	for (int fd = 0; fd <= top; fd++) {
		int kept = fd == top;
		for (size_t i = 0; i < p->count; i++)
			kept |= p->moves[i].child == fd;
		if (kept && gap < fd)
			close_gap((unsigned)gap, (unsigned)fd - 1);
		if (kept)
			gap = fd + 1;
	}
	return 0;
}

/* Die with the parent. It may have died before the request took effect: then nobody reads the
 * status pipe any more (its getppid() would be 0 in a pid namespace, which says nothing). */
static int tie(const struct plan *p, pid_t parent, struct err *e)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		return err_sys(e, "cannot ask for the parent death signal");
	struct pollfd f = {.fd = p->status[1], .events = 0};
	if ((!(p->got & CONFINE_NS_PID) && getppid() != parent) ||
	    (poll(&f, 1, 0) > 0 && (f.revents & POLLERR)))
		_exit(EX_SYS);
	return 0;
}

static char **env_make(const struct plan *p)
{
	static const char *const standard[] = {"PATH=" SPAWN_PATH, "LC_ALL=C", NULL};
	const char *const *from = p->q->env ? p->q->env : standard;
	size_t n = 0;
	while (from[n])
		n++;
	char **env = xcalloc(n + 3, sizeof *env);
	for (size_t i = 0; i < n; i++)
		env[i] = xstrdup(from[i]);
	if (p->q->namespaces) {
		char names[CONFINE_LIST];
		confine_ns_names(p->got, names);
		env[n++] = xasprintf("TS_NAMESPACES=%s", names);
	}
#ifdef TS_ZOO /* defence.h */
	if (getenv("TS_OFF"))
		env[n] = xasprintf("TS_OFF=%s", getenv("TS_OFF"));
#endif
	return env;
}

static int child_prepare(struct plan *p, pid_t parent, struct report *r)
{
	const struct spawn_request *q = p->q;
	struct confine_limits l = q->limits;
	close(p->status[0]);
	if (tie(p, parent, &r->e) || confine_enter(p->got, &r->e))
		return -1;
	if (!(q->flags & SPAWN_SAME_SESSION) && setsid() < 0)
		return err_sys(&r->e, "cannot start a session");
	if (table_set(p, &r->e))
		return -1;
	if (q->cwd && chdir(q->cwd))
		return err_sys(&r->e, "cannot enter '%s'", q->cwd);
	l.file_bytes = p->file_bytes;
	if (confine_limits_apply(&l, &r->e))
		return -1;
	if (!q->confine)
		return 0;
	struct confine_report got;
	if (confine_apply(q->confine, p->got, &got, &r->e))
		return -1;
	memcpy(r->layers, got.layers, sizeof r->layers);
	return 0;
}

static void signals_default(const struct plan *p)
{
	signal(SIGPIPE, SIG_DFL);
	/* a full spill file should cut the log, not end the program */
	signal(SIGXFSZ, p->file_bytes != p->q->limits.file_bytes ? SIG_IGN : SIG_DFL);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void child_run(struct plan *p, pid_t parent)
{
	struct report r;
	memset(&r, 0, sizeof r);
	char **env = env_make(p);
	signals_default(p);
	r.failed = child_prepare(p, parent, &r) != 0;
	if (!r.failed && r.layers[0] && write(p->status[1], &r, sizeof r) != (ssize_t)sizeof r)
		_exit(EX_SYS);
	if (!r.failed) {
		execve(p->exe, (char *const *)p->q->argv, env);
		err_sys(&r.e, "cannot start '%s'", p->q->argv[0]);
		if (errno == ENOENT || errno == EACCES || errno == ENOEXEC)
			r.e.code = EX_NOENV;
		r.failed = 1;
	}
	if (write(p->status[1], &r, sizeof r) < 0)
		_exit(EX_SYS);
	_exit(EX_SYS);
}

/* --- after the fork --- */

/* Returns when the child has called exec or failed to. */
static int report_read(const struct plan *p, struct spawn_proc *s, struct err *e)
{
	struct report r;
	int rc = 0;
	for (;;) {
		ssize_t n = read(p->status[0], &r, sizeof r);
		if (n < 0 && errno == EINTR)
			continue;
		if (n != (ssize_t)sizeof r)
			break;
		memcpy(s->layers, r.layers, sizeof s->layers);
		s->layers[CONFINE_LIST - 1] = '\0';
		if (r.failed) {
			r.e.text[sizeof r.e.text - 1] = '\0';
			rc = err_set(e, r.e.code ? r.e.code : EX_SYS, "%s: %s", p->q->argv[0], r.e.text);
			/* the exec error names the program already */
			if (strncmp(r.e.text, "cannot start ", 13) == 0)
				err_set(e, r.e.code, "%s", r.e.text);
		}
	}
	return rc;
}

static void proc_init(struct spawn_proc *s, const struct spawn_request *q)
{
	memset(s, 0, sizeof *s);
	s->pidfd = s->out_fd = s->err_fd = -1;
	s->out_cap = q->out_cap ? q->out_cap : CAP_DEFAULT;
	s->err_cap = q->err_cap ? q->err_cap : CAP_DEFAULT;
	s->group = !(q->flags & SPAWN_SAME_SESSION);
	s->cpu_s = q->limits.cpu_s;
	s->oom = spawn_oom_kills();
}

static int launch(struct plan *p, struct spawn_proc *s, struct err *e)
{
	pid_t parent = getpid();
	sigset_t all;
	sigfillset(&all);
	/* who started us may have told us to ignore it, and then nothing could be waited for */
	signal(SIGCHLD, SIG_DFL);
	/* no handler of ours may run in the copy */
	sigprocmask(SIG_BLOCK, &all, &p->mask);
	const struct confine *c = p->q->confine;
	unsigned wanted = p->q->namespaces | (c ? c->namespaces : 0);
	if (c && c->network)
		wanted &= ~(unsigned)CONFINE_NS_NET;
	pid_t pid = confine_fork(wanted, &p->got);
	if (pid == 0)
		child_run(p, parent);
	int saved = errno;
	sigprocmask(SIG_SETMASK, &p->mask, NULL);
	errno = saved;
	if (pid < 0)
		return err_sys(e, "cannot fork for '%s'", p->q->argv[0]);
	s->pid = pid;
	close(p->status[1]);
	p->status[1] = -1;
	s->started = spawn_now();
	s->deadline = p->q->wall_s > 0 ? s->started + p->q->wall_s : 0;
	s->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return report_read(p, s, e);
}

int spawn_start(const struct spawn_request *q, struct spawn_proc *s, struct err *e)
{
	struct plan p = {.q = q, .status = {-1, -1}};
	proc_init(s, q);
	int rc = plan_make(&p, s, e);
	if (rc == 0)
		rc = launch(&p, s, e);
	plan_close(&p);
	if (p.status[0] >= 0)
		close(p.status[0]);
	if (p.status[1] >= 0)
		close(p.status[1]);
	if (rc) {
		if (s->pid)
			waitpid(s->pid, NULL, 0);
		s->pid = 0;
		spawn_close(s);
	}
	return rc;
}

int spawn_tool(const char *name, char *path, size_t size, struct err *e)
{
	static const char *const places[] = {"", "../bin/", "../../bin/"};
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (n < 0)
		return err_sys(e, "cannot read '/proc/self/exe'");
	self[n] = '\0';
	char *slash = strrchr(self, '/');
	slash[1] = '\0';
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		char found[PATH_MAX], real[PATH_MAX];
		if (snprintf(found, sizeof found, "%s%s%s", self, places[i], name) < PATH_MAX &&
		    access(found, X_OK) == 0 && realpath(found, real) &&
		    (size_t)snprintf(path, size, "%s", real) < size)
			return 0;
	}
	return err_set(e, EX_NOENV, "cannot find the program '%s' near '%s'; run make", name, self);
}
