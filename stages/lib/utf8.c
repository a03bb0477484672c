/*
 * utf8.c - see utf8.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "utf8.h"

#include <stdint.h>

static int is_cont(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

size_t utf8_seq(const char *s, size_t len)
{
	unsigned char c, d;

	if (!len)
		return 0;
	c = (unsigned char)s[0];
	if (c < 0x80)
		return 1;
	if (len < 2 || c < 0xc2 || c > 0xf4 || !is_cont(s[1]))
		return 0;
	d = (unsigned char)s[1];
	if (c < 0xe0)
		return 2;
	if ((c == 0xe0 && d < 0xa0) || (c == 0xed && d > 0x9f))
		return 0;
	if ((c == 0xf0 && d < 0x90) || (c == 0xf4 && d > 0x8f))
		return 0;
	if (len < 3 || !is_cont(s[2]))
		return 0;
	if (c < 0xf0)
		return 3;
	return len >= 4 && is_cont(s[3]) ? 4 : 0;
}

int utf8_valid(const char *s, size_t len)
{
	size_t i = 0, n;

	while (i < len) {
		n = utf8_seq(s + i, len - i);
		if (!n)
			return 0;
		i += n;
	}
	return 1;
}

size_t utf8_repair(struct buf *out, const char *s, size_t len)
{
	size_t i = 0, n, bad = 0, start = 0;

	while (i < len) {
		n = utf8_seq(s + i, len - i);
		if (n) {
			i += n;
			continue;
		}
		buf_add(out, s + start, i - start);
		buf_add(out, "\xef\xbf\xbd", 3);
		bad++;
		i++;
		start = i;
	}
	buf_add(out, s + start, i - start);
	return bad;
}

size_t utf8_cut(const char *s, size_t len, size_t max)
{
	if (len <= max)
		return len;
	while (max && is_cont(s[max]))
		max--;
	return max;
}

/* Marks that reorder or hide text: soft hyphen, zero-width and bidi controls, BOM. */
static int is_hidden(uint32_t cp)
{
	return cp == 0xad || (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e) ||
	       (cp >= 0x2060 && cp <= 0x206f) || cp == 0xfeff || (cp >= 0x80 && cp < 0xa0) ||
	       (cp >= 0xe0000 && cp <= 0xe007f);
}

static uint32_t decode(const char *s, size_t n)
{
	const unsigned char *u = (const unsigned char *)s;

	switch (n) {
	case 2:
		return ((uint32_t)(u[0] & 0x1f) << 6) | (u[1] & 0x3f);
	case 3:
		return ((uint32_t)(u[0] & 0x0f) << 12) | ((uint32_t)(u[1] & 0x3f) << 6) |
		       (u[2] & 0x3f);
	case 4:
		return ((uint32_t)(u[0] & 0x07) << 18) | ((uint32_t)(u[1] & 0x3f) << 12) |
		       ((uint32_t)(u[2] & 0x3f) << 6) | (u[3] & 0x3f);
	default:
		return u[0];
	}
}

void utf8_line(struct buf *out, const char *s, size_t len, size_t max)
{
	struct buf t = BUF_INIT;
	size_t i = 0, n, cut;
	uint32_t cp;

	/* Work is bounded even when a model answers with megabytes of "reasoning". */
	if (len > 4 * max + 64)
		len = 4 * max + 64;
	while (i < len) {
		n = utf8_seq(s + i, len - i);
		cp = n ? decode(s + i, n) : 0xfffd;
		if (n && (cp <= 0x20 || cp == 0x7f || is_hidden(cp))) {
			if (t.len && t.data[t.len - 1] != ' ')
				buf_addc(&t, ' ');
		} else if (n) {
			buf_add(&t, s + i, n);
		} else if (len - i > 3) {
			buf_add(&t, "\xef\xbf\xbd", 3);
		}
		i += n ? n : 1;
	}
	while (t.len && t.data[t.len - 1] == ' ')
		t.len--;
	if (t.len <= max) {
		buf_add(out, t.data ? t.data : "", t.len);
	} else {
		cut = utf8_cut(t.data, t.len, max > 3 ? max - 3 : 0);
		buf_add(out, t.data, cut);
		buf_adds(out, "...");
	}
	buf_free(&t);
}
