/*
 * proposer_files.c - proposals that exist already: my own files (manual, adopt) and recorded
 * replies (replay).
 *
 * iterate keeps a copy of what it was given in trials/runs/R/given/ (kernel.cu, plan.json,
 * reply.txt) and names it by hash in run.json; the claim's `origin` {kind, from | trial} says
 * where it came from. A run of recorded replies has the setting `reply`: a file, or a folder
 * with one NNNN.txt per trial of the run (0001.txt the first), and NNNN.a1.txt, NNNN.a2.txt where its
 * repair turns are to be answered. A recorded reply is either the model's text or the raw body of a
 * chat completion.
 *
 * SPDX-License-Identifier: MIT
 */
#include "proposal.h"

#include "file.h"
#include "json.h"
#include "repair.h"
#include "utf8.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* A file that the run was given, against its recorded hash. 1: there is none. */
static int given(const struct stage *s, const char *name, size_t max, struct buf *out, struct err *e)
{
	const char *want = json_get_str(json_get(s->run.json, "given"), name, NULL);
	char path[TRIAL_PATH], file[80], sha[HASH_HEX];

	if (!want)
		return 1;
	snprintf(file, sizeof file, "given/%s", name);
	run_path(path, s->run.name, file);
	if (file_read(path, max, out, e))
		return -1;
	hash_hex(buf_str(out), out->len, sha);
	return strcmp(sha, want) ? err_set(e, EX_BADINPUT, "'%s' is not the file that run.json names", path) : 0;
}

int propose_files(struct stage *s, struct proposal *p, struct err *e)
{
	const char *from = json_get_str(json_get(s->trial.json, "origin"), "from", "my own files");
	char line[200];

	p->same_ok = 1;
	for (int i = 0; i < REPLY_SLOTS; i++) {
		struct buf t = BUF_INIT;
		int rc = given(s, REPLY_FILE[i], REPLY_MAX_FILE, &t, e);
		if (rc == 0) {
			reply_normalise(&p->reply.file[i], buf_str(&t), t.len);
			p->reply.has[i] = 1;
		}
		buf_free(&t);
		if (rc < 0)
			return -1;
	}
	if (!p->reply.has[REPLY_KERNEL] && !p->reply.has[REPLY_PLAN])
		return err_set(e, EX_BADUSE, "nothing to propose: give KERNEL= and PLAN=, or FROM=");
	snprintf(line, sizeof line, "%s: %.150s", p->kind, from);
	utf8_line(&p->reply.words.item, line, strlen(line), 120);
	return 0;
}

/* The recorded reply for this trial; 1 when none is left. */
static int find_reply(const struct stage *s, struct buf *out, struct err *e)
{
	const char *reply = run_str(&s->run, "reply", NULL);
	char path[1024];
	struct stat st;
	int rc = given(s, "reply.txt", 2 * REPLY_MAX_TEXT, out, e);

	if (rc <= 0)
		return rc;
	if (!reply)
		return err_set(e, EX_BADUSE, "no recorded reply is named");
	if (stat(reply, &st))
		return err_sys(e, "cannot find the recorded reply '%s'", reply);
	snprintf(path, sizeof path, "%s", reply);
	if (S_ISDIR(st.st_mode)) {
		if (repair_reply_path(reply, s->trial.index, s->attempt, path, sizeof path))
			return err_set(e, EX_BADUSE, "the name of the folder of replies is too long");
		if (!file_exists(path))
			return 1;
	}
	return file_read(path, 2 * REPLY_MAX_TEXT, out, e);
}

/* A raw body is told by being a whole chat completion. */
static void take_reply(struct stage *s, struct proposal *p, const struct buf *b)
{
	struct chat c = CHAT_INIT;
	const char *text = buf_str(b);

	if ((text[0] == '{' || !strncmp(text, "data:", 5)) &&
	    !chat_parse(text, b->len, &c, "recorded reply", NULL) && c.complete) {
		if (!strcmp(c.finish, "length"))
			proposal_reject(s, p, "propose.truncated", "the recorded reply was cut (finish_reason length)");
		else
			proposal_take_text(s, p, buf_str(&c.text), c.text.len);
	} else {
		proposal_take_text(s, p, text, b->len);
	}
	chat_free(&c);
}

int propose_replay(struct stage *s, struct proposal *p, struct err *e)
{
	struct buf b = BUF_INIT;
	char file[32];
	int rc = find_reply(s, &b, e);

	p->same_ok = 1;
	if (rc > 0)
		proposal_reject(s, p, "propose.no_replies_left", "no recorded reply is left for trial %d of the run",
				s->trial.index + 1);
	snprintf(file, sizeof file, "a%d/reply.txt", s->attempt);
	if (!rc)
		rc = stage_side(s, file, buf_str(&b), b.len, e);
	if (!rc)
		take_reply(s, p, &b);
	buf_free(&b);
	return rc < 0 ? -1 : 0;
}
