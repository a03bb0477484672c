/*
 * fuzz_record.c - any bytes as a file of the record, through the reader that stages use.
 *
 * The first byte says which: r run.json, t trial.json, l ledger.jsonl, f failures.jsonl, n log.jsonl,
 * p a profile of prompts/profiles/. The readers take paths, so each gets a small tree of its own.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "failure.h"
#include "ledger.h"
#include "profile.h"
#include "record.h"
#include "utf8.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const folders[] = {"trials", "trials/0001", "trials/runs", "trials/runs/r0001", "prompts",
				      "prompts/profiles"};
static const struct {
	char kind;
	const char *path;
} files[] = {
	{'r', "trials/runs/r0001/run.json"}, {'t', "trials/0001/trial.json"}, {'l', "trials/runs/r0001/ledger.jsonl"},
	{'f', "trials/0001/failures.jsonl"}, {'n', "trials/log.jsonl"},       {'p', "prompts/profiles/x.json"},
};
enum { FOLDERS = sizeof folders / sizeof *folders, FILES = sizeof files / sizeof *files };

static char home[64];
static int there = -1, back = -1;

static void leave(void)
{
	for (int i = 0; i < FILES; i++)
		unlinkat(there, files[i].path, 0);
	for (int i = FOLDERS - 1; i >= 0; i--)
		unlinkat(there, folders[i], AT_REMOVEDIR);
	rmdir(home);
}

static void enter(void)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(home, sizeof home, "%.30s/fuzz_record.XXXXXX",
		 tmp ? tmp : access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	back = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(back >= 0 && mkdtemp(home));
	there = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(there >= 0);
	for (int i = 0; i < FOLDERS; i++)
		MUST(!mkdirat(there, folders[i], 0700));
	atexit(leave);
}

static void read_run(struct err *e)
{
	struct run r;
	if (run_read("r0001", &r, e)) {
		MUST(e->text[0]);
		return;
	}
	MUST(r.spec && r.device && r.proposer && r.key_sha256 && r.n >= 0 && r.width > 0);
	run_free(&r);
}

static void read_trial(struct err *e)
{
	struct trial t;
	if (trial_read("0001", &t, e)) {
		MUST(e->text[0]);
		return;
	}
	MUST(!strcmp(t.id, "0001") && t.run[0]);
	trial_free(&t);
}

static void read_ledger(struct err *e)
{
	struct run r = {.name = "r0001"};
	struct ledger_amount a;
	if (ledger_total(&r, &a, e))
		MUST(e->text[0]);
	else
		MUST(llabs(a.calls) <= 9000000000000000 && llabs(a.tokens_in) <= 9000000000000000);
	if (ledger_reserved(&r, "0001-x", &a, e) > 0)
		MUST(llabs(a.tokens_out) <= 9000000000000000);
}

static void read_profile(struct err *e)
{
	struct profile p;
	struct buf body = BUF_INIT;
	struct chat_usage u = {10, 10, 20};
	int known;
	if (profile_load("x", "m", NULL, &p, e)) {
		MUST(e->text[0]);
		return;
	}
	profile_body(&p, "s", "u", 1, &body);
	MUST(body.len && utf8_valid(body.data, body.len));
	profile_cost(&p, &u, &known);
	for (int i = 0; p.headers[i]; i++)
		MUST(i < 16);
	buf_free(&body);
	profile_free(&p);
}

static void read_kind(char kind)
{
	struct err e = {0};
	char message[480];
	long number = 0;
	int child;
	switch (kind) {
	case 'r':
		read_run(&e);
		break;
	case 't':
		read_trial(&e);
		break;
	case 'l':
		read_ledger(&e);
		break;
	case 'f':
		MUST(failure_count("0001", STEP_JUDGE, "up", "tool", &child, message) >= 0);
		MUST(memchr(message, 0, sizeof message));
		break;
	case 'n':
		record_last(&number, &e);
		break;
	default:
		read_profile(&e);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int k = 0;
	if (!home[0])
		enter();
	while (size && k < FILES && files[k].kind != (char)data[0])
		k++;
	if (!size || k == FILES)
		return 0;
	int fd = openat(there, files[k].path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	MUST(fd >= 0 && write(fd, data + 1, size - 1) == (ssize_t)size - 1 && !close(fd));
	/* the caller's own paths are relative: its working directory is put back */
	MUST(!fchdir(there));
	read_kind(files[k].kind);
	MUST(!fchdir(back));
	return 0;
}
