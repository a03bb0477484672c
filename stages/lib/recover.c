/*
 * recover.c - see runs.h: what killed programs left behind is put right before a run goes on.
 *
 * Nothing is deleted but temporary files whose maker is dead and what a killed git leaves in the
 * history, which only our own git uses. Bad artefacts are moved to trials/NNNN/bad/.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runs.h"

#include "file.h"
#include "ledger.h"
#include "record.h"
#include "verdict.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "NAME.tmp.PID" whose process is gone. A living one may be a client storing a paid reply. */
static int is_dead_temp(const char *name)
{
	const char *t = strstr(name, ".tmp.");
	if (!t)
		return 0;
	long pid = strtol(t + 5, NULL, 10);
	return pid <= 0 || (kill((pid_t)pid, 0) != 0 && errno == ESRCH);
}

/* A lock, or a pack or object that was never finished. */
static int is_git_left(const char *name)
{
	size_t n = strlen(name);
	return (n > 5 && strcmp(name + n - 5, ".lock") == 0) || strncmp(name, "tmp_", 4) == 0;
}

/* Remove what `want` names in `dir` and below, no symlink followed. Best effort. */
static void sweep(const char *dir, int depth, int (*want)(const char *))
{
	DIR *d = opendir(dir);
	struct dirent *f;
	if (!d)
		return;
	while ((f = readdir(d))) {
		char path[1024];
		struct stat st;
		if (strcmp(f->d_name, ".") == 0 || strcmp(f->d_name, "..") == 0 ||
		    (f->d_type != DT_DIR && f->d_type != DT_UNKNOWN && !want(f->d_name)) ||
		    snprintf(path, sizeof path, "%s/%s", dir, f->d_name) >= (int)sizeof path ||
		    lstat(path, &st))
			continue;
		if (want(f->d_name)) {
			if (S_ISDIR(st.st_mode))
				dir_remove(path, NULL);
			else
				unlink(path);
		} else if (S_ISDIR(st.st_mode) && depth > 0) {
			sweep(path, depth - 1, want);
		}
	}
	closedir(d);
}

static int move_bad(const char *id, enum step step, struct err *e)
{
	char from[TRIAL_PATH], to[TRIAL_PATH], dir[TRIAL_PATH], name[80];
	trial_step_path(from, id, step);
	trial_path(dir, id, "bad");
	if (dir_make(dir, e))
		return -1;
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "bad/%s.json.%d", step_info(step)->name, i);
		for (char *p = name + 4; *p; p++)
			if (*p == '/')
				*p = '-';
		trial_path(to, id, name);
		if (!file_exists(to))
			break;
	}
	if (rename(from, to))
		return err_sys(e, "cannot move '%s' to '%s'", from, to);
	return 0;
}

/*
 * Verdicts of an open trial, in order: each must be readable, follow a verdict that is there,
 * and name it. From the first that does not, all later ones are moved away: they were made from
 * something that is no longer there. A broken promote is handled like any other.
 */
static int recover_trial(const char *id, int *moved, struct err *e)
{
	char before[HASH_HEX] = "", path[TRIAL_PATH];
	int broken = 0;
	for (int i = 0; i < STEP_COUNT; i++) {
		struct verdict_in in;
		trial_step_path(path, id, (enum step)i);
		if (!file_exists(path)) {
			broken = 1;
			continue;
		}
		int good = !broken && verdict_read(id, (enum step)i, &in, NULL) == 0;
		if (good) {
			const char *up = verdict_in_input(&in, "upstream");
			good = i == 0 || (up && strcmp(up, before) == 0);
			memcpy(before, in.sha, sizeof before);
			verdict_in_free(&in);
		}
		if (good)
			continue;
		broken = 1;
		if (move_bad(id, (enum step)i, e))
			return -1;
		++*moved;
	}
	return 0;
}

static int is_closed(const char *id)
{
	struct verdict_in in;
	if (verdict_read(id, STEP_PROMOTE, &in, NULL))
		return 0;
	verdict_in_free(&in);
	return 1;
}

int recover_run(const struct run *r, int *moved, struct err *e)
{
	char path[TRIAL_PATH], id[TRIAL_ID];
	*moved = 0;
	run_path(path, r->name, "");
	sweep(path, 0, is_dead_temp);
	for (int64_t i = 0; run_trial(r, i, id) == 0; i++) {
		if (is_closed(id))
			continue;
		trial_path(path, id, "");
		sweep(path, 3, is_dead_temp);
		if (recover_trial(id, moved, e))
			return -1;
	}
	return 0;
}

int recover_record(int *rolled, struct err *e)
{
	sweep("trials/history.git", 0, is_git_left);
	sweep("trials/history.git/refs", 6, is_git_left);
	sweep("trials/history.git/objects/pack", 0, is_git_left);
	sweep("trials/runs", 0, is_dead_temp); /* a run that was never finished making */
	sweep("reports", 1, is_dead_temp);
	sweep("trials/.lock", 0, is_dead_temp);
	sweep("champion", 2, is_dead_temp);
	sweep("trials", 0, is_dead_temp);
	return record_catch_up(rolled, e);
}

int recover_end(const struct run *r, struct err *e)
{
	char path[TRIAL_PATH], id[TRIAL_ID];
	int marked, rolled;
	run_path(path, r->name, "");
	sweep(path, 0, is_dead_temp);
	for (int64_t i = 0; run_trial(r, i, id) == 0; i++) {
		trial_path(path, id, "");
		sweep(path, 3, is_dead_temp);
	}
	sweep("trials/history.git/objects", 1, is_git_left);
	return ledger_interrupt(r, &marked, e) || recover_record(&rolled, e) ? -1 : 0;
}
