/*
 * plan_eval.c - values of the names that a plan's expressions read.
 *
 * occupancy(entry) needs the block and the shared memory of a launch of that entry: the launch
 * at hand if it is one, else the first in the plan. Those two may not use occupancy() again.
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

static const struct plan_launch *launch_of(const struct plan_env *v, const char *entry)
{
	if (v->launch && !strcmp(v->launch->entry, entry))
		return v->launch;
	for (int i = 0; i < v->plan->nlaunches; i++)
		if (!strcmp(v->plan->launch[i].entry, entry))
			return &v->plan->launch[i];
	return NULL;
}

static int occupancy(void *ctx, const char *entry, int64_t *out, struct err *e)
{
	const struct plan_env *v = ctx;
	const struct plan_launch *l = launch_of(v, entry);
	int64_t threads = 1, shared, n;
	if (!l)
		return err_set(e, EX_BADINPUT, "%s: occupancy(): no launch of '%s'", v->plan->file, entry);
	for (int i = 0; i < l->nblock; i++) {
		if (plan_eval(v, l->block[i], 0, &n, e))
			return -1;
		if (n < 1 || expr_mul(threads, n, &threads))
			return err_set(e, EX_BADINPUT, "%s: %lld is no block size", expr_where(l->block[i]),
				       (long long)n);
	}
	if (plan_eval_or(v, l->shared, 0, &shared, e))
		return -1;
	return facts_occupancy(v->facts, entry, threads, shared, out, e);
}

int plan_eval(const struct plan_env *env, const struct expr *x, int with_occupancy, int64_t *out,
	      struct err *e)
{
	struct plan_env copy = *env;
	struct expr_env v = {lookup, with_occupancy && env->facts ? occupancy : NULL, &copy};
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
