/*
 * proposal.c - see proposal.h: parents, and what is written of a proposal.
 *
 * SPDX-License-Identifier: MIT
 */
#include "proposal.h"

#include "defence.h"
#include "facts.h"
#include "file.h"
#include "json.h"
#include "jsonw.h"
#include "plan.h"
#include "propose_engine.h"
#include "spawn.h"
#include "sweep.h"
#include "utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SOURCE = 1 << 20 };

/* ---- parents ---- */

static void hash_parent(struct parent *p)
{
	hash_hex(buf_str(&p->kernel), p->kernel.len, p->kernel_sha);
	hash_hex(buf_str(&p->plan), p->plan.len, p->plan_sha);
	trial_candidate_sha(p->kernel_sha, p->plan_sha, p->candidate);
}

static int from_trial(const char *id, const char *want, struct parent *p, struct err *e)
{
	char path[TRIAL_PATH];

	snprintf(p->trial, sizeof p->trial, "%s", id);
	p->from = "champion";
	trial_path(path, id, "candidate/kernel.cu");
	if (file_read(path, MAX_SOURCE, &p->kernel, e))
		return -1;
	trial_path(path, id, "candidate/plan.json");
	if (file_read(path, MAX_SOURCE, &p->plan, e))
		return -1;
	hash_parent(p);
	if (want && strcmp(want, p->candidate))
		return err_set(e, EX_BADINPUT, "trials/%s/candidate is not the candidate %.12s that its record names",
			       id, want);
	return 0;
}

static int from_folder(struct stage *s, const char *dir, struct parent *p, struct err *e)
{
	char file[TRIAL_PATH];

	p->from = strcmp(dir, "baseline") ? "start" : "baseline";
	snprintf(file, sizeof file, "%s/kernel.cu", dir);
	if (stage_spec(s, NULL, file, MAX_SOURCE, &p->kernel, e))
		return -1;
	snprintf(file, sizeof file, "%s/plan.json", dir);
	if (stage_spec(s, NULL, file, MAX_SOURCE, &p->plan, e))
		return -1;
	hash_parent(p);
	return 0;
}

/* A start is written for GPUs; where kernels are emulated or simulated, the search begins at the baseline. */
static int from_spec(struct stage *s, const struct spec *spec, struct parent *p, struct err *e)
{
	int start = spec->start && device_class_of(s->trial.device) == DEVICE_CUDA;

	return from_folder(s, start ? spec->start : "baseline", p, e);
}

int parent_before(const char *id, char before[TRIAL_ID], char sha[HASH_HEX], struct err *e)
{
	struct verdict_in in;

	*before = *sha = '\0';
	if (verdict_read(id, STEP_PROMOTE, &in, e))
		return -1;
	const char *was = json_get_str(in.data, "champion_before", "");
	if (trial_id_ok(was))
		snprintf(before, TRIAL_ID, "%s", was);
	verdict_in_free(&in);
	if (!*before)
		return 0;
	if (verdict_read(before, STEP_PROMOTE, &in, e))
		return -1;
	snprintf(sha, HASH_HEX, "%s", json_get_str(in.data, "candidate_sha256", ""));
	verdict_in_free(&in);
	return 0;
}

/* The champion that `id` replaced; 1 when it replaced none that can be had. */
static int from_earlier(const char *id, struct parent *p, struct err *e)
{
	char before[TRIAL_ID], sha[HASH_HEX];

	if (parent_before(id, before, sha, e))
		return -1;
	if (!*before)
		return 1;
	if (from_trial(before, sha, p, e))
		return -1;
	p->from = "earlier champion";
	return 0;
}

/* What a widened search begins with instead of the champion `id`, "" none. */
static int other_parent(struct stage *s, struct proposal *p, const char *id, struct err *e)
{
	int rc = *id ? from_earlier(id, &p->parent, e) : from_folder(s, "baseline", &p->parent, e);

	return rc == 1 ? from_spec(s, p->spec, &p->parent, e) : rc;
}

static int usual_parent(struct stage *s, struct proposal *p, const char *id, const char *sha, struct err *e)
{
	return *id ? from_trial(id, sha, &p->parent, e) : from_spec(s, p->spec, &p->parent, e);
}

int parent_load(struct stage *s, struct proposal *p, struct err *e)
{
	char id[TRIAL_ID], sha[HASH_HEX], path[TRIAL_PATH];
	struct buf text = BUF_INIT;
	int rc;

	run_path(path, s->run.name, "spec/spec.json");
	rc = stage_spec(s, NULL, "spec.json", MAX_SOURCE, &text, e) ||
	     spec_parse(text.data, text.len, path, &p->spec, e) || stage_champion(s, id, sha, e);
	buf_free(&text);
	if (rc)
		return -1;
	if (plateau_other_parent(&p->plateau) ? other_parent(s, p, id, e) : usual_parent(s, p, id, sha, e))
		return -1;
	verdict_input(&s->v, "parent", p->parent.candidate);
	return 0;
}

int parent_at_start(struct stage *s, const struct spec *spec, struct parent *out, struct err *e)
{
	const char *id = run_champion(&s->run);
	const char *sha = json_get_str(json_get(s->run.json, "champion"), "candidate_sha256", NULL);

	return id && *id ? from_trial(id, sha, out, e) : from_spec(s, spec, out, e);
}

void parent_free(struct parent *p)
{
	buf_free(&p->kernel);
	buf_free(&p->plan);
	engine_files_free(&p->files);
}

/* ---- verdicts ---- */

void proposal_reject(struct stage *s, struct proposal *p, const char *code, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	verdict_set(&s->v, V_REJECT, code, "%s", text);
	p->decided = 1;
}

void proposal_take_text(struct stage *s, struct proposal *p, const char *text, size_t len)
{
	const struct reply_rules rules = {.cuda = p->engine && p->engine->cuda, .files = p->engine ? p->engine->files : 0};

	reply_free(&p->reply);
	if (p->engine)
		reply_parse_engine(text, len, &rules, &p->reply);
	else
		reply_parse(text, len, &p->reply);
	if (strcmp(p->reply.code, "ok"))
		proposal_reject(s, p, p->reply.code, "%s", p->reply.message);
}

static void put_who(struct jsonw *w, const char *key, const struct proposal *p)
{
	jw_obj(w, key);
	jw_str(w, "kind", p->kind);
	jw_str(w, "provider", p->provider[0] ? p->provider : NULL);
	jw_str(w, "model", p->model);
	if (p->params)
		jw_item(w, "params", p->params);
	else
		jw_null(w, "params");
	if (p->model) {
		chat_usage_write(&p->usage, w, "usage");
		jw_num(w, "cost", p->cost);
	} else {
		jw_null(w, "usage");
		jw_null(w, "cost");
	}
	jw_end(w);
}

void proposal_who(struct stage *s, const struct proposal *p)
{
	struct jsonw w = {0};

	put_who(&w, NULL, p);
	cJSON_Delete(s->v.proposer);
	s->v.proposer = cJSON_Parse(buf_str(&w.out));
	jw_free(&w);
}

/* ---- writing ---- */

static void words(struct jsonw *w, const struct reply_words *r)
{
	const struct {
		const char *key;
		const struct buf *text;
	} f[] = {{"item", &r->item}, {"hypothesis", &r->hypothesis},
		 {"expected_effect", &r->expected_effect}};

	for (size_t i = 0; i < sizeof f / sizeof *f; i++)
		jw_str(w, f[i].key, f[i].text->len ? f[i].text->data : NULL);
}

static int changed(const struct proposal_file *f)
{
	return !f->is || !f->was || f->is->len != f->was->len || memcmp(buf_str(f->is), buf_str(f->was), f->is->len);
}

static void put_files(struct jsonw *w, const struct proposal_file *f, int n)
{
	char sha[HASH_HEX];

	jw_obj(w, "files");
	for (int i = 0; i < n; i++) {
		if (!f[i].is)
			continue;
		hash_hex(buf_str(f[i].is), f[i].is->len, sha);
		jw_str(w, f[i].name, sha);
	}
	jw_end(w);
	jw_arr(w, "changed");
	for (int i = 0; i < n; i++)
		if (changed(&f[i]))
			jw_str(w, NULL, f[i].name);
	jw_end(w);
}

static void proposal_json(const struct stage *s, const struct proposal *p, const struct proposal_file *f, int n,
			  const char *candidate, struct buf *out)
{
	const struct parent *a = &p->parent;
	struct jsonw w = {.pretty = 1};

	jw_obj(&w, NULL);
	jw_str(&w, "schema", PROPOSAL_SCHEMA);
	jw_str(&w, "trial", s->id);
	jw_int(&w, "attempt", s->attempt);
	words(&w, &p->reply.words);
	put_files(&w, f, n);
	jw_str(&w, "candidate_sha256", candidate);
	jw_str(&w, "risk", p->reply.words.risk.len ? p->reply.words.risk.data : NULL);
	jw_str(&w, "reasoning", p->reply.words.reasoning.len ? p->reply.words.reasoning.data : NULL);
	jw_obj(&w, "parent");
	jw_str(&w, "trial", a->trial[0] ? a->trial : NULL);
	jw_str(&w, "from", a->from);
	jw_str(&w, "candidate_sha256", a->candidate);
	jw_end(&w);
	put_who(&w, "proposer", p);
	jw_str(&w, "prompt_sha256", p->prompt_sha[0] ? p->prompt_sha : NULL);
	jw_obj(&w, "templates");
	for (int i = 0; i < p->ntemplates; i++)
		jw_str(&w, p->tmpl[i].name, p->tmpl[i].sha);
	jw_end(&w);
	jw_end(&w);
	buf_add(out, w.out.data, w.out.len);
	jw_free(&w);
}

static int side(struct stage *s, const char *name, const char *data, size_t len, struct err *e)
{
	char file[96];

	snprintf(file, sizeof file, "a%d/%s", s->attempt, name);
	return stage_side(s, file, data, len, e);
}

/* plan.json as plan_write has it: reformatting then is no change. 0 when it cannot be read. */
static int canonical(const struct buf *text, struct buf *out)
{
	struct plan *p;

	if (plan_parse(buf_str(text), text->len, "plan.json", &p, NULL))
		return 0;
	sweep_plan_text(p, out);
	plan_free(p);
	return 1;
}

/* The two files of one side as DIR/NAME/. */
static int write_side(const char *dir, const char *name, const struct buf *kernel, const struct buf *plan,
		      struct err *e)
{
	char *at = xasprintf("%s/%s", dir, name), *k = xasprintf("%s/kernel.cu", at),
	     *p = xasprintf("%s/plan.json", at);
	int rc = dir_make(at, e) || file_write(k, buf_str(kernel), kernel->len, 0644, e) ||
		 file_write(p, buf_str(plan), plan->len, 0644, e);

	free(at);
	free(k);
	free(p);
	return rc ? -1 : 0;
}

/* Both sides in a folder of their own: git compares two folders, and the plans in it are canonical.
 * A plan that cannot be read leaves both as they are. */
static int write_sides(const struct proposal *p, const char *dir, struct err *e)
{
	const struct buf *old = &p->parent.plan, *new = &p->reply.file[REPLY_PLAN];
	struct buf a = BUF_INIT, b = BUF_INIT;
	int both = canonical(old, &a) && canonical(new, &b);
	int rc = write_side(dir, "parent", &p->parent.kernel, both ? &a : old, e) ||
		 write_side(dir, "candidate", &p->reply.file[REPLY_KERNEL], both ? &b : new, e);

	buf_free(&a);
	buf_free(&b);
	return rc ? -1 : 0;
}

int proposal_diff(struct stage *s, const char *dir, struct err *e)
{
	const char *argv[] = {"git", "-c", "core.quotepath=off", "diff", "--no-index", "--no-color",
			      "--no-ext-diff", "--no-renames", "--src-prefix=a/", "--dst-prefix=b/",
			      "parent", "candidate", NULL};
	const char *env[] = {"PATH=" SPAWN_PATH, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "HOME=/nonexistent",
			     "GIT_CEILING_DIRECTORIES=/", NULL};
	struct spawn_result r = {0};
	struct spawn_request q = {.argv = argv, .env = env, .cwd = dir, .out = SPAWN_CAPTURE,
				  .err = SPAWN_NULL, .out_cap = 4 << 20, .wall_s = 60};
	int rc = spawn_run(&q, &r, e) ? -1 : 0;
	if (!rc && r.outside)
		rc = err_set(e, EX_AGAIN, "git diff was killed");
	/* 0 same, 1 different; anything else is git's trouble and no reason to lose a proposal. */
	if (!rc && r.code != 0 && r.code != 1) {
		buf_clear(&r.out);
		buf_addf(&r.out, "git diff failed: exit %d\n", r.code);
	}
	if (!rc)
		rc = side(s, "candidate.patch", buf_str(&r.out), r.out.len, e);
	spawn_result_free(&r);
	if (dir_remove(dir, rc ? NULL : e) && !rc)
		rc = -1;
	return rc;
}

static int write_patch(struct stage *s, const struct proposal *p, struct err *e)
{
	char dir[TRIAL_PATH + 16];

	snprintf(dir, sizeof dir, "%s/compare", s->dir);
	return write_sides(p, dir, e) ? -1 : proposal_diff(s, dir, e);
}

static int write_files(struct stage *s, struct proposal *p, char sha[2][HASH_HEX], struct err *e)
{
	char dir[TRIAL_PATH + 16], name[64];

	snprintf(dir, sizeof dir, "%s/candidate", s->dir);
	if (dir_make(dir, e))
		return -1;
	for (int i = 0; i < REPLY_SLOTS; i++) {
		const struct buf *t = &p->reply.file[i];
		snprintf(name, sizeof name, "candidate/%s", REPLY_FILE[i]);
		if (side(s, name, buf_str(t), t->len, e))
			return -1;
		hash_hex(buf_str(t), t->len, sha[i]);
	}
	return write_patch(s, p, e);
}

static void put_data(struct stage *s, const struct proposal *p, const char *candidate)
{
	struct jsonw *w = &s->v.data;

	const struct playbook_item *item = NULL;

	words(w, &p->reply.words);
	if (p->book && p->reply.words.item.len)
		item = playbook_named(p->book, buf_str(&p->reply.words.item));
	if (item)
		jw_str(w, "playbook_item", item->id);
	plateau_tell(w, &p->plateau);
	jw_str(w, "parent", p->parent.trial);
	jw_str(w, "parent_from", p->parent.from);
	if (candidate)
		jw_str(w, "candidate_sha256", candidate);
	jw_str(w, "prompt_sha256", p->prompt_sha[0] ? p->prompt_sha : NULL);
}

int proposal_record(struct stage *s, struct proposal *p, const struct proposal_file *f, int n, const char *candidate,
		    struct err *e)
{
	struct buf json = BUF_INIT;
	int rc;

	proposal_json(s, p, f, n, candidate, &json);
	rc = side(s, "proposal.json", json.data, json.len, e);
	buf_free(&json);
	if (rc)
		return -1;
	verdict_input(&s->v, "candidate", candidate);
	put_data(s, p, candidate);
	if (!p->same_ok && !strcmp(candidate, p->parent.candidate) && DEFENCE("propose.unchanged"))
		verdict_set(&s->v, V_REJECT, "propose.unchanged", "%s files are those of the parent", n == 2 ? "both" : "all");
	else
		verdict_set(&s->v, V_PASS, "ok", "%s", p->reply.words.item.data);
	verdict_headline(&s->v, "%.100s", p->reply.words.item.data);
	return 0;
}

static int write_kernel(struct stage *s, struct proposal *p, struct err *e)
{
	const struct proposal_file f[REPLY_SLOTS] = {
		{REPLY_FILE[REPLY_KERNEL], &p->reply.file[REPLY_KERNEL], &p->parent.kernel},
		{REPLY_FILE[REPLY_PLAN], &p->reply.file[REPLY_PLAN], &p->parent.plan}};
	char sha[REPLY_SLOTS][HASH_HEX], candidate[HASH_HEX];

	for (int i = 0; i < REPLY_SLOTS; i++)
		if (!p->reply.has[i])
			buf_add(&p->reply.file[i], buf_str(f[i].was), f[i].was->len);
	if (write_files(s, p, sha, e))
		return -1;
	trial_candidate_sha(sha[REPLY_KERNEL], sha[REPLY_PLAN], candidate);
	verdict_input(&s->v, "kernel", sha[REPLY_KERNEL]);
	verdict_input(&s->v, "plan", sha[REPLY_PLAN]);
	return proposal_record(s, p, f, REPLY_SLOTS, candidate, e);
}

int proposal_write(struct stage *s, struct proposal *p, struct err *e)
{
	if (p->engine && !p->decided)
		engine_complete(s, p, &p->parent.files);
	proposal_who(s, p);
	if (p->decided) {
		put_data(s, p, NULL);
		return 0;
	}
	if (!p->reply.words.item.len)
		buf_adds(&p->reply.words.item, "unstated");
	return p->engine ? engine_proposal_write(s, p, e) : write_kernel(s, p, e);
}

void proposal_free(struct proposal *p)
{
	if (p->book)
		playbook_free(p->book);
	free(p->book);
	spec_free(p->spec);
	engine_spec_free(p->engine);
	engine_files_free(&p->made);
	parent_free(&p->parent);
	reply_free(&p->reply);
	free(p->model);
	cJSON_Delete(p->params);
	memset(p, 0, sizeof *p);
}
