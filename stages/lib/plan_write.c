/*
 * plan_write.c - a plan as canonical JSON: fixed key order, defaults spelled out, expressions as
 * they were written. Parsing it again gives the same plan.
 *
 * SPDX-License-Identifier: MIT
 */
#include "plan_parse.h"

#include <string.h>

static void write_expr(struct jsonw *w, const char *key, const struct expr *x)
{
	int64_t v;
	if (!x)
		return;
	if (expr_is_number(x, &v))
		jw_int(w, key, v);
	else
		jw_str(w, key, expr_text(x));
}

static void write_list(struct jsonw *w, const char *key, struct expr *const *x, int n)
{
	jw_arr(w, key);
	for (int i = 0; i < n; i++)
		write_expr(w, NULL, x[i]);
	jw_end(w);
}

static void write_tunables(const struct plan *p, struct jsonw *w)
{
	jw_obj(w, "tunables");
	for (int i = 0; i < p->ntunables; i++) {
		const struct plan_tunable *t = &p->tunable[i];
		jw_obj(w, t->name);
		jw_arr(w, "values");
		for (int k = 0; k < t->nvalues; k++)
			jw_int(w, NULL, t->value[k]);
		jw_end(w);
		jw_int(w, "value", t->current);
		if (t->nchoose)
			jw_arr(w, "choose");
		for (int k = 0; k < t->nchoose; k++) {
			jw_obj(w, NULL);
			write_expr(w, "when", t->choose[k].when);
			jw_int(w, "value", t->choose[k].value);
			jw_end(w);
		}
		if (t->nchoose)
			jw_end(w);
		jw_end(w);
	}
	jw_end(w);
}

static void write_tristate(struct jsonw *w, const char *key, int v)
{
	if (v < 0)
		jw_null(w, key);
	else
		jw_bool(w, key, v);
}

static void write_compile(const struct plan_compile *c, struct jsonw *w)
{
	jw_obj(w, "compile");
	jw_bool(w, "fast_math", c->fast_math);
	write_tristate(w, "ftz", c->ftz);
	write_tristate(w, "prec_div", c->prec_div);
	write_tristate(w, "prec_sqrt", c->prec_sqrt);
	jw_bool(w, "fmad", c->fmad);
	if (c->max_registers)
		jw_int(w, "max_registers", c->max_registers);
	else
		jw_null(w, "max_registers");
	jw_int(w, "opt_level", c->opt_level);
	for (int i = 0; PLAN_STDS[i]; i++)
		if (PLAN_STD_YEARS[i] == c->std)
			jw_str(w, "std", PLAN_STDS[i]);
	if (c->arch)
		jw_str(w, "arch", c->arch);
	jw_end(w);
}

static void write_map(const struct plan_tensor_map *m, struct jsonw *w)
{
	jw_obj(w, "tensor_map");
	jw_str(w, m->workspace ? "workspace" : "buffer", m->buffer);
	write_expr(w, "offset", m->offset);
	if (m->dtype != DT_NONE)
		jw_str(w, "dtype", m->tf32 ? "tfloat32" : dtype_name(m->dtype));
	write_list(w, "dims", m->dim, m->rank);
	write_list(w, "byte_strides", m->stride, m->rank - 1);
	write_list(w, "box", m->box, m->rank);
	if (m->step[0])
		write_list(w, "element_strides", m->step, m->rank);
	jw_str(w, "swizzle", PLAN_SWIZZLES[m->swizzle]);
	jw_str(w, "interleave", PLAN_INTERLEAVES[m->interleave]);
	jw_str(w, "l2_promotion", PLAN_PROMOTIONS[m->l2_promotion]);
	jw_str(w, "oob_fill", PLAN_OOB_FILLS[m->oob_fill]);
	jw_end(w);
}

static void write_arg(const struct plan_arg *a, struct jsonw *w)
{
	static const char *const first[] = {"in", "out", "inout", "workspace", NULL, "axis", "scalar"};
	jw_obj(w, NULL);
	switch (a->kind) {
	case PLAN_SELECT:
		jw_arr(w, "workspace_select");
		for (int i = 0; i < a->nselect; i++)
			jw_str(w, NULL, a->select[i]);
		jw_end(w);
		write_expr(w, "index", a->value);
		break;
	case PLAN_CONST:
		if (dtype_is_float(a->type))
			jw_num(w, "const", a->number);
		else
			jw_int(w, "const", a->integer);
		break;
	case PLAN_EXPR:
		write_expr(w, "expr", a->value);
		break;
	case PLAN_MAP:
		write_map(a->map, w);
		break;
	default:
		jw_str(w, first[a->kind], a->name);
	}
	write_expr(w, "offset", a->offset);
	if (a->kind == PLAN_AXIS || a->kind == PLAN_CONST || a->kind == PLAN_EXPR)
		jw_str(w, "type", plan_type_name(a->type));
	jw_end(w);
}

static void write_launch(const struct plan_launch *l, struct jsonw *w)
{
	jw_obj(w, NULL);
	jw_str(w, "entry", l->entry);
	write_expr(w, "when", l->when);
	if (l->repeat_var[0]) {
		jw_obj(w, "repeat");
		jw_str(w, l->repeat_count ? "var" : "join", l->repeat_var);
		write_expr(w, "count", l->repeat_count);
		jw_end(w);
	}
	write_list(w, "grid", l->grid, l->ngrid);
	write_list(w, "block", l->block, l->nblock);
	if (l->ncluster)
		write_list(w, "cluster", l->cluster, l->ncluster);
	write_expr(w, "shared_bytes", l->shared);
	if (l->cooperative)
		jw_bool(w, "cooperative", 1);
	if (l->pdl)
		jw_bool(w, "pdl", 1);
	jw_arr(w, "args");
	for (int i = 0; i < l->nargs; i++)
		write_arg(&l->arg[i], w);
	jw_end(w);
	jw_end(w);
}

void plan_write(const struct plan *p, struct jsonw *w, const char *key)
{
	jw_obj(w, key);
	jw_str(w, "schema", "touchstone/plan/1");
	jw_arr(w, "entries");
	for (int i = 0; i < p->nentries; i++)
		jw_str(w, NULL, p->entry[i]);
	jw_end(w);
	write_tunables(p, w);
	write_list(w, "constraints", p->constraint, p->nconstraints);
	write_compile(&p->compile, w);
	jw_arr(w, "workspaces");
	for (int i = 0; i < p->nworkspaces; i++) {
		jw_obj(w, NULL);
		jw_str(w, "name", p->workspace[i].name);
		write_expr(w, "when", p->workspace[i].when);
		write_expr(w, "bytes", p->workspace[i].bytes);
		jw_str(w, "init", p->workspace[i].zero ? "zero" : "raw");
		jw_end(w);
	}
	jw_end(w);
	jw_arr(w, "launches");
	for (int i = 0; i < p->nlaunches; i++)
		write_launch(&p->launch[i], w);
	jw_end(w);
	jw_end(w);
}
