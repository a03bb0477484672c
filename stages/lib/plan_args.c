/*
 * plan_args.c - the args of a launch, one object each, told apart by its first key:
 *
 *   {"in": INPUT} {"out": OUTPUT} {"inout": OUTPUT}    a pointer; inout: an earlier launch wrote it
 *   {"workspace": NAME, "offset": X}
 *   {"workspace_select": [NAME, ...], "index": X, "offset": X}    one of them: ping-pong in loops
 *   {"axis": NAME, "type": T}  {"expr": X, "type": T}  {"const": NUMBER, "type": T}
 *   {"scalar": INPUT}                                  an input of shape null, by value
 *   {"tensor_map": {buffer | workspace, offset, dtype, dims, byte_strides, box, element_strides,
 *                   swizzle, interleave, l2_promotion, oob_fill}}  innermost dimension first
 *                   dtype is needed with a workspace; else it is the buffer's, or one as wide
 *
 * T is one of i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64.
 *
 * SPDX-License-Identifier: MIT
 */
#include "plan_parse.h"

#include <stdlib.h>
#include <string.h>

const char *const PLAN_TYPES[] = {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64",
				  "f16", "bf16", "f32", "f64", NULL};
static const enum dtype TYPES[] = {DT_I8, DT_I16, DT_I32, DT_I64, DT_U8, DT_U16, DT_U32, DT_U64,
				   DT_F16, DT_BF16, DT_F32, DT_F64};
const char *const PLAN_SWIZZLES[] = {"none", "32B", "64B", "128B", NULL};
const char *const PLAN_INTERLEAVES[] = {"none", "16B", "32B", NULL};
const char *const PLAN_PROMOTIONS[] = {"none", "64B", "128B", "256B", NULL};
const char *const PLAN_OOB_FILLS[] = {"zero", "nan", NULL};

const char *plan_type_name(enum dtype t)
{
	for (int i = 0; PLAN_TYPES[i]; i++)
		if (TYPES[i] == t)
			return PLAN_TYPES[i];
	return "?";
}

static int parse_type(struct jwalk *w, const cJSON *obj, struct plan_arg *a)
{
	int i;
	const cJSON *item = jwalk_need(w, obj, "type");
	if (!item)
		return -1;
	size_t at = jwalk_enter(w, "type");
	if (jwalk_choice(w, item, PLAN_TYPES, &i))
		return -1;
	a->type = TYPES[i];
	jwalk_leave(w, at);
	return 0;
}

static int parse_name(struct jwalk *w, const cJSON *obj, const char *key, char out[PLAN_NAME])
{
	size_t at = jwalk_enter(w, key);
	if (jwalk_identifier(w, jwalk_find(obj, key), 64, out))
		return -1;
	jwalk_leave(w, at);
	return 0;
}

static int parse_const(struct jwalk *w, const cJSON *obj, struct plan_arg *a)
{
	const cJSON *item = jwalk_find(obj, "const");
	if (parse_type(w, obj, a))
		return -1;
	size_t at = jwalk_enter(w, "const");
	if (dtype_is_float(a->type)) {
		if (jwalk_number(w, item, &a->number))
			return -1;
	} else {
		int bits = (int)dtype_size(a->type) * 8, sign = dtype_is_signed(a->type);
		int64_t most = bits - sign > 53 ? (int64_t)1 << 53 : ((int64_t)1 << (bits - sign)) - 1;
		int64_t least = !sign ? 0 : bits > 53 ? -most : -most - 1;
		if (jwalk_int(w, item, least, most, &a->integer))
			return -1;
	}
	jwalk_leave(w, at);
	return 0;
}

static int parse_select(struct jwalk *w, const cJSON *obj, struct plan_arg *a)
{
	const cJSON *item = jwalk_find(obj, "workspace_select");
	size_t at = jwalk_enter(w, "workspace_select");
	if (jwalk_array(w, item, 1, PLAN_MAX_SELECT, &a->nselect))
		return -1;
	int i = 0;
	for (const cJSON *m = item->child; m; m = m->next, i++) {
		size_t here = jwalk_enter_at(w, i);
		if (jwalk_identifier(w, m, 64, a->select[i]))
			return -1;
		jwalk_leave(w, here);
	}
	jwalk_leave(w, at);
	if (!jwalk_need(w, obj, "index") || jwalk_get_expr(w, obj, "index", &a->value))
		return -1;
	return jwalk_get_expr(w, obj, "offset", &a->offset);
}

/* An array of expressions with exactly `count` entries; absent only if not needed. */
static int parse_list(struct jwalk *w, const cJSON *obj, const char *key, int needed, int count,
		      struct expr **out)
{
	const cJSON *item = needed ? jwalk_need(w, obj, key) : jwalk_find(obj, key);
	int n, i = 0;
	if (!item)
		return needed ? -1 : 0;
	size_t at = jwalk_enter(w, key);
	if (jwalk_array(w, item, 0, 5, &n))
		return -1;
	if (n != count)
		return jwalk_fail(w, "%d entries expected, one per dimension%s", count,
				  strcmp(key, "byte_strides") ? "" : " but the first");
	for (const cJSON *m = item->child; m; m = m->next, i++) {
		size_t here = jwalk_enter_at(w, i);
		if (jwalk_expr(w, m, &out[i]))
			return -1;
		jwalk_leave(w, here);
	}
	jwalk_leave(w, at);
	return 0;
}

static int parse_word(struct jwalk *w, const cJSON *obj, const char *key, const char *const *names, int *out)
{
	const cJSON *item = jwalk_find(obj, key);
	if (!item)
		return 0;
	size_t at = jwalk_enter(w, key);
	if (jwalk_choice(w, item, names, out))
		return -1;
	jwalk_leave(w, at);
	return 0;
}

static int parse_map_dtype(struct jwalk *w, const cJSON *obj, struct plan_tensor_map *t)
{
	const cJSON *item = t->workspace ? jwalk_need(w, obj, "dtype") : jwalk_find(obj, "dtype");
	if (!item)
		return t->workspace ? -1 : 0;
	size_t at = jwalk_enter(w, "dtype");
	const char *s = jwalk_string(w, item, 32);
	if (!s)
		return -1;
	t->tf32 = !strcmp(s, "tfloat32");
	t->dtype = t->tf32 ? DT_F32 : dtype_parse(s);
	if (t->dtype == DT_NONE)
		return jwalk_fail(w, "unknown dtype '%s'", s);
	jwalk_leave(w, at);
	return 0;
}

static int parse_map(struct jwalk *w, const cJSON *item, struct plan_tensor_map *t)
{
	static const char *const keys[] = {"buffer", "workspace", "offset", "dtype", "dims", "byte_strides",
					   "box", "element_strides", "swizzle", "interleave",
					   "l2_promotion", "oob_fill", NULL};
	const cJSON *dims;
	if (jwalk_object(w, item, keys))
		return -1;
	t->workspace = jwalk_find(item, "workspace") != NULL;
	if (t->workspace == (jwalk_find(item, "buffer") != NULL))
		return jwalk_fail(w, "either buffer (an input or output) or workspace");
	if (parse_name(w, item, t->workspace ? "workspace" : "buffer", t->buffer) ||
	    jwalk_get_expr(w, item, "offset", &t->offset) || parse_map_dtype(w, item, t) ||
	    !(dims = jwalk_need(w, item, "dims")))
		return -1;
	size_t at = jwalk_enter(w, "dims");
	if (jwalk_array(w, dims, 1, 5, &t->rank))
		return -1;
	jwalk_leave(w, at);
	return parse_list(w, item, "dims", 1, t->rank, t->dim) ||
			       parse_list(w, item, "byte_strides", t->rank > 1, t->rank - 1, t->stride) ||
			       parse_list(w, item, "box", 1, t->rank, t->box) ||
			       parse_list(w, item, "element_strides", 0, t->rank, t->step) ||
			       parse_word(w, item, "swizzle", PLAN_SWIZZLES, &t->swizzle) ||
			       parse_word(w, item, "interleave", PLAN_INTERLEAVES, &t->interleave) ||
			       parse_word(w, item, "l2_promotion", PLAN_PROMOTIONS, &t->l2_promotion) ||
			       parse_word(w, item, "oob_fill", PLAN_OOB_FILLS, &t->oob_fill)
		       ? -1
		       : 0;
}

static int parse_map_arg(struct jwalk *w, const cJSON *obj, struct plan_arg *a)
{
	size_t at = jwalk_enter(w, "tensor_map");
	a->map = xcalloc(1, sizeof *a->map);
	if (parse_map(w, jwalk_find(obj, "tensor_map"), a->map))
		return -1;
	jwalk_leave(w, at);
	return 0;
}

static const struct {
	const char *keys[4]; /* the first one tells the kind */
	enum plan_arg_kind kind;
} KINDS[] = {
	{{"in"}, PLAN_IN},
	{{"out"}, PLAN_OUT},
	{{"inout"}, PLAN_INOUT},
	{{"workspace", "offset"}, PLAN_WORKSPACE},
	{{"workspace_select", "index", "offset"}, PLAN_SELECT},
	{{"axis", "type"}, PLAN_AXIS},
	{{"scalar"}, PLAN_SCALAR},
	{{"const", "type"}, PLAN_CONST},
	{{"expr", "type"}, PLAN_EXPR},
	{{"tensor_map"}, PLAN_MAP},
};

static int parse_arg(struct jwalk *w, const cJSON *m, struct plan_arg *a)
{
	size_t k = 0, n = sizeof KINDS / sizeof KINDS[0];
	if (jwalk_object(w, m, NULL))
		return -1;
	while (k < n && !jwalk_find(m, KINDS[k].keys[0]))
		k++;
	if (k == n)
		return jwalk_fail(w, "one of in, out, inout, workspace, workspace_select, axis, scalar, const, "
				     "expr, tensor_map is expected");
	if (jwalk_object(w, m, KINDS[k].keys))
		return -1;
	a->kind = KINDS[k].kind;
	switch (a->kind) {
	case PLAN_MAP:
		return parse_map_arg(w, m, a);
	case PLAN_SELECT:
		return parse_select(w, m, a);
	case PLAN_CONST:
		return parse_const(w, m, a);
	case PLAN_EXPR:
		return jwalk_get_expr(w, m, "expr", &a->value) || parse_type(w, m, a) ? -1 : 0;
	case PLAN_AXIS:
		return parse_name(w, m, "axis", a->name) || parse_type(w, m, a) ? -1 : 0;
	default:
		if (parse_name(w, m, KINDS[k].keys[0], a->name))
			return -1;
		return jwalk_get_expr(w, m, "offset", &a->offset);
	}
}

int plan_parse_args(struct jwalk *w, const cJSON *item, struct plan_launch *l)
{
	int n;
	if (jwalk_array(w, item, 0, PLAN_MAX_ARGS, &n))
		return -1;
	l->arg = xcalloc((size_t)n, sizeof *l->arg);
	for (const cJSON *m = item->child; m; m = m->next) {
		size_t at = jwalk_enter_at(w, l->nargs);
		if (parse_arg(w, m, &l->arg[l->nargs++]))
			return -1;
		jwalk_leave(w, at);
	}
	return 0;
}

void plan_arg_free(struct plan_arg *a)
{
	expr_free(a->offset);
	expr_free(a->value);
	if (!a->map)
		return;
	expr_free(a->map->offset);
	for (int i = 0; i < 5; i++) {
		expr_free(a->map->dim[i]);
		if (i < 4)
			expr_free(a->map->stride[i]);
		expr_free(a->map->box[i]);
		expr_free(a->map->step[i]);
	}
	free(a->map);
}
