/*
 * plan_parse.c - plan.json to struct plan: the grammar, except the args (plan_args.c).
 *
 *   schema       "touchstone/plan/1"
 *   entries      [NAME, ...]
 *   tunables     {NAME: {"values": [N, ...], "value": N, "choose": [{"when": X, "value": N}, ...]}}
 *   constraints  [X, ...]
 *   compile      {fast_math, ftz, prec_div, prec_sqrt, fmad, max_registers, opt_level, std, arch}
 *   workspaces   [{"name": NAME, "when": X, "bytes": X, "init": "raw" | "zero"}]
 *   launches     [{"entry": NAME, "when": X, "repeat": R, "grid": [X, 1..3], "block": [X, 1..3],
 *                  "cluster": [X, 1..3], "shared_bytes": X, "cooperative": B, "pdl": B, "args": [...]}]
 *   R            {"var": NAME, "count": X} opens a loop; {"join": NAME} puts the launch into the
 *                loop that the launch before it is in: a pass of several kernels
 *
 * X is an integer or an expression in a string. Unknown and duplicate keys are errors.
 *
 * SPDX-License-Identifier: MIT
 */
#include "plan_parse.h"

#include "lexer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const PLAN_STDS[] = {"c++11", "c++14", "c++17", "c++20", NULL};
const int PLAN_STD_YEARS[] = {11, 14, 17, 20};
const char *const PLAN_ARCHS[] = {"sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a", "sm_100",
				  "sm_100a", "sm_103", "sm_103a", "sm_110", "sm_110a", "sm_120", "sm_120a",
				  "sm_121", "sm_121a", NULL};

int plan_tunable_find(const struct plan *p, const char *name)
{
	for (int i = 0; i < p->ntunables; i++)
		if (!strcmp(p->tunable[i].name, name))
			return i;
	return -1;
}

int plan_workspace_find(const struct plan *p, const char *name)
{
	for (int i = 0; i < p->nworkspaces; i++)
		if (!strcmp(p->workspace[i].name, name))
			return i;
	return -1;
}

static int entry_find(const struct plan *p, const char *name)
{
	for (int i = 0; i < p->nentries; i++)
		if (!strcmp(p->entry[i], name))
			return i;
	return -1;
}

/* A name that becomes a macro, a symbol or a variable of expressions. */
static int parse_own_name(struct jwalk *w, const cJSON *item, char out[PLAN_NAME])
{
	if (jwalk_identifier(w, item, 64, out))
		return -1;
	if (lex_reserved(out, strlen(out)) || plan_fact(out, NULL, NULL) || expr_is_function(out))
		return jwalk_fail(w, "the name '%s' is reserved", out);
	return 0;
}

static int parse_entries(struct jwalk *w, const cJSON *item, struct plan *p)
{
	int n;
	if (jwalk_array(w, item, 1, PLAN_MAX_ENTRIES, &n))
		return -1;
	for (const cJSON *m = item->child; m; m = m->next) {
		size_t at = jwalk_enter_at(w, p->nentries);
		char name[PLAN_NAME];
		if (parse_own_name(w, m, name))
			return -1;
		if (entry_find(p, name) >= 0)
			return jwalk_fail(w, "the name '%s' is used twice", name);
		memcpy(p->entry[p->nentries++], name, sizeof name);
		jwalk_leave(w, at);
	}
	return 0;
}

static int has_value(const struct plan_tunable *t, int64_t v)
{
	for (int i = 0; i < t->nvalues; i++)
		if (t->value[i] == v)
			return 1;
	return 0;
}

static int parse_values(struct jwalk *w, const cJSON *item, struct plan_tunable *t)
{
	int n;
	if (jwalk_array(w, item, 1, PLAN_MAX_VALUES, &n))
		return -1;
	for (const cJSON *m = item->child; m; m = m->next) {
		size_t at = jwalk_enter_at(w, t->nvalues);
		int64_t v;
		if (jwalk_int(w, m, -(int64_t)2147483648, 2147483647, &v))
			return -1;
		if (has_value(t, v))
			return jwalk_fail(w, "%lld is there twice", (long long)v);
		t->value[t->nvalues++] = v;
		jwalk_leave(w, at);
	}
	return 0;
}

static int parse_chosen(struct jwalk *w, const cJSON *obj, const struct plan_tunable *t, int64_t *out)
{
	const cJSON *item = jwalk_need(w, obj, "value");
	if (!item)
		return -1;
	size_t at = jwalk_enter(w, "value");
	if (jwalk_int(w, item, -(int64_t)2147483648, 2147483647, out))
		return -1;
	if (!has_value(t, *out))
		return jwalk_fail(w, "%lld is not one of the values", (long long)*out);
	jwalk_leave(w, at);
	return 0;
}

static int parse_choose(struct jwalk *w, const cJSON *item, struct plan_tunable *t)
{
	static const char *const keys[] = {"when", "value", NULL};
	int n;
	if (jwalk_array(w, item, 0, PLAN_MAX_CHOOSE, &n))
		return -1;
	for (const cJSON *m = item->child; m; m = m->next) {
		size_t at = jwalk_enter_at(w, t->nchoose);
		struct plan_choose *c = &t->choose[t->nchoose++];
		if (jwalk_object(w, m, keys) || !jwalk_need(w, m, "when") ||
		    jwalk_get_expr(w, m, "when", &c->when) || parse_chosen(w, m, t, &c->value))
			return -1;
		jwalk_leave(w, at);
	}
	return 0;
}

static int parse_tunable(struct jwalk *w, const cJSON *m, struct plan *p)
{
	static const char *const keys[] = {"values", "value", "choose", NULL};
	struct plan_tunable *t = &p->tunable[p->ntunables++];
	cJSON name = {.type = cJSON_String, .valuestring = m->string};
	const cJSON *values, *choose = jwalk_find(m, "choose");
	if (parse_own_name(w, &name, t->name) || jwalk_object(w, m, keys))
		return -1;
	if (entry_find(p, t->name) >= 0)
		return jwalk_fail(w, "'%s' is an entry", t->name);
	if (!(values = jwalk_need(w, m, "values")))
		return -1;
	size_t at = jwalk_enter(w, "values");
	if (parse_values(w, values, t))
		return -1;
	jwalk_leave(w, at);
	if (parse_chosen(w, m, t, &t->current))
		return -1;
	at = jwalk_enter(w, "choose");
	if (choose && parse_choose(w, choose, t))
		return -1;
	jwalk_leave(w, at);
	return 0;
}

static int parse_tunables(struct jwalk *w, const cJSON *item, struct plan *p)
{
	if (jwalk_object(w, item, NULL))
		return -1;
	if (cJSON_GetArraySize(item) > PLAN_MAX_TUNABLES)
		return jwalk_fail(w, "at most %d tunables", PLAN_MAX_TUNABLES);
	p->tunable = xcalloc(PLAN_MAX_TUNABLES, sizeof *p->tunable);
	for (const cJSON *m = item->child; m; m = m->next) {
		size_t at = jwalk_enter(w, m->string);
		if (parse_tunable(w, m, p))
			return -1;
		jwalk_leave(w, at);
	}
	return 0;
}

static int parse_constraints(struct jwalk *w, const cJSON *item, struct plan *p)
{
	int n;
	if (jwalk_array(w, item, 0, PLAN_MAX_CONSTRAINTS, &n))
		return -1;
	for (const cJSON *m = item->child; m; m = m->next) {
		size_t at = jwalk_enter_at(w, p->nconstraints);
		if (jwalk_expr(w, m, &p->constraint[p->nconstraints++]))
			return -1;
		jwalk_leave(w, at);
	}
	return 0;
}

/* A member that may be null: then *out stays what it is. */
static const cJSON *not_null(const cJSON *obj, const char *key)
{
	const cJSON *item = jwalk_find(obj, key);
	return cJSON_IsNull(item) ? NULL : item;
}

/* One of a list of words; absent or null leaves *out. */
static int parse_word(struct jwalk *w, const cJSON *obj, const char *key, const char *const *words, int *out)
{
	const cJSON *item = not_null(obj, key);
	size_t at = jwalk_enter(w, key);
	if (item && jwalk_choice(w, item, words, out))
		return -1;
	jwalk_leave(w, at);
	return 0;
}

static int parse_compile(struct jwalk *w, const cJSON *item, struct plan *p)
{
	static const char *const keys[] = {"fast_math", "ftz", "prec_div", "prec_sqrt", "fmad",
					   "max_registers", "opt_level", "std", "arch", NULL};
	struct plan_compile *c = &p->compile;
	int *const flag[] = {&c->fast_math, &c->ftz, &c->prec_div, &c->prec_sqrt, &c->fmad};
	int64_t regs = 0, level = c->opt_level;
	int std = -1, arch = -1;
	if (jwalk_object(w, item, keys))
		return -1;
	for (int i = 0; i < 5; i++)
		if (not_null(item, keys[i]) && jwalk_get_bool(w, item, keys[i], flag[i]))
			return -1;
	if (not_null(item, "max_registers") && jwalk_get_int(w, item, "max_registers", 16, 255, &regs))
		return -1;
	if (not_null(item, "opt_level") && jwalk_get_int(w, item, "opt_level", 0, 3, &level))
		return -1;
	c->max_registers = (int)regs;
	c->opt_level = (int)level;
	if (parse_word(w, item, "std", PLAN_STDS, &std) || parse_word(w, item, "arch", PLAN_ARCHS, &arch))
		return -1;
	c->std = std < 0 ? c->std : PLAN_STD_YEARS[std];
	c->arch = arch < 0 ? NULL : PLAN_ARCHS[arch];
	return 0;
}

static int parse_workspace(struct jwalk *w, const cJSON *m, struct plan *p)
{
	static const char *const keys[] = {"name", "when", "bytes", "init", NULL};
	static const char *const inits[] = {"raw", "zero", NULL};
	char name[PLAN_NAME];
	const cJSON *text, *init = jwalk_find(m, "init");
	if (jwalk_object(w, m, keys) || !(text = jwalk_need(w, m, "name")) || !jwalk_need(w, m, "bytes"))
		return -1;
	size_t at = jwalk_enter(w, "name");
	if (jwalk_identifier(w, text, 64, name))
		return -1;
	if (plan_workspace_find(p, name) >= 0)
		return jwalk_fail(w, "the name '%s' is used twice", name);
	jwalk_leave(w, at);
	struct plan_workspace *s = &p->workspace[p->nworkspaces++];
	memcpy(s->name, name, sizeof name);
	if (jwalk_get_expr(w, m, "when", &s->when) || jwalk_get_expr(w, m, "bytes", &s->bytes))
		return -1;
	at = jwalk_enter(w, "init");
	if (init && jwalk_choice(w, init, inits, &s->zero))
		return -1;
	jwalk_leave(w, at);
	return 0;
}

static int parse_workspaces(struct jwalk *w, const cJSON *item, struct plan *p)
{
	int n, i = 0;
	if (jwalk_array(w, item, 0, PLAN_MAX_WORKSPACES, &n))
		return -1;
	for (const cJSON *m = item->child; m; m = m->next) {
		size_t at = jwalk_enter_at(w, i++);
		if (parse_workspace(w, m, p))
			return -1;
		jwalk_leave(w, at);
	}
	return 0;
}

static int parse_dims(struct jwalk *w, const cJSON *obj, const char *key, int needed, struct expr *dim[3],
		      int *count)
{
	const cJSON *item = needed ? jwalk_need(w, obj, key) : jwalk_find(obj, key);
	if (!item)
		return needed ? -1 : 0;
	size_t at = jwalk_enter(w, key);
	int i = 0;
	if (jwalk_array(w, item, 1, 3, count))
		return -1;
	for (const cJSON *m = item->child; m; m = m->next, i++) {
		size_t here = jwalk_enter_at(w, i);
		if (jwalk_expr(w, m, &dim[i]))
			return -1;
		jwalk_leave(w, here);
	}
	jwalk_leave(w, at);
	return 0;
}

static int parse_repeat(struct jwalk *w, const cJSON *item, struct plan *p, struct plan_launch *l)
{
	static const char *const keys[] = {"var", "count", "join", NULL};
	if (jwalk_object(w, item, keys))
		return -1;
	const cJSON *join = jwalk_find(item, "join"), *var = jwalk_find(item, "var");
	if ((join != NULL) == (var != NULL) || (join && jwalk_find(item, "count")))
		return jwalk_fail(w, "either var and count, or join");
	size_t at = jwalk_enter(w, join ? "join" : "var");
	if (parse_own_name(w, join ? join : var, l->repeat_var))
		return -1;
	if (plan_tunable_find(p, l->repeat_var) >= 0)
		return jwalk_fail(w, "'%s' is a tunable", l->repeat_var);
	if (join && (l == p->launch || strcmp(l[-1].repeat_var, l->repeat_var)))
		return jwalk_fail(w, "the launch before is not in a loop over '%s'", l->repeat_var);
	jwalk_leave(w, at);
	if (join)
		return 0;
	return jwalk_need(w, item, "count") ? jwalk_get_expr(w, item, "count", &l->repeat_count) : -1;
}

static int parse_launch(struct jwalk *w, const cJSON *m, struct plan *p)
{
	static const char *const keys[] = {"entry", "when", "repeat", "grid", "block", "cluster", "shared_bytes",
					   "cooperative", "pdl", "args", NULL};
	struct plan_launch *l = &p->launch[p->nlaunches++];
	const cJSON *entry, *args, *repeat = jwalk_find(m, "repeat");
	if (jwalk_object(w, m, keys) || !(entry = jwalk_need(w, m, "entry")))
		return -1;
	size_t at = jwalk_enter(w, "entry");
	if (jwalk_identifier(w, entry, 64, l->entry))
		return -1;
	if (entry_find(p, l->entry) < 0)
		return jwalk_fail(w, "'%s' is not in entries", l->entry);
	jwalk_leave(w, at);
	at = jwalk_enter(w, "repeat");
	if (repeat && parse_repeat(w, repeat, p, l))
		return -1;
	jwalk_leave(w, at);
	if (jwalk_get_expr(w, m, "when", &l->when) || parse_dims(w, m, "grid", 1, l->grid, &l->ngrid) ||
	    parse_dims(w, m, "block", 1, l->block, &l->nblock) ||
	    parse_dims(w, m, "cluster", 0, l->cluster, &l->ncluster) ||
	    jwalk_get_expr(w, m, "shared_bytes", &l->shared) ||
	    jwalk_get_bool(w, m, "cooperative", &l->cooperative) || jwalk_get_bool(w, m, "pdl", &l->pdl) ||
	    !(args = jwalk_need(w, m, "args")))
		return -1;
	at = jwalk_enter(w, "args");
	if (plan_parse_args(w, args, l))
		return -1;
	jwalk_leave(w, at);
	return 0;
}

static int parse_launches(struct jwalk *w, const cJSON *item, struct plan *p)
{
	int n;
	if (jwalk_array(w, item, 1, PLAN_MAX_LAUNCHES, &n))
		return -1;
	p->launch = xcalloc((size_t)n, sizeof *p->launch);
	for (const cJSON *m = item->child; m; m = m->next) {
		size_t at = jwalk_enter_at(w, p->nlaunches);
		if (parse_launch(w, m, p))
			return -1;
		jwalk_leave(w, at);
	}
	for (int i = 0; i < p->nentries; i++) {
		int used = 0;
		for (int k = 0; k < p->nlaunches; k++)
			used |= !strcmp(p->launch[k].entry, p->entry[i]);
		if (!used)
			return jwalk_fail(w, "entry '%s' is never launched", p->entry[i]);
	}
	return 0;
}

static int parse_schema(struct jwalk *w, const cJSON *item, struct plan *p)
{
	(void)p;
	const char *s = jwalk_string(w, item, 64);
	return !s ? -1 : strcmp(s, "touchstone/plan/1") ? jwalk_fail(w, "'%s' is not touchstone/plan/1", s) : 0;
}

static int parse_top(struct jwalk *w, const cJSON *top, struct plan *p)
{
	static const char *const keys[] = {"schema", "entries", "tunables", "constraints", "compile",
					   "workspaces", "launches", NULL};
	static int (*const parse[])(struct jwalk *, const cJSON *, struct plan *) = {
		parse_schema, parse_entries, parse_tunables, parse_constraints,
		parse_compile, parse_workspaces, parse_launches,
	};
	if (jwalk_object(w, top, keys))
		return -1;
	for (int i = 0; keys[i]; i++) {
		int needed = i < 2 || i == 6;
		const cJSON *item = needed ? jwalk_need(w, top, keys[i]) : jwalk_find(top, keys[i]);
		if (!item && needed)
			return -1;
		size_t at = jwalk_enter(w, keys[i]);
		if (item && parse[i](w, item, p))
			return -1;
		jwalk_leave(w, at);
	}
	return 0;
}

int plan_parse(const char *text, size_t len, const char *file, struct plan **out, struct err *e)
{
	static const struct json_limits limits = {PLAN_MAX_BYTES, 8};
	cJSON *top = json_parse(text, len, &limits, file, e);
	if (!top)
		return -1;
	struct plan *p = xcalloc(1, sizeof *p);
	snprintf(p->file, sizeof p->file, "%s", file);
	p->compile = (struct plan_compile){.ftz = -1, .prec_div = -1, .prec_sqrt = -1, .fmad = 1,
					   .opt_level = 3, .std = 17};
	struct jwalk w;
	jwalk_begin(&w, p->file, e);
	int rc = parse_top(&w, top, p);
	cJSON_Delete(top);
	if (rc) {
		plan_free(p);
		return -1;
	}
	*out = p;
	return 0;
}

static void launch_free(struct plan_launch *l)
{
	expr_free(l->when);
	expr_free(l->repeat_count);
	expr_free(l->shared);
	for (int i = 0; i < 3; i++) {
		expr_free(l->grid[i]);
		expr_free(l->block[i]);
		expr_free(l->cluster[i]);
	}
	for (int i = 0; i < l->nargs; i++)
		plan_arg_free(&l->arg[i]);
	free(l->arg);
}

void plan_free(struct plan *p)
{
	if (!p)
		return;
	for (int i = 0; i < p->ntunables; i++)
		for (int k = 0; k < p->tunable[i].nchoose; k++)
			expr_free(p->tunable[i].choose[k].when);
	for (int i = 0; i < p->nconstraints; i++)
		expr_free(p->constraint[i]);
	for (int i = 0; i < p->nworkspaces; i++) {
		expr_free(p->workspace[i].when);
		expr_free(p->workspace[i].bytes);
	}
	for (int i = 0; i < p->nlaunches; i++)
		launch_free(&p->launch[i]);
	free(p->launch);
	free(p->tunable);
	free(p);
}
