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

#include "file.h"
#include "json.h"
#include "spawn.h"

#include <stdio.h>
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

static const char *const slots[] = {"kernel.cu", "plan.json"};

static void put_files(struct buf *b)
{
	for (int i = 0; i < 2; i++)
		buf_addf(b, "M 100644 :%d %s\n", i + 1, slots[i]);
}

/* 1: the sources are not those of the verdict (its chain is broken, and it says so): no branch. */
static int put_blobs(struct buf *b, const struct closed *c)
{
	char path[TRIAL_PATH], file[64], sha[2][HASH_HEX], both[HASH_HEX];
	struct buf text = BUF_INIT;
	for (int i = 0; i < 2; i++) {
		snprintf(file, sizeof file, "%.8s%scandidate/%s", c->dir, *c->dir ? "/" : "",
			 slots[i]);
		trial_path(path, c->trial.id, file);
		if (file_read(path, (size_t)16 << 20, &text, NULL)) {
			buf_free(&text);
			return 1;
		}
		hash_hex(buf_str(&text), text.len, sha[i]);
		buf_addf(b, "blob\nmark :%d\n", i + 1);
		put_data(b, buf_str(&text), text.len);
	}
	buf_free(&text);
	trial_candidate_sha(sha[0], sha[1], both);
	return strcmp(both, c->candidate) != 0;
}

static void put_stream(struct buf *b, const struct closed *c)
{
	char ref[TRIAL_PATH], subject[256];
	const char *word = c->kept ? "keep" : verdict_kind_name(c->promote.kind);
	snprintf(subject, sizeof subject, "trial %s: %s%s%.160s", c->trial.id, word,
		 *c->title ? ": " : "", c->title);
	snprintf(ref, sizeof ref, "heads/trial/%s", c->trial.id);
	put_commit(b, c, ref, 3, subject);
	if (c->parent && have_ref("heads/trial", c->parent))
		buf_addf(b, "from refs/heads/trial/%s^0\n", c->parent);
	put_files(b);
	if (!c->kept)
		return;
	snprintf(ref, sizeof ref, "heads/champion/%s/%s", c->trial.spec, c->trial.device);
	snprintf(subject, sizeof subject, "keep trial %s on %s/%s", c->trial.id, c->trial.spec,
		 c->trial.device);
	put_commit(b, c, ref, 4, subject);
	if (c->before && have_ref("keeps", c->before))
		buf_addf(b, "from refs/keeps/%s^0\nmerge :3\n", c->before);
	else
		buf_adds(b, "from :3\n");
	put_files(b);
	buf_addf(b, "reset refs/keeps/%s\nfrom :4\n\n", c->trial.id);
}

int record_history(const struct closed *c, struct err *e)
{
	static const char *const argv[] = {"git", "-c", "core.fsync=all", "fast-import", "--quiet",
		"--done", NULL};
	struct buf stream = BUF_INIT;
	if (!c->candidate) /* the proposal never became a candidate */
		return 0;
	if (have_ref("heads/trial", c->trial.id) &&
	    (!c->kept || have_ref("keeps", c->trial.id)))
		return 0;
	if (make_repository(e))
		return -1;
	int rc = 0;
	if (put_blobs(&stream, c) == 0) {
		put_stream(&stream, c);
		buf_adds(&stream, "done\n");
		rc = git(argv, &stream, e);
	}
	buf_free(&stream);
	return rc;
}
