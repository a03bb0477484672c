/*
 * buf.h - a growing byte buffer, always NUL-terminated after its `len` bytes.
 *
 * Start from BUF_INIT, add, buf_free at the end. Out of memory aborts the process: no caller
 * has anything better to do, and a half-built artefact is never written.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_BUF_H
#define TS_BUF_H

#include <stddef.h>

struct buf {
	char *data; /* NULL while empty and never grown */
	size_t len; /* bytes used, without the NUL */
	size_t cap;
};

#define BUF_INIT {NULL, 0, 0}

void buf_add(struct buf *b, const void *data, size_t len);
void buf_adds(struct buf *b, const char *s);
void buf_addc(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_room(struct buf *b, size_t more); /* make room for `more` bytes beyond len */
void buf_clear(struct buf *b);             /* len = 0, memory kept */
void buf_free(struct buf *b);
const char *buf_str(const struct buf *b);  /* never NULL */

/* malloc family that aborts on exhaustion. */
void *xmalloc(size_t n);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n);
char *xstrdup(const char *s);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
