/*
 * repair.c - see repair.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "repair.h"

#include "defence.h"
#include "file.h"
#include "json.h"
#include "lexer.h"
#include "prompt.h"
#include "prompt_engine.h"
#include "propose_engine.h"
#include "reason.h"
#include "utf8.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LOG = 6000, MAX_LINE = 400, MAX_SOURCE = 1 << 20 };

/* ---- whether ---- */

int repair_default(const char *proposer)
{
	static const char *const answers[] = {"openai", "command", "replay"};

	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
		if (!strcmp(proposer, answers[i]))
			return REPAIR_MOST;
	return 0;
}

int repair_reply_path(const char *dir, int index, int attempt, char *out, size_t size)
{
	char id[TRIAL_ID], turn[8] = "";
	int n;

	trial_id(id, index + 1);
	if (attempt)
		snprintf(turn, sizeof turn, ".a%d", attempt);
	n = snprintf(out, size, "%s/%s%s.txt", dir, id, turn);
	return n < 0 || (size_t)n >= size ? -1 : 0;
}

/* A replay can answer as long as there are recorded replies. */
static int recorded(const struct run *r, const struct trial *t, int attempt)
{
	const char *dir = run_str(r, "reply", NULL);
	char path[1024];

	return dir && !repair_reply_path(dir, t->index, attempt, path, sizeof path) && file_exists(path);
}

int repair_wanted(const struct run *r, const struct trial *t, int attempt, const char *step, const char *verdict,
		  const char *code, const char **skip)
{
	const char *kind = json_get_str(json_get(t->json, "origin"), "kind", r->proposer);
	int most = repair_default(kind) ? (int)run_int(r, "repairs", repair_default(kind)) : 0;

	/* an engine problem's replay has folders of engines, whatever lies beside them */
	if (run_str(r, "model_sha256", NULL) && !strcmp(kind, "replay"))
		most = 0;
	*skip = "skip.repair_off";
	/* After a turn that was not made there is no other. */
	if (attempt > most || step[0] != 'a' || step[1] != '0' + attempt - 1)
		return 0;
	if (!strcmp(kind, "replay") && !recorded(r, t, attempt))
		return 0;
	*skip = "skip.not_repairable";
	return !strcmp(verdict, "reject") && reason_repairable(code);
}

/* The verdict that rejected the attempt before this one. */
static const struct verdict_in *failed(struct stage *s, struct err *e)
{
	for (int i = 3 * s->attempt - 1; i >= 3 * (s->attempt - 1); i--) {
		const struct verdict_in *in = stage_verdict(s, (enum step)i, e);
		if (!in || in->kind == V_REJECT)
			return in;
	}
	err_set(e, EX_BADINPUT, "attempt %d of trial %s has nothing to repair", s->attempt, s->id);
	return NULL;
}

/* ---- what is said ---- */

static int path_char(char c)
{
	return isalnum((unsigned char)c) || strchr("._+-/", c);
}

/* Of an absolute path its last part. */
static void put_line(const char *line, size_t len, struct buf *out)
{
	struct buf b = BUF_INIT;
	size_t i = 0;

	while (i < len) {
		size_t n = 0, last = 0, slashes = 0;
		if (line[i] == '/' && (!i || !path_char(line[i - 1])))
			for (; i + n < len && line[i + n] && path_char(line[i + n]); n++)
				if (line[i + n] == '/') {
					last = n + 1;
					slashes++;
				}
		if (slashes > 1) {
			buf_add(&b, line + i + last, n - last);
			i += n;
		} else {
			buf_addc(&b, line[i++]);
		}
	}
	utf8_line(out, buf_str(&b), b.len, MAX_LINE);
	buf_addc(out, '\n');
	buf_free(&b);
}

/* Where a comment begins in a line of diagnostics: compilers quote the source. */
static size_t before_comment(const char *line, size_t len)
{
	for (size_t i = 0; i + 1 < len && DEFENCE("prompt.strip"); i++)
		if (line[i] == '/' && (line[i + 1] == '/' || line[i + 1] == '*'))
			return i;
	return len;
}

/* Nothing but a marker under a quoted line, or a check that was passed. */
static int idle(const char *line, size_t len)
{
	size_t i = 0;

	if (len > 3 && !memcmp(line, "ok ", 3))
		return 1;
	while (i < len && memchr(" \t\r|^~", line[i], 6))
		i++;
	return i == len;
}

void repair_scrub(const char *log, size_t len, size_t max, struct buf *out)
{
	size_t start = out->len, at = 0;

	while (at < len) {
		const char *line = log + at, *nl = memchr(line, '\n', len - at);
		size_t n = nl ? (size_t)(nl - line) : len - at;
		struct buf one = BUF_INIT;
		at += n + 1;
		n = before_comment(line, n);
		if (idle(line, n))
			continue;
		put_line(line, n, &one);
		if (out->len - start + one.len > max) {
			buf_free(&one);
			buf_adds(out, "(cut here)\n");
			return;
		}
		buf_add(out, one.data, one.len);
		buf_free(&one);
	}
}

static int put_error(struct stage *s, const char *salt, struct buf *out, struct err *e)
{
	const struct verdict_in *in = failed(s, e);
	struct buf t = BUF_INIT, log = BUF_INIT;
	char file[64];
	int rc = 0;

	if (!in)
		return -1;
	buf_addf(&t, "%s: %s, %s\n", step_info(in->step)->stage, in->code, reason_text(in->code));
	repair_scrub(in->message, strlen(in->message), MAX_LINE, &t);
	snprintf(file, sizeof file, "%s.log", step_info(in->step)->name);
	if (verdict_in_output(in, file)) {
		rc = stage_use(s, "failed_log", file, verdict_in_output(in, file), (size_t)4 << 20, &log, e);
		if (!rc && log.len)
			buf_addc(&t, '\n');
		if (!rc)
			repair_scrub(buf_str(&log), log.len, MAX_LOG, &t);
	}
	verdict_input(&s->v, "failed", in->sha);
	if (!rc)
		prompt_fence(out, "error", buf_str(&t), t.len, salt);
	buf_free(&log);
	buf_free(&t);
	return rc;
}

/* A file of the attempt before, against its recorded hash. */
static int own_file(struct stage *s, int slot, struct buf *out, struct err *e)
{
	char file[64], name[32];

	snprintf(file, sizeof file, "a%d/candidate/%s", s->attempt - 1, REPLY_FILE[slot]);
	snprintf(name, sizeof name, "failed_%s", slot == REPLY_KERNEL ? "kernel" : "plan");
	return stage_use_recorded(s, name, file, MAX_SOURCE, out, e);
}

/* An engine's, all of them. */
static int own_engine(struct stage *s, struct engine_files *f, struct err *e)
{
	char dir[16];

	snprintf(dir, sizeof dir, "a%d", s->attempt - 1);
	if (engine_files_recorded(s, dir, f, e))
		return -1;
	verdict_input(&s->v, "failed_candidate", f->sha);
	return 0;
}

/* Comments could talk to the reader (threats.md J01, J02); lines stay, errors name them. */
static int put_kernel(struct stage *s, const char *salt, struct buf *out, struct err *e)
{
	for (int i = 0; i < REPLY_SLOTS; i++) {
		struct buf t = BUF_INIT, shown = BUF_INIT;
		if (own_file(s, i, &t, e)) {
			buf_free(&t);
			return -1;
		}
		if (i == REPLY_KERNEL && DEFENCE("prompt.strip"))
			lex_strip_comments(buf_str(&t), t.len, &shown);
		else
			buf_add(&shown, buf_str(&t), t.len);
		if (i)
			buf_addc(out, '\n');
		prompt_fence(out, REPLY_FILE[i], buf_str(&shown), shown.len, salt);
		buf_free(&shown);
		buf_free(&t);
	}
	return 0;
}

static int put_engine(struct stage *s, const char *salt, struct buf *out, struct err *e)
{
	struct engine_files f;

	if (own_engine(s, &f, e))
		return -1;
	prompt_engine_files(&f, salt, 1, out);
	engine_files_free(&f);
	return 0;
}

int repair_prompt(struct stage *s, const struct proposal *p, const char *salt, struct buf *own, struct buf *error,
		  struct buf *turn, struct err *e)
{
	const char *kind = json_get_str(json_get(s->trial.json, "origin"), "kind", s->run.proposer);

	if (p->engine ? put_engine(s, salt, own, e) : put_kernel(s, salt, own, e))
		return -1;
	buf_addf(turn, "%d of %d", s->attempt, (int)run_int(&s->run, "repairs", repair_default(kind)));
	return put_error(s, salt, error, e);
}

/* ---- the reply ---- */

/* A word that the reply leaves out is the first answer's: a repair is the same idea. */
static void complete_words(struct proposal *p, const struct verdict_in *before)
{
	struct {
		const char *key;
		struct buf *to;
	} w[] = {{"item", &p->reply.words.item}, {"hypothesis", &p->reply.words.hypothesis},
		 {"expected_effect", &p->reply.words.expected_effect}};

	for (size_t i = 0; i < sizeof w / sizeof *w; i++)
		if (!w[i].to->len)
			buf_adds(w[i].to, json_get_str(before->data, w[i].key, ""));
}

static int complete_engine(struct stage *s, struct proposal *p, int *changed, struct err *e)
{
	struct engine_files f;

	if (own_engine(s, &f, e))
		return -1;
	engine_complete(s, p, &f);
	*changed = strcmp(f.sha, p->made.sha) != 0;
	engine_files_free(&f);
	return 0;
}

static int complete_kernel(struct stage *s, struct proposal *p, int *changed, struct err *e)
{
	for (int i = 0; i < REPLY_SLOTS; i++) {
		struct buf *f = &p->reply.file[i], t = BUF_INIT;
		if (own_file(s, i, &t, e)) {
			buf_free(&t);
			return -1;
		}
		if (!p->reply.has[i])
			buf_add(f, buf_str(&t), t.len);
		p->reply.has[i] = 1;
		*changed |= f->len != t.len || memcmp(buf_str(f), buf_str(&t), t.len) != 0;
		buf_free(&t);
	}
	return 0;
}

int repair_complete(struct stage *s, struct proposal *p, struct err *e)
{
	const struct verdict_in *before = stage_verdict(s, (enum step)(3 * (s->attempt - 1)), e);
	int changed = 0;

	if (!before || (p->engine ? complete_engine(s, p, &changed, e) : complete_kernel(s, p, &changed, e)))
		return -1;
	complete_words(p, before);
	if (!changed && !p->decided)
		proposal_reject(s, p, "propose.unchanged", "%s files are those of attempt %d, which failed",
				p->engine ? "all" : "both", s->attempt - 1);
	return 0;
}

void repair_no_room(struct stage *s, struct proposal *p, const char *why)
{
	const struct verdict_in *in = failed(s, NULL);

	verdict_set(&s->v, V_SKIP, "skip.repair_budget", "%s", why);
	if (in) {
		jw_obj(&s->v.data, "closed_by");
		jw_str(&s->v.data, "step", step_info(in->step)->name);
		jw_str(&s->v.data, "code", in->code);
		jw_str(&s->v.data, "verdict", "reject");
		jw_end(&s->v.data);
	}
	p->decided = 1;
}

/* ---- the record ---- */

void repair_told(struct stage *s, struct jsonw *w)
{
	const char *first = NULL;
	int n = 0;

	for (int k = 1; k < TRIAL_ATTEMPTS; k++) {
		const struct verdict_in *in = stage_verdict(s, (enum step)(3 * k), NULL);
		n += in && in->kind != V_SKIP;
	}
	for (int i = STEP_A0_PROPOSE; i <= STEP_A0_UNITTEST && !first; i++) {
		const struct verdict_in *in = stage_verdict(s, (enum step)i, NULL);
		first = in && in->kind == V_REJECT ? in->code : NULL;
	}
	jw_int(w, "repairs", n);
	jw_str(w, "first_error", first);
}

const struct verdict_in *repair_proposal(struct stage *s, struct err *e)
{
	for (int k = TRIAL_ATTEMPTS - 1; k > 0; k--) {
		const struct verdict_in *in = stage_verdict(s, (enum step)(3 * k), e);
		if (in && in->kind == V_PASS)
			return in;
	}
	return stage_verdict(s, STEP_A0_PROPOSE, e);
}
