/*
 * plan_eval.c - values of the names that a plan's expressions read.
 *
 * occupancy(entry) and max_clusters(entry) need the block, the shared memory and the cluster of a
 * launch of that entry: the launch at hand if it is one, else the first one that runs. Those three
 * are evaluated first, so they may not ask for either: a cycle.
 *
 * SPDX-License-Identifier: MIT
 */
#include "plan_parse.h"

#include <stddef.h>
#include <string.h>

static const struct {
	const char *name;
	size_t at;
} FACTS[] = {
	{"sm_count", offsetof(struct facts, sm_count)},
	{"max_shared", offsetof(struct facts, max_shared)},
	{"max_threads", offsetof(struct facts, max_threads)},
	{"warp_size", offsetof(struct facts, warp_size)},
	{"l2_bytes", offsetof(struct facts, l2_bytes)},
};

int plan_fact(const char *name, const struct facts *f, int64_t *out)
{
	for (size_t i = 0; i < sizeof FACTS / sizeof FACTS[0]; i++) {
		if (strcmp(FACTS[i].name, name))
			continue;
		if (f)
			memcpy(out, (const char *)f + FACTS[i].at, sizeof *out);
		return 1;
	}
	return 0;
}

static int lookup(void *ctx, const char *name, int64_t *out)
{
	const struct plan_env *v = ctx;
	if (v->var && !strcmp(v->var, name)) {
		*out = v->var_value;
		return 0;
	}
	int i = v->config ? plan_tunable_find(v->plan, name) : -1;
	if (i >= 0) {
		*out = v->config->v[i];
		return 0;
	}
	i = spec_axis_find(v->spec, name);
	if (i >= 0 && (v->axes || v->spec->axis[i].is_const)) {
		*out = v->axes ? v->axes->v[i] : v->spec->axis[i].value;
		return 0;
	}
	return i < 0 && v->facts && plan_fact(name, v->facts, out) ? 0 : -1;
}

/* What an occupancy depends on. */
struct shape {
	int64_t threads, shared, cluster[3];
};

/* Product of up to three sizes, each in *v too; missing ones are 1. */
static int sizes(const struct plan_env *v, struct expr *const x[3], int n, const char *what, int64_t out[3],
		 int64_t *product, struct err *e)
{
	*product = 1;
	for (int i = 0; i < 3; i++) {
		out[i] = 1;
		if (i < n && plan_eval(v, x[i], 0, &out[i], e))
			return -1;
		if (out[i] < 1 || expr_mul(*product, out[i], product))
			return err_set(e, EX_BADINPUT, "%s: %lld is no %s size", expr_where(x[i < n ? i : 0]),
				       (long long)out[i], what);
	}
	return 0;
}

static int shape_of(const struct plan_env *v, const struct plan_launch *l, struct shape *o, struct err *e)
{
	int64_t block[3], blocks;
	if (sizes(v, l->block, l->nblock, "block", block, &o->threads, e) ||
	    sizes(v, l->cluster, l->ncluster, "cluster", o->cluster, &blocks, e) ||
	    plan_eval_or(v, l->shared, 0, &o->shared, e))
		return -1;
	if (blocks > v->facts->max_cluster)
		return err_set(e, EX_BADINPUT, "%s: %lld is no cluster size", expr_where(l->cluster[0]),
			       (long long)blocks);
	return 0;
}

/* Launch l in the first pass of its loop, unless it is the one at hand. */
static struct plan_env env_of(const struct plan_env *v, const struct plan_launch *l)
{
	struct plan_env n = *v;
	if (l == v->launch)
		return n;
	n.launch = l;
	n.var = l->repeat_var[0] ? l->repeat_var : NULL;
	n.var_value = 0;
	return n;
}

/* Does launch l run? A `when` that asks for an occupancy itself counts as true here. */
static int runs(const struct plan_env *v, const struct plan_launch *l, int64_t *yes, struct err *e)
{
	struct plan_env n = env_of(v, l);
	*yes = 1;
	return l->when && !plan_residency_used(l->when) && plan_eval(&n, l->when, 0, yes, e) ? -1 : 0;
}

/* The launch at hand if it is of that entry, else the first that runs, else the first. */
static int launch_of(const struct plan_env *v, const char *entry, const struct plan_launch **out, struct err *e)
{
	*out = NULL;
	if (v->launch && !strcmp(v->launch->entry, entry)) {
		*out = v->launch;
		return 0;
	}
	for (int i = 0; i < v->plan->nlaunches; i++) {
		const struct plan_launch *l = &v->plan->launch[i];
		int64_t yes;
		if (strcmp(l->entry, entry))
			continue;
		if (runs(v, l, &yes, e))
			return -1;
		if (!*out || yes)
			*out = l;
		if (yes)
			return 0;
	}
	return *out ? 0 : err_set(e, EX_BADINPUT, "%s: occupancy(): no launch of '%s'", v->plan->file, entry);
}

/* Where to keep the answer: a launch that is not at hand gives the same one throughout. */
static struct plan_known *memo_of(const struct plan_env *v, enum expr_call c, const char *entry)
{
	int i = 0;
	if (!v->memo)
		return NULL;
	if (v->launch && !strcmp(v->launch->entry, entry))
		return &v->memo->near[c == EXPR_MAX_CLUSTERS];
	while (i < v->plan->nentries && strcmp(v->plan->entry[i], entry))
		i++;
	return i < v->plan->nentries ? &v->memo->far[i][c == EXPR_MAX_CLUSTERS] : NULL;
}

static int residency(const struct plan_env *v, enum expr_call c, const char *entry, int64_t *out, struct err *e)
{
	const struct plan_launch *l;
	struct plan_known *known = memo_of(v, c, entry);
	struct shape o;
	if (known && known->set) {
		*out = known->value;
		return 0;
	}
	if (launch_of(v, entry, &l, e))
		return -1;
	struct plan_env n = env_of(v, l);
	if (shape_of(&n, l, &o, e))
		return -1;
	if (c == EXPR_OCCUPANCY ? facts_occupancy(v->facts, entry, o.threads, o.shared, out, e)
				: facts_clusters(v->facts, entry, o.threads, o.shared, o.cluster, out, e))
		return -1;
	if (known)
		*known = (struct plan_known){1, *out};
	return 0;
}

int plan_residency_used(const struct expr *x)
{
	enum expr_call c;
	for (int i = 0; expr_call_used(x, i, &c); i++)
		if (c != EXPR_SIZEOF)
			return 1;
	return 0;
}

int plan_element(const struct spec *s, const char *buffer, int reference, enum dtype *type)
{
	int in = spec_input_find(s, buffer), out = spec_output_find(s, buffer);
	if (in >= 0) {
		*type = s->input[in].dtype;
		return 0;
	}
	if (out < 0)
		return -1;
	*type = s->output[out].dtype;
	if (reference && dtype_is_float(*type))
		*type = DT_F64;
	return 0;
}

static int call(void *ctx, enum expr_call c, const char *name, int64_t *out, struct err *e)
{
	const struct plan_env *v = ctx;
	enum dtype type;
	if (c == EXPR_SIZEOF) {
		if (plan_element(v->spec, name, v->reference, &type))
			return err_set(e, EX_BADINPUT, "%s: sizeof(): no input or output is named '%s'",
				       v->plan->file, name);
		*out = (int64_t)dtype_size(type);
		return 0;
	}
	if (!v->residency || !v->facts)
		return err_set(e, EX_BADINPUT, "%s: %s() may not be used here", v->plan->file, expr_call_name(c));
	return residency(v, c, name, out, e);
}

int plan_eval(const struct plan_env *env, const struct expr *x, int with_residency, int64_t *out,
	      struct err *e)
{
	struct plan_env copy = *env;
	struct expr_env v = {lookup, call, &copy};
	copy.residency = with_residency;
	return expr_eval(x, &v, out, e);
}

int plan_eval_or(const struct plan_env *env, const struct expr *x, int64_t fallback, int64_t *out,
		 struct err *e)
{
	if (x)
		return plan_eval(env, x, 0, out, e);
	*out = fallback;
	return 0;
}
