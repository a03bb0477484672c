/*
 * fuzz_verdict.c - any bytes as trials/0001/judge.json, through the reader every stage uses.
 *
 * Works in a directory of its own in TMPDIR (memory where there is some), because the reader takes a
 * path: what is opened, and that it is this trial's step, is part of what it checks.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "verdict.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char home[64];
static int there = -1, back = -1;

static void leave(void)
{
	unlinkat(there, "trials/0001/judge.json", 0);
	unlinkat(there, "trials/0001", AT_REMOVEDIR);
	unlinkat(there, "trials", AT_REMOVEDIR);
	rmdir(home);
}

static void enter(void)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(home, sizeof home, "%.30s/fuzz_verdict.XXXXXX",
		 tmp ? tmp : access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	back = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(back >= 0 && mkdtemp(home));
	there = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(there >= 0 && !mkdirat(there, "trials", 0700) && !mkdirat(there, "trials/0001", 0700));
	atexit(leave);
}

/* The caller's own paths are relative: its working directory is put back. */
static int read_there(struct verdict_in *in, struct err *e)
{
	MUST(!fchdir(there));
	int r = verdict_read("0001", STEP_JUDGE, in, e);
	MUST(!fchdir(back));
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct verdict_in in;
	struct err e = {0};
	if (!home[0])
		enter();
	int fd = openat(there, "trials/0001/judge.json", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size && !close(fd));
	memset(&in, 0, sizeof in);
	if (read_there(&in, &e)) {
		MUST(e.text[0] && e.code == EX_BADINPUT);
		return 0;
	}
	MUST(in.kind != V_NONE && in.code && in.message && in.run && in.inputs && in.outputs && in.data);
	MUST(in.len == size && !memcmp(in.text, data, size));
	const char *sha = verdict_in_input(&in, "kernel");
	MUST(!sha || strlen(sha) == 64);
	struct buf body = BUF_INIT;
	char mac[HASH_HEX];
	if (!verdict_body(&in, &body, mac, &e))
		MUST(strlen(mac) == 64 && body.len < size);
	buf_free(&body);
	verdict_in_free(&in);
	return 0;
}
