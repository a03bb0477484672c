/*
 * propose_engine.c - see propose_engine.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "propose_engine.h"

#include "defence.h"
#include "engine_files.h"
#include "engine_given.h"
#include "engine_setup.h"
#include "engine_tunables.h"
#include "file.h"
#include "json.h"
#include "jsonw.h"
#include "proposal.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct work {
	struct stage *s;
	const char *kind;
	char parent_trial[TRIAL_ID];      /* "": from the spec */
	struct engine_files parent, start, made;
	struct buf item, hypothesis;
	int closed;                       /* a verdict stands already */
};

static int from_trial(const char *id, const char *want, struct engine_files *f, struct err *e)
{
	char dir[TRIAL_PATH];
	trial_path(dir, id, "candidate");
	if (engine_files_folder(dir, f, e))
		return -1;
	if (want && strcmp(want, f->sha) != 0)
		return err_set(e, EX_BADINPUT, "trials/%s/candidate is not the candidate %.12s that its record names", id, want);
	return 0;
}

static int load_parent(struct work *w, struct err *e)
{
	char sha[HASH_HEX];
	if (stage_champion(w->s, w->parent_trial, sha, e))
		return -1;
	int rc = *w->parent_trial ? from_trial(w->parent_trial, sha, &w->parent, e)
				  : engine_files_spec(w->s, "baseline", &w->parent, e);
	if (rc == 0)
		verdict_input(&w->s->v, "parent", w->parent.sha);
	return rc;
}

/* What the sweep's space is of: the champion when the run began, else the baseline. */
static int load_start(struct work *w, struct err *e)
{
	const char *id = run_champion(&w->s->run);
	const char *sha = json_get_str(json_get(w->s->run.json, "champion"), "candidate_sha256", NULL);
	return id && *id ? from_trial(id, sha, &w->start, e) : engine_files_spec(w->s, "baseline", &w->start, e);
}

static void copy_files(const struct engine_files *from, struct engine_files *to)
{
	memset(to, 0, sizeof *to);
	for (int i = 0; i < from->n; i++) {
		memcpy(to->file[i].name, from->file[i].name, ENGINE_FILE_NAME);
		buf_add(&to->file[i].text, buf_str(&from->file[i].text), from->file[i].text.len);
	}
	to->n = from->n;
}

static void close_trial(struct work *w, const char *code, const char *words)
{
	verdict_set(&w->s->v, V_REJECT, code, "%s", words);
	w->closed = 1;
}

static int sweep(struct work *w, struct err *e)
{
	struct engine_tunables t;
	int choice[TUNABLES_MOST];
	if (load_start(w, e))
		return -1;
	copy_files(&w->start, &w->made);
	const char *name = engine_main(engine_files_cuda(&w->start));
	struct buf *text = engine_files_find(&w->start, name), *to = engine_files_find(&w->made, name);
	if (engine_tunables_parse(buf_str(text), text->len, &t, e))
		return -1;
	const int at = engine_tunables_pick(&t, w->s->run.seed, w->s->trial.index);
	if (at < 0) {
		close_trial(w, "propose.space_done", t.n ? "every configuration of the tunables has been proposed"
							 : "the engine declares no tunables");
		return 0;
	}
	engine_tunables_at(&t, at, choice);
	buf_clear(to);
	engine_tunables_text(buf_str(text), text->len, &t, choice, to);
	buf_adds(&w->item, "tunables: ");
	engine_tunables_words(&t, choice, &w->item);
	buf_addf(&w->hypothesis, "one of %d configurations suits this machine better than the one in the source", t.space);
	return 0;
}

/* A folder for each trial, a line of words beside it. */
static int replay(struct work *w, struct err *e)
{
	const char *from = run_str(&w->s->run, "reply", NULL);
	char id[TRIAL_ID];
	struct stat st;
	struct buf line = BUF_INIT;
	if (!from)
		return err_set(e, EX_BADUSE, "no folder of engines is named: REPLY=");
	trial_id(id, w->s->trial.index + 1);
	char *dir = xasprintf("%s/%s", from, id), *words = xasprintf("%s/%s.txt", from, id);
	int rc = 0;
	if (stat(dir, &st))
		close_trial(w, "propose.no_replies_left", "no engine is left for this trial of the run");
	else if ((rc = engine_files_folder(dir, &w->made, e)) != 0 && e->code == EX_BADINPUT) {
		close_trial(w, "propose.file_name", e->text);
		rc = 0;
	}
	if (rc == 0 && !w->closed && file_exists(words) && (rc = file_read(words, 4096, &line, e)) == 0)
		utf8_line(&w->item, buf_str(&line), line.len, 120);
	if (!w->item.len)
		buf_addf(&w->item, "engine %s", id);
	buf_free(&line);
	free(dir);
	free(words);
	return rc;
}

/* make try, adopt and redo: the engine that the run was given. */
static int own_files(struct work *w, struct err *e)
{
	const char *from = json_get_str(json_get(w->s->trial.json, "origin"), "from", "my own files");
	char dir[TRIAL_PATH], line[200];
	const int given = engine_given(w->s, dir, e);
	if (given < 0)
		return -1;
	if (!given)
		return err_set(e, EX_BADUSE, "nothing to propose: give KERNEL= (a folder with an engine), or FROM=");
	if (engine_files_folder(dir, &w->made, e))
		return -1;
	snprintf(line, sizeof line, "%s: %.150s", w->kind, from);
	utf8_line(&w->item, line, strlen(line), 120);
	return 0;
}

static int is_own(const char *kind)
{
	return !strcmp(kind, "manual") || !strcmp(kind, "try") || !strcmp(kind, "adopt");
}

static void put_files(struct jsonw *j, struct engine_files *f, struct engine_files *parent)
{
	char sha[HASH_HEX];
	jw_obj(j, "files");
	for (int i = 0; i < f->n; i++) {
		hash_hex(buf_str(&f->file[i].text), f->file[i].text.len, sha);
		jw_str(j, f->file[i].name, sha);
	}
	jw_end(j);
	jw_arr(j, "changed");
	for (int i = 0; i < f->n; i++) {
		const struct buf *was = engine_files_find(parent, f->file[i].name), *is = &f->file[i].text;
		if (!was || was->len != is->len || memcmp(buf_str(was), buf_str(is), is->len) != 0)
			jw_str(j, NULL, f->file[i].name);
	}
	for (int i = 0; i < parent->n; i++)
		if (!engine_files_find(f, parent->file[i].name))
			jw_str(j, NULL, parent->file[i].name);
	jw_end(j);
}

static int write_proposal(struct work *w, struct err *e)
{
	struct jsonw j = {.pretty = 1};
	char file[32];
	jw_obj(&j, NULL);
	jw_str(&j, "schema", PROPOSAL_SCHEMA);
	jw_str(&j, "trial", w->s->id);
	jw_int(&j, "attempt", w->s->attempt);
	jw_str(&j, "item", w->item.data);
	jw_str(&j, "hypothesis", w->hypothesis.len ? w->hypothesis.data : NULL);
	put_files(&j, &w->made, &w->parent);
	jw_str(&j, "candidate_sha256", w->made.sha);
	jw_obj(&j, "parent");
	jw_str(&j, "trial", *w->parent_trial ? w->parent_trial : NULL);
	jw_str(&j, "from", *w->parent_trial ? "champion" : "baseline");
	jw_str(&j, "candidate_sha256", w->parent.sha);
	jw_end(&j);
	jw_item(&j, "proposer", w->s->v.proposer);
	jw_end(&j);
	snprintf(file, sizeof file, "a%d/proposal.json", w->s->attempt);
	int rc = stage_side(w->s, file, j.out.data, j.out.len, e);
	jw_free(&j);
	return rc;
}

static int write_candidate(struct work *w, struct err *e)
{
	char prefix[32];
	char *compare = xasprintf("%s/compare", w->s->dir), *parent = xasprintf("%s/parent", compare),
	     *candidate = xasprintf("%s/candidate", compare);
	snprintf(prefix, sizeof prefix, "a%d/candidate", w->s->attempt);
	int rc = engine_files_side(w->s, prefix, &w->made, e) || engine_files_write(parent, &w->parent, e) ||
		 engine_files_write(candidate, &w->made, e) || proposal_diff(w->s, compare, e) ? -1 : 0;
	free(compare);
	free(parent);
	free(candidate);
	return rc;
}

static void record(struct work *w)
{
	struct jsonw *d = &w->s->v.data;
	jw_str(d, "item", w->item.len ? w->item.data : NULL);
	jw_str(d, "hypothesis", w->hypothesis.len ? w->hypothesis.data : NULL);
	jw_str(d, "parent", w->parent_trial);
	jw_str(d, "parent_from", *w->parent_trial ? "champion" : "baseline");
	if (!w->closed)
		jw_str(d, "candidate_sha256", w->made.sha);
	jw_null(d, "prompt_sha256");
}

static int make(struct work *w, struct err *e)
{
	if (strcmp(w->kind, "sweep") == 0)
		return sweep(w, e);
	if (strcmp(w->kind, "replay") == 0)
		return replay(w, e);
	if (is_own(w->kind))
		return own_files(w, e);
	return err_set(e, EX_BADUSE, "proposer '%.40s' knows kernels alone: engine problems take sweep, or replay of folders", w->kind);
}

static int finish(struct work *w, struct err *e)
{
	struct verdict *v = &w->s->v;
	record(w);
	if (w->closed)
		return 0;
	if (write_candidate(w, e) || write_proposal(w, e))
		return -1;
	verdict_input(v, "candidate", w->made.sha);
	if (strcmp(w->kind, "replay") != 0 && !is_own(w->kind) && !strcmp(w->made.sha, w->parent.sha) && DEFENCE("propose.unchanged"))
		verdict_set(v, V_REJECT, "propose.unchanged", "all files are those of the parent");
	else
		verdict_set(v, V_PASS, "ok", "%s", w->item.data);
	verdict_headline(v, "%.100s", w->item.data);
	return 0;
}

int propose_engine(struct stage *s, const char *kind, struct err *e)
{
	static struct work w; /* large; the process ends with it */
	w.s = s;
	w.kind = kind;
	engine_on_host(s);
	cJSON_Delete(s->v.proposer);
	s->v.proposer = cJSON_CreateObject();
	cJSON_AddStringToObject(s->v.proposer, "kind", kind);
	static const char *const none[] = {"provider", "model", "params", "usage", "cost"};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		cJSON_AddNullToObject(s->v.proposer, none[i]);
	int rc = dir_make(s->dir, e) || load_parent(&w, e) || make(&w, e);
	if (rc == 0 && !w.closed)
		engine_files_sha(w.made.file, w.made.n, w.made.sha);
	if (rc == 0)
		rc = finish(&w, e);
	engine_files_free(&w.parent);
	engine_files_free(&w.start);
	engine_files_free(&w.made);
	buf_free(&w.item);
	buf_free(&w.hypothesis);
	return rc ? -1 : 0;
}
