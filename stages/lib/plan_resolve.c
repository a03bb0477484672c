/*
 * plan_resolve.c - a plan at given axes on a given device, in plain numbers.
 *
 * Loops are expanded, `when` is applied, and everything is checked that the launcher or the
 * driver would otherwise find out too late or never: sizes of grid, block, cluster and shared
 * memory, residency of cooperative launches, offsets, parameter bytes, outputs left unbound.
 * Of a launch that does not run nothing is evaluated: it may divide by zero or describe a tensor
 * map that cannot be.
 *
 * The first launch that runs has pdl cleared: there is nothing of this plan before it to overlap.
 *
 * SPDX-License-Identifier: MIT
 */
#include "plan_parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct resolve {
	struct plan_env env;
	struct plan_memo memo;
	struct launches *out;
	struct err *e;
	int index;            /* of the launch as written */
	unsigned bound;       /* outputs taken by a launch that runs */
};

static int fail(struct resolve *r, const char *what, int64_t v, const char *why)
{
	return err_set(r->e, EX_BADINPUT, "%s: launches[%d].%s is %lld: %s", r->env.plan->file, r->index, what,
		       (long long)v, why);
}

static void at_hand(struct resolve *r, const struct plan_launch *l)
{
	r->env.launch = l;
	memset(r->memo.near, 0, sizeof r->memo.near);
}

static int resolve_workspaces(struct resolve *r)
{
	const struct plan *p = r->env.plan;
	int64_t total = 0, most = r->env.spec->limits.workspace_bytes;
	for (int i = 0; i < p->nworkspaces; i++) {
		struct launch_workspace *w = &r->out->workspace[i];
		memcpy(w->name, p->workspace[i].name, sizeof w->name);
		int64_t wanted = 1;
		if (p->workspace[i].when && plan_eval(&r->env, p->workspace[i].when, 1, &wanted, r->e))
			return -1;
		if (wanted && plan_eval(&r->env, p->workspace[i].bytes, 1, &w->bytes, r->e))
			return -1;
		w->zero = p->workspace[i].zero && w->bytes > 0;
		if (w->bytes < 0 || expr_add(total, w->bytes, &total) || total > most)
			return err_set(r->e, EX_BADINPUT, "%s: is %lld: outside 0..%lld (limits.workspace_bytes, all "
			       "workspaces together)", expr_where(p->workspace[i].bytes), (long long)w->bytes,
				       (long long)most);
		r->out->nworkspaces++;
	}
	return 0;
}

/* Up to three sizes, missing ones 1. */
static int resolve_dims(struct resolve *r, struct expr *const x[3], int n, const char *what,
			const int64_t most[3], int residency, uint32_t out[3])
{
	for (int i = 0; i < 3; i++) {
		int64_t v = 1;
		char name[32];
		if (i < n && plan_eval(&r->env, x[i], residency, &v, r->e))
			return -1;
		if (v < 1 || v > most[i]) {
			char why[64];
			snprintf(name, sizeof name, "%s[%d]", what, i);
			snprintf(why, sizeof why, "outside 1..%lld", (long long)most[i]);
			return fail(r, name, v, why);
		}
		out[i] = (uint32_t)v;
	}
	return 0;
}

static int check_cluster(struct resolve *r, struct launch *l)
{
	const struct facts *f = r->env.facts;
	int64_t blocks = (int64_t)l->cluster[0] * l->cluster[1] * l->cluster[2];
	if (blocks > f->max_cluster)
		return fail(r, "cluster", blocks, "more blocks than a cluster of this device may have");
	for (int i = 0; i < 3; i++)
		if (l->grid[i] % l->cluster[i])
			return fail(r, "grid", l->grid[i], "not a multiple of the cluster");
	return 0;
}

static int check_cooperative(struct resolve *r, const struct launch *l, int64_t threads)
{
	const struct facts *f = r->env.facts;
	const int64_t cluster[3] = {l->cluster[0], l->cluster[1], l->cluster[2]};
	int64_t n, blocks, grid = (int64_t)l->grid[0] * l->grid[1];
	if (l->has_cluster ? facts_clusters(f, l->entry, threads, l->shared, cluster, &n, r->e)
			   : facts_occupancy(f, l->entry, threads, l->shared, &n, r->e))
		return -1;
	blocks = n * (l->has_cluster ? cluster[0] * cluster[1] * cluster[2] : f->sm_count);
	if (expr_mul(grid, l->grid[2], &grid) || grid > blocks) {
		char why[96];
		snprintf(why, sizeof why, "a cooperative grid may have %lld blocks here", (long long)blocks);
		return fail(r, "grid", grid, why);
	}
	return 0;
}

static int resolve_shape(struct resolve *r, const struct plan_launch *p, struct launch *l)
{
	const struct facts *f = r->env.facts;
	const int64_t cluster_most[3] = {f->max_cluster, f->max_cluster, f->max_cluster};
	int64_t shared;
	if (resolve_dims(r, p->grid, p->ngrid, "grid", f->max_grid, 1, l->grid) ||
	    resolve_dims(r, p->block, p->nblock, "block", f->max_block, 0, l->block) ||
	    resolve_dims(r, p->cluster, p->ncluster, "cluster", cluster_most, 0, l->cluster) ||
	    plan_eval_or(&r->env, p->shared, 0, &shared, r->e))
		return -1;
	int64_t threads = (int64_t)l->block[0] * l->block[1] * l->block[2];
	if (threads > f->max_threads)
		return fail(r, "block", threads, "more threads than a block of this device may have");
	if (shared < 0 || shared > f->max_shared)
		return fail(r, "shared_bytes", shared, "more than a block of this device may have, or negative");
	l->shared = (uint32_t)shared;
	l->has_cluster = p->ncluster > 0;
	if (l->has_cluster && check_cluster(r, l))
		return -1;
	return l->cooperative ? check_cooperative(r, l, threads) : 0;
}

static int put_bytes(struct launch_arg *a, enum dtype type, const void *data)
{
	a->kind = ARG_BYTES;
	a->n = (int)dtype_size(type);
	memcpy(a->data, data, (size_t)a->n);
	return 0;
}

/* An integer value as a parameter of `type`: it must fit. */
static int put_integer(struct resolve *r, struct launch_arg *a, enum dtype type, int64_t v, int arg)
{
	char what[32];
	uint8_t raw[8] = {0};
	if (dtype_is_float(type)) {
		dtype_store(type, raw, 0, (double)v);
		return put_bytes(a, type, raw);
	}
	int bits = (int)dtype_size(type) * 8, sign = dtype_is_signed(type);
	int fits = bits == 64 ? sign || v >= 0
			      : v <= ((int64_t)1 << (bits - sign)) - 1 && v >= (sign ? -((int64_t)1 << (bits - 1)) : 0);
	if (!fits) {
		snprintf(what, sizeof what, "args[%d]", arg);
		return fail(r, what, v, "does not fit its type");
	}
	for (int i = 0; i < 8; i++)
		raw[i] = (uint8_t)((uint64_t)v >> (8 * i));
	return put_bytes(a, type, raw);
}

static int put_const(struct resolve *r, struct launch_arg *a, const struct plan_arg *p, int arg)
{
	uint8_t raw[8] = {0};
	if (!dtype_is_float(p->type))
		return put_integer(r, a, p->type, p->integer, arg);
	dtype_store(p->type, raw, 0, p->number);
	return put_bytes(a, p->type, raw);
}

static int put_workspace(struct resolve *r, struct launch_arg *a, const char *name, const struct expr *offset,
			 int arg)
{
	char what[32];
	a->kind = ARG_BUFFER;
	a->role = ROLE_WORKSPACE;
	a->index = plan_workspace_find(r->env.plan, name);
	a->writes = 1;
	if (offset && plan_eval(&r->env, offset, 1, &a->offset, r->e))
		return -1;
	if (a->offset < 0 || a->offset > r->out->workspace[a->index].bytes) {
		snprintf(what, sizeof what, "args[%d].offset", arg);
		return fail(r, what, a->offset, "outside the workspace");
	}
	return 0;
}

static int put_select(struct resolve *r, struct launch_arg *a, const struct plan_arg *p, int arg)
{
	int64_t i;
	char what[32];
	if (plan_eval(&r->env, p->value, 1, &i, r->e))
		return -1;
	if (i < 0 || i >= p->nselect) {
		snprintf(what, sizeof what, "args[%d].index", arg);
		return fail(r, what, i, "outside the list of workspaces");
	}
	return put_workspace(r, a, p->select[i], p->offset, arg);
}

static int put_map(struct resolve *r, struct launch_arg *a, const struct plan_tensor_map *m, int arg)
{
	const struct spec *s = r->env.spec;
	int64_t bytes;
	char where[48];
	enum dtype element = DT_NONE;
	int in = m->workspace ? -1 : spec_input_find(s, m->buffer);
	int out = m->workspace ? -1 : spec_output_find(s, m->buffer);
	a->kind = ARG_MAP;
	a->n = 128;
	a->role = in >= 0 ? ROLE_INPUT : out >= 0 ? ROLE_OUTPUT : ROLE_WORKSPACE;
	a->index = in >= 0 ? in : out >= 0 ? out : plan_workspace_find(r->env.plan, m->buffer);
	a->writes = in < 0;
	if (a->role == ROLE_OUTPUT)
		r->bound |= 1u << out;
	if (a->role == ROLE_WORKSPACE) {
		bytes = r->out->workspace[a->index].bytes;
	} else {
		const struct spec_tensor *t = in >= 0 ? &s->input[in] : &s->output[out];
		if (r->env.reference && in < 0 ? spec_reference_bytes(s, t, r->env.axes, &bytes, r->e)
					   : spec_bytes(s, t, r->env.axes, &bytes, r->e))
			return -1;
	}
	if (a->role != ROLE_WORKSPACE)
		plan_element(s, m->buffer, r->env.reference, &element);
	snprintf(where, sizeof where, "launches[%d].args[%d]", r->index, arg);
	return plan_resolve_map(&r->env, m, where, bytes, element, a, r->e);
}

static int resolve_arg(struct resolve *r, const struct plan_arg *p, int arg, struct launch_arg *a)
{
	const struct spec *s = r->env.spec;
	int64_t v;
	switch (p->kind) {
	case PLAN_IN:
		a->kind = ARG_BUFFER;
		a->role = ROLE_INPUT;
		a->index = spec_input_find(s, p->name);
		return 0;
	case PLAN_OUT:
	case PLAN_INOUT:
		a->kind = ARG_BUFFER;
		a->role = ROLE_OUTPUT;
		a->index = spec_output_find(s, p->name);
		a->writes = 1;
		r->bound |= 1u << a->index;
		return 0;
	case PLAN_WORKSPACE:
		return put_workspace(r, a, p->name, p->offset, arg);
	case PLAN_SELECT:
		return put_select(r, a, p, arg);
	case PLAN_AXIS:
		return put_integer(r, a, p->type, r->env.axes->v[spec_axis_find(s, p->name)], arg);
	case PLAN_EXPR:
		return plan_eval(&r->env, p->value, 1, &v, r->e) ? -1 : put_integer(r, a, p->type, v, arg);
	case PLAN_CONST:
		return put_const(r, a, p, arg);
	case PLAN_SCALAR:
		a->kind = ARG_SCALAR;
		a->index = spec_input_find(s, p->name);
		a->n = (int)dtype_size(s->input[a->index].dtype);
		return 0;
	default:
		return put_map(r, a, p->map, arg);
	}
}

/* Bytes of all parameters, each at its natural alignment. */
static int64_t param_bytes(const struct launch *l)
{
	int64_t at = 0;
	for (int i = 0; i < l->nargs; i++) {
		int64_t n = l->arg[i].kind == ARG_BUFFER ? 8 : l->arg[i].n, align = n > 64 ? 64 : n;
		at = (at + align - 1) / align * align + n;
	}
	return at;
}

static int resolve_launch(struct resolve *r, const struct plan_launch *p)
{
	struct launches *o = r->out;
	int64_t run = 1;
	at_hand(r, p);
	if (p->when && plan_eval(&r->env, p->when, 1, &run, r->e))
		return -1;
	if (!run)
		return 0;
	if (o->n >= r->env.spec->limits.launches)
		return fail(r, "repeat", o->n + 1, "more launches than limits.launches");
	o->launch = xrealloc(o->launch, (size_t)(o->n + 1) * sizeof *o->launch);
	struct launch *l = &o->launch[o->n];
	*l = (struct launch){.cooperative = p->cooperative, .pdl = o->n ? p->pdl : 0};
	memcpy(l->entry, p->entry, sizeof l->entry);
	l->arg = xcalloc((size_t)p->nargs, sizeof *l->arg);
	l->nargs = p->nargs;
	o->n++;
	if (resolve_shape(r, p, l))
		return -1;
	for (int i = 0; i < p->nargs; i++)
		if (resolve_arg(r, &p->arg[i], i, &l->arg[i]))
			return -1;
	if (param_bytes(l) > PLAN_MAX_PARAM)
		return fail(r, "args", param_bytes(l), "more parameter bytes than 4096");
	return 0;
}

static int reads(const struct expr *x, const char *var)
{
	const char *name;
	for (int i = 0; (name = expr_name_used(x, i)); i++)
		if (!strcmp(name, var))
			return 1;
	return 0;
}

/* *some: may any launch of the loop run? Otherwise nothing of it is evaluated, its count neither. */
static int group_wanted(struct resolve *r, int first, int end, int *some)
{
	*some = 0;
	for (int i = first; i < end && !*some; i++) {
		const struct plan_launch *l = &r->env.plan->launch[i];
		int64_t run = 1;
		at_hand(r, l);
		if (l->when && !reads(l->when, l->repeat_var) && !plan_residency_used(l->when) &&
		    plan_eval(&r->env, l->when, 0, &run, r->e))
			return -1;
		*some = run != 0;
	}
	at_hand(r, &r->env.plan->launch[first]);
	return 0;
}

/* Launch `first` and those that join its loop; *next is the one after them. */
static int resolve_group(struct resolve *r, int first, int *next)
{
	const struct plan *p = r->env.plan;
	const struct plan_launch *l = &p->launch[first];
	int64_t count = 1;
	int end = first + 1;
	r->index = first;
	at_hand(r, l);
	r->env.var = NULL;
	if (l->repeat_var[0]) {
		while (end < p->nlaunches && p->launch[end].repeat_var[0] && !p->launch[end].repeat_count)
			end++;
		int some;
		if (group_wanted(r, first, end, &some))
			return -1;
		count = 0;
		if (some && plan_eval(&r->env, l->repeat_count, 1, &count, r->e))
			return -1;
		if (count < 0 || count > r->env.spec->limits.launches)
			return fail(r, "repeat.count", count, "negative or more than limits.launches");
		r->env.var = l->repeat_var;
	}
	for (int64_t k = 0; k < count; k++) {
		r->env.var_value = k;
		for (int i = first; i < end; i++) {
			r->index = i;
			if (resolve_launch(r, &p->launch[i]))
				return -1;
		}
	}
	*next = end;
	return 0;
}

static int resolve_all(struct resolve *r)
{
	const struct spec *s = r->env.spec;
	if (resolve_workspaces(r))
		return -1;
	for (int i = 0; i < r->env.plan->nlaunches;)
		if (resolve_group(r, i, &i))
			return -1;
	for (int i = 0; i < s->noutputs; i++)
		if (!(r->bound & 1u << i))
			return err_set(r->e, EX_BADINPUT, "%s: launches: no launch that runs at this size takes "
			       "the output '%s'", r->env.plan->file, s->output[i].name);
	return 0;
}

int plan_resolve(const struct plan *p, const struct spec *s, const struct axes *a, const struct facts *f,
		 int reference, struct launches *out, struct err *e)
{
	struct plan_config config;
	struct resolve r = {.env = {.plan = p, .spec = s, .axes = a, .facts = f, .config = &config,
				    .reference = reference},
			    .out = out, .e = e};
	r.env.memo = &r.memo;
	*out = (struct launches){0};
	if (plan_config_for(p, s, a, f, &config, e) || resolve_all(&r)) {
		launches_free(out);
		return -1;
	}
	return 0;
}

void launches_free(struct launches *l)
{
	for (int i = 0; i < l->n; i++)
		free(l->launch[i].arg);
	free(l->launch);
	*l = (struct launches){0};
}

void launches_scalar(struct launches *l, int index, const void *data, int n)
{
	for (int i = 0; i < l->n; i++) {
		for (int k = 0; k < l->launch[i].nargs; k++) {
			struct launch_arg *a = &l->launch[i].arg[k];
			if (a->kind == ARG_SCALAR && a->index == index && n <= a->n)
				memcpy(a->data, data, (size_t)n);
		}
	}
}

void launches_shared(const struct launches *l, const struct plan *p, int64_t most[PLAN_MAX_ENTRIES])
{
	for (int i = 0; i < l->n; i++)
		for (int k = 0; k < p->nentries; k++)
			if (!strcmp(l->launch[i].entry, p->entry[k]) && l->launch[i].shared > most[k])
				most[k] = l->launch[i].shared;
}

int plan_shared_fits(const struct plan *p, const struct facts *f, const int64_t fixed[PLAN_MAX_ENTRIES],
		     const int64_t most[PLAN_MAX_ENTRIES], struct err *e)
{
	for (int i = 0; i < p->nentries; i++)
		if (fixed[i] > f->max_shared - most[i])
			return err_set(e, EX_BADINPUT, "%s: entry '%s' has %lld bytes of static shared memory and is "
				       "launched with %lld more: a block may have %lld", p->file, p->entry[i],
				       (long long)fixed[i], (long long)most[i], (long long)f->max_shared);
	return 0;
}
