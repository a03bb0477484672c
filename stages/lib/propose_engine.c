/*
 * propose_engine.c - see propose_engine.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "propose_engine.h"

#include "duplicate.h"
#include "engine_given.h"
#include "engine_problem.h"
#include "engine_tunables.h"
#include "file.h"
#include "json.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- parents ---- */

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

int engine_parent_load(struct stage *s, struct proposal *p, const char *text, size_t len, struct err *e)
{
	struct parent *a = &p->parent;
	char sha[HASH_HEX];
	engine_on_host(s);
	if (engine_spec_parse(text, len, "spec.json", &p->engine, e) || stage_champion(s, a->trial, sha, e))
		return -1;
	a->from = "champion";
	if (*a->trial && plateau_other_parent(&p->plateau)) {
		char id[TRIAL_ID];
		snprintf(id, sizeof id, "%s", a->trial);
		if (parent_before(id, a->trial, sha, e))
			return -1;
		a->from = "earlier champion";
	}
	if (!*a->trial)
		a->from = "baseline";
	if (*a->trial ? from_trial(a->trial, sha, &a->files, e) : engine_files_spec(s, "baseline", &a->files, e))
		return -1;
	memcpy(a->candidate, a->files.sha, sizeof a->candidate);
	verdict_input(&s->v, "parent", a->candidate);
	return 0;
}

/* ---- sweep ---- */

/* What the sweep's space is of: the champion when the run began, else the baseline. */
static int load_start(struct stage *s, struct engine_files *f, struct err *e)
{
	const char *id = run_champion(&s->run);
	const char *sha = json_get_str(json_get(s->run.json, "champion"), "candidate_sha256", NULL);
	return id && *id ? from_trial(id, sha, f, e) : engine_files_spec(s, "baseline", f, e);
}

/* The start with configuration `at` of its tunables. */
static void configure(const struct engine_files *start, const struct engine_tunables *t, int at, struct engine_files *out)
{
	int choice[TUNABLES_MOST];
	const char *name = engine_main(engine_files_cuda(start));
	engine_files_copy(start, out);
	struct buf *to = engine_files_find(out, name), text = *to;
	*to = (struct buf)BUF_INIT;
	engine_tunables_at(t, at, choice);
	engine_tunables_text(buf_str(&text), text.len, t, choice, to);
	buf_free(&text);
	engine_files_sha(out->file, out->n, out->sha);
}

/* The first of `order` beyond those that the run's trials before this one take. -1: none. */
static int pick_untried(struct stage *s, const struct engine_files *start, const struct engine_tunables *t, const int *order,
			int n, const char *baseline, const struct duplicates *tried)
{
	struct engine_files one;
	int left = 0;
	for (int i = 0; i < n; i++) {
		configure(start, t, order[i], &one);
		const int known = strcmp(one.sha, baseline) == 0 || duplicates_has(tried, one.sha);
		engine_files_free(&one);
		if (!known && left++ == s->trial.index)
			return order[i];
	}
	return -1;
}

/* The configuration for this trial, in the order of the run's seed: none that an earlier run has tried, nor the baseline.
 * -1: nothing is left; -2. */
static int pick(struct stage *s, const struct engine_files *start, const struct engine_tunables *t, struct err *e)
{
	struct engine_files base;
	struct duplicates tried;
	if (engine_files_spec(s, "baseline", &base, e))
		return -2;
	int found = -2;
	if (duplicates_before(s, s->run.first - 1, &tried, e) == 0) {
		int *order = xcalloc((size_t)t->space, sizeof *order);
		const int n = engine_tunables_order(t, s->run.seed, order);
		found = pick_untried(s, start, t, order, n, base.sha, &tried);
		free(order);
		duplicates_free(&tried);
	}
	engine_files_free(&base);
	return found;
}

static int sweep_from(struct stage *s, struct proposal *p, struct engine_files *start, struct err *e)
{
	struct engine_tunables t;
	int choice[TUNABLES_MOST];
	struct buf *text = engine_files_find(start, engine_main(p->engine->cuda));
	if (!text)
		return err_set(e, EX_BADINPUT, "the engine at the run's start is in another language than the problem's");
	/* a model may have written them */
	if (engine_tunables_parse(buf_str(text), text->len, &t, e)) {
		proposal_reject(s, p, "propose.space_done", "the engine's tunables cannot be read: %.200s", e->text);
		return 0;
	}
	const int at = pick(s, start, &t, e);
	if (at == -2)
		return -1;
	if (at < 0) {
		proposal_reject(s, p, "propose.space_done", "%s", t.n ? "every configuration of the tunables has been tried"
								     : "the engine declares no tunables");
		return 0;
	}
	configure(start, &t, at, &p->made);
	engine_tunables_at(&t, at, choice);
	buf_adds(&p->reply.words.item, "tunables: ");
	engine_tunables_words(&t, choice, &p->reply.words.item);
	buf_addf(&p->reply.words.hypothesis, "one of %d configurations suits this machine better than the one in the source",
		 t.space);
	return 0;
}

int propose_engine_sweep(struct stage *s, struct proposal *p, struct err *e)
{
	struct engine_files start;
	if (load_start(s, &start, e))
		return -1;
	const int rc = sweep_from(s, p, &start, e);
	engine_files_free(&start);
	return rc;
}

/* ---- replay ---- */

/* A folder for each trial, a line of words beside it. */
int propose_engine_replay(struct stage *s, struct proposal *p, struct err *e)
{
	const char *from = run_str(&s->run, "reply", NULL);
	char id[TRIAL_ID];
	struct stat st;
	struct buf line = BUF_INIT, *item = &p->reply.words.item;
	if (!from)
		return err_set(e, EX_BADUSE, "no folder of engines is named: REPLY=");
	p->same_ok = 1;
	trial_id(id, s->trial.index + 1);
	char *dir = xasprintf("%s/%s", from, id), *words = xasprintf("%s/%s.txt", from, id);
	int rc = 0;
	if (stat(dir, &st))
		proposal_reject(s, p, "propose.no_replies_left", "no engine is left for this trial of the run");
	else if ((rc = engine_files_folder(dir, &p->made, e)) != 0 && e->code == EX_BADINPUT) {
		proposal_reject(s, p, "propose.file_name", "%.300s", e->text);
		rc = 0;
	} else if (rc == 0 && engine_files_cuda(&p->made) != p->engine->cuda)
		proposal_reject(s, p, "propose.file_name", "'%.200s' has no %s", dir, engine_main(p->engine->cuda));
	if (rc == 0 && !p->decided && file_exists(words) && (rc = file_read(words, 4096, &line, e)) == 0)
		utf8_line(item, buf_str(&line), line.len, 120);
	if (!item->len)
		buf_addf(item, "engine %s", id);
	buf_free(&line);
	free(dir);
	free(words);
	return rc;
}

/* ---- own files ---- */

/* make try, adopt and redo: the engine that the run was given. */
int propose_engine_files(struct stage *s, struct proposal *p, struct err *e)
{
	const char *from = json_get_str(json_get(s->trial.json, "origin"), "from", "my own files");
	char dir[TRIAL_PATH], line[200];
	const int given = engine_given(s, dir, e);
	if (given < 0)
		return -1;
	if (!given)
		return err_set(e, EX_BADUSE, "nothing to propose: give KERNEL= (a folder with an engine), or FROM=");
	p->same_ok = 1;
	if (engine_files_folder(dir, &p->made, e))
		return -1;
	snprintf(line, sizeof line, "%s: %.150s", p->kind, from);
	utf8_line(&p->reply.words.item, line, strlen(line), 120);
	return 0;
}

/* ---- the candidate ---- */

void engine_complete(struct stage *s, struct proposal *p, const struct engine_files *base)
{
	const struct reply *r = &p->reply;
	if (p->made.n)
		return;
	engine_files_copy(base, &p->made);
	for (int i = 0; i < r->n; i++)
		if (r->has[i] && !r->file[i].len)
			engine_files_drop(&p->made, r->name[i]);
	for (int i = 0; i < r->n && !p->decided; i++)
		if (r->has[i] && r->file[i].len && engine_files_put(&p->made, r->name[i], &r->file[i]))
			proposal_reject(s, p, "propose.too_large", "with those of the parent there are more than %d files", ENGINE_FILES);
	engine_files_sha(p->made.file, p->made.n, p->made.sha);
}

static int write_candidate(struct stage *s, struct proposal *p, struct err *e)
{
	char prefix[32];
	char *compare = xasprintf("%s/compare", s->dir), *parent = xasprintf("%s/parent", compare),
	     *candidate = xasprintf("%s/candidate", compare);
	snprintf(prefix, sizeof prefix, "a%d/candidate", s->attempt);
	int rc = engine_files_side(s, prefix, &p->made, e) || engine_files_write(parent, &p->parent.files, e) ||
		 engine_files_write(candidate, &p->made, e) || proposal_diff(s, compare, e) ? -1 : 0;
	free(compare);
	free(parent);
	free(candidate);
	return rc;
}

int engine_proposal_write(struct stage *s, struct proposal *p, struct err *e)
{
	struct proposal_file f[2 * ENGINE_FILES];
	struct engine_files *was = &p->parent.files;
	int n = 0;
	if (write_candidate(s, p, e))
		return -1;
	for (int i = 0; i < p->made.n; i++)
		f[n++] = (struct proposal_file){p->made.file[i].name, &p->made.file[i].text,
						engine_files_find(was, p->made.file[i].name)};
	for (int i = 0; i < was->n; i++)
		if (!engine_files_find(&p->made, was->file[i].name))
			f[n++] = (struct proposal_file){was->file[i].name, NULL, &was->file[i].text};
	return proposal_record(s, p, f, n, p->made.sha, e);
}
