/*
 * lexer.h - the one C/C++ lexer that every source rule uses.
 *
 * It works as the compiler does: lines are spliced first (except inside raw strings), then
 * comments, strings, raw strings, characters, numbers, identifiers, digraphs and preprocessor
 * directives are told apart. Two checks that read the same text thus never disagree about what
 * is code (threats.md P02, P05). What compilers read differently (trigraphs, backslash-blank-
 * newline, a stray backslash, an unterminated comment or literal) is reported in `odd`, and
 * guard refuses it.
 *
 * Life cycle: lex_open copies nothing of meaning away from `text` but needs it alive; lex_next
 * until LEX_END; lex_close. It never fails: any bytes give some tokens.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_LEXER_H
#define TS_LEXER_H

#include "buf.h"

#include <stddef.h>

enum lex_kind {
	LEX_END,
	LEX_NAME,       /* identifier or keyword */
	LEX_NUMBER,
	LEX_STRING,     /* whole literal with prefix and quotes; raw ones too */
	LEX_CHAR,
	LEX_PUNCT,      /* one operator; digraphs arrive as the character they mean */
	LEX_HEADER,     /* <...> or "..." after include, with its quotes */
	LEX_COMMENT     /* only with keep_comments */
};

struct lex_token {
	enum lex_kind kind;
	const char *text; /* spliced text, not NUL-terminated, valid until lex_close */
	size_t len;
	int line;         /* 1-based line of its first character in the original */
	int directive;    /* inside a preprocessor directive; 2 for the '#' that starts it */
	int space;        /* white space or a comment stood before it */
	int newline;      /* first token of its (spliced) line */
};

enum lex_odd {
	LEX_ODD_TRIGRAPH = 1,
	LEX_ODD_SPLICE = 2,       /* backslash, blanks, newline */
	LEX_ODD_UNTERMINATED = 4, /* comment, string, character or raw string */
	LEX_ODD_BACKSLASH = 8     /* outside literals: universal character names and strays */
};

struct lexer;

struct lexer *lex_open(const char *text, size_t len, int keep_comments);
int lex_next(struct lexer *x, struct lex_token *t); /* 1, or 0 at LEX_END */
int lex_odd(const struct lexer *x, int *line);      /* flags so far; line of the first */
void lex_close(struct lexer *x);

int lex_is(const struct lex_token *t, const char *text); /* exact spelling */

/* The text without comments: each becomes one blank, newlines stay, so line numbers hold. Trailing
 * blanks go. Strings are untouched. For prompts (threats.md J01, J02). */
void lex_strip_comments(const char *text, size_t len, struct buf *out);

/* Nonzero for names that candidates may not define, be it as macro, tunable, entry or variable:
 * language keywords, CUDA's variables and intrinsics, and the prefixes EMU_ emu_ TS_ AXIS_ __. */
int lex_reserved(const char *name, size_t len);
int lex_keyword(const char *name, size_t len);

#endif
