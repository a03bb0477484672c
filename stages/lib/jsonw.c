/*
 * jsonw.c - see jsonw.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "jsonw.h"

#include "utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void newline(struct jsonw *w)
{
	if (!w->pretty)
		return;
	buf_addc(&w->out, '\n');
	for (int i = 0; i < w->depth; i++)
		buf_adds(&w->out, "  ");
}

/* Well-formed UTF-8 passes; anything else becomes U+FFFD so that the text stays JSON. */
static void quoted(struct buf *b, const char *s, size_t n)
{
	buf_addc(b, '"');
	for (size_t i = 0; i < n;) {
		unsigned char c = (unsigned char)s[i];
		size_t len = utf8_seq(s + i, n - i);
		if (!len) {
			buf_adds(b, "\xef\xbf\xbd");
			i++;
			continue;
		}
		if (c == '"' || c == '\\')
			buf_addf(b, "\\%c", c);
		else if (c == '\n')
			buf_adds(b, "\\n");
		else if (c == '\t')
			buf_adds(b, "\\t");
		else if (c == '\r')
			buf_adds(b, "\\r");
		else if (c == 0)
			buf_adds(b, "\xef\xbf\xbd"); /* our reader refuses \u0000 */
		else if (c < 0x20 || c == 0x7f)
			buf_addf(b, "\\u%04x", c);
		else
			buf_add(b, s + i, len);
		i += len;
	}
	buf_addc(b, '"');
}

static void member(struct jsonw *w, const char *key)
{
	if (w->depth) {
		if (w->count[w->depth]++)
			buf_addc(&w->out, ',');
		newline(w);
	}
	if (key) {
		quoted(&w->out, key, strlen(key));
		buf_adds(&w->out, w->pretty ? ": " : ":");
	}
}

static void open_with(struct jsonw *w, const char *key, char open, char close)
{
	if (w->depth + 1 >= (int)sizeof w->close)
		abort(); /* a writer of ours nests too deep: a bug, not an input */
	member(w, key);
	buf_addc(&w->out, open);
	w->depth++;
	w->close[w->depth] = close;
	w->count[w->depth] = 0;
}

void jw_obj(struct jsonw *w, const char *key)
{
	open_with(w, key, '{', '}');
}

void jw_arr(struct jsonw *w, const char *key)
{
	open_with(w, key, '[', ']');
}

void jw_end(struct jsonw *w)
{
	int had = w->count[w->depth];
	char close = w->close[w->depth];
	w->depth--;
	if (had)
		newline(w);
	buf_addc(&w->out, close);
	if (!w->depth && w->pretty)
		buf_addc(&w->out, '\n');
}

void jw_strn(struct jsonw *w, const char *key, const char *s, size_t n)
{
	member(w, key);
	quoted(&w->out, s, n);
}

void jw_str(struct jsonw *w, const char *key, const char *s)
{
	if (s)
		jw_strn(w, key, s, strlen(s));
	else
		jw_null(w, key);
}

void jw_int(struct jsonw *w, const char *key, int64_t v)
{
	member(w, key);
	buf_addf(&w->out, "%" PRId64, v);
}

void jw_num(struct jsonw *w, const char *key, double v)
{
	if (!isfinite(v)) {
		jw_null(w, key);
		return;
	}
	member(w, key);
	char text[40];
	for (int digits = 6; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	buf_adds(&w->out, text);
}

void jw_bool(struct jsonw *w, const char *key, int v)
{
	member(w, key);
	buf_adds(&w->out, v ? "true" : "false");
}

void jw_null(struct jsonw *w, const char *key)
{
	member(w, key);
	buf_adds(&w->out, "null");
}

void jw_item(struct jsonw *w, const char *key, const cJSON *item)
{
	double v = cJSON_IsNumber(item) ? item->valuedouble : 0;
	if (cJSON_IsString(item)) {
		jw_str(w, key, item->valuestring);
	} else if (cJSON_IsNumber(item) && v == floor(v) && fabs(v) <= 9007199254740992.0) {
		jw_int(w, key, (int64_t)v);
	} else if (cJSON_IsNumber(item)) {
		jw_num(w, key, v);
	} else if (cJSON_IsBool(item)) {
		jw_bool(w, key, cJSON_IsTrue(item));
	} else if (cJSON_IsObject(item) || cJSON_IsArray(item)) {
		open_with(w, key, cJSON_IsObject(item) ? '{' : '[', cJSON_IsObject(item) ? '}' : ']');
		for (const cJSON *c = item->child; c; c = c->next)
			jw_item(w, cJSON_IsObject(item) ? c->string : NULL, c);
		jw_end(w);
	} else {
		jw_null(w, key);
	}
}

void jw_free(struct jsonw *w)
{
	buf_free(&w->out);
	memset(w, 0, sizeof *w);
}
