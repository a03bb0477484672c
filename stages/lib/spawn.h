/*
 * spawn.h - the one way to start a process.
 *
 * A request is an argument array (never a shell), an explicit environment, an explicit map of
 * descriptors (all others are closed), a directory, limits and, if wanted, a confinement that is
 * applied between fork and exec. The process gets its own session and dies when we do, however we
 * die (parent death signal), so Ctrl-C on us leaves nothing behind.
 *
 * Life cycle: spawn_run() does all of it. Or spawn_start() -> [spawn_wait(timeout)]... or
 * spawn_kill() -> spawn_wait(-1). Every started process must be waited for: that reaps it, kills
 * what is left of its group and closes its descriptors. Free a result with spawn_result_free().
 *
 * Errors: -1 when the process could not be started (err names the program; EX_NOENV when it does
 * not exist). A program that fails is a result, not an error: look at code, signal, timed_out.
 * A captured pipe is read only inside spawn_wait/spawn_run; use SPAWN_SPILL for a process that
 * talks while we do something else. Single-threaded callers only.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_SPAWN_H
#define TS_SPAWN_H

#include "buf.h"
#include "confine.h"
#include "err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SPAWN_PATH "/usr/bin:/bin" /* where bare program names are looked up, and the default PATH */

struct spawn_fd {
	int parent; /* our descriptor; stays open here */
	int child;  /* its number there; 0, 1, 2 override the settings below */
};

enum spawn_to {
	SPAWN_NULL,    /* /dev/null */
	SPAWN_CAPTURE, /* pipe, read by spawn_wait up to the cap, the rest is thrown away */
	SPAWN_SPILL,   /* memory file, read back at the end; bounded by limits.file_bytes or the cap */
	SPAWN_KEEP,    /* ours */
};

enum spawn_flags {
	SPAWN_SAME_SESSION = 1, /* no setsid: stays in our group (inside a box that is killed whole) */
	SPAWN_STDOUT_TOO = 2,   /* stderr goes where stdout goes */
};

struct spawn_request {
	const char *const *argv;  /* NULL-terminated; argv[0] with a slash is a path, else looked up */
	const char *const *env;   /* "K=V", NULL-terminated; NULL: PATH and LC_ALL=C only */
	const char *cwd;          /* NULL: ours */
	const struct spawn_fd *fds;
	size_t fd_count;
	const void *in;           /* bytes for stdin; NULL: /dev/null */
	size_t in_len;
	enum spawn_to out, err;
	size_t out_cap, err_cap;  /* 0: 1 MiB */
	double wall_s;            /* 0: none. When over, the group is killed */
	struct confine_limits limits;
	const struct confine *confine; /* NULL: none */
	unsigned namespaces;      /* enum confine_ns for a program that confines itself */
	unsigned flags;
};

struct spawn_result {
	int code;          /* exit code; -1 when a signal ended it */
	int signal;        /* 0 or the signal */
	int timed_out;     /* we killed it at wall_s */
	int outside;       /* somebody else killed it: not we, not its limits, not want of memory */
	int out_over, err_over; /* more came than the cap */
	struct buf out, err;
	double wall_s, user_s, sys_s; /* user and sys include its reaped children */
	uint64_t max_rss;  /* bytes, the largest single process */
	char layers[CONFINE_LIST]; /* of `confine`; "" without */
};

struct spawn_proc {
	pid_t pid; /* 0 once reaped */
	/* private */
	int pidfd, out_fd, err_fd;
	double started, deadline;
	long oom;
	uint64_t cpu_s;
	size_t out_cap, err_cap;
	int out_spill, err_spill, group, killed, timed_out;
	int status, done;
	double user_s, sys_s, ended;
	uint64_t max_rss;
	int out_over, err_over;
	struct buf out, err;
	char layers[CONFINE_LIST];
};

int spawn_run(const struct spawn_request *q, struct spawn_result *r, struct err *e);
int spawn_start(const struct spawn_request *q, struct spawn_proc *p, struct err *e);
/* 0: ended, *r filled; 1: still running after timeout_s (negative: wait for ever); -1: error. */
int spawn_wait(struct spawn_proc *p, double timeout_s, struct spawn_result *r, struct err *e);
void spawn_kill(struct spawn_proc *p); /* SIGKILL to the group; still wait for it */
int spawn_stopped(const struct spawn_proc *p); /* 1: somebody stopped it (SIGSTOP), so it cannot answer */
void spawn_result_free(struct spawn_result *r);

/* How it ended, in words: "exit 0", "exit 3", "signal 11 (Segmentation fault)", "time limit". */
const char *spawn_words(const struct spawn_result *r, char out[96]);

/* The program `name` that belongs to this build: next to our own executable, or in ../bin or
 * ../../bin from it (tests). Found from /proc/self/exe, so no setting can redirect it. */
int spawn_tool(const char *name, char *path, size_t size, struct err *e);

#endif
