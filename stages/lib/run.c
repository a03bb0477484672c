/*
 * run.c - see run.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run.h"

#include "defence.h"
#include "file.h"
#include "json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int run_name_ok(const char *s)
{
	size_t n = s ? strlen(s) : 0;
	return n >= 5 && n < 12 && s[0] == 'r' && strspn(s + 1, "0123456789") == n - 1;
}

void run_path(char out[TRIAL_PATH], const char *run, const char *file)
{
	int n = snprintf(out, TRIAL_PATH, "trials/runs/%s%s%s", run, *file ? "/" : "", file);
	if (n < 0 || n >= TRIAL_PATH)
		abort();
}

const char *run_str(const struct run *r, const char *key, const char *fallback)
{
	return json_get_str(r->settings, key, fallback);
}

double run_num(const struct run *r, const char *key, double fallback)
{
	return json_get_num(r->settings, key, fallback);
}

int64_t run_int(const struct run *r, const char *key, int64_t fallback)
{
	int64_t v;
	const cJSON *item = json_get(r->settings, key);
	return item && json_is_int(item, &v) == 0 ? v : fallback;
}

static int take(struct run *r, const char *path, struct err *e)
{
	const char *schema = json_str(r->json, "schema", path, e);
	const char *name = schema ? json_str(r->json, "run", path, e) : NULL;
	if (!name)
		return -1;
	if (strcmp(schema, "touchstone/run/1") != 0 || strcmp(name, r->name) != 0)
		return err_set(e, EX_BADINPUT, "'%s' is not the record of run %s", path, r->name);
	if (!(r->settings = json_obj(r->json, "settings", path, e)) ||
	    !(r->spec = json_str(r->settings, "spec", path, e)) ||
	    !(r->device = json_str(r->settings, "device", path, e)) ||
	    !(r->proposer = json_str(r->settings, "proposer", path, e)) ||
	    json_int(r->settings, "n", &r->n, path, e) ||
	    json_int(r->settings, "width", &r->width, path, e) ||
	    json_int(r->settings, "seed", &r->seed, path, e) ||
	    json_bool(r->settings, "allow_weak", &r->allow_weak, path, e) ||
	    !(r->key_sha256 = json_str(r->json, "key_sha256", path, e)) ||
	    !(r->spec_sha256 = json_str(r->json, "spec_sha256", path, e)) ||
	    !json_obj(r->json, "pins", path, e))
		return -1;
	const cJSON *lanes = json_get(r->json, "lanes");
	r->lanes = 1;
	if (lanes && (json_is_int(lanes, &r->lanes) || r->lanes < 1 || r->lanes > 64))
		return err_set(e, EX_BADINPUT, "%s: 'lanes' must be 1 to 64", path);
	r->first = trial_number(json_get_str(r->json, "first_trial", ""));
	if (!trial_name_ok(r->spec) || !trial_name_ok(r->device))
		return err_set(e, EX_BADINPUT, "%s: spec or device is not a name", path);
	if (!hash_is_hex(r->key_sha256) || !hash_is_hex(r->spec_sha256))
		return err_set(e, EX_BADINPUT, "%s: key_sha256 or spec_sha256 is no hash", path);
	return 0;
}

int run_read(const char *name, struct run *r, struct err *e)
{
	char path[TRIAL_PATH];
	memset(r, 0, sizeof *r);
	if (!run_name_ok(name))
		return err_set(e, EX_BADINPUT, "'%s' is not the name of a run", name);
	memcpy(r->name, name, strlen(name) + 1);
	run_path(path, name, "run.json");
	r->json = json_read(path, &JSON_OURS, r->sha, e);
	if (!r->json)
		return -1;
	if (take(r, path, e)) {
		run_free(r);
		return -1;
	}
	return 0;
}

int run_is_replay(const struct run *r)
{
	return cJSON_IsTrue(json_get(r->json, "replay"));
}

int run_trial(const struct run *r, int64_t i, char out[TRIAL_ID])
{
	out[0] = '\0';
	if (r->first < 1 || i < 0 || i >= r->n)
		return -1;
	trial_id(out, r->first + (long)i);
	return trial_id_ok(out) ? 0 : -1;
}

void run_free(struct run *r)
{
	cJSON_Delete(r->json);
	r->json = r->settings = NULL;
}

static const cJSON *pins(const cJSON *json, const char *which)
{
	const cJSON *p = json_get(json, "pins");
	return p ? json_get(p, which) : NULL;
}

const char *run_pin_spec(const struct run *r, const char *file)
{
	const cJSON *spec = pins(r->json, "spec");
	return spec ? json_get_str(spec, file, NULL) : NULL;
}

const char *run_pin_device(const struct run *r)
{
	const char *sha = json_get_str(r->json, "device_sha256", NULL);
	return sha && hash_is_hex(sha) ? sha : NULL;
}

int run_spec_read(const struct run *r, const char *file, size_t max, struct buf *out,
		  char sha[HASH_HEX], struct err *e)
{
	char path[TRIAL_PATH], inside[TRIAL_PATH], got[HASH_HEX];
	const char *pin = run_pin_spec(r, file);
	if (snprintf(inside, sizeof inside, "spec/%s", file) >= 200 || !pin)
		return err_set(e, EX_BADINPUT, "spec %s of run %s has no file '%.100s'", r->spec,
			       r->name, file);
	run_path(path, r->name, inside);
	if (file_read(path, max, out, e))
		return -1;
	hash_hex(buf_str(out), out->len, got);
	if (strcmp(got, pin) != 0 && DEFENCE("spec.pins"))
		return err_set(e, EX_BADINPUT, "'%s' changed after the run began", path);
	if (sha)
		memcpy(sha, pin, HASH_HEX);
	return 0;
}

/* Lines {"t", "tools": {...}} of pins.jsonl, newest pins last. */
static int in_later_pins(const struct run *r, const char *name, const char *sha, struct err *e)
{
	char path[TRIAL_PATH];
	struct buf text = BUF_INIT;
	int found = 0;
	run_path(path, r->name, "pins.jsonl");
	if (!file_exists(path))
		return 0;
	if (file_read(path, (size_t)64 << 20, &text, e)) {
		buf_free(&text);
		return -1;
	}
	char *line = text.data, *end;
	for (; !found && line && (end = strchr(line, '\n')); line = end + 1) {
		cJSON *j = json_parse(line, (size_t)(end - line), &JSON_OURS, path, NULL);
		const cJSON *tools = j ? json_get(j, "tools") : NULL;
		const char *pin = tools ? json_get_str(tools, name, NULL) : NULL;
		found = pin && strcmp(pin, sha) == 0;
		cJSON_Delete(j);
	}
	buf_free(&text);
	return found;
}

int run_tool_ok(const struct run *r, const char *name, const char sha[HASH_HEX], struct err *e)
{
	const cJSON *tools = pins(r->json, "tools");
	const char *pin = tools ? json_get_str(tools, name, NULL) : NULL;
	if (pin && strcmp(pin, sha) == 0)
		return 1;
	return in_later_pins(r, name, sha, e);
}

const char *run_champion(const struct run *r)
{
	const cJSON *c = json_get(r->json, "champion");
	return c ? json_get_str(c, "trial", NULL) : NULL;
}
