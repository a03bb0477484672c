/*
 * engine_spec.c - see engine_spec.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_spec.h"

#include "../engine/engine_protocol.h"
#include "buf.h"
#include "json.h"
#include "jwalk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TINY_POSITIONS = 4096, SHAPE_POSITIONS = 40960 };

static const struct json_limits LIMITS = {262144, 8};

int spec_kind(const char *text, size_t len, enum spec_kind *k, struct err *e)
{
	cJSON *top = json_parse(text, len, &LIMITS, "spec.json", e);
	if (!top)
		return -1;
	const char *kind = json_get_str(top, "kind", "kernel");
	int rc = 0;
	*k = SPEC_KERNEL;
	if (!strcmp(kind, "engine"))
		*k = SPEC_ENGINE;
	else if (strcmp(kind, "kernel") != 0 || (json_get(top, "kind") && !cJSON_IsString(json_get(top, "kind"))))
		rc = err_set(e, EX_BADINPUT, "spec.json: kind: is \"engine\", or \"kernel\", or not there");
	cJSON_Delete(top);
	return rc;
}

static int get_text(struct jwalk *w, const cJSON *obj, const char *key, size_t max, const char **out)
{
	const cJSON *item = jwalk_need(w, obj, key);
	size_t at = jwalk_enter(w, key);
	if (!item || !(*out = jwalk_string(w, item, max)))
		return -1;
	jwalk_leave(w, at);
	return 0;
}

static int parse_model(struct jwalk *w, const cJSON *item, struct engine_spec *s)
{
	static const char *const keys[] = {"family", "shape", "seed", NULL};
	static const char *const shapes[] = {"tiny", "0.6B", "1.7B", "4B", "8B", "any", NULL};
	const char *family, *shape;
	int64_t seed = 1;
	int i = 0;
	if (jwalk_object(w, item, keys) || get_text(w, item, "family", 32, &family) || get_text(w, item, "shape", 15, &shape) ||
	    jwalk_get_int(w, item, "seed", 1, INT64_C(1) << 52, &seed))
		return -1;
	if (strcmp(family, "qwen3") != 0)
		return jwalk_fail(w, "family is \"qwen3\"");
	while (shapes[i] && strcmp(shapes[i], shape) != 0)
		i++;
	if (!shapes[i])
		return jwalk_fail(w, "shape is tiny, 0.6B, 1.7B, 4B, 8B or any");
	snprintf(s->shape, sizeof s->shape, "%s", shape);
	s->seed = (uint64_t)seed;
	return 0;
}

static int parse_workload(struct jwalk *w, const cJSON *item, struct engine_workload *o)
{
	static const char *const keys[] = {"name", "batch", "prompt", "steps", NULL};
	int64_t v[3] = {0};
	const char *name;
	if (jwalk_object(w, item, keys) || get_text(w, item, "name", SPEC_NAME - 1, &name))
		return -1;
	for (int i = 0; i < 3; i++)
		if (!jwalk_need(w, item, keys[i + 1]) ||
		    jwalk_get_int(w, item, keys[i + 1], 1, i ? 1 << 20 : ENGINE_BATCH_MOST, &v[i]))
			return -1;
	if (v[0] * (v[1] + v[2]) > ENGINE_TOKENS_MOST)
		return jwalk_fail(w, "batch x (prompt + steps) is more than %d", ENGINE_TOKENS_MOST);
	snprintf(o->name, sizeof o->name, "%s", name);
	o->batch = (int)v[0], o->prompt = (int)v[1], o->steps = (int)v[2];
	return 0;
}

static int parse_list(struct jwalk *w, const cJSON *obj, const char *key, int min, struct engine_workload *o, int *n)
{
	const cJSON *list = jwalk_find(obj, key);
	if (!list)
		return min ? jwalk_fail(w, "'%s' is missing", key) : 0;
	size_t at = jwalk_enter(w, key);
	if (jwalk_array(w, list, min, ENGINE_WORKLOADS, n))
		return -1;
	for (int i = 0; i < *n; i++) {
		size_t in = jwalk_enter_at(w, i);
		if (parse_workload(w, cJSON_GetArrayItem(list, i), &o[i]))
			return -1;
		for (int k = 0; k < i; k++)
			if (!strcmp(o[k].name, o[i].name))
				return jwalk_fail(w, "the name '%s' is taken", o[i].name);
		jwalk_leave(w, in);
	}
	jwalk_leave(w, at);
	return 0;
}

static int parse_workloads(struct jwalk *w, const cJSON *item, struct engine_spec *s)
{
	static const char *const keys[] = {"public", "proxy", "odd", "tiny", NULL};
	return jwalk_object(w, item, keys) || parse_list(w, item, "public", 1, s->public, &s->npublic) ||
			       parse_list(w, item, "proxy", 0, s->proxy, &s->nproxy) ||
			       parse_list(w, item, "odd", 0, s->odd, &s->nodd) ||
			       parse_list(w, item, "tiny", 1, s->tiny, &s->ntiny)
		       ? -1 : 0;
}

static int numbers(struct jwalk *w, const cJSON *item, const char *const *keys, double *const *to, double least)
{
	if (jwalk_object(w, item, keys))
		return -1;
	for (int i = 0; keys[i]; i++) {
		if (jwalk_get_number(w, item, keys[i], to[i]))
			return -1;
		if (!(*to[i] >= least && *to[i] <= 1e15))
			return jwalk_fail(w, "%s is out of range", keys[i]);
	}
	return 0;
}

/* Positions of the checkpoints that make-checkpoint makes; 0: the user's own says. */
static int positions_of(const char *shape)
{
	return !strcmp(shape, "any") ? 0 : !strcmp(shape, "tiny") ? TINY_POSITIONS : SHAPE_POSITIONS;
}

/* What no engine of this shape can answer, and too few ids to know a model by. */
static int check_workloads(struct jwalk *w, const struct engine_spec *s)
{
	const struct engine_workload *const list[] = {s->public, s->proxy, s->odd, s->tiny};
	const int n[] = {s->npublic, s->nproxy, s->nodd, s->ntiny}, most = positions_of(s->shape);
	int ids = 0;
	for (int k = 0; k < 4; k++)
		for (int i = 0; i < n[k]; i++)
			if (most && list[k][i].prompt + list[k][i].steps > most)
				return jwalk_fail(w, "workload '%s': prompt + steps is %d, and a model of shape %s has %d positions",
						  list[k][i].name, list[k][i].prompt + list[k][i].steps, s->shape, most);
	for (int i = 0; i < s->ntiny; i++)
		ids += s->tiny[i].batch * s->tiny[i].steps;
	return ids >= ENGINE_TINY_IDS ? 0
		: jwalk_fail(w, "the tiny workloads have %d ids in all (batch x steps): %d at least tell a model", ids, ENGINE_TINY_IDS);
}

static int parse_promotion(struct jwalk *w, const cJSON *item, struct engine_spec *s)
{
	return numbers(w, item, (const char *const[]){"margin", "guard", NULL}, (double *const[]){&s->margin, &s->guard}, -1);
}

static int parse_gates(struct jwalk *w, const cJSON *item, struct engine_spec *s)
{
	return numbers(w, item, (const char *const[]){"native", "champion", "memory", "spread", NULL},
		       (double *const[]){&s->gate_native, &s->gate_champion, &s->gate_memory, &s->gate_spread}, 0);
}

static int parse_limits(struct jwalk *w, const cJSON *item, struct engine_spec *s)
{
	static const char *const keys[] = {"load_s", "step_s", "source_bytes", "files", "memory_bytes", NULL};
	if (jwalk_object(w, item, keys) || jwalk_get_number(w, item, "load_s", &s->load_s) ||
	    jwalk_get_number(w, item, "step_s", &s->step_s) ||
	    jwalk_get_int(w, item, "source_bytes", 1, 1 << 24, &s->source_bytes) ||
	    jwalk_get_int(w, item, "files", 1, 64, &s->files) ||
	    jwalk_get_int(w, item, "memory_bytes", 1 << 20, INT64_C(1) << 40, &s->memory_bytes))
		return -1;
	return s->load_s > 0 && s->load_s <= 120 && s->step_s > 0 && s->step_s <= 600
		       ? 0 : jwalk_fail(w, "load_s is at most 120, step_s at most 600, both above 0");
}

static int parse_top(struct jwalk *w, const cJSON *top, struct engine_spec *s)
{
	static const char *const keys[] = {"schema", "kind", "name", "description", "model", "language", "workloads",
					   "promotion", "gates", "limits", NULL};
	static const struct {
		const char *key;
		int needed;
		int (*parse)(struct jwalk *w, const cJSON *item, struct engine_spec *s);
	} part[] = {{"model", 1, parse_model}, {"workloads", 1, parse_workloads}, {"promotion", 0, parse_promotion},
		    {"gates", 0, parse_gates}, {"limits", 0, parse_limits}};
	const char *schema, *kind, *name, *description, *language;
	if (jwalk_object(w, top, keys) || get_text(w, top, "schema", 64, &schema) || get_text(w, top, "kind", 16, &kind) ||
	    get_text(w, top, "name", SPEC_NAME - 1, &name) || get_text(w, top, "description", 2000, &description) ||
	    get_text(w, top, "language", 8, &language))
		return -1;
	if (strcmp(schema, "touchstone/spec/1") || strcmp(kind, "engine"))
		return jwalk_fail(w, "schema is \"touchstone/spec/1\", kind \"engine\"");
	if (strcmp(language, "c") && strcmp(language, "cuda"))
		return jwalk_fail(w, "language is \"c\" or \"cuda\"");
	s->cuda = !strcmp(language, "cuda");
	s->memory_bytes = INT64_C(4) << (s->cuda ? 34 : 30);
	snprintf(s->name, sizeof s->name, "%s", name);
	s->description = xstrdup(description);
	for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
		const cJSON *item = part[i].needed ? jwalk_need(w, top, part[i].key) : jwalk_find(top, part[i].key);
		if (!item && part[i].needed)
			return -1;
		if (!item)
			continue;
		size_t at = jwalk_enter(w, part[i].key);
		if (part[i].parse(w, item, s))
			return -1;
		jwalk_leave(w, at);
	}
	return check_workloads(w, s);
}

int engine_spec_parse(const char *text, size_t len, const char *file, struct engine_spec **out, struct err *e)
{
	struct jwalk w;
	cJSON *top = json_parse(text, len, &LIMITS, file, e);
	if (!top)
		return -1;
	struct engine_spec *s = xcalloc(1, sizeof *s);
	*s = (struct engine_spec){.margin = 0.01, .guard = -0.03, .gate_native = 1.05, .gate_champion = 0.05, .gate_memory = 0.9,
				  .gate_spread = 0.25, .load_s = 60, .step_s = 10, .source_bytes = 262144, .files = 16};
	snprintf(s->file, sizeof s->file, "%s", file);
	jwalk_begin(&w, s->file, e);
	int rc = parse_top(&w, top, s);
	cJSON_Delete(top);
	if (rc) {
		engine_spec_free(s);
		return -1;
	}
	*out = s;
	return 0;
}

void engine_spec_free(struct engine_spec *s)
{
	if (s)
		free(s->description);
	free(s);
}
