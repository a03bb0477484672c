/*
 * runner_hello.c - see runner.h: what is there, asked before a run begins or goes on.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runner.h"

#include "file.h"
#include "gpu.h"
#include "json.h"
#include "jsonw.h"
#include "verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELLO_WALL_S = 600 }; /* a machine may have to start, a GPU to be calibrated */

static struct runner_hello kept;
static char *kept_command, *kept_device;

static int ask(const char *device, struct buf *out, struct err *e)
{
	struct jsonw w = {0};
	jw_obj(&w, NULL);
	jw_str(&w, "schema", RUNNER_SCHEMA);
	jw_str(&w, "do", "hello");
	jw_str(&w, "device", device);
	jw_end(&w);
	int rc = tar_add(out, RUNNER_REQUEST, w.out.data, w.out.len, 0644, e);
	jw_free(&w);
	tar_end(out);
	return rc;
}

static int no_hello(struct err *e, const char *command, const char *why)
{
	return err_set(e, EX_BADINPUT, "the runner '%.80s' %s", command, why);
}

static int take_tools(const cJSON *tools, const char *command, struct runner_hello *h, struct err *e)
{
	for (const cJSON *t = tools ? tools->child : NULL; t; t = t->next)
		if (!trial_name_ok(t->string) || !cJSON_IsString(t) || !hash_is_hex(t->valuestring))
			return no_hello(e, command, "names programs that cannot be");
	if (!tools)
		return no_hello(e, command, "names no programs");
	h->tools = cJSON_Duplicate(tools, 1);
	return 0;
}

static int take(const struct tar *in, const char *command, struct runner_hello *h, struct err *e)
{
	const struct tar_file *f = tar_find(in, RUNNER_HELLO), *d = tar_find(in, RUNNER_DEVICE);
	cJSON *j = f ? json_parse(f->data, f->len, &JSON_OURS, RUNNER_HELLO, e) : NULL;
	if (!j)
		return f ? -1 : no_hello(e, command, "did not say what it is");
	const char *device = json_get_str(j, "device", ""), *why = json_get_str(j, "why", "");
	double gpus = json_get_num(j, "gpus", 1);
	int rc = 0;
	if (strcmp(json_get_str(j, "schema", ""), RUNNER_SCHEMA) != 0)
		rc = no_hello(e, command, "leads to another version of this program");
	else if (!trial_name_ok(device) || !(gpus >= 0 && gpus <= GPU_MAX))
		rc = no_hello(e, command, "names no device");
	else if (device_class_of(device) == DEVICE_CUDA && !d)
		rc = no_hello(e, command, "does not describe its GPU");
	if (!rc)
		rc = take_tools(json_get(j, "tools"), command, h, e);
	snprintf(h->device, sizeof h->device, "%.64s", device);
	snprintf(h->why, sizeof h->why, "%.350s", why);
	h->gpus = (int)gpus;
	if (!rc && d)
		buf_add(&h->device_json, d->data, d->len);
	cJSON_Delete(j);
	return rc;
}

int runner_hello(const char *command, const char *device, const struct runner_hello **h, struct err *e)
{
	struct buf out = BUF_INIT, in = BUF_INIT;
	struct tar tar = {0};
	int code = 0;
	*h = &kept;
	if (kept_command && strcmp(kept_command, command) == 0 &&
	    strcmp(device ? device : "", kept_device) == 0)
		return 0;
	int rc = ask(device, &out, e) || runner_call(command, &out, HELLO_WALL_S, &in, &code, e) ? -1 : 0;
	if (!rc && code != EX_DONE && !in.len)
		rc = err_set(e, code, "the runner '%.80s' says no (its message stands above)", command);
	if (!rc && (rc = tar_parse(in.data, in.len, &tar, e)) == 0 && code != EX_DONE) {
		const struct tar_file *f = tar_find(&tar, RUNNER_FAILURE);
		cJSON *j = f ? json_parse(f->data, f->len, &JSON_OURS, RUNNER_FAILURE, NULL) : NULL;
		rc = err_set(e, code, "by '%.60s': %.380s", command, json_get_str(j, "message", "no reason was sent"));
		cJSON_Delete(j);
	}
	if (!rc) {
		cJSON_Delete(kept.tools);
		buf_free(&kept.device_json);
		kept = (struct runner_hello){0};
		rc = take(&tar, command, &kept, e);
	}
	if (!rc) {
		free(kept_command);
		free(kept_device);
		kept_command = xstrdup(command);
		kept_device = xstrdup(device ? device : "");
	}
	tar_free(&tar);
	buf_free(&out);
	buf_free(&in);
	return rc;
}

/* Programs there are another build, perhaps by another compiler: pinned like a rebuild. */
static int pin(const struct run *r, const char *command, const cJSON *tools, struct err *e)
{
	char now[32], path[TRIAL_PATH], name[TRIAL_NAME];
	struct jsonw w = {0};
	int fresh = 0;
	runner_name(command, name);
	for (const cJSON *t = tools->child; t; t = t->next) {
		int ok = run_tool_ok(r, t->string, t->valuestring, e);
		if (ok < 0)
			return -1;
		fresh |= !ok;
	}
	if (!fresh)
		return 0;
	verdict_now(now);
	jw_obj(&w, NULL);
	jw_str(&w, "t", now);
	jw_str(&w, "runner", name);
	jw_item(&w, "tools", tools);
	jw_end(&w);
	run_path(path, r->name, "pins.jsonl");
	int rc = file_append(path, w.out.data, e);
	jw_free(&w);
	return rc;
}

static int admit(const struct run *r, const char *command, struct err *e)
{
	const struct runner_hello *h;
	static struct gpu want, got;
	char toolkit[32], why[GPU_WHY];
	if (runner_hello(command, r->device, &h, e))
		return -1;
	if (strcmp(h->device, r->device) != 0)
		return err_set(e, EX_NOENV, "run %s is for %s, the runner '%.80s' has %s", r->name, r->device, command,
			       h->device);
	if (device_class_of(r->device) == DEVICE_CUDA) {
		if (gpu_of_run(r, &want, e) || gpu_device_parse(buf_str(&h->device_json), h->device_json.len,
								RUNNER_DEVICE, &got, toolkit, e))
			return -1;
		if (gpu_differs(&want, &got, why))
			return err_set(e, EX_NOENV, "run %s is for %s, and the GPU of '%.80s' will not do: %s", r->name,
				       want.facts.name, command, why);
	}
	return pin(r, command, h->tools, e);
}

int runner_admit(const struct run *r, struct err *e)
{
	char all[RUNNER_COMMAND], tests[RUNNER_COMMAND];
	if (runner_read(r, all, tests, e) || (*all && admit(r, all, e)))
		return -1;
	return *tests && strcmp(tests, "local") != 0 && strcmp(tests, all) != 0 ? admit(r, tests, e) : 0;
}
