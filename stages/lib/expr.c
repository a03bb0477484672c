/*
 * expr.c - see expr.h. The parser: precedence climbing over a fixed pool of nodes.
 *
 * The tree is an array; children are indices, so that freeing is one call and a hostile text
 * can cost no more than EXPR_MAX_NODES nodes. Evaluation is in expr_eval.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "expr_tree.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parser {
	struct expr *x;
	const char *s; /* whole text */
	size_t pos;
	int depth;
	struct err *e;
};

static const struct expr_fn FUNCTIONS[] = {
	{"ceil_div", EXPR_CEIL_DIV, 2, 2}, {"align_up", EXPR_ALIGN_UP, 2, 2},
	{"min", EXPR_MIN, 1, 16},          {"max", EXPR_MAX, 1, 16},
	{"select", EXPR_COND, 3, 3},       {"log2", EXPR_LOG2, 1, 1},
	{"next_pow2", EXPR_NEXT_POW2, 1, 1}, {"occupancy", EXPR_CALL, EXPR_OCCUPANCY, 1},
	{"max_clusters", EXPR_CALL, EXPR_MAX_CLUSTERS, 1}, {"sizeof", EXPR_CALL, EXPR_SIZEOF, 1},
};

struct binary {
	const char *text;
	enum expr_op op;
	int level;
};

/* Longer spellings first. */
static const struct binary BINARIES[] = {
	{"||", EXPR_OR, 1}, {"&&", EXPR_AND, 2}, {"==", EXPR_EQ, 3}, {"!=", EXPR_NE, 3},
	{"<=", EXPR_LE, 4}, {">=", EXPR_GE, 4},  {"<", EXPR_LT, 4},  {">", EXPR_GT, 4},
	{"+", EXPR_ADD, 5}, {"-", EXPR_SUB, 5},  {"*", EXPR_MUL, 6}, {"/", EXPR_DIV, 6},
	{"%", EXPR_MOD, 6},
};

static int parse_cond(struct parser *p);

static int fail(struct parser *p, size_t at, const char *why, const char *name)
{
	err_set(p->e, EX_BADINPUT, "%s: column %zu: %s%s%s%s", p->x->where, at + 1, why, name ? " '" : "",
		name ? name : "", name ? "'" : "");
	return -1;
}

static void skip_blanks(struct parser *p)
{
	while (p->s[p->pos] == ' ' || p->s[p->pos] == '\t')
		p->pos++;
}

static int node(struct parser *p, enum expr_op op, size_t at)
{
	struct expr *x = p->x;
	if (x->nnodes == EXPR_MAX_NODES)
		return fail(p, at, "the expression is too large", NULL);
	struct expr_node *n = &x->node[x->nnodes];
	*n = (struct expr_node){.op = op, .col = (int)at + 1, .child = -1, .next = -1, .name = -1};
	return x->nnodes++;
}

/* Node with up to three children in order. */
static int node_with(struct parser *p, enum expr_op op, size_t at, int a, int b, int c)
{
	int n = node(p, op, at);
	if (n < 0)
		return -1;
	p->x->node[n].child = a;
	if (b >= 0)
		p->x->node[a].next = b;
	if (c >= 0)
		p->x->node[b].next = c;
	return n;
}

/* Index of `s` in a list of names, adding it when new. `call` is 0 in a list of plain names. */
static int name_index(struct expr_names *l, const char *s, enum expr_call call)
{
	for (int i = 0; i < l->n; i++)
		if (!strcmp(l->name[i], s) && l->call[i] == call)
			return i;
	l->name = xrealloc(l->name, (size_t)(l->n + 1) * sizeof *l->name);
	l->call = xrealloc(l->call, (size_t)(l->n + 1) * sizeof *l->call);
	l->name[l->n] = xstrdup(s);
	l->call[l->n] = call;
	return l->n++;
}

static int parse_number(struct parser *p)
{
	size_t at = p->pos;
	int64_t v = 0;
	const char *s = p->s;
	if (s[at] == '0' && isdigit((unsigned char)s[at + 1]))
		return fail(p, at, "a number may not start with 0", NULL);
	for (; isdigit((unsigned char)s[p->pos]); p->pos++)
		if (expr_mul(v, 10, &v) || expr_add(v, s[p->pos] - '0', &v))
			return fail(p, at, "the number does not fit 64 bits", NULL);
	if (isalpha((unsigned char)s[p->pos]) || s[p->pos] == '_' || s[p->pos] == '.')
		return fail(p, at, "only decimal integers are numbers here", NULL);
	int n = node(p, EXPR_NUMBER, at);
	if (n >= 0)
		p->x->node[n].value = v;
	return n;
}

static int read_name(struct parser *p, char out[EXPR_NAME])
{
	size_t at = p->pos, n = 0;
	while (isalnum((unsigned char)p->s[p->pos]) || p->s[p->pos] == '_') {
		if (n == EXPR_NAME - 1)
			return fail(p, at, "a name has at most 64 characters", NULL);
		out[n++] = p->s[p->pos++];
	}
	out[n] = '\0';
	return 0;
}

static int expect(struct parser *p, char c)
{
	skip_blanks(p);
	if (p->s[p->pos] != c)
		return fail(p, p->pos, c == ')' ? "')' expected" : c == '(' ? "'(' expected" : "':' expected",
			    NULL);
	p->pos++;
	return 0;
}

static int parse_named_call(struct parser *p, enum expr_call call, size_t at)
{
	static const char *const why[] = {
		"occupancy() takes the name of an entry", "max_clusters() takes the name of an entry",
		"sizeof() takes the name of an input or output",
	};
	char name[EXPR_NAME];
	skip_blanks(p);
	if (!isalpha((unsigned char)p->s[p->pos]) && p->s[p->pos] != '_')
		return fail(p, p->pos, why[call], NULL);
	if (read_name(p, name) || expect(p, ')'))
		return -1;
	int n = node(p, EXPR_CALL, at);
	if (n >= 0)
		p->x->node[n].name = name_index(&p->x->calls, name, call);
	return n;
}

static int parse_call(struct parser *p, const struct expr_fn *f, size_t at)
{
	p->pos++; /* '(' */
	if (f->op == EXPR_CALL)
		return parse_named_call(p, (enum expr_call)f->min, at);
	int first = -1, last = -1, count = 0;
	do {
		if (count)
			p->pos++; /* ',' */
		int a = parse_cond(p);
		if (a < 0)
			return -1;
		if (last >= 0)
			p->x->node[last].next = a;
		else
			first = a;
		last = a;
		count++;
		skip_blanks(p);
	} while (p->s[p->pos] == ',');
	if (expect(p, ')'))
		return -1;
	if (count < f->min || count > f->max)
		return fail(p, at, "wrong number of arguments for", f->name);
	return node_with(p, f->op, at, first, -1, -1);
}

static const struct expr_fn *function(const char *name)
{
	for (size_t i = 0; i < sizeof FUNCTIONS / sizeof FUNCTIONS[0]; i++)
		if (!strcmp(FUNCTIONS[i].name, name))
			return &FUNCTIONS[i];
	return NULL;
}

static int parse_name(struct parser *p)
{
	char name[EXPR_NAME];
	size_t at = p->pos;
	if (read_name(p, name))
		return -1;
	skip_blanks(p);
	const struct expr_fn *f = function(name);
	if (p->s[p->pos] == '(')
		return f ? parse_call(p, f, at) : fail(p, at, "unknown function", name);
	if (f)
		return fail(p, at, "'(' expected after", name);
	int n = node(p, EXPR_NAMED, at);
	if (n >= 0)
		p->x->node[n].name = name_index(&p->x->names, name, 0);
	return n;
}

static int parse_primary(struct parser *p)
{
	skip_blanks(p);
	size_t at = p->pos;
	char c = p->s[at];
	if (isdigit((unsigned char)c))
		return parse_number(p);
	if (isalpha((unsigned char)c) || c == '_')
		return parse_name(p);
	if (c == '(') {
		p->pos++;
		int n = parse_cond(p);
		return n < 0 || expect(p, ')') ? -1 : n;
	}
	if (c == '-' || c == '!' || c == '+') {
		if (++p->depth > EXPR_MAX_DEPTH)
			return fail(p, at, "the expression is nested too deep", NULL);
		p->pos++;
		int n = parse_primary(p);
		p->depth--;
		if (n < 0 || c == '+')
			return n;
		return node_with(p, c == '-' ? EXPR_NEG : EXPR_NOT, at, n, -1, -1);
	}
	return fail(p, at, c ? "a value is expected here" : "the expression ends too early", NULL);
}

static const struct binary *peek_binary(struct parser *p)
{
	skip_blanks(p);
	for (size_t i = 0; i < sizeof BINARIES / sizeof BINARIES[0]; i++)
		if (!strncmp(p->s + p->pos, BINARIES[i].text, strlen(BINARIES[i].text)))
			return &BINARIES[i];
	return NULL;
}

static int parse_binary(struct parser *p, int level)
{
	int left = level == 6 ? parse_primary(p) : parse_binary(p, level + 1);
	while (left >= 0) {
		const struct binary *b = peek_binary(p);
		if (!b || b->level != level)
			break;
		size_t at = p->pos;
		p->pos += strlen(b->text);
		int right = level == 6 ? parse_primary(p) : parse_binary(p, level + 1);
		if (right < 0)
			return -1;
		left = node_with(p, b->op, at, left, right, -1);
	}
	return left;
}

static int parse_cond(struct parser *p)
{
	if (++p->depth > EXPR_MAX_DEPTH)
		return fail(p, p->pos, "the expression is nested too deep", NULL);
	int c = parse_binary(p, 1);
	if (c < 0)
		return -1;
	skip_blanks(p);
	size_t at = p->pos;
	if (p->s[at] == '?') {
		p->pos++;
		int a = parse_cond(p);
		if (a < 0 || expect(p, ':'))
			return -1;
		int b = parse_cond(p);
		if (b < 0)
			return -1;
		c = node_with(p, EXPR_COND, at, c, a, b);
	}
	p->depth--;
	return c;
}

static struct expr *expr_new(const char *text, const char *file, const char *path)
{
	struct expr *x = xcalloc(1, sizeof *x);
	x->text = xstrdup(text);
	x->where = xasprintf("%s: %s", file, path);
	return x;
}

struct expr *expr_parse(const char *text, const char *file, const char *path, struct err *e)
{
	if (strlen(text) > EXPR_MAX_TEXT) {
		err_set(e, EX_BADINPUT, "%s: %s: an expression has at most %d characters", file, path,
			EXPR_MAX_TEXT);
		return NULL;
	}
	struct expr *x = expr_new(text, file, path);
	x->node = xcalloc(EXPR_MAX_NODES, sizeof *x->node);
	struct parser p = {x, x->text, 0, 0, e};
	x->root = parse_cond(&p);
	if (x->root >= 0 && x->text[p.pos]) {
		char c[2] = {x->text[p.pos], 0};
		x->root = fail(&p, p.pos, "unexpected", c);
	}
	if (x->root < 0) {
		expr_free(x);
		return NULL;
	}
	x->node = xrealloc(x->node, (size_t)x->nnodes * sizeof *x->node);
	return x;
}

struct expr *expr_number(int64_t v, const char *file, const char *path)
{
	char text[32];
	snprintf(text, sizeof text, "%lld", (long long)v);
	struct expr *x = expr_new(text, file, path);
	x->node = xcalloc(1, sizeof *x->node);
	x->node[0] = (struct expr_node){.op = EXPR_NUMBER, .col = 1, .child = -1, .next = -1, .name = -1,
					.value = v};
	x->nnodes = 1;
	x->plain = 1;
	return x;
}

static void names_free(struct expr_names *l)
{
	for (int i = 0; i < l->n; i++)
		free(l->name[i]);
	free(l->name);
	free(l->call);
}

void expr_free(struct expr *x)
{
	if (!x)
		return;
	names_free(&x->names);
	names_free(&x->calls);
	free(x->node);
	free(x->text);
	free(x->where);
	free(x);
}

int expr_is_identifier(const char *s)
{
	size_t n = strlen(s);
	if (n == 0 || n > EXPR_NAME - 1 || (!isalpha((unsigned char)s[0]) && s[0] != '_'))
		return 0;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && *s != '_')
			return 0;
	return 1;
}

int expr_is_function(const char *s)
{
	return function(s) != NULL;
}
