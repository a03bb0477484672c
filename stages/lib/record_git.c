/*
 * record_git.c - the history: trials/history.git, a bare repository of our own.
 *
 * One `git fast-import` per trial, with a stream that is a function of the record alone (dates
 * included), so that importing a trial twice makes the same objects and refs. Reads the sources
 * of the trial. Never touches the repository Touchstone itself may lie in: git is started with
 * GIT_DIR set and without any configuration of the user's.
 *
 * Refs: heads/trial/NNNN, heads/champion/SPEC/DEVICE, keeps/NNNN (the merge of a kept trial).
 *
 * SPDX-License-Identifier: MIT
 */
#include "record.h"

#include "engine_files.h"
#include "file.h"
#include "json.h"
#include "spawn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GIT_DIR "trials/history.git"

static const char *const git_env[] = {
	"PATH=" SPAWN_PATH, "LC_ALL=C", "HOME=/nonexistent", "GIT_DIR=" GIT_DIR,
	"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", NULL,
};

static int git(const char *const *argv, const struct buf *in, struct err *e)
{
	struct spawn_request q = {
		.argv = argv, .env = git_env, .out = SPAWN_NULL, .err = SPAWN_CAPTURE,
		.in = in ? in->data : NULL, .in_len = in ? in->len : 0, .wall_s = 120,
	};
	struct spawn_result r;
	char words[96];
	if (spawn_run(&q, &r, e))
		return -1;
	int rc = r.code == 0 ? 0
		: err_set(e, r.outside ? EX_AGAIN : EX_HARNESS, "history: git ended with %s: %.200s",
			  spawn_words(&r, words), buf_str(&r.err));
	spawn_result_free(&r);
	return rc;
}

static int have_ref(const char *kind, const char *name)
{
	char path[TRIAL_PATH];
	snprintf(path, sizeof path, GIT_DIR "/refs/%s/%s", kind, name);
	return file_exists(path);
}

static int make_repository(struct err *e)
{
	static const char *const argv[] = {"git", "init", "-q", "--bare", "--template=",
		"--initial-branch=main", GIT_DIR, NULL};
	if (file_exists(GIT_DIR "/HEAD") && file_exists(GIT_DIR "/config"))
		return 0;
	return git(argv, NULL, e);
}

/* Seconds of the trial's start: commits must not depend on when they are imported. */
static long commit_time(const struct closed *c)
{
	struct tm tm = {0};
	const char *s = json_get_str(c->promote.json, "started", "");
	return strptime(s, "%Y-%m-%dT%H:%M:%S", &tm) ? (long)timegm(&tm) : 0;
}

static void put_data(struct buf *b, const char *data, size_t len)
{
	buf_addf(b, "data %zu\n", len);
	buf_add(b, data, len);
	buf_addc(b, '\n');
}

static void put_commit(struct buf *b, const struct closed *c, const char *ref, int mark,
		       const char *subject)
{
	struct buf text = BUF_INIT;
	buf_addf(&text, "%s\n\n%s: %s\n", subject, c->promote.code, c->promote.message);
	buf_addf(&text, "\nspec: %s\ndevice: %s\nrun: %s\npromote: %s\n", c->trial.spec,
		 c->trial.device, c->trial.run, c->promote.sha);
	buf_addf(b, "commit refs/%s\nmark :%d\n", ref, mark);
	buf_addf(b, "committer Touchstone <touchstone@localhost> %ld +0000\n", commit_time(c));
	put_data(b, text.data, text.len);
	buf_free(&text);
}

/* The candidate's files as they lie on disk: of an engine, or the two of a kernel. 1: they cannot be read as one. */
static int read_files(const struct closed *c, struct engine_files *f)
{
	static const char *const slots[] = {"kernel.cu", "plan.json"};
	char sha[2][HASH_HEX], dir[TRIAL_PATH];
	char *folder = xasprintf("%.8s%scandidate", c->dir, *c->dir ? "/" : "");
	trial_path(dir, c->trial.id, folder);
	free(folder);
	char *kernel = xasprintf("%s/kernel.cu", dir);
	const int engine = !file_exists(kernel);
	free(kernel);
	if (engine)
		return engine_files_folder(dir, f, NULL) || strcmp(f->sha, c->candidate) != 0;
	memset(f, 0, sizeof *f);
	for (int i = 0; i < 2; i++, f->n++) {
		char *path = xasprintf("%s/%s", dir, slots[i]);
		const int bad = file_read(path, (size_t)16 << 20, &f->file[i].text, NULL);
		free(path);
		if (bad)
			return 1;
		snprintf(f->file[i].name, sizeof f->file[i].name, "%s", slots[i]);
		hash_hex(buf_str(&f->file[i].text), f->file[i].text.len, sha[i]);
	}
	trial_candidate_sha(sha[0], sha[1], f->sha);
	return strcmp(f->sha, c->candidate) != 0;
}

static void put_blobs(struct buf *b, const struct engine_files *f)
{
	for (int i = 0; i < f->n; i++) {
		buf_addf(b, "blob\nmark :%d\n", i + 1);
		put_data(b, buf_str(&f->file[i].text), f->file[i].text.len);
	}
}

/* The files are these and no others. */
static void put_files(struct buf *b, const struct engine_files *f)
{
	buf_adds(b, "deleteall\n");
	for (int i = 0; i < f->n; i++)
		buf_addf(b, "M 100644 :%d %s\n", i + 1, f->file[i].name);
}

static void put_stream(struct buf *b, const struct closed *c, const struct engine_files *f)
{
	char ref[TRIAL_PATH], subject[256];
	const char *word = c->kept ? "keep" : verdict_kind_name(c->promote.kind);
	snprintf(subject, sizeof subject, "trial %s: %s%s%.160s", c->trial.id, word,
		 *c->title ? ": " : "", c->title);
	snprintf(ref, sizeof ref, "heads/trial/%s", c->trial.id);
	put_commit(b, c, ref, f->n + 1, subject);
	if (c->parent && have_ref("heads/trial", c->parent))
		buf_addf(b, "from refs/heads/trial/%s^0\n", c->parent);
	put_files(b, f);
	if (!c->kept)
		return;
	snprintf(ref, sizeof ref, "heads/champion/%s/%s", c->trial.spec, c->trial.device);
	snprintf(subject, sizeof subject, "keep trial %s on %s/%s", c->trial.id, c->trial.spec,
		 c->trial.device);
	put_commit(b, c, ref, f->n + 2, subject);
	if (c->before && have_ref("keeps", c->before))
		buf_addf(b, "from refs/keeps/%s^0\nmerge :%d\n", c->before, f->n + 1);
	else
		buf_addf(b, "from :%d\n", f->n + 1);
	put_files(b, f);
	buf_addf(b, "reset refs/keeps/%s\nfrom :%d\n\n", c->trial.id, f->n + 2);
}

int record_history(const struct closed *c, struct err *e)
{
	static const char *const argv[] = {"git", "-c", "core.fsync=all", "fast-import", "--quiet",
		"--done", NULL};
	static struct engine_files files; /* large */
	struct buf stream = BUF_INIT;
	if (!c->candidate) /* the proposal never became a candidate */
		return 0;
	if (have_ref("heads/trial", c->trial.id) &&
	    (!c->kept || have_ref("keeps", c->trial.id)))
		return 0;
	if (make_repository(e))
		return -1;
	int rc = 0;
	/* Other sources than the verdict's: its chain is broken, and it says so; no branch. */
	if (read_files(c, &files) == 0) {
		put_blobs(&stream, &files);
		put_stream(&stream, c, &files);
		buf_adds(&stream, "done\n");
		rc = git(argv, &stream, e);
	}
	buf_free(&stream);
	engine_files_free(&files);
	return rc;
}
