/*
 * spec_workloads.c - workloads of spec.json. Held-out ones are drawn in spec_draw.c.
 *
 *   public   [{"name": "w0", "axes": {"N": 4096}, "weight": 1, "emu": {"N": 64}}, ...]
 *   tiny     [{"N": 7}, ...]
 *   held_out {"count": 2, "axes": {AXIS: RANGE, ...}, "emu": {AXIS: RANGE, ...}}
 *   RANGE    N | {"min", "max", "multiple_of"} | {"values": [...]} | {"equals": "A + B"}
 *
 * Every var axis is given in axes; emu replaces some of them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "spec_parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AXIS_MAX ((int64_t)1 << 40)

static int var_axis(struct jwalk *w, const struct spec *s, const char *name, int *index)
{
	*index = spec_axis_find(s, name);
	if (*index < 0)
		return jwalk_fail(w, "unknown axis '%.64s'", name);
	if (s->axis[*index].is_const)
		return jwalk_fail(w, "axis '%.64s' is const", name);
	return 0;
}

static int parse_values(struct jwalk *w, const cJSON *item, const struct spec *s, struct axes *a)
{
	if (jwalk_object(w, item, NULL))
		return -1;
	for (const cJSON *m = item->child; m; m = m->next) {
		int i;
		if (var_axis(w, s, m->string, &i) || jwalk_get_int(w, item, m->string, 1, AXIS_MAX, &a->v[i]))
			return -1;
	}
	for (int i = 0; i < s->naxes; i++)
		if (!a->v[i])
			return jwalk_fail(w, "axis '%s' is missing", s->axis[i].name);
	return 0;
}

/* The values must make a problem that fits. */
static int check(struct jwalk *w, const struct spec *s, const struct axes *a)
{
	struct err inner;
	if (!spec_axes_check(s, a, &inner))
		return 0;
	return jwalk_fail(w, "%.200s", inner.text + (strncmp(inner.text, s->file, strlen(s->file)) ? 0
						     : strlen(s->file) + 2));
}

static int parse_public_one(struct jwalk *w, const cJSON *m, struct spec *s)
{
	static const char *const keys[] = {"name", "axes", "weight", "emu", NULL};
	struct spec_workload *k = &s->public[s->npublic];
	k->weight = 1;
	spec_consts(s, &k->gpu);
	snprintf(k->name, sizeof k->name, "w%d", s->npublic);
	const cJSON *axes, *emu = jwalk_find(m, "emu"), *name = jwalk_find(m, "name");
	if (jwalk_object(w, m, keys) || !(axes = jwalk_need(w, m, "axes")) ||
	    jwalk_get_number(w, m, "weight", &k->weight))
		return -1;
	if (!(k->weight > 0 && k->weight <= 1e6))
		return jwalk_fail(w, "weight is outside 0..1e6");
	if (name) {
		const char *text = jwalk_string(w, name, 64);
		if (!text)
			return -1;
		if (!text[0] || strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-") != strlen(text))
			return jwalk_fail(w, "a workload name consists of a-z 0-9 _ -");
		if (!strncmp(text, "tiny", 4))
			return jwalk_fail(w, "names that begin with 'tiny' are taken");
		snprintf(k->name, sizeof k->name, "%s", text);
	}
	for (int i = 0; i < s->npublic; i++)
		if (!strcmp(s->public[i].name, k->name))
			return jwalk_fail(w, "the name '%s' is used twice", k->name);
	size_t at = jwalk_enter(w, "axes");
	if (parse_values(w, axes, s, &k->gpu) || check(w, s, &k->gpu))
		return -1;
	jwalk_leave(w, at);
	k->emu = k->gpu;
	at = jwalk_enter(w, "emu");
	if (emu && (parse_values(w, emu, s, &k->emu) || check(w, s, &k->emu)))
		return -1;
	jwalk_leave(w, at);
	s->npublic++;
	return 0;
}

static int parse_public(struct jwalk *w, const cJSON *item, struct spec *s)
{
	int n, i = 0;
	if (jwalk_array(w, item, 1, SPEC_MAX_WORKLOADS, &n))
		return -1;
	for (const cJSON *m = item->child; m; m = m->next) {
		size_t at = jwalk_enter_at(w, i++);
		if (parse_public_one(w, m, s))
			return -1;
		jwalk_leave(w, at);
	}
	return 0;
}

static int parse_tiny(struct jwalk *w, const cJSON *item, struct spec *s)
{
	int n;
	if (jwalk_array(w, item, 1, SPEC_MAX_WORKLOADS, &n))
		return -1;
	for (const cJSON *m = item->child; m; m = m->next) {
		struct spec_workload *k = &s->tiny[s->ntiny];
		size_t at = jwalk_enter_at(w, s->ntiny);
		spec_consts(s, &k->gpu);
		snprintf(k->name, sizeof k->name, "tiny%d", s->ntiny);
		k->weight = 1;
		if (parse_values(w, m, s, &k->gpu) || check(w, s, &k->gpu))
			return -1;
		k->emu = k->gpu;
		s->ntiny++;
		jwalk_leave(w, at);
	}
	return 0;
}

static int parse_range_list(struct jwalk *w, const cJSON *item, struct spec_range *r)
{
	size_t at = jwalk_enter(w, "values");
	if (jwalk_array(w, item, 1, SPEC_MAX_VALUES, &r->nvalues))
		return -1;
	int i = 0;
	for (const cJSON *m = item->child; m; m = m->next, i++) {
		size_t here = jwalk_enter_at(w, i);
		if (jwalk_int(w, m, 1, AXIS_MAX, &r->value[i]))
			return -1;
		jwalk_leave(w, here);
	}
	jwalk_leave(w, at);
	return 0;
}

static int parse_range(struct jwalk *w, const cJSON *item, const struct spec *s, struct spec_range *r)
{
	static const char *const keys[] = {"min", "max", "multiple_of", "values", "equals", NULL};
	expr_free(r->equals);
	*r = (struct spec_range){.set = 1, .min = 1, .max = 0, .multiple_of = 1};
	if (cJSON_IsNumber(item)) {
		r->nvalues = 1;
		return jwalk_int(w, item, 1, AXIS_MAX, &r->value[0]);
	}
	if (jwalk_object(w, item, keys))
		return -1;
	const cJSON *list = jwalk_find(item, "values"), *equals = jwalk_find(item, "equals");
	int bounded = jwalk_find(item, "min") || jwalk_find(item, "max") || jwalk_find(item, "multiple_of");
	if ((list != NULL) + (equals != NULL) + bounded != 1)
		return jwalk_fail(w, "either min and max, or values, or equals");
	if (list)
		return parse_range_list(w, list, r);
	if (equals)
		return jwalk_get_expr(w, item, "equals", &r->equals) || spec_check_names(w, s, r->equals) ? -1 : 0;
	if (!jwalk_need(w, item, "max") || jwalk_get_int(w, item, "min", 1, AXIS_MAX, &r->min) ||
	    jwalk_get_int(w, item, "max", 1, AXIS_MAX, &r->max) ||
	    jwalk_get_int(w, item, "multiple_of", 1, AXIS_MAX, &r->multiple_of))
		return -1;
	if ((r->min - 1) / r->multiple_of + 1 > r->max / r->multiple_of)
		return jwalk_fail(w, "no value lies between min and max");
	return 0;
}

static int parse_ranges(struct jwalk *w, const cJSON *item, const struct spec *s, struct spec_range *r)
{
	if (jwalk_object(w, item, NULL))
		return -1;
	for (const cJSON *m = item->child; m; m = m->next) {
		int i;
		if (var_axis(w, s, m->string, &i))
			return -1;
		size_t at = jwalk_enter(w, m->string);
		if (parse_range(w, m, s, &r[i]))
			return -1;
		jwalk_leave(w, at);
	}
	return 0;
}

/* A throw-away generator (splitmix64) to see that a draw is possible at all. */
static uint64_t trial_word(void *ctx)
{
	uint64_t z = (*(uint64_t *)ctx += 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* emu ranges fall back to the main ones; an owned expression is parsed again. */
static int complete_emu(struct jwalk *w, const cJSON *axes, struct spec *s)
{
	for (int i = 0; i < s->naxes; i++) {
		if (s->axis[i].is_const)
			continue;
		if (!s->held_out[i].set)
			return jwalk_fail(w, "axis '%s' is missing", s->axis[i].name);
		if (!s->held_out_emu[i].set &&
		    parse_range(w, jwalk_find(axes, s->axis[i].name), s, &s->held_out_emu[i]))
			return -1;
	}
	return 0;
}

static int parse_held_out(struct jwalk *w, const cJSON *item, struct spec *s)
{
	static const char *const keys[] = {"count", "axes", "emu", NULL};
	int64_t count = 2;
	const cJSON *axes, *emu = jwalk_find(item, "emu");
	if (jwalk_object(w, item, keys) || jwalk_get_int(w, item, "count", 0, 64, &count) ||
	    !(axes = jwalk_need(w, item, "axes")))
		return -1;
	size_t at = jwalk_enter(w, "axes");
	if (parse_ranges(w, axes, s, s->held_out))
		return -1;
	jwalk_leave(w, at);
	at = jwalk_enter(w, "emu");
	if (emu && parse_ranges(w, emu, s, s->held_out_emu))
		return -1;
	jwalk_leave(w, at);
	if (complete_emu(w, axes, s))
		return -1;
	s->held_out_count = (int)count;
	for (int k = 0; k < 2; k++) {
		struct axes a;
		uint64_t state = 1;
		struct err inner;
		if (spec_draw(s, k, 0, trial_word, &state, &a, &inner))
			return jwalk_fail(w, "no draw%s satisfies the constraints", k ? " for emu" : "");
	}
	return 0;
}

int spec_parse_workloads(struct jwalk *w, const cJSON *item, struct spec *s)
{
	static const char *const keys[] = {"public", "held_out", "tiny", NULL};
	static int (*const parse[])(struct jwalk *, const cJSON *, struct spec *) = {parse_public,
										       parse_held_out,
										       parse_tiny};
	if (jwalk_object(w, item, keys))
		return -1;
	for (int i = 0; i < 3; i++) {
		const cJSON *m = i == 1 ? jwalk_find(item, keys[i]) : jwalk_need(w, item, keys[i]);
		if (!m && i != 1)
			return -1;
		size_t at = jwalk_enter(w, keys[i]);
		if (m && parse[i](w, m, s))
			return -1;
		jwalk_leave(w, at);
	}
	return 0;
}
