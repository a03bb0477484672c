/*
 * runs_drive.c - see runs.h: the one make over the trials of a run.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runs.h"

#include "buf.h"
#include "file.h"
#include "json.h"
#include "lock.h"
#include "spawn.h"
#include "summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Descriptors of make's jobserver, named in MAKEFLAGS, go on to the make we start. */
static size_t jobserver(const char *flags, struct spawn_fd fds[2])
{
	const char *last = NULL, *p = flags;
	int r, w;
	while ((p = strstr(p, "--jobserver-auth="))) {
		p += strlen("--jobserver-auth=");
		last = p;
	}
	if (!last || sscanf(last, "%d,%d", &r, &w) != 2)
		return 0;
	fds[0] = (struct spawn_fd){r, r};
	fds[1] = (struct spawn_fd){w, w};
	return 2;
}

/* A window of one is a chain. With one job make waits for each step where it is; with more it walks
 * the whole graph again after every step, which at 5,000 trials costs as much as the step. */
static long long jobs(const struct run *r)
{
	return r->width > 1 ? (long long)r->width + 1 : 1;
}

/* How many trials of the run are closed, from `known` on: they close in order. */
static int64_t closed_of(const struct run *r, int64_t known)
{
	char id[TRIAL_ID], path[TRIAL_PATH];
	for (; run_trial(r, known, id) == 0; known++) {
		trial_step_path(path, id, STEP_PROMOTE);
		if (!file_exists(path))
			break;
	}
	return known;
}

/* While make works: the report follows, at most every two seconds and never beside a timing (on emu
 * the lane is the processor). A report that fails stops nothing. 0 ended, -1 error. */
static int wait_and_report(const struct run *r, const char *bin, struct spawn_proc *proc,
			   struct spawn_result *res, struct err *e)
{
	const double step_s = 0.25, least_s = 2;
	char lane[TRIAL_NAME + 8], text[96];
	int64_t closed = closed_of(r, 0), shown = closed;
	double since = 0;
	int running, shares = strcmp(r->device, "emu") == 0;
	snprintf(lane, sizeof lane, "lane-%.64s", r->device);
	while ((running = spawn_wait(proc, step_s, res, e)) == 1) {
		since += step_s;
		closed = closed_of(r, closed);
		if (closed == shown || since < least_s || (shares && lock_holder(lane)))
			continue;
		struct err ignored;
		snprintf(text, sizeof text, "%s: %lld of %lld trials closed", r->name, (long long)closed,
			 (long long)r->n);
		summary_page(bin, text, &ignored);
		shown = closed;
		since = 0;
	}
	return running;
}

int runs_drive(const struct run *r, const char *bin, volatile pid_t *pid, struct err *e)
{
	const char *make = getenv("MAKE"), *flags = getenv("MAKEFLAGS");
	static char *clean;
	clean = xstrdup(flags ? flags : "");
	char *over = strstr(clean, "-- ");
	if (over)
		*over = '\0'; /* the outer make's NAME=value settings */
	struct spawn_fd fds[2];
	static const char *argv[10]; /* these strings live as long as we do */
	int n = 0;
	argv[n++] = make && *make ? make : "make";
	argv[n++] = "-f";
	argv[n++] = "tools/make/trials.mk";
	argv[n++] = xasprintf("TS_RUN=trials/runs/%s", r->name);
	argv[n++] = xasprintf("TS_RUNNER=%s/run", bin);
	size_t shared = jobserver(clean, fds);
	if (!strstr(clean, "--jobserver") && !strstr(clean, "-j"))
		argv[n++] = xasprintf("-j%lld", jobs(r));
	argv[n] = NULL;
	char last[TRIAL_ID];
	run_trial(r, r->n - 1, last);
	setenv("MAKEFLAGS", clean, 1);
	unsetenv("MAKEOVERRIDES");
	unsetenv("MFLAGS");
	setenv("TS_LAST", last, 1);
	extern char **environ;
	struct spawn_request q = {
		.argv = argv, .env = (const char *const *)environ, .fds = fds, .fd_count = shared,
		.out = SPAWN_KEEP, .err = SPAWN_KEEP, .flags = SPAWN_SAME_SESSION,
	};
	struct spawn_proc proc;
	struct spawn_result res;
	if (spawn_start(&q, &proc, e))
		return -1;
	*pid = proc.pid;
	if (wait_and_report(r, bin, &proc, &res, e) < 0)
		return -1;
	*pid = 0;
	return res.code >= 0 ? res.code : 128 + res.signal;
}
