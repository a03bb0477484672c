/*
 * jsonw.h - write JSON with a fixed key order and numbers that survive the trip.
 *
 * cJSON prints 0.1+0.2 as 0.3; evidence must not. Doubles print with the fewest digits that
 * read back equal (at most %.17g); non-finite doubles print as null (schemas say where that is
 * allowed). 64-bit seeds and hashes go in as strings.
 *
 * Usage: struct jsonw w = {0}; jw_obj(&w, NULL); jw_str(&w, "k", "v"); jw_end(&w); then use
 * w.out and jw_free. `key` is NULL inside arrays and at the top.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_JSONW_H
#define TS_JSONW_H

#include "buf.h"

#include <cjson/cJSON.h>
#include <stdint.h>

struct jsonw {
	struct buf out;
	int depth;
	int pretty;      /* 1: two-space indentation and newlines */
	char close[32];  /* closing bracket per depth */
	int count[32];   /* members written per depth */
};

void jw_obj(struct jsonw *w, const char *key);
void jw_arr(struct jsonw *w, const char *key);
void jw_end(struct jsonw *w);
void jw_str(struct jsonw *w, const char *key, const char *s); /* NULL prints null */
void jw_strn(struct jsonw *w, const char *key, const char *s, size_t n); /* invalid UTF-8 becomes U+FFFD */
void jw_int(struct jsonw *w, const char *key, int64_t v);
void jw_num(struct jsonw *w, const char *key, double v);
void jw_bool(struct jsonw *w, const char *key, int v);
void jw_null(struct jsonw *w, const char *key);
void jw_item(struct jsonw *w, const char *key, const cJSON *item); /* copy a parsed value; ints stay ints */
void jw_free(struct jsonw *w);

#endif
