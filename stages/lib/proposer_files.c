/*
 * proposer_files.c - proposals that exist already: my own files (manual, adopt) and recorded
 * replies (replay).
 *
 * Where they are: the claim's `origin` {kind, kernel, plan, from, reply, trial, item}, else the
 * run's settings of the same names. `kernel` and `plan` are paths, `from` a folder with
 * kernel.cu and plan.json; `reply` is a file, or a folder with one NNNN.txt per trial of the run
 * (0001.txt the first), and `trial` a trial whose reply is taken again. A recorded reply is either
 * the model's text or the raw body of a chat completion.
 *
 * SPDX-License-Identifier: MIT
 */
#include "proposal.h"

#include "file.h"
#include "json.h"
#include "utf8.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *named(const struct stage *s, const char *key)
{
	const char *v = json_get_str(json_get(s->trial.json, "origin"), key, NULL);

	return v ? v : run_str(&s->run, key, NULL);
}

static int take_file(struct proposal *p, enum reply_slot slot, const char *path, struct err *e)
{
	struct buf t = BUF_INIT;

	if (file_read(path, REPLY_MAX_FILE, &t, e))
		return -1;
	reply_normalise(&p->reply.file[slot], buf_str(&t), t.len);
	p->reply.has[slot] = 1;
	buf_free(&t);
	return 0;
}

int propose_files(struct stage *s, struct proposal *p, struct err *e)
{
	static const char *const key[REPLY_SLOTS] = {"kernel", "plan"};
	const char *from = named(s, "from"), *item = named(s, "item");
	char path[1024];

	p->same_ok = 1;
	for (int i = 0; i < REPLY_SLOTS; i++) {
		const char *file = named(s, key[i]);
		if (!file && from) {
			snprintf(path, sizeof path, "%s/%s", from, REPLY_FILE[i]);
			file = file_exists(path) ? path : NULL;
		}
		if (file && take_file(p, (enum reply_slot)i, file, e))
			return -1;
	}
	if (!p->reply.has[REPLY_KERNEL] && !p->reply.has[REPLY_PLAN])
		return err_set(e, EX_BADUSE, "nothing to propose: give KERNEL= and PLAN=, or FROM=");
	if (!item)
		item = from ? from : strcmp(p->kind, "adopt") ? "my own files" : "adopted files";
	utf8_line(&p->reply.words.item, item, strlen(item), 120);
	return 0;
}

/* The file of this trial's reply; 1 when none is left. */
static int find_reply(const struct stage *s, char *path, size_t size, struct err *e)
{
	static const char *const tail[] = {"a0/reply.txt", "a0/reply.json", "a0/reply.sse"};
	const char *trial = json_get_str(json_get(s->trial.json, "origin"), "trial", NULL);
	const char *reply = named(s, "reply");
	char id[TRIAL_ID];
	struct stat st;

	if (trial && trial_id_ok(trial)) {
		for (size_t i = 0; i < sizeof tail / sizeof *tail; i++) {
			trial_path(path, trial, tail[i]);
			if (file_exists(path))
				return 0;
		}
		return err_set(e, EX_BADINPUT, "trial %s has no recorded reply", trial);
	}
	if (!reply)
		return err_set(e, EX_BADUSE, "no recorded reply is named");
	if (stat(reply, &st))
		return err_sys(e, "cannot find the recorded reply '%s'", reply);
	if (S_ISDIR(st.st_mode)) {
		trial_id(id, s->trial.index + 1);
		snprintf(path, size, "%s/%s.txt", reply, id);
		return file_exists(path) ? 0 : 1;
	}
	snprintf(path, size, "%s", reply);
	return 0;
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
	char path[TRIAL_PATH > 1024 ? TRIAL_PATH : 1024], file[32];
	int rc = find_reply(s, path, sizeof path, e);

	p->same_ok = 1;
	if (rc > 0) {
		proposal_reject(s, p, "propose.no_replies_left", "no recorded reply is left for trial %d of the run",
				s->trial.index + 1);
		return 0;
	}
	if (rc || file_read(path, REPLY_MAX_TEXT * 2, &b, e))
		return -1;
	snprintf(file, sizeof file, "a%d/reply.txt", s->attempt);
	rc = stage_side(s, file, buf_str(&b), b.len, e);
	if (!rc)
		take_reply(s, p, &b);
	buf_free(&b);
	return rc;
}
