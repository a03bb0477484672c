/*
 * lexer.c - see lexer.h.
 *
 * Splicing makes a second copy of the text and a map back to the original. A raw string is the
 * one place where splicing is undone: it is scanned in the original and the copy is caught up.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lexer.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct lexer {
	const char *orig;
	size_t olen;
	char *s;         /* spliced, NUL after n */
	size_t n;
	uint32_t *at;    /* offset in the original, of n + 1 places */
	size_t pos;
	size_t line_at;  /* original offset whose line is known */
	int line;
	int keep;
	int odd, odd_line;
	int directive;   /* inside a directive */
	int header;      /* a header name may come now */
	int fresh;       /* nothing but blanks on this line so far */
};

static int line_of(struct lexer *x, size_t orig)
{
	if (orig < x->line_at) {
		x->line_at = 0;
		x->line = 1;
	}
	for (; x->line_at < orig; x->line_at++)
		if (x->orig[x->line_at] == '\n')
			x->line++;
	return x->line;
}

static void odd(struct lexer *x, int flag, size_t orig)
{
	int line = line_of(x, orig);
	if (!x->odd || line < x->odd_line)
		x->odd_line = line;
	x->odd |= flag;
}

/* Length of a spliced line end at i ("\\\n", "\\ \r\n"), 0 if there is none. */
static size_t splice_at(struct lexer *x, size_t i)
{
	size_t k = i + 1;
	while (k < x->olen && (x->orig[k] == ' ' || x->orig[k] == '\t' || x->orig[k] == '\r' ||
			       x->orig[k] == '\v' || x->orig[k] == '\f'))
		k++;
	if (k >= x->olen || x->orig[k] != '\n')
		return 0;
	if (k > i + 1)
		odd(x, LEX_ODD_SPLICE, i);
	return k + 1 - i;
}

static void splice(struct lexer *x)
{
	x->s = xmalloc(x->olen + 1);
	x->at = xmalloc((x->olen + 1) * sizeof *x->at);
	for (size_t i = 0; i < x->olen; i++) {
		size_t skip = x->orig[i] == '\\' ? splice_at(x, i) : 0;
		if (skip) {
			i += skip - 1;
			continue;
		}
		if (x->orig[i] == '?' && i + 2 < x->olen && x->orig[i + 1] == '?' &&
		    x->orig[i + 2] && strchr("=/'()!<>-", x->orig[i + 2]))
			odd(x, LEX_ODD_TRIGRAPH, i);
		x->at[x->n] = (uint32_t)i;
		x->s[x->n++] = x->orig[i];
	}
	x->at[x->n] = (uint32_t)x->olen;
	x->s[x->n] = '\0';
}

struct lexer *lex_open(const char *text, size_t len, int keep_comments)
{
	struct lexer *x = xcalloc(1, sizeof *x);
	x->orig = text;
	x->olen = len < UINT32_MAX ? len : UINT32_MAX - 1;
	x->line = 1;
	x->keep = keep_comments;
	x->fresh = 1;
	splice(x);
	return x;
}

void lex_close(struct lexer *x)
{
	free(x->s);
	free(x->at);
	free(x);
}

int lex_odd(const struct lexer *x, int *line)
{
	if (line)
		*line = x->odd_line;
	return x->odd;
}

int lex_is(const struct lex_token *t, const char *text)
{
	return t->len == strlen(text) && !memcmp(t->text, text, t->len);
}

static char peek(const struct lexer *x, size_t ahead)
{
	return x->pos + ahead < x->n ? x->s[x->pos + ahead] : '\0';
}

static int name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/* White space and line ends. Returns whether there was any. */
static int skip_space(struct lexer *x)
{
	size_t from = x->pos;
	for (; x->pos < x->n && isspace((unsigned char)x->s[x->pos]); x->pos++) {
		if (x->s[x->pos] != '\n')
			continue;
		x->directive = x->header = 0;
		x->fresh = 1;
	}
	return x->pos > from;
}

/* Length of the comment at pos, 0 if there is none. */
static size_t comment_len(struct lexer *x)
{
	if (peek(x, 0) != '/' || (peek(x, 1) != '/' && peek(x, 1) != '*'))
		return 0;
	const char *s = x->s + x->pos;
	size_t left = x->n - x->pos;
	if (s[1] == '/') {
		const char *end = memchr(s, '\n', left);
		return end ? (size_t)(end - s) : left;
	}
	const char *end = left > 2 ? memmem(s + 2, left - 2, "*/", 2) : NULL;
	if (!end)
		odd(x, LEX_ODD_UNTERMINATED, x->at[x->pos]);
	return end ? (size_t)(end - s) + 2 : left;
}

/* A raw string whose quote stands at `quote` of the copy. Leaves pos behind it. */
static size_t raw_string(struct lexer *x, size_t quote, size_t start, struct lex_token *t)
{
	size_t o = x->at[quote] + 1, open = o;
	while (open < x->olen && x->orig[open] != '(' && open - o <= 16 &&
	       !isspace((unsigned char)x->orig[open]))
		open++;
	size_t dlen = open - o, end = x->olen;
	int closed = 0;
	for (size_t i = open; open < x->olen && x->orig[open] == '(' && i + dlen + 1 < x->olen; i++) {
		if (x->orig[i] == ')' && !memcmp(x->orig + i + 1, x->orig + o, dlen) &&
		    x->orig[i + 1 + dlen] == '"') {
			end = i + dlen + 2;
			closed = 1;
			break;
		}
	}
	if (!closed)
		odd(x, LEX_ODD_UNTERMINATED, x->at[quote]);
	t->text = x->orig + x->at[start];
	t->len = end - x->at[start];
	while (x->pos < x->n && x->at[x->pos] < end)
		x->pos++;
	return t->len;
}

/* A literal in quotes from pos (at the quote) on; pos ends behind it. */
static void quoted(struct lexer *x, char quote)
{
	size_t from = x->pos++;
	while (x->pos < x->n && x->s[x->pos] != quote && x->s[x->pos] != '\n')
		x->pos += x->s[x->pos] == '\\' && x->pos + 1 < x->n && x->s[x->pos + 1] != '\n' ? 2 : 1;
	if (x->pos < x->n && x->s[x->pos] == quote)
		x->pos++;
	else
		odd(x, LEX_ODD_UNTERMINATED, x->at[from]);
}

static int is_prefix(const char *s, size_t n, int raw)
{
	static const char *const plain[] = {"u8", "u", "U", "L", NULL};
	static const char *const raws[] = {"R", "u8R", "uR", "UR", "LR", NULL};
	for (const char *const *p = raw ? raws : plain; *p; p++)
		if (strlen(*p) == n && !memcmp(*p, s, n))
			return 1;
	return 0;
}

static void lex_name(struct lexer *x, struct lex_token *t)
{
	size_t from = x->pos;
	while (x->pos < x->n && name_char(x->s[x->pos]))
		x->pos++;
	size_t n = x->pos - from;
	char q = peek(x, 0);
	t->kind = LEX_NAME;
	if (q == '"' && is_prefix(x->s + from, n, 1)) {
		t->kind = LEX_STRING;
		raw_string(x, x->pos, from, t);
		return;
	}
	if ((q == '"' || q == '\'') && is_prefix(x->s + from, n, 0)) {
		t->kind = q == '"' ? LEX_STRING : LEX_CHAR;
		quoted(x, q);
	}
	t->len = x->pos - from;
}

static void lex_number(struct lexer *x, struct lex_token *t)
{
	t->kind = LEX_NUMBER;
	while (x->pos < x->n) {
		char c = x->s[x->pos], next = peek(x, 1);
		if (strchr("eEpP", c) && c && (next == '+' || next == '-'))
			x->pos += 2;
		else if (name_char(c) || c == '.' || (c == '\'' && name_char(next)))
			x->pos++;
		else
			break;
	}
}

/* <...> or "..." after include: to the end of the line if it is not closed. */
static int lex_header(struct lexer *x, struct lex_token *t)
{
	char close = peek(x, 0) == '<' ? '>' : peek(x, 0) == '"' ? '"' : '\0';
	if (!close)
		return 0;
	size_t from = x->pos++;
	while (x->pos < x->n && x->s[x->pos] != close && x->s[x->pos] != '\n')
		x->pos++;
	if (x->pos < x->n && x->s[x->pos] == close)
		x->pos++;
	else
		odd(x, LEX_ODD_UNTERMINATED, x->at[from]);
	t->kind = LEX_HEADER;
	return 1;
}

static void lex_punct(struct lexer *x, struct lex_token *t)
{
	static const struct {
		const char *text, *means;
	} longer[] = {
		{"%:%:", "##"}, {"<<<", "<<<"}, {"##", "##"}, {"::", "::"}, {"%:", "#"},
		{"<%", "{"}, {"%>", "}"}, {"<:", "["}, {":>", "]"},
	};
	t->kind = LEX_PUNCT;
	if (x->s[x->pos] == '\\')
		odd(x, LEX_ODD_BACKSLASH, x->at[x->pos]);
	for (size_t i = 0; i < sizeof longer / sizeof longer[0]; i++) {
		size_t n = strlen(longer[i].text);
		if (longer[i].text[0] != x->s[x->pos] || x->n - x->pos < n || memcmp(x->s + x->pos, longer[i].text, n))
			continue;
		/* "<::" is '<' and "::" unless ':' or '>' follows. */
		if (!strcmp(longer[i].text, "<:") && peek(x, 2) == ':' && peek(x, 3) != ':' && peek(x, 3) != '>')
			continue;
		t->text = longer[i].means;
		t->len = strlen(t->text);
		x->pos += n;
		return;
	}
	x->pos++;
}

static void lex_token_at(struct lexer *x, struct lex_token *t)
{
	char c = peek(x, 0);
	t->text = x->s + x->pos;
	size_t from = x->pos;
	t->len = 0;
	if (x->header && lex_header(x, t))
		x->header = 0;
	else if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)peek(x, 1))))
		lex_number(x, t);
	else if (name_char(c))
		lex_name(x, t);
	else if (c == '"' || c == '\'') {
		t->kind = c == '"' ? LEX_STRING : LEX_CHAR;
		quoted(x, c);
	} else
		lex_punct(x, t);
	if (!t->len)
		t->len = x->pos - from;
}

/* Keep track of directives after a token other than a comment. */
static void note_directive(struct lexer *x, struct lex_token *t)
{
	if (t->newline && t->kind == LEX_PUNCT && lex_is(t, "#")) {
		x->directive = t->directive = 2;
		return;
	}
	t->directive = x->directive ? 1 : 0;
	x->header = 0;
	if (x->directive == 2 && t->kind == LEX_NAME)
		x->header = lex_is(t, "include") || lex_is(t, "include_next") || lex_is(t, "import") ||
			    lex_is(t, "embed");
	if (x->directive)
		x->directive = 1;
}

int lex_next(struct lexer *x, struct lex_token *t)
{
	*t = (struct lex_token){.kind = LEX_END, .text = ""};
	for (;;) {
		t->space |= skip_space(x);
		size_t n = comment_len(x);
		if (!n)
			break;
		size_t from = x->pos;
		x->pos += n;
		if (x->keep) {
			t->kind = LEX_COMMENT;
			t->text = x->s + from;
			t->len = n;
			t->line = line_of(x, x->at[from]);
			t->directive = x->directive ? 1 : 0;
			return 1;
		}
		t->space = 1;
	}
	t->newline = x->fresh;
	t->line = line_of(x, x->at[x->pos]);
	if (x->pos >= x->n)
		return 0;
	x->fresh = 0;
	lex_token_at(x, t);
	note_directive(x, t);
	return 1;
}

static void trim_blanks(struct buf *out)
{
	while (out->len && (out->data[out->len - 1] == ' ' || out->data[out->len - 1] == '\t'))
		out->data[--out->len] = '\0';
}

static void copy_trimmed(struct buf *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '\n')
			trim_blanks(out);
		buf_addc(out, s[i]);
	}
}

void lex_strip_comments(const char *text, size_t len, struct buf *out)
{
	struct lexer *x = lex_open(text, len, 1);
	struct lex_token t;
	size_t done = 0;
	while (lex_next(x, &t)) {
		if (t.kind != LEX_COMMENT)
			continue;
		size_t from = x->at[t.text - x->s], to = x->at[(size_t)(t.text - x->s) + t.len];
		copy_trimmed(out, text + done, from - done);
		if (out->len && !isspace((unsigned char)out->data[out->len - 1]))
			buf_addc(out, ' ');
		for (size_t i = from; i < to; i++)
			if (text[i] == '\n') {
				trim_blanks(out);
				buf_addc(out, '\n');
			}
		done = to;
	}
	copy_trimmed(out, text + done, len - done);
	lex_close(x);
}
