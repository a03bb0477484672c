/*
 * plan_check.c - does a plan fit a spec? Names, roles and types; numbers come with resolve.
 *
 * SPDX-License-Identifier: MIT
 */
#include "plan_parse.h"

#include <stdio.h>
#include <string.h>

/* What an expression in some place may read. */
enum sees { SEES_TUNABLES = 1, SEES_OCCUPANCY = 2, SEES_SHAPE = 4 };

struct check {
	const struct plan *p;
	const struct spec *s;
	struct err *e;
	unsigned bound; /* outputs written by some launch */
};

static int fail(struct check *c, const char *where, const char *why, const char *name)
{
	return err_set(c->e, EX_BADINPUT, "%s: %s: %s '%s'", c->p->file, where, why, name);
}

static int entry_known(const struct plan *p, const char *name)
{
	for (int i = 0; i < p->nentries; i++)
		if (!strcmp(p->entry[i], name))
			return 1;
	return 0;
}

static int check_calls(struct check *c, const struct expr *x, unsigned sees)
{
	enum expr_call f;
	enum dtype type;
	const char *name;
	for (int i = 0; (name = expr_call_used(x, i, &f)); i++) {
		int buffer = f == EXPR_SIZEOF;
		if (!buffer && (sees & SEES_SHAPE))
			return err_set(c->e, EX_BADINPUT, "%s: %s() is computed from block, cluster and shared_bytes: "
				       "used in one of them it makes a cycle", expr_where(x), expr_call_name(f));
		if (!buffer && !(sees & SEES_OCCUPANCY))
			return err_set(c->e, EX_BADINPUT, "%s: %s() may not be used here", expr_where(x),
				       expr_call_name(f));
		if (buffer ? plan_element(c->s, name, 0, &type) != 0 : !entry_known(c->p, name))
			return err_set(c->e, EX_BADINPUT, "%s: %s(): no %s is named '%s'", expr_where(x),
				       expr_call_name(f), buffer ? "input or output" : "entry", name);
	}
	return 0;
}

static int check_expr(struct check *c, const struct expr *x, unsigned sees, const char *var)
{
	const char *name;
	if (!x)
		return 0;
	for (int i = 0; (name = expr_name_used(x, i)); i++) {
		if (plan_fact(name, NULL, NULL) || spec_axis_find(c->s, name) >= 0 ||
		    (var && !strcmp(var, name)) ||
		    ((sees & SEES_TUNABLES) && plan_tunable_find(c->p, name) >= 0))
			continue;
		return err_set(c->e, EX_BADINPUT, "%s: unknown name '%s'", expr_where(x), name);
	}
	return check_calls(c, x, sees);
}

/* Axes, buffers, tunables and loop variables share one space of names. */
static int check_names(struct check *c)
{
	const struct spec *s = c->s;
	for (int i = 0; i < c->p->ntunables; i++)
		if (spec_axis_find(s, c->p->tunable[i].name) >= 0)
			return fail(c, "tunables", "an axis is also named", c->p->tunable[i].name);
	for (int i = 0; i < c->p->nworkspaces; i++) {
		const char *n = c->p->workspace[i].name;
		if (spec_input_find(s, n) >= 0 || spec_output_find(s, n) >= 0)
			return fail(c, "workspaces", "an input or output is also named", n);
	}
	for (int i = 0; i < c->p->nlaunches; i++)
		if (spec_axis_find(s, c->p->launch[i].repeat_var) >= 0)
			return fail(c, "launches", "an axis is also named", c->p->launch[i].repeat_var);
	return 0;
}

static int bind_output(struct check *c, const char *where, const char *name)
{
	int i = spec_output_find(c->s, name);
	if (i < 0)
		return fail(c, where, spec_input_find(c->s, name) >= 0 ? "an input may only be 'in':"
								       : "no output is named", name);
	c->bound |= 1u << i;
	return 0;
}

static int check_input(struct check *c, const char *where, const char *name, int scalar)
{
	int i = spec_input_find(c->s, name);
	if (i < 0)
		return fail(c, where, spec_output_find(c->s, name) >= 0
					      ? "an output may only be 'out' or 'inout':" : "no input is named",
			    name);
	if (c->s->input[i].scalar != scalar)
		return fail(c, where, scalar ? "not a scalar (it has a shape):"
					     : "a scalar input is passed as 'scalar':", name);
	return 0;
}

static int check_select(struct check *c, const char *where, const struct plan_arg *a)
{
	for (int i = 0; i < a->nselect; i++)
		if (plan_workspace_find(c->p, a->select[i]) < 0)
			return fail(c, where, "no workspace is named", a->select[i]);
	return 0;
}

static int check_map_buffer(struct check *c, const char *where, const struct plan_tensor_map *m)
{
	int in = spec_input_find(c->s, m->buffer);
	if (m->workspace)
		return plan_workspace_find(c->p, m->buffer) >= 0
			       ? 0 : fail(c, where, "no workspace is named", m->buffer);
	if (plan_workspace_find(c->p, m->buffer) >= 0)
		return fail(c, where, "a tensor map over a workspace says \"workspace\", not \"buffer\":",
			    m->buffer);
	if (in < 0)
		return spec_output_find(c->s, m->buffer) >= 0 ? bind_output(c, where, m->buffer)
							      : fail(c, where, "no buffer is named", m->buffer);
	if (c->s->input[in].scalar)
		return fail(c, where, "a tensor map cannot describe the scalar", m->buffer);
	if (m->dtype != DT_NONE && dtype_size(m->dtype) != dtype_size(c->s->input[in].dtype))
		return fail(c, where, "tensor_map.dtype has another element size than", m->buffer);
	return 0;
}

static int check_map(struct check *c, const char *where, const struct plan_tensor_map *m, const char *var)
{
	unsigned all = SEES_TUNABLES | SEES_OCCUPANCY;
	if (check_map_buffer(c, where, m))
		return -1;
	if (check_expr(c, m->offset, all, var))
		return -1;
	for (int i = 0; i < m->rank; i++)
		if (check_expr(c, m->dim[i], all, var) || check_expr(c, m->box[i], all, var) ||
		    check_expr(c, m->step[i], all, var) ||
		    (i && check_expr(c, m->stride[i - 1], all, var)))
			return -1;
	return 0;
}

static int check_arg(struct check *c, const char *where, const struct plan_arg *a, const char *var)
{
	unsigned all = SEES_TUNABLES | SEES_OCCUPANCY;
	if (check_expr(c, a->offset, all, var) || check_expr(c, a->value, all, var))
		return -1;
	switch (a->kind) {
	case PLAN_IN:
		return check_input(c, where, a->name, 0);
	case PLAN_SCALAR:
		return check_input(c, where, a->name, 1);
	case PLAN_OUT:
	case PLAN_INOUT:
		return bind_output(c, where, a->name);
	case PLAN_WORKSPACE:
		return plan_workspace_find(c->p, a->name) >= 0 ? 0
							       : fail(c, where, "no workspace is named", a->name);
	case PLAN_SELECT:
		return check_select(c, where, a);
	case PLAN_AXIS:
		return spec_axis_find(c->s, a->name) >= 0 ? 0 : fail(c, where, "no axis is named", a->name);
	case PLAN_MAP:
		return check_map(c, where, a->map, var);
	default:
		return 0;
	}
}

static int check_launch(struct check *c, int index)
{
	const struct plan_launch *l = &c->p->launch[index];
	const char *var = l->repeat_var[0] ? l->repeat_var : NULL;
	unsigned all = SEES_TUNABLES | SEES_OCCUPANCY;
	if (check_expr(c, l->repeat_count, all, NULL) || check_expr(c, l->when, all, var) ||
	    check_expr(c, l->shared, SEES_TUNABLES | SEES_SHAPE, var))
		return -1;
	for (int i = 0; i < 3; i++)
		if (check_expr(c, l->grid[i], all, var) || check_expr(c, l->block[i], SEES_TUNABLES | SEES_SHAPE, var) ||
		    check_expr(c, l->cluster[i], SEES_TUNABLES | SEES_SHAPE, var))
			return -1;
	for (int i = 0; i < l->nargs; i++) {
		char where[64];
		snprintf(where, sizeof where, "launches[%d].args[%d]", index, i);
		if (check_arg(c, where, &l->arg[i], var))
			return -1;
	}
	return 0;
}

int plan_check(const struct plan *p, const struct spec *s, struct err *e)
{
	struct check c = {p, s, e, 0};
	struct plan_config configs[PLAN_MAX_CONFIGS];
	int n;
	if (check_names(&c) || plan_configs(p, configs, &n, e))
		return -1;
	for (int i = 0; i < p->ntunables; i++)
		for (int k = 0; k < p->tunable[i].nchoose; k++)
			if (check_expr(&c, p->tunable[i].choose[k].when, 0, NULL))
				return -1;
	for (int i = 0; i < p->nconstraints; i++)
		if (check_expr(&c, p->constraint[i], SEES_TUNABLES, NULL))
			return -1;
	for (int i = 0; i < p->nworkspaces; i++)
		if (check_expr(&c, p->workspace[i].when, SEES_TUNABLES | SEES_OCCUPANCY, NULL) ||
		    check_expr(&c, p->workspace[i].bytes, SEES_TUNABLES | SEES_OCCUPANCY, NULL))
			return -1;
	for (int i = 0; i < p->nlaunches; i++)
		if (check_launch(&c, i))
			return -1;
	for (int i = 0; i < s->noutputs; i++)
		if (!(c.bound & 1u << i))
			return fail(&c, "launches", "no launch takes the output", s->output[i].name);
	return 0;
}
