/*
 * jwalk.h - walk a parsed JSON tree strictly, with the path of the value in hand for messages.
 *
 * Used by the readers of plans and specs, where every key and every type counts and where an
 * error must name the place: "plan.json: launches[0].grid: at most 3 entries".
 *
 *   size_t at = jwalk_enter(&w, "grid");  ... use the item ...  jwalk_leave(&w, at);
 *
 * All checks return 0, or -1 after filling w->e with EX_BADINPUT.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_JWALK_H
#define TS_JWALK_H

#include "err.h"
#include "expr.h"
#include "json.h"

#include <stddef.h>
#include <stdint.h>

struct jwalk {
	const char *file;
	char path[320];
	size_t len;
	struct err *e;
};

void jwalk_begin(struct jwalk *w, const char *file, struct err *e);
size_t jwalk_enter(struct jwalk *w, const char *key);
size_t jwalk_enter_at(struct jwalk *w, int index);
void jwalk_leave(struct jwalk *w, size_t at);
const char *jwalk_path(const struct jwalk *w); /* "(top)" at the top */

int jwalk_fail(struct jwalk *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* `item` is an object with no key outside the NULL-terminated list. */
int jwalk_object(struct jwalk *w, const cJSON *item, const char *const *keys);
int jwalk_array(struct jwalk *w, const cJSON *item, int min, int max, int *count);
/* The member, null included; NULL and an error when it is not there. */
const cJSON *jwalk_need(struct jwalk *w, const cJSON *obj, const char *key);
const cJSON *jwalk_find(const cJSON *obj, const char *key); /* NULL when absent; null is an item */

/* `item` in the path entered. */
const char *jwalk_string(struct jwalk *w, const cJSON *item, size_t max);
int jwalk_identifier(struct jwalk *w, const cJSON *item, size_t max, char out[EXPR_NAME]);
int jwalk_int(struct jwalk *w, const cJSON *item, int64_t min, int64_t max, int64_t *out);
int jwalk_number(struct jwalk *w, const cJSON *item, double *out);
int jwalk_bool(struct jwalk *w, const cJSON *item, int *out);
/* One of the names; its index. */
int jwalk_choice(struct jwalk *w, const cJSON *item, const char *const *names, int *out);
/* An integer or the text of an expression. */
int jwalk_expr(struct jwalk *w, const cJSON *item, struct expr **out);

/* Members by key: enter, check, leave. Absent: *out is left alone, 0 is returned. */
int jwalk_get_int(struct jwalk *w, const cJSON *obj, const char *key, int64_t min, int64_t max,
		  int64_t *out);
int jwalk_get_number(struct jwalk *w, const cJSON *obj, const char *key, double *out);
int jwalk_get_bool(struct jwalk *w, const cJSON *obj, const char *key, int *out);
int jwalk_get_expr(struct jwalk *w, const cJSON *obj, const char *key, struct expr **out);

#endif
