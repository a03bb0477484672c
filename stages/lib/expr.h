/*
 * expr.h - integer expressions in plans and specs.
 *
 *   values     int64, overflow is an error, / truncates toward zero, / and % by zero are errors
 *   operators  ?:  ||  &&  == !=  < <= > >=  + -  * / %  unary - + !  ( )
 *   functions  ceil_div(a,b) align_up(a,b) min(a,...) max(a,...) select(c,a,b) log2(n)
 *              next_pow2(n) occupancy(entry) max_clusters(entry) sizeof(buffer)
 *   names      [A-Za-z_][A-Za-z0-9_]{0,63}, given a value by the caller's callback
 *
 * ?: select && || evaluate only the branch that counts. Comparison and logic yield 0 or 1.
 * ceil_div and align_up need a >= 0 and b > 0; log2 (rounded down) and next_pow2 need n >= 1.
 *
 * Life cycle: parse once, evaluate any number of times (const, no allocation), expr_free.
 * Errors name the file and the JSON path given at parse time, the column where there is one,
 * and the reason: "plan.json: launches[0].grid[1]: column 7: unknown name 'BM'".
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_EXPR_H
#define TS_EXPR_H

#include "buf.h"
#include "err.h"

#include <stdint.h>

#define EXPR_MAX_TEXT 1024
#define EXPR_MAX_NODES 256
#define EXPR_MAX_DEPTH 32
#define EXPR_NAME 65 /* longest name and its NUL */

struct expr;

/* Functions that take a name and not a value; the caller knows what it stands for. */
enum expr_call { EXPR_OCCUPANCY, EXPR_MAX_CLUSTERS, EXPR_SIZEOF };
const char *expr_call_name(enum expr_call c); /* "occupancy" */

struct expr_env {
	/* 0 and *out; -1 when the name has no value here. */
	int (*name)(void *ctx, const char *name, int64_t *out);
	/* Those functions; NULL where none is allowed. 0, or -1 with `e`. */
	int (*call)(void *ctx, enum expr_call c, const char *name, int64_t *out, struct err *e);
	void *ctx;
};

/* `file` and `path` say where the text stands; both are copied. */
struct expr *expr_parse(const char *text, const char *file, const char *path, struct err *e);
struct expr *expr_number(int64_t v, const char *file, const char *path);
void expr_free(struct expr *x); /* NULL is fine */

int expr_eval(const struct expr *x, const struct expr_env *env, int64_t *out, struct err *e);

/* Every name read, once each, in order of first use; NULL after the last. */
const char *expr_name_used(const struct expr *x, int i);
/* Every call on a name, in the same way, with its function. */
const char *expr_call_used(const struct expr *x, int i, enum expr_call *c);

const char *expr_text(const struct expr *x);  /* as it was written */
const char *expr_where(const struct expr *x); /* "FILE: PATH" */
int expr_is_number(const struct expr *x, int64_t *out); /* 1 for a plain integer constant */

int expr_is_identifier(const char *s); /* matches [A-Za-z_][A-Za-z0-9_]{0,63} */
int expr_is_function(const char *s);   /* a name that has to be followed by ( */

/* The arithmetic, for other callers: 0, or -1 on overflow or a value out of domain. */
int expr_mul(int64_t a, int64_t b, int64_t *out);
int expr_add(int64_t a, int64_t b, int64_t *out);

#endif
