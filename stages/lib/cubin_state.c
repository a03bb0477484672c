/*
 * cubin_state.c - see cubin_part.h: a module's memory is read-only.
 *
 * A kernel that holds the address of a variable, a constant or a parameter can write there and beside it, as far as
 * the driver's mapping goes: seen on an H200 from 256 bytes to 1 MiB and more past each of them. Nobody wipes that memory, and
 * the driver copies named variables only (cuMemcpy refuses the rest of that very mapping). So such an address may be moved, offset and read from, and nothing else:
 * no store, no atomic, no arithmetic that hides it, no way into memory or into a call. What it is offset by and what
 * is read are plain numbers again.
 *
 * What it does not see is an address that a kernel never took from a name: a guess, or one read from memory that is not
 * its own.
 *
 * The rule does not follow the order of instructions: a register that holds such an address anywhere in a function
 * holds it everywhere. Registers are told apart by name; one name in two scopes counts as one. Both can refuse too
 * much, not too little.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cubin_part.h"

#include "buf.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct words { /* a set */
	struct ptx_word *at;
	size_t n, room; /* room: a power of two */
};

struct state {
	struct words names, held; /* of the module; registers of this function */
	struct ptx_word *tok;     /* one statement */
	size_t n, room;
};

/* ---- sets of words ---- */

static size_t place(const struct words *s, const struct ptx_word *w)
{
	uint64_t h = 14695981039346656037u;
	for (size_t i = 0; i < w->n; i++)
		h = (h ^ (unsigned char)w->s[i]) * 1099511628211u;
	size_t k = (size_t)(h ^ h >> 32) & (s->room - 1);
	while (s->at[k].s && (s->at[k].n != w->n || memcmp(s->at[k].s, w->s, w->n)))
		k = (k + 1) & (s->room - 1);
	return k;
}

static int has(const struct words *s, const struct ptx_word *w)
{
	return s->n && s->at[place(s, w)].s;
}

static void put(struct words *s, const struct ptx_word *w)
{
	if (2 * s->n >= s->room) {
		struct words more = {.room = s->room ? 2 * s->room : 64};
		more.at = xcalloc(more.room, sizeof *more.at);
		for (size_t i = 0; i < s->room; i++)
			if (s->at[i].s)
				more.at[place(&more, &s->at[i])] = s->at[i];
		more.n = s->n;
		free(s->at);
		*s = more;
	}
	size_t k = place(s, w);
	s->n += !s->at[k].s;
	s->at[k] = *w;
}

static void clear(struct words *s)
{
	if (s->n)
		memset(s->at, 0, s->room * sizeof *s->at);
	s->n = 0;
}

/* ---- what has an address ---- */

static int is_name(const struct ptx_word *w)
{
	int c = (unsigned char)w->s[0];
	return isalpha(c) || c == '_' || c == '$' || (c == '%' && w->n > 1);
}

static int refuse(char code[48], char text[256], const char *what, const struct ptx_word *w)
{
	snprintf(code, 48, "guard.module_state");
	snprintf(text, 256, "%s '%.*s' (PTX line %d)", what, w->n > 60 ? 60 : (int)w->n, w->s, w->line);
	return 1;
}

/* After .global, .const or .entry: the names up to the end of the declaration. An initial value that is an address
 * could be read as a plain number. */
static int declared(struct ptx_reader r, struct state *s, char code[48], char text[256])
{
	struct ptx_word w;
	for (int value = 0; ptx_next(&r, &w) && !ptx_is(&w, ";") && !ptx_is(&w, ")") && (value || !ptx_is(&w, "{"));) {
		value |= ptx_is(&w, "=");
		if (is_name(&w) && value)
			return refuse(code, text, "a variable begins as an address:", &w);
		if (is_name(&w))
			put(&s->names, &w);
	}
	return 0;
}

/* Words that touch, like those of `ld.global`, begin with an instruction or are a declaration. */
static int names_read(const char *ptx, size_t len, struct state *s, char code[48], char text[256])
{
	struct ptx_reader r = {ptx, ptx + len, 1};
	struct ptx_word w;
	const char *end = NULL;
	for (int directive = 0; ptx_next(&r, &w); end = w.s + w.n) {
		if (w.s != end || !(isalnum((unsigned char)end[-1]) || end[-1] == '_' || end[-1] == '$'))
			directive = w.s[0] == '.';
		int entry = ptx_is(&w, ".entry");
		if (!entry && !(directive && (ptx_is(&w, ".global") || ptx_is(&w, ".const"))))
			continue;
		struct ptx_reader from = r;
		if (entry)
			ptx_next(&from, &w); /* its name is no data */
		if (declared(from, s, code, text))
			return 1;
	}
	return 0;
}

/* ---- one instruction ---- */

struct operand {
	size_t from, to; /* words of the statement */
	int address;     /* in brackets */
	int held;        /* words in it that are or hold an address */
};

enum { OPERANDS = 8 };

struct line {
	size_t op;                /* the instruction, after its guard */
	size_t operands;          /* where they begin */
	struct operand o[OPERANDS];
	int n;
};

static int holds(const struct state *s, size_t i)
{
	return has(&s->held, &s->tok[i]) || has(&s->names, &s->tok[i]);
}

static int word_is(const struct state *s, size_t i, const char *text)
{
	return i < s->n && ptx_is(&s->tok[i], text);
}

static int modified(const struct state *s, const struct line *l, const char *a, const char *b, const char *c)
{
	for (size_t i = l->op + 1; i < l->operands; i++)
		if (word_is(s, i, a) || (b && word_is(s, i, b)) || (c && word_is(s, i, c)))
			return 1;
	return 0;
}

static void line_split(const struct state *s, struct line *l)
{
	size_t i = 0;
	int depth = 0;
	if (s->tok[0].s[0] == '@')
		i = s->tok[0].n > 1 ? 1 : word_is(s, 1, "!") ? 3 : 2;
	*l = (struct line){.op = i};
	for (i++; i < s->n && (s->tok[i].s[0] == '.' || s->tok[i].s[0] == ':' || s->tok[i - 1].s[0] == ':'); i++)
		;
	l->operands = i;
	for (; i < s->n; i++) {
		const struct ptx_word *w = &s->tok[i];
		int comma = depth == 0 && ptx_is(w, ",");
		depth += ptx_is(w, "[") || ptx_is(w, "{") || ptx_is(w, "(");
		depth -= ptx_is(w, "]") || ptx_is(w, "}") || ptx_is(w, ")");
		if (l->n == 0 || (comma && l->n < OPERANDS))
			l->o[l->n++] = (struct operand){.from = i + (size_t)comma, .to = i + (size_t)comma};
		if (comma)
			continue;
		struct operand *o = &l->o[l->n - 1];
		o->to = i + 1;
		o->address |= ptx_is(w, "[");
		o->held += holds(s, i);
	}
}

/* An address and nothing that it is made from: [a], [a+4], and before coordinates. */
static int plain(const struct state *s, const struct operand *o)
{
	return o->held == 0 || (o->held == 1 && (holds(s, o->from) || (o->address && holds(s, o->from + 1))));
}

static int copies_well(const struct state *s, const struct line *l)
{
	int tensor = modified(s, l, ".tensor", NULL, NULL);
	for (int i = 0; i < l->n; i++) {
		const struct operand *o = &l->o[i];
		if (o->held && (!o->address || !plain(s, o) || (i == 0 && !(tensor && word_is(s, o->from + 2, ",")))))
			return 0;
	}
	return 1;
}

/* Which of its operands an instruction may take an address in to make another: bit i for operand i. */
static unsigned passes(const struct state *s, const struct line *l)
{
	int wide = modified(s, l, ".u64", ".s64", ".b64");
	if (word_is(s, l->op, "mad"))
		return modified(s, l, ".wide", NULL, NULL) || wide ? 1u << 3 : 0;
	if (!wide)
		return 0;
	if (word_is(s, l->op, "cvta"))
		return modified(s, l, ".global", ".const", ".param") ? 1u << 1 : 0;
	if (word_is(s, l->op, "mov") || word_is(s, l->op, "sub"))
		return 1u << 1;
	if (word_is(s, l->op, "add"))
		return (l->n > 2 && l->o[2].held && l->o[1].held) ? 0 : 3u << 1;
	return word_is(s, l->op, "selp") ? 3u << 1 : 0;
}

/* 0: fine; 1: it does with an address what it must not. */
static int instruction(struct state *s)
{
	struct line l;
	int sources = 0;
	line_split(s, &l);
	/* the first operand is a result unless it is an address, or alone, or a call's */
	int first = l.n > 1 && !l.o[0].address && !word_is(s, l.op, "call");
	for (int i = first; i < l.n; i++)
		sources += l.o[i].held;
	if (!sources)
		return 0;
	if (word_is(s, l.op, "ld") || word_is(s, l.op, "ldu"))
		return modified(s, &l, ".shared", ".local", NULL) || l.n < 2 || !l.o[1].address || !plain(s, &l.o[1]) ||
		       sources != l.o[1].held;
	if (word_is(s, l.op, "prefetch"))
		return !plain(s, &l.o[0]);
	if (word_is(s, l.op, "cp"))
		return !copies_well(s, &l);
	unsigned may = first ? passes(s, &l) : 0;
	for (int i = 1; i < l.n; i++)
		if (l.o[i].held && (!(may >> i & 1) || l.o[i].address || !plain(s, &l.o[i])))
			return 1;
	if (!may || l.o[0].to != l.o[0].from + 1)
		return 1;
	put(&s->held, &s->tok[l.o[0].from]);
	return 0;
}

/* ---- functions ---- */

static void token(struct state *s, const struct ptx_word *w)
{
	if (s->n == s->room)
		s->tok = xrealloc(s->tok, (s->room = s->room ? 2 * s->room : 256) * sizeof *s->tok);
	s->tok[s->n++] = *w;
}

/* From `{` to its `}`: 1 when an instruction is refused. */
static int body(struct ptx_reader *r, struct state *s, char code[48], char text[256])
{
	struct ptx_word w;
	int depth = 0;
	for (s->n = 0; ptx_next(r, &w);) {
		if (s->n == 0 && (ptx_is(&w, "{") || ptx_is(&w, "}"))) {
			depth += ptx_is(&w, "{") ? 1 : -1;
			if (depth <= 0)
				return 0;
		} else if (s->n == 1 && ptx_is(&w, ":")) {
			s->n = 0; /* a label */
		} else if (!ptx_is(&w, ";")) {
			token(s, &w);
		} else {
			if (s->n && s->tok[0].s[0] != '.' && instruction(s))
				return refuse(code, text,
					      "kernels may read variables of the module, constants and parameters, not write "
					      "there or beside (a zeroed workspace does): an address is used otherwise by",
					      &s->tok[0]);
			s->n = 0;
		}
	}
	return 0;
}

int ptx_state(const char *ptx, size_t len, char code[48], char text[256])
{
	struct state s = {0};
	struct ptx_reader r = {ptx, ptx + len, 1};
	struct ptx_word w;
	int bad = names_read(ptx, len, &s, code, text);
	while (!bad && ptx_next(&r, &w)) {
		if (!ptx_is(&w, ".entry") && !ptx_is(&w, ".func"))
			continue;
		while (ptx_next(&r, &w) && !ptx_is(&w, "{") && !ptx_is(&w, ";"))
			;
		if (!ptx_is(&w, "{"))
			continue;
		r.at = w.s;
		clear(&s.held);
		struct ptx_reader again = r;
		for (size_t before = 1; !bad && before != s.held.n;) {
			before = s.held.n;
			r = again;
			bad = body(&r, &s, code, text);
		}
	}
	free(s.names.at);
	free(s.held.at);
	free(s.tok);
	return bad;
}
