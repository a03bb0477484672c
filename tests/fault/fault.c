/*
 * fault.c - an LD_PRELOAD library that makes a system call fail: write, fsync, rename or close.
 *
 * TS_FAULT=CALL:ERRNO:PART makes CALL fail with ERRNO (a number) on files whose path contains
 * PART. TS_FAULT_AT=CALL:PART kills the process (SIGKILL) just before such a call, which shows what a
 * crash at that instant leaves; the call "renamed" is the instant after a rename.
 *
 * SPDX-License-Identifier: MIT
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int named(const char *rule, const char *call, const char *path, const char **rest)
{
	size_t n = strlen(call);
	if (!rule || strncmp(rule, call, n) != 0 || rule[n] != ':')
		return 0;
	*rest = rule + n + 1;
	const char *part = strrchr(*rest, ':');
	return strstr(path, part ? part + 1 : *rest) != NULL;
}

/* Nonzero when the call must fail; errno is set. Does not return when it must kill. */
static int strike(const char *call, const char *path)
{
	const char *rest;
	if (named(getenv("TS_FAULT_AT"), call, path, &rest))
		raise(SIGKILL);
	if (!named(getenv("TS_FAULT"), call, path, &rest))
		return 0;
	errno = atoi(rest);
	return 1;
}

static const char *path_of(int fd, char *out, size_t size)
{
	char link[40];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, out, size - 1);
	out[n > 0 ? n : 0] = '\0';
	return out;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *data, size_t n)
{
	char path[4096];
	return strike("write", path_of(fd, path, sizeof path)) ? -1 : REAL(write)(fd, data, n);
}

int fsync(int fd)
{
	char path[4096];
	return strike("fsync", path_of(fd, path, sizeof path)) ? -1 : REAL(fsync)(fd);
}

int close(int fd)
{
	char path[4096];
	int bad = strike("close", path_of(fd, path, sizeof path)), saved = errno;
	int rc = REAL(close)(fd);
	errno = bad ? saved : errno;
	return bad ? -1 : rc;
}

int rename(const char *from, const char *to)
{
	if (strike("rename", to))
		return -1;
	int rc = REAL(rename)(from, to);
	if (rc == 0)
		strike("renamed", to); /* the name is there, the folder is not synced yet */
	return rc;
}
