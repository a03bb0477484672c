/*
 * runner_take.c - see runner.h: what a runner brought, checked whole and then put into the record.
 *
 * Everything is in memory until all of it was checked, so what is refused leaves no trace. Then side
 * files, each whole and synced, and the verdict last: a kill in between leaves a step that is not done.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runner.h"

#include "file.h"
#include "json.h"
#include "verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct take {
	const struct trial *t;
	const struct run *r;
	enum step step;
	const struct tar *in;
	char verdict[TRIAL_PATH];      /* name of the step's verdict */
	char home[TRIAL_PATH];         /* "trials/0042/" */
	char runs[TRIAL_PATH];         /* "trials/runs/r0001/" */
	struct verdict_in got;
};

static int refuse(struct err *e, const char *name, const char *why)
{
	return err_set(e, EX_BADINPUT, "what the runner sent is refused: '%.200s' %s", name, why);
}

/* Side files of a step have their own places; whatever another step wrote is not among them. */
static int is_place(enum step step, const char *file)
{
	const struct step_info *s = step_info(step);
	char own[32];
	const char *at = file;
	if (s->attempt >= 0) {
		snprintf(own, sizeof own, "a%d/", s->attempt);
		if (strncmp(file, own, 3) != 0)
			return 0;
		at = file + 3;
	}
	snprintf(own, sizeof own, "%s.", strrchr(s->name, '/') ? strrchr(s->name, '/') + 1 : s->name);
	int builds = strcmp(s->stage, "guard") == 0 || strcmp(s->stage, "tune") == 0;
	if (builds && strncmp(at, "artefact/", 9) == 0)
		return strchr(at + 9, '/') == NULL;
	if (step == STEP_TUNE && strncmp(at, "candidate/", 10) == 0)
		return strcmp(at + 10, "kernel.cu") == 0 || strcmp(at + 10, "plan.json") == 0;
	/* "bench.raw", "confirm.prereg.json": the step's name, and not its verdict */
	return strncmp(at, own, strlen(own)) == 0 && !strchr(at, '/') && strcmp(at + strlen(own), "json") != 0;
}

/* --- the verdict --- */

static int same(const struct take *k, const char *name, const char *want)
{
	const char *got = verdict_in_input(&k->got, name);
	return got && strcmp(got, want) == 0;
}

static int check_tool(const struct take *k, struct err *e)
{
	const cJSON *tool = json_get(k->got.json, "tool");
	const char *name = json_get_str(tool, "name", ""), *sha = json_get_str(tool, "sha256", "");
	if (strcmp(name, step_info(k->step)->program) != 0 || !hash_is_hex(sha))
		return refuse(e, k->verdict, "was not made by the program of this step");
	int ok = run_tool_ok(k->r, name, sha, e);
	return ok < 0 ? -1 : ok ? 0 : refuse(e, k->verdict, "was made by a program that is not pinned");
}

/* What promote will check of it, at once: a wrong one must not stand. */
static int check_verdict(struct take *k, struct err *e)
{
	const struct tar_file *f = tar_find(k->in, k->verdict);
	struct verdict_in up = {0};
	if (!f)
		return refuse(e, k->verdict, "is not there");
	if (verdict_parse(f->data, f->len, k->t->id, k->step, &k->got, e))
		return -1;
	if (verdict_read(k->t->id, k->step - 1, &up, e))
		return -1;
	int linked = same(k, "upstream", up.sha);
	verdict_in_free(&up);
	if (!linked)
		return refuse(e, k->verdict, "does not follow from the verdict that was sent");
	if (strcmp(k->got.run, k->r->name) != 0 || !same(k, "trial", k->t->sha) ||
	    !same(k, "spec", k->r->spec_sha256) || !same(k, "key", k->r->key_sha256))
		return refuse(e, k->verdict, "is of another trial, run, problem or key");
	const char *pin = run_pin_device(k->r);
	if (pin && !same(k, "device", pin))
		return refuse(e, k->verdict, "is of another device");
	return check_tool(k, e);
}

/* Each file that the verdict names came along and is that file. */
static int check_outputs(const struct take *k, struct err *e)
{
	for (const cJSON *o = k->got.outputs->child; o; o = o->next) {
		char path[TRIAL_PATH], sha[HASH_HEX];
		if (strlen(o->string) > 120 || !tar_name_ok(o->string) || !is_place(k->step, o->string))
			return refuse(e, o->string, "is no file of this step");
		trial_path(path, k->t->id, o->string);
		const struct tar_file *f = tar_find(k->in, path);
		if (!f)
			return refuse(e, path, "is named by the verdict and is not there");
		hash_hex(f->data, f->len, sha);
		if (strcmp(sha, o->valuestring) != 0)
			return refuse(e, path, "is not the file that the verdict names");
	}
	return 0;
}

/* --- the rest --- */

/* An A/A measurement stands once it is there: another one of the same name was made beside it, and what
 * was measured with it has to be measured again. */
static int check_aa(const struct take *k, const struct tar_file *f, struct err *e)
{
	char sha[HASH_HEX], here[HASH_HEX], raw[TRIAL_PATH];
	hash_hex(f->data, f->len, sha);
	if (file_exists(f->name)) {
		if (hash_file(f->name, here, e))
			return -1;
		return strcmp(sha, here) == 0 ? 0
			: err_set(e, EX_AGAIN, "'%s' was measured twice at a time; once more", f->name);
	}
	size_t n = strlen(f->name);
	if (strcmp(f->name + n - 4, ".raw") == 0) {
		snprintf(raw, sizeof raw, "%.*s.json", (int)(n - 4), f->name);
		return tar_find(k->in, raw) ? 0 : refuse(e, f->name, "belongs to no measurement");
	}
	cJSON *j = json_parse(f->data, f->len, &JSON_OURS, f->name, e);
	if (!j)
		return -1;
	snprintf(raw, sizeof raw, "%.*s.raw", (int)(n - 5), f->name);
	const struct tar_file *r = tar_find(k->in, raw);
	hash_hex(r ? r->data : "", r ? r->len : 0, sha);
	int ok = r && strcmp(sha, json_get_str(j, "raw_sha256", "")) == 0;
	cJSON_Delete(j);
	return ok ? 0 : refuse(e, f->name, "does not fit its samples");
}

static int is_aa(const struct take *k, const char *name)
{
	size_t n = strlen(k->runs);
	return (k->step == STEP_BENCH || k->step == STEP_CONFIRM) && strncmp(name, k->runs, n) == 0 &&
	       runner_is_aa(name + n);
}

/* Nothing else came along. */
static int check_names(const struct take *k, struct err *e)
{
	for (size_t i = 0; i < k->in->n; i++) {
		const struct tar_file *f = &k->in->file[i];
		size_t n = strlen(k->home);
		if (is_aa(k, f->name)) {
			if (check_aa(k, f, e))
				return -1;
		} else if (strcmp(f->name, k->verdict) != 0 &&
			   (strncmp(f->name, k->home, n) != 0 || !verdict_in_output(&k->got, f->name + n))) {
			return refuse(e, f->name, "is nothing that the verdict names");
		}
	}
	return 0;
}

static int put(const struct tar_file *f, struct err *e)
{
	char dir[TAR_NAME];
	snprintf(dir, sizeof dir, "%s", f->name);
	*strrchr(dir, '/') = '\0';
	unsigned mode = strstr(f->name, "/artefact/") ? f->mode & 0755 : 0644;
	return dir_make(dir, e) || file_write(f->name, f->data, f->len, mode | 0600, e) ? -1 : 0;
}

/* Samples before their measurement, everything before the verdict. */
static int put_all(const struct take *k, struct err *e)
{
	for (int last = 0; last < 2; last++)
		for (size_t i = 0; i < k->in->n; i++) {
			const struct tar_file *f = &k->in->file[i];
			int aa = is_aa(k, f->name), json = aa && strstr(f->name, ".json");
			if (strcmp(f->name, k->verdict) == 0 || json != last || (aa && file_exists(f->name)))
				continue;
			if (put(f, e))
				return -1;
		}
	return put(tar_find(k->in, k->verdict), e);
}

int runner_take(const struct trial *t, const struct run *r, enum step step, const struct tar *in, struct err *e)
{
	struct take *k = xcalloc(1, sizeof *k);
	k->t = t;
	k->r = r;
	k->step = step;
	k->in = in;
	trial_step_path(k->verdict, t->id, step);
	trial_path(k->home, t->id, "");
	run_path(k->runs, r->name, "");
	strcat(k->home, "/");
	strcat(k->runs, "/");
	int rc = check_verdict(k, e) || check_outputs(k, e) || check_names(k, e) || put_all(k, e) ? -1 : 0;
	verdict_in_free(&k->got);
	free(k);
	return rc;
}
