/*
 * plan_check.c - does a plan fit a spec? Names, roles and types; numbers come with resolve.
 *
 * SPDX-License-Identifier: MIT
 */
#include "plan_parse.h"

#include <stdio.h>
#include <string.h>

/* What an expression in some place may read. */
enum sees { SEES_TUNABLES = 1, SEES_OCCUPANCY = 2 };

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
	for (int i = 0; (name = expr_occupancy_used(x, i)); i++) {
		if (!(sees & SEES_OCCUPANCY))
			return err_set(c->e, EX_BADINPUT, "%s: occupancy() may not be used here", expr_where(x));
		if (!entry_known(c->p, name))
			return err_set(c->e, EX_BADINPUT, "%s: occupancy(): no entry is named '%s'",
				       expr_where(x), name);
	}
	return 0;
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

static int check_map(struct check *c, const char *where, const struct plan_tensor_map *m, const char *var)
{
	unsigned all = SEES_TUNABLES | SEES_OCCUPANCY;
	int in = spec_input_find(c->s, m->buffer);
	if (in >= 0 && c->s->input[in].scalar)
		return fail(c, where, "a tensor map cannot describe the scalar", m->buffer);
	if (in < 0 && plan_workspace_find(c->p, m->buffer) < 0) {
		if (spec_output_find(c->s, m->buffer) < 0)
			return fail(c, where, "no buffer is named", m->buffer);
		if (bind_output(c, where, m->buffer))
			return -1;
	}
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
	    check_expr(c, l->shared, SEES_TUNABLES, var))
		return -1;
	for (int i = 0; i < 3; i++)
		if (check_expr(c, l->grid[i], all, var) || check_expr(c, l->block[i], SEES_TUNABLES, var) ||
		    check_expr(c, l->cluster[i], SEES_TUNABLES, var))
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
	if (check_names(&c))
		return -1;
	for (int i = 0; i < p->ntunables; i++)
		for (int k = 0; k < p->tunable[i].nchoose; k++)
			if (check_expr(&c, p->tunable[i].choose[k].when, 0, NULL))
				return -1;
	for (int i = 0; i < p->nconstraints; i++)
		if (check_expr(&c, p->constraint[i], SEES_TUNABLES, NULL))
			return -1;
	for (int i = 0; i < p->nworkspaces; i++)
		if (check_expr(&c, p->workspace[i].bytes, SEES_TUNABLES | SEES_OCCUPANCY, NULL))
			return -1;
	for (int i = 0; i < p->nlaunches; i++)
		if (check_launch(&c, i))
			return -1;
	for (int i = 0; i < s->noutputs; i++)
		if (!(c.bound & 1u << i))
			return fail(&c, "launches", "no launch takes the output", s->output[i].name);
	return 0;
}
