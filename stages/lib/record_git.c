/*
 * record_git.c - the history: trials/history.git, a bare repository of our own.
 *
 * Objects and refs are a function of the record alone (dates included), so that making those of a
 * trial twice makes the same ones. Reads the sources of the trial. Never touches the repository
 * Touchstone itself may lie in: git is started once, to make ours, with GIT_DIR set and without
 * any configuration of the user's; the rest is gitstore.h.
 *
 * Refs: heads/trial/NNNN, heads/champion/SPEC/DEVICE, keeps/NNNN (the merge of a kept trial).
 *
 * SPDX-License-Identifier: MIT
 */
#include "record.h"

#include "file.h"
#include "gitstore.h"
#include "json.h"
#include "spawn.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define GIT_DIR "trials/history.git"

static const char *const slots[] = {"kernel.cu", "plan.json"};

static const char *const git_env[] = {
	"PATH=" SPAWN_PATH, "LC_ALL=C", "HOME=/nonexistent", "GIT_DIR=" GIT_DIR,
	"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", NULL,
};

static int git(const char *const *argv, struct err *e)
{
	struct spawn_request q = {
		.argv = argv, .env = git_env, .out = SPAWN_NULL, .err = SPAWN_CAPTURE, .wall_s = 120,
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

static int make_repository(struct err *e)
{
	static const char *const argv[] = {"git", "init", "-q", "--bare", "--template=",
		"--initial-branch=main", GIT_DIR, NULL};
	if (file_exists(GIT_DIR "/HEAD") && file_exists(GIT_DIR "/config"))
		return 0;
	return git(argv, e);
}

/* Seconds of the trial's start: commits must not depend on when they are imported. */
static long commit_time(const struct closed *c)
{
	struct tm tm = {0};
	const char *s = json_get_str(c->promote.json, "started", "");
	return strptime(s, "%Y-%m-%dT%H:%M:%S", &tm) ? (long)timegm(&tm) : 0;
}

static int put_commit(const struct closed *c, const char *subject, const char *tree,
		      const char *const parent[2], char id[GIT_HEX], struct err *e)
{
	static const char who[] = "Touchstone <touchstone@localhost>";
	struct buf b = BUF_INIT;
	long t = commit_time(c);
	buf_addf(&b, "tree %s\n", tree);
	for (int i = 0; i < 2; i++)
		if (parent[i] && *parent[i])
			buf_addf(&b, "parent %s\n", parent[i]);
	buf_addf(&b, "author %s %ld +0000\ncommitter %s %ld +0000\n\n", who, t, who, t);
	buf_addf(&b, "%s\n\n%s: %s\n", subject, c->promote.code, c->promote.message);
	buf_addf(&b, "\nspec: %s\ndevice: %s\nrun: %s\npromote: %s\n", c->trial.spec,
		 c->trial.device, c->trial.run, c->promote.sha);
	int rc = gitstore_object(GIT_DIR, "commit", b.data, b.len, id, e);
	buf_free(&b);
	return rc;
}

/* 1: the sources are not those of the verdict (its chain is broken, and it says so): no branch. */
static int read_sources(const struct closed *c, struct buf text[2])
{
	char path[TRIAL_PATH], file[64], sha[2][HASH_HEX], both[HASH_HEX];
	for (int i = 0; i < 2; i++) {
		snprintf(file, sizeof file, "%.8s%scandidate/%s", c->dir, *c->dir ? "/" : "",
			 slots[i]);
		trial_path(path, c->trial.id, file);
		if (file_read(path, (size_t)16 << 20, &text[i], NULL))
			return 1;
		hash_hex(buf_str(&text[i]), text[i].len, sha[i]);
	}
	trial_candidate_sha(sha[0], sha[1], both);
	return strcmp(both, c->candidate) != 0;
}

static int put_tree(const struct buf text[2], char id[GIT_HEX], struct err *e)
{
	struct buf tree = BUF_INIT;
	char blob[GIT_HEX];
	int rc = 0;
	for (int i = 0; i < 2 && !rc; i++) {
		rc = gitstore_object(GIT_DIR, "blob", buf_str(&text[i]), text[i].len, blob, e);
		gitstore_entry(&tree, slots[i], blob);
	}
	if (!rc)
		rc = gitstore_object(GIT_DIR, "tree", tree.data, tree.len, id, e);
	buf_free(&tree);
	return rc;
}

/* refs/KIND/TRIAL; "" for no trial, or one that has none. */
static void ref_of(const char *kind, const char *trial, char id[GIT_HEX])
{
	char name[TRIAL_PATH];
	id[0] = '\0';
	if (!trial)
		return;
	snprintf(name, sizeof name, "%s/%s", kind, trial);
	gitstore_ref(GIT_DIR, name, id);
}

static int set_ref_of(const char *kind, const char *trial, const char id[GIT_HEX], struct err *e)
{
	char name[TRIAL_PATH];
	snprintf(name, sizeof name, "%s/%s", kind, trial);
	return gitstore_set_ref(GIT_DIR, name, id, e);
}

static int put_trial(const struct closed *c, const char *tree, char id[GIT_HEX], struct err *e)
{
	char subject[256], parent[GIT_HEX];
	const char *const parents[2] = {parent, NULL};
	const char *word = c->kept ? "keep" : verdict_kind_name(c->promote.kind);
	snprintf(subject, sizeof subject, "trial %s: %s%s%.160s", c->trial.id, word,
		 *c->title ? ": " : "", c->title);
	ref_of("heads/trial", c->parent, parent);
	return put_commit(c, subject, tree, parents, id, e) ||
	       set_ref_of("heads/trial", c->trial.id, id, e) ? -1 : 0;
}

/* The merge of a kept trial. refs/keeps/NNNN is set last: it says that all of this is done. */
static int put_keep(const struct closed *c, const char *tree, const char *trial, struct err *e)
{
	char name[TRIAL_PATH], subject[256], before[GIT_HEX], now[GIT_HEX], id[GIT_HEX];
	snprintf(subject, sizeof subject, "keep trial %s on %s/%s", c->trial.id, c->trial.spec,
		 c->trial.device);
	ref_of("keeps", c->before, before);
	const char *const parents[2] = {before, trial};
	if (put_commit(c, subject, tree, parents, id, e))
		return -1;
	snprintf(name, sizeof name, "heads/champion/%s/%s", c->trial.spec, c->trial.device);
	/* A lost ref of an old trial is made again without taking the branch back to it. */
	int there = gitstore_ref(GIT_DIR, name, now);
	int ahead = there && (c->before ? *before && strcmp(now, before) != 0 : 1);
	if (!ahead && gitstore_set_ref(GIT_DIR, name, id, e))
		return -1;
	return set_ref_of("keeps", c->trial.id, id, e);
}

int record_history(const struct closed *c, struct err *e)
{
	char id[GIT_HEX], keep[GIT_HEX], tree[GIT_HEX];
	struct buf text[2] = {BUF_INIT, BUF_INIT};
	if (!c->candidate) /* the proposal never became a candidate */
		return 0;
	ref_of("heads/trial", c->trial.id, id);
	ref_of("keeps", c->trial.id, keep);
	if (*id && (!c->kept || *keep))
		return 0;
	if (make_repository(e))
		return -1;
	int rc = 0;
	if (read_sources(c, text) == 0 &&
	    (put_tree(text, tree, e) || put_trial(c, tree, id, e) ||
	     (c->kept && put_keep(c, tree, id, e))))
		rc = -1;
	buf_free(&text[0]);
	buf_free(&text[1]);
	return rc;
}
