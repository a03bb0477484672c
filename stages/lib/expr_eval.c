/*
 * expr_eval.c - evaluate what expr.c parsed. Every step is checked for overflow and domain.
 *
 * SPDX-License-Identifier: MIT
 */
#include "expr_tree.h"

#include "defence.h"

#include <stddef.h>

struct eval {
	const struct expr *x;
	const struct expr_env *env;
	struct err *e;
};

static int eval(struct eval *v, int n, int64_t *out);

int expr_mul(int64_t a, int64_t b, int64_t *out)
{
	return __builtin_mul_overflow(a, b, out) && DEFENCE("expr.overflow") ? -1 : 0;
}

int expr_add(int64_t a, int64_t b, int64_t *out)
{
	return __builtin_add_overflow(a, b, out) && DEFENCE("expr.overflow") ? -1 : 0;
}

static int fail(struct eval *v, const struct expr_node *n, const char *why)
{
	return err_set(v->e, EX_BADINPUT, "%s: column %d: %s", v->x->where, n->col, why);
}

static int log2_floor(int64_t a)
{
	return 63 - __builtin_clzll((unsigned long long)a);
}

/* 0, or the reason why not. */
static const char *divide(enum expr_op op, int64_t a, int64_t b, int64_t *out)
{
	if (b == 0)
		return "division by zero";
	if (a == INT64_MIN && b == -1)
		return "overflow";
	*out = op == EXPR_DIV ? a / b : a % b;
	return NULL;
}

static const char *round_up(enum expr_op op, int64_t a, int64_t b, int64_t *out)
{
	if (b <= 0 || a < 0)
		return op == EXPR_CEIL_DIV ? "ceil_div(a, b) needs a >= 0 and b > 0"
					   : "align_up(a, b) needs a >= 0 and b > 0";
	int64_t q = a / b + (a % b != 0);
	if (op == EXPR_CEIL_DIV) {
		*out = q;
		return NULL;
	}
	return expr_mul(q, b, out) ? "overflow" : NULL;
}

static const char *binary(enum expr_op op, int64_t a, int64_t b, int64_t *out)
{
	switch (op) {
	case EXPR_ADD: return expr_add(a, b, out) ? "overflow" : NULL;
	case EXPR_SUB: return __builtin_sub_overflow(a, b, out) ? "overflow" : NULL;
	case EXPR_MUL: return expr_mul(a, b, out) ? "overflow" : NULL;
	case EXPR_DIV:
	case EXPR_MOD: return divide(op, a, b, out);
	case EXPR_EQ: *out = a == b; return NULL;
	case EXPR_NE: *out = a != b; return NULL;
	case EXPR_LT: *out = a < b; return NULL;
	case EXPR_LE: *out = a <= b; return NULL;
	case EXPR_GT: *out = a > b; return NULL;
	case EXPR_GE: *out = a >= b; return NULL;
	default: return round_up(op, a, b, out);
	}
}

static int eval_unary(struct eval *v, const struct expr_node *n, int64_t *out)
{
	int64_t a;
	if (eval(v, n->child, &a))
		return -1;
	switch (n->op) {
	case EXPR_NEG:
		return __builtin_sub_overflow((int64_t)0, a, out) ? fail(v, n, "overflow") : 0;
	case EXPR_NOT:
		*out = !a;
		return 0;
	case EXPR_LOG2:
		if (a < 1)
			return fail(v, n, "log2(n) needs n >= 1");
		*out = log2_floor(a);
		return 0;
	default:
		if (a < 1)
			return fail(v, n, "next_pow2(n) needs n >= 1");
		if (a > (int64_t)1 << 62)
			return fail(v, n, "overflow");
		*out = a == 1 ? 1 : (int64_t)1 << (log2_floor(a - 1) + 1);
		return 0;
	}
}

static int eval_extreme(struct eval *v, const struct expr_node *n, int64_t *out)
{
	int first = 1;
	for (int c = n->child; c >= 0; c = v->x->node[c].next) {
		int64_t a;
		if (eval(v, c, &a))
			return -1;
		if (first || (n->op == EXPR_MIN ? a < *out : a > *out))
			*out = a;
		first = 0;
	}
	return 0;
}

/* && || ?: : only the operand that counts is evaluated. */
static int eval_lazy(struct eval *v, const struct expr_node *n, int64_t *out)
{
	int second = v->x->node[n->child].next;
	int64_t a;
	if (eval(v, n->child, &a))
		return -1;
	if (n->op == EXPR_COND)
		return eval(v, a ? second : v->x->node[second].next, out);
	if (n->op == EXPR_AND ? !a : a != 0) {
		*out = n->op == EXPR_OR;
		return 0;
	}
	if (eval(v, second, &a))
		return -1;
	*out = a != 0;
	return 0;
}

static int eval_leaf(struct eval *v, const struct expr_node *n, int64_t *out)
{
	if (n->op == EXPR_NUMBER) {
		*out = n->value;
		return 0;
	}
	if (n->op == EXPR_NAMED) {
		const char *name = v->x->names.name[n->name];
		if (v->env && v->env->name && !v->env->name(v->env->ctx, name, out))
			return 0;
		return err_set(v->e, EX_BADINPUT, "%s: column %d: unknown name '%s'", v->x->where, n->col,
			       name);
	}
	const struct expr_names *l = &v->x->calls;
	if (!v->env || !v->env->call)
		return err_set(v->e, EX_BADINPUT, "%s: column %d: %s() may not be used here", v->x->where, n->col,
			       expr_call_name(l->call[n->name]));
	return v->env->call(v->env->ctx, l->call[n->name], l->name[n->name], out, v->e);
}

static int eval(struct eval *v, int i, int64_t *out)
{
	const struct expr_node *n = &v->x->node[i];
	switch (n->op) {
	case EXPR_NUMBER:
	case EXPR_NAMED:
	case EXPR_CALL:
		return eval_leaf(v, n, out);
	case EXPR_NEG:
	case EXPR_NOT:
	case EXPR_LOG2:
	case EXPR_NEXT_POW2:
		return eval_unary(v, n, out);
	case EXPR_MIN:
	case EXPR_MAX:
		return eval_extreme(v, n, out);
	case EXPR_AND:
	case EXPR_OR:
	case EXPR_COND:
		return eval_lazy(v, n, out);
	default:
		break;
	}
	int64_t a, b;
	if (eval(v, n->child, &a) || eval(v, v->x->node[n->child].next, &b))
		return -1;
	const char *why = binary(n->op, a, b, out);
	return why ? fail(v, n, why) : 0;
}

int expr_eval(const struct expr *x, const struct expr_env *env, int64_t *out, struct err *e)
{
	struct eval v = {x, env, e};
	return eval(&v, x->root, out);
}

const char *expr_name_used(const struct expr *x, int i)
{
	return i >= 0 && i < x->names.n ? x->names.name[i] : NULL;
}

const char *expr_call_used(const struct expr *x, int i, enum expr_call *c)
{
	if (i < 0 || i >= x->calls.n)
		return NULL;
	*c = x->calls.call[i];
	return x->calls.name[i];
}

const char *expr_call_name(enum expr_call c)
{
	return c == EXPR_OCCUPANCY ? "occupancy" : c == EXPR_MAX_CLUSTERS ? "max_clusters" : "sizeof";
}

const char *expr_text(const struct expr *x)
{
	return x->text;
}

const char *expr_where(const struct expr *x)
{
	return x->where;
}

int expr_is_number(const struct expr *x, int64_t *out)
{
	if (!x->plain)
		return 0;
	*out = x->node[x->root].value;
	return 1;
}
