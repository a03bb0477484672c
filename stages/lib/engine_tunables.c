/*
 * engine_tunables.c - see engine_tunables.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_tunables.h"

#include "hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char BEGIN[] = "// tunables:begin", END[] = "// tunables:end", TUNE[] = "// tune:";

struct line {
	const char *at, *end; /* without the newline */
	int number;
};

static int refuse(const struct line *l, struct err *e, const char *why)
{
	return err_set(e, EX_BADINPUT, "engine.c:%d: %s", l->number, why);
}

static const char *blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

static int is_mark(const struct line *l, const char *mark)
{
	const size_t n = strlen(mark);
	const char *p = blanks(l->at, l->end);
	return (size_t)(l->end - p) >= n && memcmp(p, mark, n) == 0 && blanks(p + n, l->end) == l->end;
}

/* A decimal integer of at most nine digits at p; the place behind it, or NULL. */
static const char *integer(const char *p, const char *end, int64_t *out)
{
	const char *start = p;
	int negative = p < end && *p == '-';
	int64_t v = 0;
	p += negative;
	const char *digits = p;
	for (; p < end && *p >= '0' && *p <= '9' && p - digits < 10; p++)
		v = 10 * v + (*p - '0');
	if (p == digits || p - digits > 9 || (digits[0] == '0' && p - digits > 1) || (negative && v == 0))
		return NULL;
	*out = negative ? -v : v;
	return start < p ? p : NULL;
}

/* The values behind "// tune:", each once, the current one among them. */
static int parse_values(const struct line *l, const char *p, int64_t current, struct engine_tunable *x, struct err *e)
{
	x->current = -1;
	for (p = blanks(p, l->end); p < l->end; p = blanks(p, l->end)) {
		int64_t v;
		const char *q = integer(p, l->end, &v);
		if (!q || (q < l->end && *q != ' ' && *q != '\t'))
			return refuse(l, e, "the values to try are integers with blanks between them");
		if (x->n == TUNABLE_VALUES)
			return refuse(l, e, "too many values to try");
		for (int i = 0; i < x->n; i++)
			if (x->value[i] == v)
				return refuse(l, e, "a value to try stands there twice");
		if (v == current)
			x->current = x->n;
		x->value[x->n++] = v;
		p = q;
	}
	return x->current < 0 ? refuse(l, e, "the value that is used is not among those to try") : 0;
}

/* #define NAME VALUE // tune: V... */
static int parse_line(const struct line *l, const char *text, struct engine_tunables *t, struct err *e)
{
	static const char SET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	static const char WHAT[] = "between the marks stand lines `#define NAME VALUE // tune: V1 V2 ...` alone";
	static const size_t define = sizeof "#define " - 1;
	const char *p = l->at, *name;
	int64_t current;
	if (t->n == TUNABLES_MOST)
		return refuse(l, e, "too many tunables");
	struct engine_tunable *x = &t->t[t->n];
	memset(x, 0, sizeof *x);
	if ((size_t)(l->end - p) <= define || memcmp(p, "#define ", define) != 0)
		return refuse(l, e, WHAT);
	name = p += define;
	while (p < l->end && memchr(SET, *p, sizeof SET - 1))
		p++;
	const size_t n = (size_t)(p - name);
	if (n == 0 || n >= TUNABLE_NAME || (*name >= '0' && *name <= '9') || p == l->end || *p != ' ')
		return refuse(l, e, "a tunable's name is A-Z 0-9 _, at most 31 of them");
	memcpy(x->name, name, n);
	for (int i = 0; i < t->n; i++)
		if (strcmp(t->t[i].name, x->name) == 0)
			return refuse(l, e, "a tunable is declared twice");
	const char *value = ++p;
	if (!(p = integer(value, l->end, &current)))
		return refuse(l, e, WHAT);
	x->at = (size_t)(value - text);
	x->len = (size_t)(p - value);
	p = blanks(p, l->end);
	if ((size_t)(l->end - p) < sizeof TUNE - 1 || memcmp(p, TUNE, sizeof TUNE - 1) != 0)
		return refuse(l, e, WHAT);
	if (parse_values(l, p + sizeof TUNE - 1, current, x, e))
		return -1;
	t->n++;
	t->space = t->space > TUNABLES_SPACE ? t->space : t->space * x->n;
	return t->space > TUNABLES_SPACE ? refuse(l, e, "more than 4096 configurations") : 0;
}

int engine_tunables_parse(const char *text, size_t len, struct engine_tunables *t, struct err *e)
{
	const char *end = text + len;
	struct line l = {.at = text};
	int began = 0, ended = 0;
	memset(t, 0, sizeof *t);
	t->space = 1;
	for (; l.at < end; l.at = l.end + 1) {
		const char *nl = memchr(l.at, '\n', (size_t)(end - l.at));
		l.end = nl ? nl : end;
		l.number++;
		const int begin = is_mark(&l, BEGIN), stop = is_mark(&l, END);
		if ((begin && began) || (stop && (!began || ended)))
			return refuse(&l, e, "the marks of the tunables are there once, begin before end");
		began |= begin;
		ended |= stop;
		if (began && !ended && !begin && blanks(l.at, l.end) < l.end && parse_line(&l, text, t, e))
			return -1;
	}
	return began != ended ? refuse(&l, e, "the tunables begin and do not end") : 0;
}

void engine_tunables_at(const struct engine_tunables *t, int at, int choice[TUNABLES_MOST])
{
	for (int i = t->n - 1; i >= 0; i--) {
		choice[i] = at % t->t[i].n;
		at /= t->t[i].n;
	}
}

int engine_tunables_current(const struct engine_tunables *t)
{
	int at = 0;
	for (int i = 0; i < t->n; i++)
		at = at * t->t[i].n + t->t[i].current;
	return at;
}

void engine_tunables_text(const char *text, size_t len, const struct engine_tunables *t, const int choice[TUNABLES_MOST],
			  struct buf *out)
{
	size_t at = 0;
	for (int i = 0; i < t->n; i++) {
		const struct engine_tunable *x = &t->t[i];
		buf_add(out, text + at, x->at - at);
		buf_addf(out, "%" PRId64, x->value[choice[i]]);
		at = x->at + x->len;
	}
	buf_add(out, text + at, len - at);
}

void engine_tunables_words(const struct engine_tunables *t, const int choice[TUNABLES_MOST], struct buf *out)
{
	const size_t before = out->len;
	for (int i = 0; i < t->n; i++)
		if (choice[i] != t->t[i].current)
			buf_addf(out, "%s%s %" PRId64 " -> %" PRId64, out->len > before ? ", " : "", t->t[i].name,
				 t->t[i].value[t->t[i].current], t->t[i].value[choice[i]]);
	if (out->len == before)
		buf_adds(out, "no change");
}

struct place {
	uint8_t rank[32];
	int at;
};

static int by_rank(const void *a, const void *b)
{
	return memcmp(((const struct place *)a)->rank, ((const struct place *)b)->rank, 32);
}

int engine_tunables_order(const struct engine_tunables *t, int64_t seed, int *out)
{
	struct place *all = xcalloc((size_t)t->space, sizeof *all);
	const int current = engine_tunables_current(t);
	char text[64];
	int n = 0;
	for (int at = 0; at < t->space; at++) {
		if (at == current)
			continue;
		snprintf(text, sizeof text, "engine-sweep:%" PRId64 ":%d", seed, at);
		hash_bytes(text, strlen(text), all[n].rank);
		all[n++].at = at;
	}
	qsort(all, (size_t)n, sizeof *all, by_rank);
	for (int i = 0; i < n; i++)
		out[i] = all[i].at;
	free(all);
	return n;
}

int engine_tunables_pick(const struct engine_tunables *t, int64_t seed, long i)
{
	int *all = xcalloc((size_t)t->space, sizeof *all);
	const int n = engine_tunables_order(t, seed, all);
	const int found = i >= 0 && i < n ? all[i] : -1;
	free(all);
	return found;
}
