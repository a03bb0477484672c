/*
 * patch.c - see patch.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "patch.h"

#include <stdlib.h>
#include <string.h>

struct line {
	const char *s;
	size_t len; /* with its '\n', which the last line may lack */
};

struct lines {
	struct line *at;
	long n;
};

/* The same range of both texts is equal, or [a, a+del) becomes [b, b+ins). */
struct change {
	long a, del, b, ins;
};

struct changes {
	struct change *at;
	size_t n, cap;
};

static struct lines split(const struct buf *text)
{
	struct lines l = {0};
	long cap = 0;
	const char *p = buf_str(text), *end = p + text->len;
	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t len = nl ? (size_t)(nl - p) + 1 : (size_t)(end - p);
		if (l.n == cap) {
			cap = cap ? 2 * cap : 256;
			l.at = xrealloc(l.at, (size_t)cap * sizeof *l.at);
		}
		l.at[l.n++] = (struct line){p, len};
		p += len;
	}
	return l;
}

static int same(const struct line *x, const struct line *y)
{
	return x->len == y->len && memcmp(x->s, y->s, x->len) == 0;
}

/* Changes come last first. Neighbours become one. */
static void prepend(struct changes *c, long a, long del, long b, long ins)
{
	struct change *last = c->n ? &c->at[c->n - 1] : NULL;
	if (last && last->a == a + del && last->b == b + ins) {
		*last = (struct change){a, last->del + del, b, last->ins + ins};
		return;
	}
	if (c->n == c->cap) {
		c->cap = c->cap ? 2 * c->cap : 32;
		c->at = xrealloc(c->at, c->cap * sizeof *c->at);
	}
	c->at[c->n++] = (struct change){a, del, b, ins};
}

/* Diagonals -d..d of round d are kept at v[d]: how far along `a` each has come. */
static void trace_back(long **v, long d, long x, long y, long off, struct changes *out)
{
	for (; d > 0; d--) {
		const long *w = v[d - 1] + d - 1;
		long k = x - y;
		int down = k == -d || (k != d && w[k - 1] < w[k + 1]);
		long px = down ? w[k + 1] : w[k - 1], py = px - (down ? k + 1 : k - 1);
		prepend(out, off + px, !down, off + py, down);
		x = px;
		y = py;
	}
}

/* The middle [a, a+n) against [b, b+m); 0 when it takes more than PATCH_EDITS edits. */
static int myers(const struct line *a, long n, const struct line *b, long m, long off,
		 struct changes *out)
{
	static long *v[PATCH_EDITS + 1];
	long d, found = 0;
	for (d = 0; d <= PATCH_EDITS && !found; d++) {
		v[d] = xcalloc((size_t)(2 * d + 1), sizeof **v);
		for (long k = -d; k <= d && !found; k += 2) {
			const long *w = d ? v[d - 1] + d - 1 : NULL;
			long x = !d ? 0 : k == -d || (k != d && w[k - 1] < w[k + 1]) ? w[k + 1]
										    : w[k - 1] + 1;
			while (x < n && x - k < m && same(&a[x], &b[x - k]))
				x++;
			v[d][d + k] = x;
			found = x >= n && x - k >= m;
		}
	}
	if (found)
		trace_back(v, d - 1, n, m, off, out);
	while (d > 0)
		free(v[--d]);
	return found != 0;
}

static struct changes compare(const struct lines *a, const struct lines *b)
{
	struct changes c = {0};
	long head = 0, tail = 0, least = a->n < b->n ? a->n : b->n;
	while (head < least && same(&a->at[head], &b->at[head]))
		head++;
	while (tail < least - head && same(&a->at[a->n - 1 - tail], &b->at[b->n - 1 - tail]))
		tail++;
	long n = a->n - head - tail, m = b->n - head - tail;
	if ((n || m) && !myers(a->at + head, n, b->at + head, m, head, &c))
		prepend(&c, head, n, head, m);
	return c;
}

static void put_line(struct buf *out, char sign, const struct line *l)
{
	buf_addc(out, sign);
	buf_add(out, l->s, l->len);
	if (l->s[l->len - 1] != '\n')
		buf_adds(out, "\n\\ No newline at end of file\n");
}

static void put_lines(struct buf *out, char sign, const struct lines *l, long from, long n)
{
	for (long i = 0; i < n; i++)
		put_line(out, sign, &l->at[from + i]);
}

/* "START,COUNT"; an empty range is named by the line before it. */
static void put_range(struct buf *out, char sign, long from, long n)
{
	buf_addf(out, "%c%ld", sign, n ? from + 1 : from);
	if (n != 1)
		buf_addf(out, ",%ld", n);
}

/* One hunk: the changes c[last..first], counting down, which are near each other. */
static void put_hunk(struct buf *out, const struct lines *a, const struct lines *b,
		     const struct change *first, const struct change *last)
{
	long before = first->a < PATCH_CONTEXT ? first->a : PATCH_CONTEXT;
	long end = last->a + last->del, after = a->n - end;
	if (after > PATCH_CONTEXT)
		after = PATCH_CONTEXT;
	long from = first->a - before, fromb = first->b - before;
	buf_adds(out, "@@ ");
	put_range(out, '-', from, end + after - from);
	buf_addc(out, ' ');
	put_range(out, '+', fromb, last->b + last->ins + after - fromb);
	buf_adds(out, " @@\n");
	for (const struct change *c = first; c >= last; c--) {
		put_lines(out, ' ', a, from, c->a - from);
		put_lines(out, '-', a, c->a, c->del);
		put_lines(out, '+', b, c->b, c->ins);
		from = c->a + c->del;
	}
	put_lines(out, ' ', a, from, after);
}

void patch_add(struct buf *out, const char *old, const char *new, const struct buf *a,
	       const struct buf *b)
{
	struct lines x = split(a), y = split(b);
	struct changes c = compare(&x, &y);
	if (c.n) {
		buf_addf(out, "diff --git a/%s b/%s\n--- a/%s\n+++ b/%s\n", old, new, old, new);
		for (size_t i = c.n; i > 0;) {
			size_t first = --i;
			while (i > 0 && c.at[i - 1].a - c.at[i].a - c.at[i].del <= 2 * PATCH_CONTEXT)
				i--;
			put_hunk(out, &x, &y, &c.at[first], &c.at[i]);
		}
	}
	free(c.at);
	free(x.at);
	free(y.at);
}
