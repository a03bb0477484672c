/*
 * fence.h - find the fenced blocks and bare JSON objects in a model's Markdown.
 *
 * A fence is three or more ` or ~ at the start of a line (indented or not); it is closed by a
 * line of at least as many of the same sign and nothing else. Everything between is content,
 * other fences included, as in CommonMark; the opening line's indentation is taken off content
 * lines. A bare object is a line outside all fences that starts with '{', up to its matching '}'.
 *
 * Life cycle: fence_scan fills `out` with slices that point into `text`, except `body` of an
 * indented fence; fence_free. Any bytes give some list.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_FENCE_H
#define TS_FENCE_H

#include "buf.h"

#include <stddef.h>

#define FENCE_MAX 256 /* blocks looked at; more is `overflow` */

struct fence {
	const char *info;  /* after the opening signs, trimmed */
	size_t info_len;
	const char *label; /* last non-blank line before the fence, at most one blank line away */
	size_t label_len;
	struct buf body;   /* content, every line ended by a newline */
	int object;        /* a bare JSON object, not a fence */
	int closed;
	int inner;         /* content has a line that would open a fence of the same kind */
};

struct fences {
	int n;
	struct fence *f;
	int overflow;
	int object_cut; /* a bare '{' never met its '}' */
};

void fence_scan(const char *text, size_t len, struct fences *out);
void fence_free(struct fences *f);

/* Bytes of the balanced {...} at s, strings respected; 0 when it does not end. */
size_t fence_object(const char *s, size_t len);

#endif
