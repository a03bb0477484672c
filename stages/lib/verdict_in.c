/*
 * verdict_in.c - see verdict.h: the strict reader.
 *
 * SPDX-License-Identifier: MIT
 */
#include "verdict.h"

#include "file.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

static int check_place(struct verdict_in *in, const char *trial, struct err *e)
{
	const struct step_info *step = step_info(in->step);
	const char *stage = json_str(in->json, "stage", in->path, e);
	const char *id = stage ? json_str(in->json, "trial", in->path, e) : NULL;
	if (!id)
		return -1;
	const char *want = step->stage;
	int64_t attempt = -1;
	const cJSON *a = json_get(in->json, "attempt");
	if (a && json_is_int(a, &attempt))
		attempt = -2;
	if (strcmp(stage, want) != 0 || strcmp(id, trial) != 0 || attempt != step->attempt)
		return err_set(e, EX_BADINPUT, "'%s' is the verdict of another step or trial",
			       in->path);
	return 0;
}

static int check_pairs(const cJSON *obj, const char *path, struct err *e)
{
	for (const cJSON *p = obj->child; p; p = p->next)
		if (!cJSON_IsString(p) || !hash_is_hex(p->valuestring))
			return err_set(e, EX_BADINPUT, "%s: '%s' is not a hash", path, p->string);
	return 0;
}

static int take(struct verdict_in *in, const char *trial, struct err *e)
{
	const char *path = in->path;
	const char *schema = json_str(in->json, "schema", path, e);
	if (!schema)
		return -1;
	if (strcmp(schema, VERDICT_SCHEMA) != 0)
		return err_set(e, EX_BADINPUT, "'%s' is no verdict", path);
	if (check_place(in, trial, e))
		return -1;
	const char *kind = json_str(in->json, "verdict", path, e);
	const cJSON *reason = kind ? json_obj(in->json, "reason", path, e) : NULL;
	if (!reason || !(in->code = json_str(reason, "code", path, e)) ||
	    !(in->message = json_str(reason, "message", path, e)) ||
	    !(in->run = json_str(in->json, "run", path, e)) ||
	    !(in->inputs = json_obj(in->json, "inputs", path, e)) ||
	    !(in->outputs = json_obj(in->json, "outputs", path, e)) ||
	    !(in->data = json_obj(in->json, "data", path, e)))
		return -1;
	in->kind = verdict_kind_parse(kind);
	if (in->kind == V_NONE)
		return err_set(e, EX_BADINPUT, "%s: verdict '%.20s' is unknown", path, kind);
	return check_pairs(in->inputs, path, e) || check_pairs(in->outputs, path, e) ? -1 : 0;
}

int verdict_parse(const char *text, size_t len, const char *trial, enum step step, struct verdict_in *in,
		  struct err *e)
{
	struct buf copy = BUF_INIT;
	memset(in, 0, sizeof *in);
	trial_step_path(in->path, trial, step);
	in->step = step;
	hash_hex(text, len, in->sha);
	buf_add(&copy, text, len);
	in->len = len;
	in->text = copy.data ? copy.data : xstrdup("");
	in->json = json_parse(in->text, in->len, &JSON_OURS, in->path, e);
	if (!in->json || take(in, trial, e)) {
		verdict_in_free(in);
		return -1;
	}
	return 0;
}

int verdict_read(const char *trial, enum step step, struct verdict_in *in, struct err *e)
{
	struct buf text = BUF_INIT;
	memset(in, 0, sizeof *in);
	trial_step_path(in->path, trial, step);
	int rc = file_read(in->path, JSON_OURS.bytes, &text, e) ||
		 verdict_parse(buf_str(&text), text.len, trial, step, in, e) ? -1 : 0;
	buf_free(&text);
	return rc;
}

void verdict_in_free(struct verdict_in *in)
{
	cJSON_Delete(in->json);
	free(in->text);
	in->json = NULL;
	in->text = NULL;
}

static const char *pair_of(const cJSON *obj, const char *name)
{
	return obj ? json_get_str(obj, name, NULL) : NULL;
}

const char *verdict_in_input(const struct verdict_in *in, const char *name)
{
	return pair_of(in->inputs, name);
}

const char *verdict_in_output(const struct verdict_in *in, const char *file)
{
	return pair_of(in->outputs, file);
}

int verdict_body(const struct verdict_in *in, struct buf *body, char mac[HASH_HEX],
		 struct err *e)
{
	static const char head[] = ",\n  \"mac\": \"", tail[] = "\"\n}\n";
	const size_t h = sizeof head - 1, t = sizeof tail - 1, all = h + 64 + t;
	const char *p = in->text + in->len - all;
	if (in->len < all || memcmp(p, head, h) != 0 || memcmp(p + h + 64, tail, t) != 0)
		return err_set(e, EX_BADINPUT, "'%s' carries no signature", in->path);
	memcpy(mac, p + h, 64);
	mac[64] = '\0';
	if (!hash_is_hex(mac))
		return err_set(e, EX_BADINPUT, "'%s' carries no signature", in->path);
	buf_add(body, in->text, in->len - all);
	buf_adds(body, "\n}\n");
	return 0;
}
