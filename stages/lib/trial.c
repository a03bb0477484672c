/*
 * trial.c - see trial.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "trial.h"

#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct step_info steps[STEP_COUNT] = {
	{"a0/propose", "propose", "propose", NULL, 0},
	{"a0/guard", "guard", "guard", NULL, 0},
	{"a0/unittest", "unittest", "unittest", NULL, 0},
	{"a1/propose", "propose", "propose", NULL, 1},
	{"a1/guard", "guard", "guard", NULL, 1},
	{"a1/unittest", "unittest", "unittest", NULL, 1},
	{"a2/propose", "propose", "propose", NULL, 2},
	{"a2/guard", "guard", "guard", NULL, 2},
	{"a2/unittest", "unittest", "unittest", NULL, 2},
	{"tune", "tune", "tune", NULL, -1},
	{"judge", "judge", "judge", NULL, -1},
	{"bench", "bench", "bench", NULL, -1},
	{"confirm", "confirm", "bench", "--confirm", -1},
	{"promote", "promote", "promote", NULL, -1},
};

const struct step_info *step_info(enum step s)
{
	return &steps[s];
}

int trial_name_ok(const char *s)
{
	size_t n = s ? strlen(s) : 0;
	return n >= 1 && n <= 64 && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") == n;
}

int trial_id_ok(const char *s)
{
	size_t n = s ? strlen(s) : 0;
	if (n < 4 || n > 9 || strspn(s, "0123456789") != n)
		return 0;
	return (n == 4 || s[0] != '0') && strcmp(s, "0000") != 0;
}

long trial_number(const char *id)
{
	return trial_id_ok(id) ? strtol(id, NULL, 10) : -1;
}

void trial_id(char out[TRIAL_ID], long number)
{
	snprintf(out, TRIAL_ID, "%04ld", number);
}

void trial_path(char out[TRIAL_PATH], const char *id, const char *file)
{
	int n = snprintf(out, TRIAL_PATH, "trials/%s%s%s", id, *file ? "/" : "", file);
	if (n < 0 || n >= TRIAL_PATH)
		abort();
}

void trial_step_path(char out[TRIAL_PATH], const char *id, enum step step)
{
	char file[64];
	snprintf(file, sizeof file, "%s.json", steps[step].name);
	trial_path(out, id, file);
}

int trial_target(const char *target, char id[TRIAL_ID], enum step *step, struct err *e)
{
	const char *p = target, *slash;
	if (strncmp(p, "trials/", 7) != 0 || !(slash = strchr(p + 7, '/')) ||
	    slash - p - 7 >= TRIAL_ID)
		return err_set(e, EX_BADUSE, "'%s' is no step of a trial", target);
	size_t n = (size_t)(slash - p - 7);
	memcpy(id, p + 7, n);
	id[n] = '\0';
	const char *file = slash + 1;
	size_t len = strlen(file);
	if (!trial_id_ok(id) || len < 6 || strcmp(file + len - 5, ".json") != 0)
		return err_set(e, EX_BADUSE, "'%s' is no step of a trial", target);
	for (int i = 0; i < STEP_COUNT; i++) {
		if (strlen(steps[i].name) == len - 5 &&
		    memcmp(steps[i].name, file, len - 5) == 0) {
			*step = (enum step)i;
			return 0;
		}
	}
	return err_set(e, EX_BADUSE, "'%s' is no step of a trial", target);
}

static int take_name(const cJSON *obj, const char *key, char out[TRIAL_NAME], const char *what,
		     struct err *e)
{
	const char *s = json_str(obj, key, what, e);
	if (!s)
		return -1;
	if (!trial_name_ok(s))
		return err_set(e, EX_BADINPUT, "%s: '%s' is not a name", what, key);
	memcpy(out, s, strlen(s) + 1);
	return 0;
}

static int take_id(const cJSON *obj, const char *key, char out[TRIAL_ID], const char *what,
		   struct err *e)
{
	const char *s = json_get_str(obj, key, "");
	if (*s && !trial_id_ok(s))
		return err_set(e, EX_BADINPUT, "%s: '%s' is not the number of a trial", what, key);
	memcpy(out, s, strlen(s) + 1);
	return 0;
}

static int take_claim(struct trial *t, const char *id, const char *path, struct err *e)
{
	const char *schema = json_str(t->json, "schema", path, e);
	const char *run = schema ? json_str(t->json, "run", path, e) : NULL;
	int64_t index;
	if (!run || json_int(t->json, "index", &index, path, e))
		return -1;
	if (strcmp(schema, "touchstone/trial/1") != 0)
		return err_set(e, EX_BADINPUT, "'%s' has another schema", path);
	size_t n = strlen(run);
	if (n < 5 || n >= TRIAL_ID || run[0] != 'r' || strspn(run + 1, "0123456789") != n - 1)
		return err_set(e, EX_BADINPUT, "%s: 'run' is not the name of a run", path);
	memcpy(t->run, run, n + 1);
	t->index = (int)index;
	if (take_id(t->json, "trial", t->id, path, e) ||
	    take_name(t->json, "spec", t->spec, path, e) ||
	    take_name(t->json, "device", t->device, path, e) ||
	    take_id(t->json, "sees", t->sees, path, e) ||
	    take_id(t->json, "timed_after", t->timed_after, path, e) ||
	    take_id(t->json, "previous", t->previous, path, e))
		return -1;
	if (strcmp(t->id, id) != 0)
		return err_set(e, EX_BADINPUT, "'%s' belongs to trial %s", path, t->id);
	return 0;
}

int trial_read(const char *id, struct trial *t, struct err *e)
{
	char path[TRIAL_PATH];
	memset(t, 0, sizeof *t);
	trial_path(path, id, "trial.json");
	t->json = json_read(path, &JSON_OURS, t->sha, e);
	if (!t->json)
		return -1;
	if (take_claim(t, id, path, e)) {
		trial_free(t);
		return -1;
	}
	return 0;
}

void trial_free(struct trial *t)
{
	cJSON_Delete(t->json);
	t->json = NULL;
}

void trial_candidate_sha(const char kernel_sha[HASH_HEX], const char plan_sha[HASH_HEX],
			 char out[HASH_HEX])
{
	char text[256] = "kernel.cu";
	size_t n = sizeof "kernel.cu";
	memcpy(text + n, kernel_sha, 64);
	n += 64;
	memcpy(text + n, "plan.json", sizeof "plan.json");
	n += sizeof "plan.json";
	memcpy(text + n, plan_sha, 64);
	n += 64;
	hash_hex(text, n, out);
}
