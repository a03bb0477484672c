/*
 * child_call.h - start an emulated image in a confined child (stages/roles/child.c).
 *
 * The image file is read once, hashed, compared with what the verdicts say and copied into a
 * sealed memory file; that copy is what runs, so the file may change meanwhile. The child sees
 * only the descriptors of stages/emu/protocol.h: 3 and 4 (control, as pipes made here) and those of
 * `fds` (memory). stdin, stdout are /dev/null; stderr is a bounded memory file, given back as log.
 *
 * Life cycle: child_start -> talk over c.to / c.from -> child_kill or close(c.to) -> child_wait.
 * Always child_wait, also after an error of the talk: it reaps and closes. child_start makes this
 * process ignore SIGPIPE, so that writing to a dead child is an error (EPIPE) and no more.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_CHILD_CALL_H
#define TS_CHILD_CALL_H

#include "buf.h"
#include "confine.h"
#include "err.h"
#include "spawn.h"

#include <stddef.h>
#include <stdint.h>

/* Descriptors of the launcher, above every limit on files it sets: the image can never make its
 * own descriptor of the number that may be executed. */
enum { CHILD_FD_IMAGE = 200, CHILD_FD_REPORT = 201, CHILD_FILES = 64 };

#define CHILD_IMAGE_MAX (64u << 20) /* largest image, bytes */
#define CHILD_LOG_MAX (64u << 10)   /* bytes of stderr kept */

struct child_request {
	const char *image;  /* path of the artefact */
	const char *sha256; /* what it must hash to */
	int sanitize;       /* 1: a sanitize or race image, whose shadow memory is huge */
	const struct spawn_fd *fds; /* memory: {ours, 5..7} */
	size_t fd_count;
	const char *const *args; /* extra arguments for the image, NULL-terminated, or NULL */
	double wall_s;      /* 0: none; enforced by child_wait and child_over */
	uint64_t cpu_s;     /* 0: 60 */
	uint64_t memory;    /* 0: 4 GiB; fast: private memory it may have; both: resident, by child_over */
	int cpu;            /* pin to this CPU; negative: no */
};

struct child {
	struct spawn_proc proc;
	int to, from; /* our ends of descriptors 3 and 4; -1 once closed */
	uint64_t memory, cpu_s;
	int sanitize, over_memory;
	char isolation[CONFINE_LIST];
};

struct child_end {
	int code;    /* exit code, -1 when a signal ended it */
	int signal;
	int timed_out;
	int outside;     /* 1: somebody else killed it (spawn.h) */
	int forbidden;   /* 1: it made a system call that the filter kills (SIGSYS) */
	char words[160]; /* "exit 0", "signal 11 (Segmentation fault)", "forbidden system call", ... */
	double user_s, sys_s;
	uint64_t max_rss;
	struct buf log; /* its stderr: untrusted text */
};

int child_start(const struct child_request *q, struct child *c, struct err *e);
void child_kill(struct child *c);
/* 0: ended and reaped, *end filled; 1: still running after timeout_s; -1: error. */
int child_wait(struct child *c, double timeout_s, struct child_end *end, struct err *e);
void child_end_free(struct child_end *end);
/* 1 when a child of this process was killed by somebody else: what failed then says nothing yet. */
int child_was_killed(void);

/* CPU seconds the child has used so far, all threads: 0 and *out, or -1 when it is gone. Two
 * readings around an idle gap show work that goes on after the reply. */
int child_cpu(const struct child *c, double *out);
/* 1 when it is past its wall time or its resident memory limit (and kill it then), else 0. */
int child_over(struct child *c);

#endif
