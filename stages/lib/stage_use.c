/*
 * stage_use.c - see stage.h: what a stage reads, checked against what was recorded of it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stage.h"

#include "defence.h"
#include "file.h"
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CANDIDATE_MAX = 4 << 20, CANDIDATE_FILES = 64 };

const struct verdict_in *stage_verdict(struct stage *s, enum step step, struct err *e)
{
	struct verdict_in *in = &s->seen[step];
	if (!in->json && verdict_read(s->id, step, in, e)) {
		in->json = NULL;
		return NULL;
	}
	return in;
}

int stage_use(struct stage *s, const char *name, const char *file, const char *expect, size_t max,
	      struct buf *out, struct err *e)
{
	char path[TRIAL_PATH], sha[HASH_HEX];
	trial_path(path, s->id, file);
	if (file_read(path, max, out, e))
		return -1;
	hash_hex(buf_str(out), out->len, sha);
	if (expect && strcmp(expect, sha) != 0 && DEFENCE("stage.recorded"))
		return err_set(e, EX_BADINPUT, "'%s' is not the file that was recorded", path);
	if (name)
		verdict_input(&s->v, name, sha);
	return 0;
}

int stage_recorded(struct stage *s, const char *file, char sha[HASH_HEX], struct err *e)
{
	for (int i = (int)s->step - 1; i >= 0; i--) {
		const struct verdict_in *in = stage_verdict(s, (enum step)i, e);
		if (!in)
			return -1;
		const char *found = verdict_in_output(in, file);
		if (found) {
			memcpy(sha, found, HASH_HEX);
			return 0;
		}
	}
	return err_set(e, EX_BADINPUT, "no verdict of trial %s names '%s'", s->id, file);
}

int stage_use_recorded(struct stage *s, const char *name, const char *file, size_t max,
		       struct buf *out, struct err *e)
{
	char sha[HASH_HEX];
	if (stage_recorded(s, file, sha, e))
		return -1;
	return stage_use(s, name, file, sha, max, out, e);
}

const char *stage_candidate_dir(const struct stage *s)
{
	static const char *const dirs[] = {"a0", "a1", "a2"};
	return s->step > STEP_TUNE ? "" : dirs[s->attempt];
}

int stage_candidate(struct stage *s, struct buf *kernel, struct buf *plan, struct err *e)
{
	static const char *const names[] = {"kernel", "plan"};
	static const char *const files[] = {"candidate/kernel.cu", "candidate/plan.json"};
	struct buf *const out[] = {kernel, plan};
	char sha[2][HASH_HEX], both[HASH_HEX], file[TRIAL_PATH];
	const char *dir = stage_candidate_dir(s);
	for (int i = 0; i < 2; i++) {
		snprintf(file, sizeof file, "%s%s%s", dir, *dir ? "/" : "", files[i]);
		if (stage_recorded(s, file, sha[i], e) ||
		    stage_use(s, names[i], file, sha[i], CANDIDATE_MAX, out[i], e))
			return -1;
	}
	trial_candidate_sha(sha[0], sha[1], both);
	verdict_input(&s->v, "candidate", both);
	return 0;
}

const cJSON *stage_candidate_outputs(struct stage *s, const char *prefix, struct err *e)
{
	for (int i = (int)s->step - 1; i >= 0; i--) {
		const struct verdict_in *in = stage_verdict(s, (enum step)i, e);
		if (!in)
			return NULL;
		for (const cJSON *o = in->outputs->child; o; o = o->next)
			if (!strncmp(o->string, prefix, strlen(prefix)))
				return in->outputs;
	}
	err_set(e, EX_BADINPUT, "no verdict of trial %s names a candidate", s->id);
	return NULL;
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(const cJSON *const *)a)->string, (*(const cJSON *const *)b)->string);
}

int stage_candidate_sha(struct stage *s, const char *dir, char out[HASH_HEX], struct err *e)
{
	const cJSON *file[CANDIDATE_FILES], *kernel = NULL, *plan = NULL;
	char prefix[32];
	struct buf all = BUF_INIT;
	int n = 0;
	snprintf(prefix, sizeof prefix, "%s%scandidate/", dir, *dir ? "/" : "");
	const cJSON *outputs = stage_candidate_outputs(s, prefix, e);
	if (!outputs)
		return -1;
	for (const cJSON *o = outputs->child; o && n < CANDIDATE_FILES; o = o->next) {
		if (strncmp(o->string, prefix, strlen(prefix)) != 0 || !cJSON_IsString(o))
			continue;
		const char *name = o->string + strlen(prefix);
		kernel = strcmp(name, "kernel.cu") == 0 ? o : kernel;
		plan = strcmp(name, "plan.json") == 0 ? o : plan;
		file[n++] = o;
	}
	if (kernel && plan) {
		trial_candidate_sha(kernel->valuestring, plan->valuestring, out);
		return 0;
	}
	qsort(file, (size_t)n, sizeof *file, by_name);
	for (int i = 0; i < n; i++) {
		const char *name = file[i]->string + strlen(prefix);
		buf_add(&all, name, strlen(name) + 1);
		buf_addf(&all, "%s\n", file[i]->valuestring);
	}
	hash_hex(buf_str(&all), all.len, out);
	buf_free(&all);
	return 0;
}

int stage_spec(struct stage *s, const char *name, const char *file, size_t max, struct buf *out,
	       struct err *e)
{
	char sha[HASH_HEX];
	if (run_spec_read(&s->run, file, max, out, sha, e))
		return -1;
	if (name)
		verdict_input(&s->v, name, sha);
	return 0;
}

int stage_side(struct stage *s, const char *file, const void *data, size_t len, struct err *e)
{
	char path[TRIAL_PATH], sha[HASH_HEX];
	trial_path(path, s->id, file);
	if (file_write(path, data, len, 0644, e))
		return -1;
	hash_hex(data, len, sha);
	verdict_output_sha(&s->v, file, sha);
	return 0;
}

int stage_after(struct stage *s, const cJSON **after, struct err *e)
{
	const char *id = s->step >= STEP_CONFIRM ? s->trial.previous
		       : s->step >= STEP_TUNE ? s->trial.timed_after : s->trial.sees;
	*after = s->after;
	if (s->after)
		return 0;
	if (!*id)
		id = json_get_str(s->run.json, "state_from", "");
	if (!*id)
		return 0;
	if (!trial_id_ok(id))
		return err_set(e, EX_BADINPUT, "run %s: 'state_from' is no trial", s->run.name);
	if (verdict_read(id, STEP_PROMOTE, &s->after_in, e))
		return -1;
	s->after = json_obj(s->after_in.data, "after", s->after_in.path, e);
	if (!s->after)
		return -1;
	verdict_input(&s->v, "state", s->after_in.sha);
	*after = s->after;
	return 0;
}

int stage_champion(struct stage *s, char id[TRIAL_ID], char candidate[HASH_HEX], struct err *e)
{
	const cJSON *after;
	id[0] = candidate[0] = '\0';
	if (stage_after(s, &after, e))
		return -1;
	const cJSON *c = after ? json_get(after, "champion") : NULL;
	const char *t = c ? json_get_str(c, "trial", NULL) : NULL;
	const char *h = c ? json_get_str(c, "candidate_sha256", NULL) : NULL;
	if (!t)
		return 0;
	if (!trial_id_ok(t) || !hash_is_hex(h))
		return err_set(e, EX_BADINPUT, "'%s' names no usable champion", s->after_in.path);
	snprintf(id, TRIAL_ID, "%s", t);
	snprintf(candidate, HASH_HEX, "%s", h);
	return 0;
}
