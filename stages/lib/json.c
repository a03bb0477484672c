/*
 * json.c - see json.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "json.h"

#include "defence.h"
#include "file.h"
#include "utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct json_limits JSON_OURS = {.bytes = (size_t)8 << 20, .depth = 24};

/* What cJSON would let through although readers differ on it: depth, \u0000, raw controls in
 * strings, bad UTF-8. One pass over the bytes, before any parsing. */
static int prescan(const char *text, size_t len, int depth_max, const char *what, struct err *e)
{
	int depth = 0, in_string = 0;
	for (size_t i = 0; i < len;) {
		unsigned char c = (unsigned char)text[i];
		size_t n = utf8_seq(text + i, len - i);
		if (!n)
			return err_set(e, EX_BADINPUT, "%s: byte %zu is not UTF-8", what, i);
		if (c == 0 || (in_string && c < 0x20))
			return err_set(e, EX_BADINPUT, "%s: control character at byte %zu", what, i);
		if (in_string && c == '\\') {
			if (len - i >= 6 && !memcmp(text + i + 1, "u0000", 5))
				return err_set(e, EX_BADINPUT, "%s: \\u0000 at byte %zu", what, i);
			i += 2;
			continue;
		}
		if (c == '"')
			in_string = !in_string;
		else if (!in_string && (c == '{' || c == '['))
			depth++;
		else if (!in_string && (c == '}' || c == ']'))
			depth--;
		if (depth > depth_max)
			return err_set(e, EX_BADINPUT, "%s: nested deeper than %d", what, depth_max);
		i += n;
	}
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted, because the header of a checkpoint is one object of many hundred members. */
static int twice(const cJSON *obj, const char *what, struct err *e)
{
	size_t n = 0;
	for (const cJSON *c = obj->child; c; c = c->next)
		n++;
	const char **name = xcalloc(n, sizeof *name), *hit = NULL;
	n = 0;
	for (const cJSON *c = obj->child; c; c = c->next)
		name[n++] = c->string ? c->string : "";
	qsort(name, n, sizeof *name, by_name);
	for (size_t i = 1; i < n && !hit; i++)
		hit = strcmp(name[i - 1], name[i]) == 0 ? name[i] : NULL;
	free(name);
	return hit ? err_set(e, EX_BADINPUT, "%s: duplicate key '%s'", what, hit) : 0;
}

static int check_tree(const cJSON *item, const char *what, struct err *e)
{
	if (cJSON_IsNumber(item) && !isfinite(item->valuedouble))
		return err_set(e, EX_BADINPUT, "%s: number out of range", what);
	if (cJSON_IsObject(item) && item->child && twice(item, what, e))
		return -1;
	for (const cJSON *c = item->child; c; c = c->next)
		if (check_tree(c, what, e))
			return -1;
	return 0;
}

cJSON *json_parse(const char *text, size_t len, const struct json_limits *lim, const char *what,
		  struct err *e)
{
	if (len == 0) {
		err_set(e, EX_BADINPUT, "%s: empty", what);
		return NULL;
	}
	if (len > lim->bytes) {
		err_set(e, EX_BADINPUT, "%s: larger than %zu bytes", what, lim->bytes);
		return NULL;
	}
	if (DEFENCE("json.strict") && prescan(text, len, lim->depth, what, e))
		return NULL;
	struct buf copy = BUF_INIT; /* cJSON wants a NUL for its end-of-text check */
	buf_add(&copy, text, len);
	const char *end = NULL;
	cJSON *root = cJSON_ParseWithLengthOpts(copy.data, copy.len + 1, &end, DEFENCE("json.strict"));
	if (!root) {
		size_t at = end ? (size_t)(end - copy.data) : 0;
		err_set(e, EX_BADINPUT, "%s: not JSON at byte %zu", what, at);
	} else if (DEFENCE("json.strict") && check_tree(root, what, e)) {
		cJSON_Delete(root);
		root = NULL;
	}
	buf_free(&copy);
	return root;
}

cJSON *json_read(const char *path, const struct json_limits *lim, char sha[HASH_HEX], struct err *e)
{
	struct buf b = BUF_INIT;
	cJSON *root = NULL;
	if (!file_read(path, lim->bytes, &b, e)) {
		if (sha)
			hash_hex(b.data, b.len, sha);
		root = json_parse(b.data, b.len, lim, path, e);
	}
	buf_free(&b);
	return root;
}

int json_only(const cJSON *obj, const char *const *keys, const char *what, struct err *e)
{
	if (!cJSON_IsObject(obj))
		return err_set(e, EX_BADINPUT, "%s: must be an object", what);
	for (const cJSON *c = obj->child; c; c = c->next) {
		const char *const *k = keys;
		while (*k && strcmp(*k, c->string))
			k++;
		if (!*k && DEFENCE("json.keys"))
			return err_set(e, EX_BADINPUT, "%s: unknown key '%s'", what, c->string);
	}
	return 0;
}

cJSON *json_get(const cJSON *obj, const char *key)
{
	if (!cJSON_IsObject(obj))
		return NULL;
	for (cJSON *c = obj->child; c; c = c->next)
		if (c->string && !strcmp(c->string, key))
			return cJSON_IsNull(c) ? NULL : c;
	return NULL;
}

static cJSON *need(const cJSON *obj, const char *key, const char *what, const char *kind,
		   cJSON_bool (*is)(const cJSON *), struct err *e)
{
	cJSON *c = json_get(obj, key);
	if (!c || !is(c)) {
		err_set(e, EX_BADINPUT, "%s: key '%s' must be %s", what, key, kind);
		return NULL;
	}
	return c;
}

const char *json_str(const cJSON *obj, const char *key, const char *what, struct err *e)
{
	cJSON *c = need(obj, key, what, "a string", cJSON_IsString, e);
	return c ? c->valuestring : NULL;
}

int json_is_int(const cJSON *item, int64_t *out)
{
	if (!cJSON_IsNumber(item))
		return -1;
	double v = item->valuedouble;
	if (!(fabs(v) <= 9007199254740992.0) || v != floor(v))
		return -1;
	*out = (int64_t)v;
	return 0;
}

int json_int(const cJSON *obj, const char *key, int64_t *out, const char *what, struct err *e)
{
	cJSON *c = need(obj, key, what, "an integer", cJSON_IsNumber, e);
	if (!c)
		return -1;
	if (json_is_int(c, out))
		return err_set(e, EX_BADINPUT, "%s: key '%s' must be an integer", what, key);
	return 0;
}

int json_num(const cJSON *obj, const char *key, double *out, const char *what, struct err *e)
{
	cJSON *c = need(obj, key, what, "a number", cJSON_IsNumber, e);
	if (!c)
		return -1;
	*out = c->valuedouble;
	return 0;
}

int json_bool(const cJSON *obj, const char *key, int *out, const char *what, struct err *e)
{
	cJSON *c = need(obj, key, what, "true or false", cJSON_IsBool, e);
	if (!c)
		return -1;
	*out = cJSON_IsTrue(c) ? 1 : 0;
	return 0;
}

cJSON *json_obj(const cJSON *obj, const char *key, const char *what, struct err *e)
{
	return need(obj, key, what, "an object", cJSON_IsObject, e);
}

cJSON *json_arr(const cJSON *obj, const char *key, const char *what, struct err *e)
{
	return need(obj, key, what, "an array", cJSON_IsArray, e);
}

const char *json_get_str(const cJSON *obj, const char *key, const char *fallback)
{
	cJSON *c = json_get(obj, key);
	return cJSON_IsString(c) ? c->valuestring : fallback;
}

double json_get_num(const cJSON *obj, const char *key, double fallback)
{
	cJSON *c = json_get(obj, key);
	return cJSON_IsNumber(c) ? c->valuedouble : fallback;
}

int64_t json_get_int(const cJSON *obj, const char *key, int64_t fallback)
{
	const double v = json_get_num(obj, key, NAN);

	return v >= -9007199254740992.0 && v <= 9007199254740992.0 ? (int64_t)v : fallback;
}
