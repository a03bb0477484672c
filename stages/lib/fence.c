/*
 * fence.c - see fence.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fence.h"

#include <stdlib.h>
#include <string.h>

struct mark {
	char sign;     /* '`' or '~', 0 for none */
	size_t count;
	size_t indent;
	const char *rest; /* after the signs, trimmed */
	size_t rest_len;
};

static void trim(const char **s, size_t *len)
{
	while (*len && (**s == ' ' || **s == '\t')) {
		(*s)++;
		(*len)--;
	}
	while (*len && ((*s)[*len - 1] == ' ' || (*s)[*len - 1] == '\t'))
		(*len)--;
}

/* Does this line (without its newline) start or end a fence? */
static struct mark read_mark(const char *s, size_t len)
{
	struct mark m = {0};
	size_t i = 0, k;

	while (i < len && (s[i] == ' ' || s[i] == '\t'))
		i++;
	if (i == len || (s[i] != '`' && s[i] != '~'))
		return m;
	for (k = i; k < len && s[k] == s[i]; k++)
		;
	if (k - i < 3)
		return m;
	/* ```code``` on one line is inline code, not a fence. */
	if (s[i] == '`' && memchr(s + k, '`', len - k))
		return m;
	m.sign = s[i];
	m.count = k - i;
	m.indent = i;
	m.rest = s + k;
	m.rest_len = len - k;
	trim(&m.rest, &m.rest_len);
	return m;
}

size_t fence_object(const char *s, size_t len)
{
	size_t depth = 0;
	int in_string = 0;

	for (size_t i = 0; i < len; i++) {
		char c = s[i];
		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = 0;
		} else if (c == '"') {
			in_string = 1;
		} else if (c == '{') {
			depth++;
		} else if (c == '}' && --depth == 0) {
			return i + 1;
		}
	}
	return 0;
}

static struct fence *add(struct fences *o)
{
	struct fence *f;

	if (o->n == FENCE_MAX) {
		o->overflow = 1;
		return NULL;
	}
	o->f = xrealloc(o->f, sizeof *o->f * (size_t)(o->n + 1));
	f = &o->f[o->n++];
	memset(f, 0, sizeof *f);
	f->info = f->label = "";
	return f;
}

/* Content of the fence opened by `m`, from `at` on; returns the offset after its end. */
static size_t take_body(const char *t, size_t len, size_t at, const struct mark *m, struct fence *f)
{
	while (at < len) {
		const char *nl = memchr(t + at, '\n', len - at);
		size_t n = nl ? (size_t)(nl - (t + at)) : len - at;
		size_t next = at + n + (nl ? 1 : 0);
		struct mark e = read_mark(t + at, n);
		size_t cut = 0;

		if (e.sign == m->sign && e.count >= m->count && !e.rest_len) {
			f->closed = 1;
			return next;
		}
		if (e.sign == m->sign && e.count >= m->count)
			f->inner = 1;
		while (cut < m->indent && cut < n && (t[at + cut] == ' ' || t[at + cut] == '\t'))
			cut++;
		buf_add(&f->body, t + at + cut, n - cut);
		buf_addc(&f->body, '\n');
		at = next;
	}
	return len;
}

static size_t take_object(const char *t, size_t len, size_t at, struct fences *out)
{
	size_t n = fence_object(t + at, len - at);
	struct fence *f;

	if (!n) {
		out->object_cut = 1;
		return 0;
	}
	f = add(out);
	if (f) {
		f->object = f->closed = 1;
		buf_add(&f->body, t + at, n);
	}
	return at + n;
}

void fence_scan(const char *t, size_t len, struct fences *out)
{
	const char *label = "";
	size_t label_len = 0, at = 0;
	int blanks = 0;

	memset(out, 0, sizeof *out);
	while (at < len && !out->overflow) {
		const char *nl = memchr(t + at, '\n', len - at);
		size_t n = nl ? (size_t)(nl - (t + at)) : len - at;
		const char *s = t + at;
		size_t sn = n, jump = 0;
		struct mark m = read_mark(t + at, n);

		trim(&s, &sn);
		if (m.sign) {
			struct fence *f = add(out);
			if (!f)
				break;
			f->info = m.rest;
			f->info_len = m.rest_len;
			f->label = label;
			f->label_len = label_len;
			jump = take_body(t, len, at + n + (nl ? 1 : 0), &m, f);
		} else if (sn && *s == '{' && !out->object_cut) {
			jump = take_object(t, len, (size_t)(s - t), out);
		}
		if (jump || (!sn && ++blanks > 1)) {
			label = "";
			label_len = 0;
			blanks = 0;
		} else if (sn) {
			label = s;
			label_len = sn;
			blanks = 0;
		}
		at = jump ? jump : at + n + (nl ? 1 : 0);
	}
}

void fence_free(struct fences *f)
{
	for (int i = 0; i < f->n; i++)
		buf_free(&f->f[i].body);
	free(f->f);
	memset(f, 0, sizeof *f);
}
