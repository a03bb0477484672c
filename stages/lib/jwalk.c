/*
 * jwalk.c - see jwalk.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "jwalk.h"

#include <stdio.h>
#include <string.h>

void jwalk_begin(struct jwalk *w, const char *file, struct err *e)
{
	*w = (struct jwalk){.file = file, .e = e};
}

static size_t enter(struct jwalk *w, int n)
{
	size_t at = w->len;
	w->len += n < 0 ? 0 : (size_t)n;
	if (w->len >= sizeof w->path)
		w->len = sizeof w->path - 1;
	return at;
}

size_t jwalk_enter(struct jwalk *w, const char *key)
{
	return enter(w, snprintf(w->path + w->len, sizeof w->path - w->len, "%s%.70s", w->len ? "." : "", key));
}

size_t jwalk_enter_at(struct jwalk *w, int index)
{
	return enter(w, snprintf(w->path + w->len, sizeof w->path - w->len, "[%d]", index));
}

void jwalk_leave(struct jwalk *w, size_t at)
{
	w->len = at;
	w->path[at] = '\0';
}

const char *jwalk_path(const struct jwalk *w)
{
	return w->len ? w->path : "(top)";
}

int jwalk_fail(struct jwalk *w, const char *fmt, ...)
{
	char why[256];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	return err_set(w->e, EX_BADINPUT, "%s: %s: %s", w->file, jwalk_path(w), why);
}

const cJSON *jwalk_find(const cJSON *obj, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(obj, key);
}

const cJSON *jwalk_need(struct jwalk *w, const cJSON *obj, const char *key)
{
	const cJSON *item = jwalk_find(obj, key);
	if (!item)
		jwalk_fail(w, "key '%s' is missing", key);
	return item;
}

int jwalk_object(struct jwalk *w, const cJSON *item, const char *const *keys)
{
	if (!cJSON_IsObject(item))
		return jwalk_fail(w, "an object is expected");
	for (const cJSON *m = item->child; m; m = m->next) {
		const char *const *k = keys;
		while (k && *k && strcmp(*k, m->string))
			k++;
		if (k && !*k)
			return jwalk_fail(w, "unknown key '%.64s'", m->string);
	}
	return 0;
}

int jwalk_array(struct jwalk *w, const cJSON *item, int min, int max, int *count)
{
	if (!cJSON_IsArray(item))
		return jwalk_fail(w, "an array is expected");
	*count = cJSON_GetArraySize(item);
	if (*count < min)
		return jwalk_fail(w, "at least %d entr%s", min, min == 1 ? "y" : "ies");
	if (*count > max)
		return jwalk_fail(w, "at most %d entr%s", max, max == 1 ? "y" : "ies");
	return 0;
}

const char *jwalk_string(struct jwalk *w, const cJSON *item, size_t max)
{
	if (!cJSON_IsString(item)) {
		jwalk_fail(w, "a string is expected");
		return NULL;
	}
	if (strlen(item->valuestring) > max) {
		jwalk_fail(w, "a string of at most %zu characters is expected", max);
		return NULL;
	}
	return item->valuestring;
}

int jwalk_identifier(struct jwalk *w, const cJSON *item, size_t max, char out[EXPR_NAME])
{
	const char *s = jwalk_string(w, item, EXPR_MAX_TEXT);
	if (!s)
		return -1;
	if (!expr_is_identifier(s) || strlen(s) > max)
		return jwalk_fail(w, "'%.64s' is not a name ([A-Za-z_][A-Za-z0-9_]*, at most %zu characters)", s,
				  max);
	memcpy(out, s, strlen(s) + 1);
	return 0;
}

int jwalk_int(struct jwalk *w, const cJSON *item, int64_t min, int64_t max, int64_t *out)
{
	int64_t v;
	if (json_is_int(item, &v))
		return jwalk_fail(w, "an integer is expected");
	if (v < min || v > max)
		return jwalk_fail(w, "%lld is outside %lld..%lld", (long long)v, (long long)min, (long long)max);
	*out = v;
	return 0;
}

int jwalk_number(struct jwalk *w, const cJSON *item, double *out)
{
	if (!cJSON_IsNumber(item))
		return jwalk_fail(w, "a number is expected");
	*out = item->valuedouble;
	return 0;
}

int jwalk_bool(struct jwalk *w, const cJSON *item, int *out)
{
	if (!cJSON_IsBool(item))
		return jwalk_fail(w, "true or false is expected");
	*out = cJSON_IsTrue(item) ? 1 : 0;
	return 0;
}

int jwalk_choice(struct jwalk *w, const cJSON *item, const char *const *names, int *out)
{
	const char *s = jwalk_string(w, item, 64);
	if (!s)
		return -1;
	for (int i = 0; names[i]; i++) {
		if (!strcmp(names[i], s)) {
			*out = i;
			return 0;
		}
	}
	char list[200] = "";
	for (int i = 0; names[i]; i++) {
		size_t n = strlen(list);
		snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", names[i]);
	}
	return jwalk_fail(w, "'%s' is not one of: %s", s, list);
}

int jwalk_expr(struct jwalk *w, const cJSON *item, struct expr **out)
{
	int64_t v;
	struct expr *x;
	if (cJSON_IsString(item)) {
		x = expr_parse(item->valuestring, w->file, jwalk_path(w), w->e);
	} else {
		if (json_is_int(item, &v))
			return jwalk_fail(w, "an integer or an expression in a string is expected");
		x = expr_number(v, w->file, jwalk_path(w));
	}
	if (!x)
		return -1;
	expr_free(*out);
	*out = x;
	return 0;
}

int jwalk_get_int(struct jwalk *w, const cJSON *obj, const char *key, int64_t min, int64_t max,
		  int64_t *out)
{
	const cJSON *item = jwalk_find(obj, key);
	if (!item)
		return 0;
	size_t at = jwalk_enter(w, key);
	if (jwalk_int(w, item, min, max, out))
		return -1;
	jwalk_leave(w, at);
	return 0;
}

int jwalk_get_number(struct jwalk *w, const cJSON *obj, const char *key, double *out)
{
	const cJSON *item = jwalk_find(obj, key);
	if (!item)
		return 0;
	size_t at = jwalk_enter(w, key);
	if (jwalk_number(w, item, out))
		return -1;
	jwalk_leave(w, at);
	return 0;
}

int jwalk_get_bool(struct jwalk *w, const cJSON *obj, const char *key, int *out)
{
	const cJSON *item = jwalk_find(obj, key);
	if (!item)
		return 0;
	size_t at = jwalk_enter(w, key);
	if (jwalk_bool(w, item, out))
		return -1;
	jwalk_leave(w, at);
	return 0;
}

int jwalk_get_expr(struct jwalk *w, const cJSON *obj, const char *key, struct expr **out)
{
	const cJSON *item = jwalk_find(obj, key);
	if (!item)
		return 0;
	size_t at = jwalk_enter(w, key);
	if (jwalk_expr(w, item, out))
		return -1;
	jwalk_leave(w, at);
	return 0;
}
