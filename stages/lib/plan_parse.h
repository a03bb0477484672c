/*
 * plan_parse.h - shared by the files that read and resolve plans. Private to them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_PLAN_PARSE_H
#define TS_PLAN_PARSE_H

#include "jwalk.h"
#include "plan.h"

/* The "args" of a launch. */
int plan_parse_args(struct jwalk *w, const cJSON *item, struct plan_launch *l);
void plan_arg_free(struct plan_arg *a);

/* Words of the grammar, in the order of the driver's enums; NULL-terminated. */
extern const char *const PLAN_TYPES[];       /* i8 .. f64 */
extern const char *const PLAN_SWIZZLES[];
extern const char *const PLAN_INTERLEAVES[];
extern const char *const PLAN_PROMOTIONS[];
extern const char *const PLAN_OOB_FILLS[];
extern const char *const PLAN_STDS[];
extern const int PLAN_STD_YEARS[];
extern const char *const PLAN_ARCHS[];
const char *plan_type_name(enum dtype t);    /* "i32" */

/* 1 for sm_count, max_shared, ...: the value in *out when f is given. */
int plan_fact(const char *name, const struct facts *f, int64_t *out);
int plan_tunable_find(const struct plan *p, const char *name);
int plan_workspace_find(const struct plan *p, const char *name);

/* Answers of occupancy() [0] and max_clusters() [1] so far: of the launch at hand, to be cleared with
 * each one, and of other entries. */
struct plan_known {
	int set;
	int64_t value;
};
struct plan_memo {
	struct plan_known near[2], far[PLAN_MAX_ENTRIES][2];
};
int plan_residency_used(const struct expr *x); /* does it call either? */

/* What an expression of a plan may see. */
struct plan_env {
	const struct plan *plan;
	const struct spec *spec;
	const struct axes *axes;           /* NULL: const axes only */
	const struct facts *facts;
	const struct plan_config *config;  /* NULL: no tunables */
	const char *var;                   /* repeat variable, or NULL */
	int64_t var_value;
	const struct plan_launch *launch;  /* being resolved, or NULL */
	int reference;                     /* float outputs have elements of 8 bytes */
	int residency;                     /* occupancy() and max_clusters() may be used: plan_eval sets it */
	struct plan_memo *memo;            /* or NULL */
};
/* 0, or -1 with `e`. `residency`: whether occupancy() and max_clusters() may be used. */
int plan_eval(const struct plan_env *env, const struct expr *x, int residency, int64_t *out, struct err *e);
/* Without residency; NULL x gives `fallback`. */
int plan_eval_or(const struct plan_env *env, const struct expr *x, int64_t fallback, int64_t *out,
		 struct err *e);

/* Element type of an input or output; -1 when there is none of that name. */
int plan_element(const struct spec *s, const char *buffer, int reference, enum dtype *type);

/* A tensor map in numbers; `bytes` is the size of its buffer, `element` its type (DT_NONE: a
 * workspace has none). */
int plan_resolve_map(const struct plan_env *env, const struct plan_tensor_map *m, const char *where,
		     int64_t bytes, enum dtype element, struct launch_arg *out, struct err *e);

#endif
