/*
 * err.h - how every module reports failure.
 *
 * A library function returns 0 (or a pointer) on success and -1 (or NULL) on failure, after
 * filling the caller's `struct err`: one line in user terms saying what was attempted and on
 * which file, and the exit code that a program ending on it must use. No library function
 * prints or exits; only programs do, through die().
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ERR_H
#define TS_ERR_H

#include <stdarg.h>
#include <stdnoreturn.h>

enum exit_code {
	EX_DONE = 0,      /* verdict written, whatever the verdict */
	EX_BADUSE = 2,    /* wrong command line */
	EX_BADINPUT = 3,  /* an input artefact is malformed */
	EX_NOENV = 4,     /* compiler, GPU, library or setting missing */
	EX_HARNESS = 70,  /* our own code is at fault */
	EX_AGAIN = 75,    /* try again later: lock held, network, rate limit */
	EX_SYS = 111,     /* a system call failed */
};

struct err {
	int code;       /* enum exit_code */
	char text[480]; /* one line, lower case, no full stop, no newline */
};

/* Fill `e` (may be NULL); worth -1. err_sys appends ": strerror(errno)" and uses EX_SYS. The value is
 * visible to compilers and analysers, so that they know which paths end at an error. */
#define err_set(e, code, ...) err_minus_one(err_put(e, code, __VA_ARGS__))
#define err_sys(e, ...) err_minus_one(err_put_sys(e, __VA_ARGS__))

int err_put(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int err_put_sys(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline int err_minus_one(int put)
{
	(void)put;
	return -1;
}

/* Programs only. prog_name() names the program in every message ("bench: ..."). */
void prog_name(const char *argv0);
const char *prog_get(void);
noreturn void die(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
noreturn void die_err(const struct err *e);
void warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
