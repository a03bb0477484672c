/*
 * expr_tree.h - the tree that expr.c builds and expr_eval.c walks. Private to the two.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_EXPR_TREE_H
#define TS_EXPR_TREE_H

#include "expr.h"

enum expr_op {
	EXPR_NUMBER, EXPR_NAMED, EXPR_CALL,
	EXPR_NEG, EXPR_NOT,
	EXPR_ADD, EXPR_SUB, EXPR_MUL, EXPR_DIV, EXPR_MOD,
	EXPR_EQ, EXPR_NE, EXPR_LT, EXPR_LE, EXPR_GT, EXPR_GE,
	EXPR_AND, EXPR_OR, EXPR_COND,
	EXPR_CEIL_DIV, EXPR_ALIGN_UP, EXPR_MIN, EXPR_MAX, EXPR_LOG2, EXPR_NEXT_POW2
};

struct expr_fn {
	const char *name;
	enum expr_op op;
	int min, max; /* arguments; EXPR_CALL: min is the enum expr_call */
};

struct expr_node {
	enum expr_op op;
	int col;       /* 1-based, for messages */
	int child;     /* first operand, -1 none */
	int next;      /* next operand of the same parent, -1 none */
	int name;      /* index into names or calls */
	int64_t value; /* EXPR_NUMBER */
};

struct expr_names {
	int n;
	char **name;
	enum expr_call *call; /* of calls */
};

struct expr {
	char *text, *where;
	int nnodes, root;
	int plain; /* made from a JSON number */
	struct expr_node *node;
	struct expr_names names, calls;
};

#endif
