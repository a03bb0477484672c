/*
 * utf8.h - check and repair UTF-8 from outside: model replies, error pages, template files.
 *
 * Overlong forms, surrogates and code points beyond U+10FFFF count as invalid. Repair replaces
 * each maximal bad run's first byte by U+FFFD, so that repaired text is stable and safe in JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_UTF8_H
#define TS_UTF8_H

#include "buf.h"

#include <stddef.h>

/* Length (1-4) of the valid sequence at s, 0 when it is invalid or cut. */
size_t utf8_seq(const char *s, size_t len);
int utf8_valid(const char *s, size_t len);

/* Append s to out with invalid bytes replaced by U+FFFD; returns how many were replaced. */
size_t utf8_repair(struct buf *out, const char *s, size_t len);

/* Largest n <= max that does not cut a sequence of valid s. */
size_t utf8_cut(const char *s, size_t len, size_t max);

/* Append s as one line of plain text: control characters and bidi or zero-width marks become a
 * space, runs of white space one space, cut to `max` bytes with "..." when longer. */
void utf8_line(struct buf *out, const char *s, size_t len, size_t max);

#endif
