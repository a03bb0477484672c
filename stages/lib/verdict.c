/*
 * verdict.c - see verdict.h: building and writing. Reading is verdict_in.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "verdict.h"

#include "file.h"
#include "reason.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const kind_names[] = {
	NULL, "pass", "reject", "inconclusive", "invalid", "skip", "na",
};

const char *verdict_kind_name(enum verdict_kind k)
{
	return k == V_NONE ? "none" : kind_names[k];
}

enum verdict_kind verdict_kind_parse(const char *s)
{
	for (int k = V_PASS; s && k <= V_NA; k++)
		if (strcmp(s, kind_names[k]) == 0)
			return (enum verdict_kind)k;
	return V_NONE;
}

void verdict_now(char out[32])
{
	struct timespec t;
	struct tm tm;
	clock_gettime(CLOCK_REALTIME, &t);
	gmtime_r(&t.tv_sec, &tm);
	size_t n = strftime(out, 32, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, 32 - n, ".%03ldZ", t.tv_nsec / 1000000);
}

void verdict_init(struct verdict *v, const char *run, const char *trial, enum step step)
{
	memset(v, 0, sizeof *v);
	snprintf(v->run, sizeof v->run, "%s", run);
	snprintf(v->trial, sizeof v->trial, "%s", trial);
	v->step = step;
	verdict_now(v->started);
	v->data.pretty = 1;
	/* Depth 1, as a member of the envelope: so that it is indented as it will be nested. */
	jw_obj(&v->data, NULL);
}

void verdict_free(struct verdict *v)
{
	for (size_t i = 0; i < v->ninputs; i++)
		free(v->inputs[i].name);
	for (size_t i = 0; i < v->noutputs; i++)
		free(v->outputs[i].name);
	free(v->inputs);
	free(v->outputs);
	free(v->message);
	free(v->headline);
	cJSON_Delete(v->device);
	cJSON_Delete(v->proposer);
	jw_free(&v->data);
	memset(v, 0, sizeof *v);
}

/* One line, control characters to spaces; jw_str replaces invalid UTF-8. */
static char *clean_line(const char *fmt, va_list ap)
{
	char *s = NULL;
	if (vasprintf(&s, fmt, ap) < 0)
		abort();
	size_t n = strlen(s);
	if (n > 1000)
		s[n = 1000] = '\0';
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			s[i] = ' ';
	return s;
}

void verdict_set(struct verdict *v, enum verdict_kind k, const char *code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	free(v->message);
	v->message = clean_line(fmt, ap);
	va_end(ap);
	v->kind = k;
	snprintf(v->code, sizeof v->code, "%s", code);
}

void verdict_headline(struct verdict *v, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	free(v->headline);
	v->headline = clean_line(fmt, ap);
	va_end(ap);
}

static void pair_put(struct verdict_pair **list, size_t *n, const char *name,
		     const char sha[HASH_HEX])
{
	size_t i = 0;
	while (i < *n && strcmp((*list)[i].name, name) != 0)
		i++;
	if (i == *n) {
		*list = xrealloc(*list, (*n + 1) * sizeof **list);
		(*list)[i].name = xstrdup(name);
		(*n)++;
	}
	snprintf((*list)[i].sha, HASH_HEX, "%s", sha);
}

void verdict_input(struct verdict *v, const char *name, const char sha[HASH_HEX])
{
	pair_put(&v->inputs, &v->ninputs, name, sha);
}

void verdict_output_sha(struct verdict *v, const char *file, const char sha[HASH_HEX])
{
	pair_put(&v->outputs, &v->noutputs, file, sha);
}

int verdict_output(struct verdict *v, const char *file, struct err *e)
{
	char path[TRIAL_PATH], sha[HASH_HEX];
	trial_path(path, v->trial, file);
	if (hash_file(path, sha, e))
		return -1;
	verdict_output_sha(v, file, sha);
	return 0;
}

void verdict_isolation(struct verdict *v, const char *layer)
{
	for (size_t i = 0; i < v->nisolation; i++)
		if (strcmp(v->isolation[i], layer) == 0)
			return;
	if (v->nisolation < sizeof v->isolation / sizeof v->isolation[0])
		v->isolation[v->nisolation++] = layer;
}

void verdict_isolation_list(struct verdict *v, char *list)
{
	char *rest = NULL;
	for (char *p = list ? strtok_r(list, ", ", &rest) : NULL; p; p = strtok_r(NULL, ", ", &rest))
		verdict_isolation(v, p);
}

static const char *status_of(const struct verdict *v)
{
	if (v->status)
		return v->status;
	if (v->kind == V_INVALID)
		return "invalid";
	if (v->kind == V_INCONCLUSIVE)
		return "inconclusive";
	return v->kind == V_PASS && v->relies.n ? "rule-dependent" : "clean";
}

static void put_pairs(struct jsonw *w, const char *key, const struct verdict_pair *p, size_t n)
{
	jw_obj(w, key);
	for (size_t i = 0; i < n; i++)
		jw_str(w, p[i].name, p[i].sha);
	jw_end(w);
}

static void put_head(struct jsonw *w, const struct verdict *v)
{
	const struct step_info *step = step_info(v->step);
	jw_str(w, "schema", VERDICT_SCHEMA);
	jw_str(w, "run", v->run);
	jw_str(w, "stage", step->stage);
	jw_str(w, "trial", v->trial);
	if (step->attempt >= 0)
		jw_int(w, "attempt", step->attempt);
	jw_str(w, "verdict", verdict_kind_name(v->kind));
	jw_str(w, "status", status_of(v));
	jw_obj(w, "reason");
	jw_str(w, "code", v->code);
	jw_str(w, "message", v->message ? v->message : "");
	jw_end(w);
}

static void put_facts(struct jsonw *w, const struct verdict *v)
{
	if (v->device) {
		jw_item(w, "device", v->device);
	} else {
		jw_obj(w, "device");
		jw_str(w, "kind", v->device_name);
		jw_end(w);
	}
	if (v->proposer)
		jw_item(w, "proposer", v->proposer);
	else
		jw_null(w, "proposer");
	jw_bool(w, "simulated", v->simulated);
	jw_bool(w, "emulated", v->emulated);
	jw_str(w, "started", v->started);
	jw_num(w, "elapsed_s", v->elapsed_s);
	jw_obj(w, "tool");
	jw_str(w, "name", v->tool);
	jw_str(w, "sha256", v->tool_sha);
	jw_str(w, "version", VERDICT_TOOL_VERSION);
	jw_end(w);
	jw_arr(w, "isolation");
	for (size_t i = 0; i < v->nisolation; i++)
		jw_str(w, NULL, v->isolation[i]);
	jw_end(w);
}

void verdict_text(struct verdict *v, struct buf *out)
{
	struct jsonw w = {.pretty = 1};
	jw_obj(&w, NULL);
	put_head(&w, v);
	put_pairs(&w, "inputs", v->inputs, v->ninputs);
	put_pairs(&w, "outputs", v->outputs, v->noutputs);
	put_facts(&w, v);
	if (v->headline)
		jw_str(&w, "headline", v->headline);
	if (v->data.depth == 1 && v->relies.n)
		relies_write(&v->relies, &v->data, "relies");
	while (v->data.depth > 0)
		jw_end(&v->data);
	/* "data" is written by the stage while it works, so it is spliced in as text. */
	jw_null(&w, "data");
	w.out.len -= 4;
	const char *s = buf_str(&v->data.out);
	for (; *s; s++) {
		if (*s == '\n' && !s[1])
			break;
		buf_addc(&w.out, *s);
		if (*s == '\n')
			buf_adds(&w.out, "  ");
	}
	jw_end(&w);
	buf_add(out, w.out.data, w.out.len);
	if (out->len && out->data[out->len - 1] != '\n')
		buf_addc(out, '\n');
	jw_free(&w);
}

/* `text` ends in "\n}\n"; the MAC becomes its last member. */
static int add_mac(struct verdict *v, struct buf *text, struct err *e)
{
	char mac[HASH_HEX];
	if (v->mac(v->mac_ctx, text->data, text->len, mac, e))
		return -1;
	text->len -= 3;
	buf_addf(text, ",\n  \"mac\": \"%s\"\n}\n", mac);
	return 0;
}

/* The folders of side files: at most the trial's, an attempt's and those below. */
static int sync_outputs(const struct verdict *v, struct err *e)
{
	char path[TRIAL_PATH], dir[TRIAL_PATH], last[TRIAL_PATH] = "";
	for (size_t i = 0; i < v->noutputs; i++) {
		trial_path(path, v->trial, v->outputs[i].name);
		if (file_sync(path, e))
			return -1;
		memcpy(dir, path, sizeof dir);
		*strrchr(dir, '/') = '\0';
		if (strcmp(dir, last) != 0 && file_sync_dir(dir, e))
			return -1;
		memcpy(last, dir, sizeof last);
	}
	return 0;
}

int verdict_write(struct verdict *v, struct err *e)
{
	char path[TRIAL_PATH];
	struct buf text = BUF_INIT;
	if (v->kind == V_NONE)
		return err_set(e, EX_HARNESS, "no verdict was decided");
	if (!reason_find(v->code))
		return err_set(e, EX_HARNESS, "reason code '%s' is not in the list", v->code);
	verdict_text(v, &text);
	trial_step_path(path, v->trial, v->step);
	int rc = v->mac ? add_mac(v, &text, e) : 0;
	if (!rc)
		rc = sync_outputs(v, e);
	if (!rc)
		rc = file_write(path, text.data, text.len, 0644, e);
	buf_free(&text);
	return rc;
}
