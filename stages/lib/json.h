/*
 * json.h - strict JSON reading over cJSON.
 *
 * cJSON alone keeps the first of two equal keys, accepts trailing text and cuts a string at
 * \u0000; other readers differ, and a difference between readers is an attack (threats.md P11).
 * json_parse refuses all of it: duplicate keys, trailing bytes, \u0000, nesting beyond `depth`,
 * text beyond `bytes`, numbers that are not finite, invalid UTF-8.
 *
 * The getters name the file and the key in their error: "PATH: key 'grid' must be ...".
 * Objects belong to the tree; free it with cJSON_Delete.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_JSON_H
#define TS_JSON_H

#include "err.h"
#include "hash.h"

#include <cjson/cJSON.h>
#include <stdint.h>

struct json_limits {
	size_t bytes; /* longest text accepted */
	int depth;    /* deepest nesting of arrays and objects */
};

/* Limits for files of our own making (verdicts, run.json, log lines). */
extern const struct json_limits JSON_OURS;

/* `what` names the text in messages, usually its path. */
cJSON *json_parse(const char *text, size_t len, const struct json_limits *lim, const char *what,
		  struct err *e);
/* Read, hash the bytes read (sha may be NULL), parse. */
cJSON *json_read(const char *path, const struct json_limits *lim, char sha[HASH_HEX], struct err *e);

/* Every key of `obj` must be one of the NULL-terminated list; else error naming the key. */
int json_only(const cJSON *obj, const char *const *keys, const char *what, struct err *e);

/* Required members. Integers must be integral and within +-2^53. */
const char *json_str(const cJSON *obj, const char *key, const char *what, struct err *e);
int json_int(const cJSON *obj, const char *key, int64_t *out, const char *what, struct err *e);
int json_num(const cJSON *obj, const char *key, double *out, const char *what, struct err *e);
int json_bool(const cJSON *obj, const char *key, int *out, const char *what, struct err *e);
cJSON *json_obj(const cJSON *obj, const char *key, const char *what, struct err *e);
cJSON *json_arr(const cJSON *obj, const char *key, const char *what, struct err *e);

/* Optional member: NULL when absent or null. Case-sensitive, unlike cJSON_GetObjectItem. */
cJSON *json_get(const cJSON *obj, const char *key);
const char *json_get_str(const cJSON *obj, const char *key, const char *fallback);
double json_get_num(const cJSON *obj, const char *key, double fallback);
/* Its whole part; the fallback too where that is beyond 2^53. */
int64_t json_get_int(const cJSON *obj, const char *key, int64_t fallback);
/* An integral number in +-2^53 (any item); -1 otherwise. */
int json_is_int(const cJSON *item, int64_t *out);

#endif
