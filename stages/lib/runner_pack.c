/*
 * runner_pack.c - see runner.h: what a step needs of the record.
 *
 * The run's settings, pins and device, its copy of the problem, its A/A measurements; of the trial the
 * claim, the verdicts so far and the files that they name; the state of the search and the sources of
 * the champion in it; the two keys of this step. Not the run key, no prompt, no reply, no ticks.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runner.h"

#include "file.h"
#include "json.h"
#include "jsonw.h"
#include "spawn.h"
#include "verdict.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MOST = 256 << 20 };

struct pack {
	const struct trial *t;
	const struct run *r;
	enum step step;
	struct buf *tar;
	char seen[64][TRIAL_PATH]; /* of other trials: sent already */
	int nseen;
};

static int add(struct pack *p, const char *path, unsigned mode, struct err *e)
{
	struct buf b = BUF_INIT;
	int rc = file_read(path, FILE_MOST, &b, e) || tar_add(p->tar, path, buf_str(&b), b.len, mode, e) ? -1 : 0;
	buf_free(&b);
	return rc;
}

/* A file of another trial, which may be asked for twice. */
static int add_once(struct pack *p, const char *path, struct err *e)
{
	for (int i = 0; i < p->nseen; i++)
		if (strcmp(p->seen[i], path) == 0)
			return 0;
	if (p->nseen < 64)
		snprintf(p->seen[p->nseen++], TRIAL_PATH, "%s", path);
	return add(p, path, 0644, e);
}

static int add_request(struct pack *p, struct err *e)
{
	struct jsonw w = {0};
	char target[TRIAL_PATH];
	trial_step_path(target, p->t->id, p->step);
	jw_obj(&w, NULL);
	jw_str(&w, "schema", RUNNER_SCHEMA);
	jw_str(&w, "do", "step");
	jw_str(&w, "target", target);
	jw_str(&w, "run", p->r->name);
	jw_end(&w);
	int rc = tar_add(p->tar, RUNNER_REQUEST, w.out.data, w.out.len, 0644, e);
	jw_free(&w);
	return rc;
}

static int add_of_run(struct pack *p, const char *file, int must, struct err *e)
{
	char path[TRIAL_PATH];
	run_path(path, p->r->name, file);
	return must || file_exists(path) ? add(p, path, 0644, e) : 0;
}

static int add_spec(struct pack *p, struct err *e)
{
	const cJSON *pins = json_get(json_get(p->r->json, "pins"), "spec");
	for (const cJSON *f = pins ? pins->child : NULL; f; f = f->next) {
		char file[TRIAL_PATH];
		if (snprintf(file, sizeof file, "spec/%s", f->string) >= 200)
			return err_set(e, EX_BADINPUT, "the problem has too long a name: '%.100s'", f->string);
		/* An oracle command may be among them. */
		char path[TRIAL_PATH];
		run_path(path, p->r->name, file);
		if (add(p, path, 0755, e))
			return -1;
	}
	return 0;
}

int runner_is_aa(const char *file)
{
	size_t n = strlen(file);
	return strncmp(file, "aa-", 3) == 0 && strspn(file + 3, "0123456789abcdef") == 8 &&
	       ((n == 16 && strcmp(file + 11, ".json") == 0) || (n == 15 && strcmp(file + 11, ".raw") == 0));
}

static int add_aa(struct pack *p, struct err *e)
{
	char dir[TRIAL_PATH];
	struct dirent *f;
	int rc = 0;
	run_path(dir, p->r->name, "");
	DIR *d = opendir(dir);
	if (!d)
		return err_sys(e, "cannot list '%s'", dir);
	while (!rc && (f = readdir(d)))
		if (runner_is_aa(f->d_name))
			rc = add_of_run(p, f->d_name, 1, e);
	closedir(d);
	return rc;
}

/* Nothing there reads these. */
static int stays_here(enum step step, const char *file)
{
	if (step >= STEP_JUDGE && (strstr(file, "artefact/emu-sanitize") || strstr(file, "artefact/emu-race")))
		return 1;
	static const char *const tails[] = {".raw", ".md", ".log", ".txt", "reply.json", "request.json", ".patch"};
	size_t n = strlen(file);
	for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
		size_t k = strlen(tails[i]);
		if (n >= k && strcmp(file + n - k, tails[i]) == 0)
			return 1;
	}
	return 0;
}

static int add_verdicts(struct pack *p, struct err *e)
{
	for (int i = 0; i < (int)p->step; i++) {
		struct verdict_in in;
		if (verdict_read(p->t->id, (enum step)i, &in, e))
			return -1;
		int rc = tar_add(p->tar, in.path, in.text, in.len, 0644, e);
		for (const cJSON *o = in.outputs->child; o && !rc; o = o->next) {
			char path[TRIAL_PATH];
			if (strlen(o->string) > 120 || stays_here(p->step, o->string))
				continue;
			trial_path(path, p->t->id, o->string);
			rc = add(p, path, strstr(path, "/artefact/") ? 0755 : 0644, e);
		}
		verdict_in_free(&in);
		if (rc)
			return -1;
	}
	return 0;
}

/* The closed trial that this one starts from, and the sources of the champion it names. */
static int add_state(struct pack *p, const char *id, struct err *e)
{
	struct verdict_in in;
	char path[TRIAL_PATH];
	if (!*id)
		id = json_get_str(p->r->json, "state_from", "");
	if (!*id)
		return 0;
	if (!trial_id_ok(id) || verdict_read(id, STEP_PROMOTE, &in, e))
		return -1;
	int rc = add_once(p, in.path, e);
	const char *c = json_get_str(json_get(json_get(in.data, "after"), "champion"), "trial", "");
	static const char *const files[] = {"candidate/kernel.cu", "candidate/plan.json"};
	for (int i = 0; i < 2 && !rc && trial_id_ok(c); i++) {
		trial_path(path, c, files[i]);
		rc = add_once(p, path, e);
	}
	verdict_in_free(&in);
	return rc;
}

/* guard asks whether the candidate was tried before: the lines of the index about it, and the trials and
 * runs that they name. */
static int add_line(struct pack *p, char *line, struct buf *index, struct err *e)
{
	char id[TRIAL_ID], path[TRIAL_PATH];
	size_t n = strcspn(line, "\t");
	struct trial t;
	if (n >= sizeof id)
		return 0;
	memcpy(id, line, n);
	id[n] = '\0';
	if (!trial_id_ok(id) || p->nseen > 40 || trial_read(id, &t, NULL))
		return 0;
	buf_addf(index, "%s\n", line);
	trial_path(path, id, "trial.json");
	int rc = add_once(p, path, e);
	run_path(path, t.run, "run.json");
	if (!rc && strcmp(t.run, p->r->name) != 0 && file_exists(path))
		rc = add_once(p, path, e);
	trial_free(&t);
	return rc;
}

static int add_index(struct pack *p, struct err *e)
{
	struct buf all = BUF_INIT, some = BUF_INIT;
	struct verdict_in in;
	int a = step_info(p->step)->attempt, rc = 0;
	if (strcmp(step_info(p->step)->stage, "guard") != 0 || !file_exists("trials/index.tsv"))
		return 0;
	if (verdict_read(p->t->id, (enum step)(3 * a), &in, e))
		return -1;
	const char *sha = verdict_in_input(&in, "candidate");
	if (!sha)
		sha = json_get_str(in.data, "candidate_sha256", NULL);
	if (sha && (rc = file_read("trials/index.tsv", FILE_MOST, &all, e)) == 0) {
		char *rest = all.data, *line;
		while (!rc && rest && (line = strsep(&rest, "\n")))
			if (strstr(line, sha))
				rc = add_line(p, line, &some, e);
	}
	verdict_in_free(&in);
	if (!rc && some.len)
		rc = tar_add(p->tar, "trials/index.tsv", some.data, some.len, 0644, e);
	buf_free(&all);
	buf_free(&some);
	return rc;
}

/* Only the checker opens the run key; it gives what this step of this trial needs. */
static int add_keys(struct pack *p, struct err *e)
{
	char program[4096], dir[TRIAL_PATH], path[TRIAL_PATH], stage[24];
	/* As the stages call their keys. */
	snprintf(stage, sizeof stage, "%s", step_info(p->step)->stage);
	if (strcmp(stage, "unittest") == 0)
		snprintf(stage, sizeof stage, "unittest-a%d", step_info(p->step)->attempt);
	if (strcmp(stage, "guard") == 0)
		return 0;
	run_path(dir, p->r->name, "");
	dir[strlen(dir) - (dir[strlen(dir) - 1] == '/')] = '\0';
	if (spawn_tool("checker", program, sizeof program, e))
		return -1;
	const char *argv[] = {program, "--hand", "keys", "--run", dir, "--trial", p->t->id, "--stage", stage, NULL};
	struct spawn_request q = {.argv = argv, .out = SPAWN_CAPTURE, .err = SPAWN_KEEP, .wall_s = 60};
	struct spawn_result res;
	if (spawn_run(&q, &res, e))
		return -1;
	int rc = res.code != 0 || res.out.len != 130
		? err_set(e, res.code > 0 ? res.code : EX_HARNESS, "the checker gave no keys for %s", stage) : 0;
	snprintf(path, sizeof path, "%.200s/keys.%s", dir, stage);
	if (!rc)
		rc = tar_add(p->tar, path, res.out.data, res.out.len, 0600, e);
	if (res.out.data)
		explicit_bzero(res.out.data, res.out.len);
	spawn_result_free(&res);
	return rc;
}

int runner_pack(const struct trial *t, const struct run *r, enum step step, struct buf *tar, struct err *e)
{
	struct pack *p = xcalloc(1, sizeof *p);
	char claim[TRIAL_PATH];
	*p = (struct pack){.t = t, .r = r, .step = step, .tar = tar};
	trial_path(claim, t->id, "trial.json");
	int rc = add_request(p, e) || add_of_run(p, "run.json", 1, e) || add_of_run(p, "pins.jsonl", 0, e) ||
		 add_of_run(p, "device.json", 0, e) || add_spec(p, e) || add(p, claim, 0644, e) ||
		 add_verdicts(p, e) || add_index(p, e) || add_keys(p, e);
	if (!rc && (step == STEP_BENCH || step == STEP_CONFIRM))
		rc = add_state(p, step == STEP_CONFIRM ? t->previous : t->timed_after, e) || add_aa(p, e);
	if (!rc)
		tar_end(tar);
	free(p);
	return rc ? -1 : 0;
}
