/*
 * spec_parse.c - spec.json to struct spec: everything but fills, comparators and workloads.
 *
 * Grammar (FlashInfer-Bench names where it has them):
 *
 *   schema "touchstone/spec/1", name, op_type, description, playbook
 *   axes {NAME: {"type": "var"} | {"type": "const", "value": N}}
 *   constraints ["N % 4 == 0", ...]                          over axes
 *   inputs  {NAME: {shape: [axis | expression | N, ...] | null, dtype, fill}}
 *   outputs {NAME: {shape, dtype, compare}}
 *   compute {operand, accumulator, intermediate}
 *   reference {"source": FILE, "plan": FILE} | {"command": [PROGRAM, ARG...]}
 *   start FOLDER, workloads {public, held_out, tiny}, cost {bytes, flops},
 *   promotion {margin, guard}, limits {...}, headers [NAME, ...]
 *
 * SPDX-License-Identifier: MIT
 */
#include "spec_parse.h"

#include "buf.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const SPEC_KEYS[] = {
	"schema", "name", "op_type", "description", "axes", "constraints", "inputs", "outputs", "compute",
	"reference", "start", "workloads", "cost", "promotion", "limits", "headers",
	"playbook", NULL,
};

/* Names that expressions already use, beside its functions. */
static const char *const TAKEN[] = {"sm_count", "max_shared", "max_threads", "warp_size", "l2_bytes", NULL};

static int taken(const char *name)
{
	for (int i = 0; TAKEN[i]; i++)
		if (!strcmp(TAKEN[i], name))
			return 1;
	return expr_is_function(name);
}

static int parse_axes(struct jwalk *w, const cJSON *item, struct spec *s)
{
	static const char *const keys[] = {"type", "value", "description", NULL};
	static const char *const types[] = {"const", "var", NULL};
	if (jwalk_object(w, item, NULL))
		return -1;
	for (const cJSON *m = item->child; m; m = m->next) {
		size_t at = jwalk_enter(w, m->string);
		if (s->naxes == SPEC_MAX_AXES)
			return jwalk_fail(w, "at most %d axes", SPEC_MAX_AXES);
		struct spec_axis *a = &s->axis[s->naxes++];
		int type = 1;
		cJSON name = {.type = cJSON_String, .valuestring = m->string};
		if (jwalk_identifier(w, &name, SPEC_MAX_ID, a->name) || jwalk_object(w, m, keys))
			return -1;
		if (taken(a->name))
			return jwalk_fail(w, "the name '%s' is taken", a->name);
		const cJSON *t = jwalk_need(w, m, "type");
		size_t here = jwalk_enter(w, "type");
		if (!t || jwalk_choice(w, t, types, &type))
			return -1;
		jwalk_leave(w, here);
		a->is_const = type == 0;
		if (a->is_const != (jwalk_find(m, "value") != NULL))
			return jwalk_fail(w, "a const axis has a value, a var axis has none");
		if (jwalk_get_int(w, m, "value", 1, (int64_t)1 << 40, &a->value))
			return -1;
		jwalk_leave(w, at);
	}
	return 0;
}

int spec_check_names(struct jwalk *w, const struct spec *s, const struct expr *x)
{
	if (!x)
		return 0;
	const char *name;
	for (int i = 0; (name = expr_name_used(x, i)); i++)
		if (spec_axis_find(s, name) < 0)
			return err_set(w->e, EX_BADINPUT, "%s: unknown axis '%s'", expr_where(x), name);
	enum expr_call c;
	if (expr_call_used(x, 0, &c))
		return err_set(w->e, EX_BADINPUT, "%s: %s() may not be used in a spec", expr_where(x),
			       expr_call_name(c));
	return 0;
}

static int parse_constraints(struct jwalk *w, const cJSON *item, struct spec *s)
{
	int n, i = 0;
	if (jwalk_array(w, item, 0, SPEC_MAX_CONSTRAINTS, &n))
		return -1;
	for (const cJSON *m = item->child; m; m = m->next) {
		size_t at = jwalk_enter_at(w, i++);
		if (jwalk_expr(w, m, &s->constraint[s->nconstraints++]) ||
		    spec_check_names(w, s, s->constraint[s->nconstraints - 1]))
			return -1;
		jwalk_leave(w, at);
	}
	return 0;
}

static int parse_shape(struct jwalk *w, const cJSON *item, const struct spec *s, struct spec_tensor *t)
{
	size_t at = jwalk_enter(w, "shape");
	if (cJSON_IsNull(item)) {
		t->scalar = 1;
		jwalk_leave(w, at);
		return 0;
	}
	if (jwalk_array(w, item, 1, SPEC_MAX_RANK, &t->rank))
		return -1;
	int i = 0;
	for (const cJSON *m = item->child; m; m = m->next, i++) {
		size_t here = jwalk_enter_at(w, i);
		if (jwalk_expr(w, m, &t->dim[i]) || spec_check_names(w, s, t->dim[i]))
			return -1;
		jwalk_leave(w, here);
	}
	jwalk_leave(w, at);
	return 0;
}

static int parse_dtype(struct jwalk *w, const cJSON *obj, const char *key, enum dtype *out)
{
	const cJSON *item = jwalk_need(w, obj, key);
	if (!item)
		return -1;
	size_t at = jwalk_enter(w, key);
	const char *s = jwalk_string(w, item, 32);
	if (!s)
		return -1;
	*out = dtype_parse(s);
	if (*out == DT_NONE || strcmp(dtype_name(*out), s))
		return jwalk_fail(w, strcmp(s, "float4_e2m1") ? "unknown dtype '%s'" : "dtype '%s' is not supported here",
				  s);
	jwalk_leave(w, at);
	return 0;
}

static int name_taken(const struct spec *s, const char *name)
{
	return spec_axis_find(s, name) >= 0 || spec_input_find(s, name) >= 0 || spec_output_find(s, name) >= 0;
}

static int parse_tensor(struct jwalk *w, const cJSON *m, const struct spec *s, struct spec_tensor *t)
{
	char name[SPEC_NAME];
	cJSON text = {.type = cJSON_String, .valuestring = m->string};
	if (jwalk_identifier(w, &text, SPEC_MAX_ID, name))
		return -1;
	if (name_taken(s, name))
		return jwalk_fail(w, "the name '%s' is used twice", name);
	memcpy(t->name, name, sizeof t->name);
	const cJSON *shape = jwalk_need(w, m, "shape");
	return !shape || parse_dtype(w, m, "dtype", &t->dtype) || parse_shape(w, shape, s, t) ? -1 : 0;
}

static int parse_inputs(struct jwalk *w, const cJSON *item, struct spec *s)
{
	static const char *const keys[] = {"shape", "dtype", "fill", "description", NULL};
	if (jwalk_object(w, item, NULL))
		return -1;
	for (const cJSON *m = item->child; m; m = m->next) {
		size_t at = jwalk_enter(w, m->string);
		if (s->ninputs == SPEC_MAX_TENSORS)
			return jwalk_fail(w, "at most %d inputs", SPEC_MAX_TENSORS);
		struct spec_tensor *t = &s->input[s->ninputs];
		if (jwalk_object(w, m, keys) || parse_tensor(w, m, s, t))
			return -1;
		s->ninputs++;
		size_t here = jwalk_enter(w, "fill");
		if (spec_parse_fill(w, jwalk_find(m, "fill"), t) || spec_check_names(w, s, t->fill.from) ||
		    spec_check_names(w, s, t->fill.to))
			return -1;
		jwalk_leave(w, here);
		jwalk_leave(w, at);
	}
	return 0;
}

static int parse_outputs(struct jwalk *w, const cJSON *item, struct spec *s)
{
	static const char *const keys[] = {"shape", "dtype", "compare", "description", NULL};
	if (jwalk_object(w, item, NULL))
		return -1;
	for (const cJSON *m = item->child; m; m = m->next) {
		size_t at = jwalk_enter(w, m->string);
		if (s->noutputs == SPEC_MAX_TENSORS)
			return jwalk_fail(w, "at most %d outputs", SPEC_MAX_TENSORS);
		struct spec_tensor *t = &s->output[s->noutputs];
		if (jwalk_object(w, m, keys) || parse_tensor(w, m, s, t))
			return -1;
		if (t->scalar)
			return jwalk_fail(w, "an output has a shape");
		s->noutputs++;
		jwalk_leave(w, at);
	}
	if (!s->noutputs)
		return jwalk_fail(w, "at least one output");
	/* Comparators may name any output, so they come second. */
	for (int i = 0; i < s->noutputs; i++) {
		size_t at = jwalk_enter(w, s->output[i].name), here = jwalk_enter(w, "compare");
		const cJSON *m = jwalk_find(jwalk_find(item, s->output[i].name), "compare");
		if (spec_parse_compare(w, m, s, &s->output[i]))
			return -1;
		jwalk_leave(w, here);
		jwalk_leave(w, at);
	}
	return 0;
}

static int parse_compute(struct jwalk *w, const cJSON *item, struct spec *s)
{
	static const char *const keys[] = {"operand", "accumulator", "intermediate", NULL};
	if (jwalk_object(w, item, keys))
		return -1;
	const cJSON *o = jwalk_find(item, "operand");
	if (cJSON_IsString(o) && !strcmp(o->valuestring, "tfloat32")) {
		s->operand = DT_F32;
		s->tf32 = 1;
	} else if (parse_dtype(w, item, "operand", &s->operand)) {
		return -1;
	}
	if (parse_dtype(w, item, "accumulator", &s->accumulator))
		return -1;
	s->intermediate = s->accumulator;
	return jwalk_find(item, "intermediate") ? parse_dtype(w, item, "intermediate", &s->intermediate) : 0;
}

/* A file or folder of the spec's own: no path, no hidden name. */
static int parse_file(struct jwalk *w, const cJSON *item, char **out)
{
	const char *s = jwalk_string(w, item, 64);
	if (!s)
		return -1;
	int ok = isalnum((unsigned char)s[0]);
	for (const char *c = s; *c; c++)
		ok = ok && (isalnum((unsigned char)*c) || strchr("._-", *c));
	if (!ok)
		return jwalk_fail(w, "'%.64s' is not a plain file name", s);
	*out = xstrdup(s);
	return 0;
}

static int parse_command(struct jwalk *w, const cJSON *item, struct spec *s)
{
	int n;
	size_t at = jwalk_enter(w, "command");
	if (jwalk_array(w, item, 1, SPEC_MAX_ARGV, &n))
		return -1;
	for (const cJSON *m = item->child; m; m = m->next) {
		size_t here = jwalk_enter_at(w, s->reference_argc);
		const char *text = jwalk_string(w, m, 256);
		if (!text)
			return -1;
		s->reference_argv[s->reference_argc++] = xstrdup(text);
		jwalk_leave(w, here);
	}
	jwalk_leave(w, at);
	return 0;
}

static int parse_reference(struct jwalk *w, const cJSON *item, struct spec *s)
{
	static const char *const keys[] = {"source", "plan", "command", NULL};
	if (jwalk_object(w, item, keys))
		return -1;
	const cJSON *source = jwalk_find(item, "source"), *plan = jwalk_find(item, "plan");
	const cJSON *command = jwalk_find(item, "command");
	if ((command != NULL) == (source != NULL) || (source != NULL) != (plan != NULL))
		return jwalk_fail(w, "either source and plan, or command");
	if (command)
		return parse_command(w, command, s);
	size_t at = jwalk_enter(w, "source");
	if (parse_file(w, source, &s->reference_source))
		return -1;
	jwalk_leave(w, at);
	at = jwalk_enter(w, "plan");
	if (parse_file(w, plan, &s->reference_plan))
		return -1;
	jwalk_leave(w, at);
	return 0;
}

static int parse_cost(struct jwalk *w, const cJSON *item, struct spec *s)
{
	static const char *const keys[] = {"bytes", "flops", NULL};
	return jwalk_object(w, item, keys) || jwalk_get_expr(w, item, "bytes", &s->cost_bytes) ||
			       jwalk_get_expr(w, item, "flops", &s->cost_flops) ||
			       spec_check_names(w, s, s->cost_bytes) || spec_check_names(w, s, s->cost_flops)
		       ? -1
		       : 0;
}

static int parse_promotion(struct jwalk *w, const cJSON *item, struct spec *s)
{
	static const char *const keys[] = {"margin", "guard", NULL};
	if (jwalk_object(w, item, keys) || jwalk_get_number(w, item, "margin", &s->margin) ||
	    jwalk_get_number(w, item, "guard", &s->guard))
		return -1;
	if (!(s->margin >= 0 && s->margin < 1))
		return jwalk_fail(w, "margin is outside 0..1");
	if (!(s->guard <= 0 && s->guard > -1))
		return jwalk_fail(w, "guard is outside -1..0");
	return 0;
}

static int parse_limits(struct jwalk *w, const cJSON *item, struct spec *s)
{
	static const char *const keys[] = {"buffer_bytes", "total_bytes", "workspace_bytes", "launches",
					   "source_bytes", "compile_s", "run_s", NULL};
	struct spec_limits *l = &s->limits;
	const int64_t tera = (int64_t)1 << 40;
	return jwalk_object(w, item, keys) ||
			       jwalk_get_int(w, item, "buffer_bytes", 1, tera, &l->buffer_bytes) ||
			       jwalk_get_int(w, item, "total_bytes", 1, tera, &l->total_bytes) ||
			       jwalk_get_int(w, item, "workspace_bytes", 0, tera, &l->workspace_bytes) ||
			       jwalk_get_int(w, item, "launches", 1, 65536, &l->launches) ||
			       jwalk_get_int(w, item, "source_bytes", 1, 1 << 20, &l->source_bytes) ||
			       jwalk_get_int(w, item, "compile_s", 1, 3600, &l->compile_s) ||
			       jwalk_get_int(w, item, "run_s", 1, 3600, &l->run_s)
		       ? -1
		       : 0;
}

static int parse_headers(struct jwalk *w, const cJSON *item, struct spec *s)
{
	int n;
	if (jwalk_array(w, item, 0, SPEC_MAX_HEADERS, &n))
		return -1;
	for (const cJSON *m = item->child; m; m = m->next) {
		size_t at = jwalk_enter_at(w, s->nheaders);
		if (parse_file(w, m, &s->header[s->nheaders]))
			return -1;
		s->nheaders++;
		jwalk_leave(w, at);
	}
	return 0;
}

static int parse_playbook(struct jwalk *w, const cJSON *item, struct spec *s)
{
	int n;
	if (jwalk_array(w, item, 1, 2, &n))
		return -1;
	for (const cJSON *m = item->child; m; m = m->next) {
		size_t at = jwalk_enter_at(w, s->nplaybooks);
		const char *name = jwalk_string(w, m, SPEC_MAX_ID);
		if (!name)
			return -1;
		if (!*name || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(name))
			return jwalk_fail(w, "the name of a playbook consists of a-z 0-9 -");
		if (s->nplaybooks && !strcmp(s->playbook[0], name))
			return jwalk_fail(w, "named twice");
		snprintf(s->playbook[s->nplaybooks++], sizeof s->playbook[0], "%s", name);
		jwalk_leave(w, at);
	}
	return 0;
}

static int parse_start(struct jwalk *w, const cJSON *item, struct spec *s)
{
	return parse_file(w, item, &s->start);
}

static int parse_text(struct jwalk *w, const cJSON *top, struct spec *s)
{
	static const struct {
		const char *key;
		size_t max;
	} text[] = {{"schema", 64}, {"name", 64}, {"op_type", 64}, {"description", 4096}};
	const char *got[4] = {NULL, NULL, "", ""};
	for (int i = 0; i < 4; i++) {
		const cJSON *item = i < 2 ? jwalk_need(w, top, text[i].key) : jwalk_find(top, text[i].key);
		if (!item && i < 2)
			return -1;
		size_t at = jwalk_enter(w, text[i].key);
		if (item && !(got[i] = jwalk_string(w, item, text[i].max)))
			return -1;
		if (i == 0 && strcmp(got[0], "touchstone/spec/1"))
			return jwalk_fail(w, "'%s' is not touchstone/spec/1", got[0]);
		if (i == 1 && strspn(got[1], "abcdefghijklmnopqrstuvwxyz0123456789_-") != strlen(got[1]))
			return jwalk_fail(w, "a name consists of a-z 0-9 _ -");
		if (i == 1 && !got[1][0])
			return jwalk_fail(w, "the name is empty");
		if (i == 1 && !strcmp(got[1], "shipped")) /* champion/shipped/ */
			return jwalk_fail(w, "the name 'shipped' is taken");
		jwalk_leave(w, at);
	}
	snprintf(s->name, sizeof s->name, "%s", got[1]);
	snprintf(s->op_type, sizeof s->op_type, "%s", got[2]);
	s->description = xstrdup(got[3]);
	return 0;
}

static int parse_top(struct jwalk *w, const cJSON *top, struct spec *s)
{
	static const struct {
		const char *key;
		int needed;
		int (*parse)(struct jwalk *w, const cJSON *item, struct spec *s);
	} part[] = {
		{"axes", 1, parse_axes},           {"constraints", 0, parse_constraints},
		{"inputs", 1, parse_inputs},       {"outputs", 1, parse_outputs},
		{"compute", 1, parse_compute},     {"reference", 1, parse_reference},
		{"start", 0, parse_start},         {"cost", 0, parse_cost},
		{"promotion", 0, parse_promotion}, {"limits", 0, parse_limits},
		{"headers", 0, parse_headers},     {"workloads", 1, spec_parse_workloads},
		{"playbook", 0, parse_playbook},
	};
	if (jwalk_find(top, "kind"))
		return jwalk_fail(w, "an engine problem: what was asked for knows kernels alone");
	if (jwalk_object(w, top, SPEC_KEYS) || parse_text(w, top, s))
		return -1;
	for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
		const cJSON *item = part[i].needed ? jwalk_need(w, top, part[i].key)
						   : jwalk_find(top, part[i].key);
		if (!item && part[i].needed)
			return -1;
		if (!item)
			continue;
		size_t at = jwalk_enter(w, part[i].key);
		if (part[i].parse(w, item, s))
			return -1;
		jwalk_leave(w, at);
	}
	return 0;
}

int spec_parse(const char *text, size_t len, const char *file, struct spec **out, struct err *e)
{
	static const struct json_limits limits = {262144, 8};
	cJSON *top = json_parse(text, len, &limits, file, e);
	if (!top)
		return -1;
	struct spec *s = xcalloc(1, sizeof *s);
	snprintf(s->file, sizeof s->file, "%s", file);
	s->margin = 0.02;
	s->guard = -0.03;
	s->limits = (struct spec_limits){(int64_t)16 << 30, (int64_t)64 << 30, (int64_t)16 << 30, 4096,
					 65536, 120, 20};
	struct jwalk w;
	jwalk_begin(&w, s->file, e);
	int rc = parse_top(&w, top, s);
	cJSON_Delete(top);
	if (rc) {
		spec_free(s);
		return -1;
	}
	*out = s;
	return 0;
}
