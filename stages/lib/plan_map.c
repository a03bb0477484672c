/*
 * plan_map.c - tensor maps in numbers, checked by the rules of cuTensorMapEncodeTiled and, beyond
 * them, to lie inside their buffer: the driver would not notice.
 *
 * SPDX-License-Identifier: MIT
 */
#include "plan_parse.h"

#include <stdio.h>
#include <string.h>

/* CUtensorMapDataType by element type. */
static int driver_dtype(enum dtype t, int tf32)
{
	switch (t) {
	case DT_U16:
	case DT_I16: return 1;
	case DT_U32: return 2;
	case DT_I32: return 3;
	case DT_U64: return 4;
	case DT_I64: return 5;
	case DT_F16: return 6;
	case DT_F32: return tf32 ? 11 : 7;
	case DT_F64: return 8;
	case DT_BF16: return 9;
	default: return 0; /* one byte: UINT8 */
	}
}

struct mapping {
	const struct plan_env *env;
	const char *where;
	struct err *e;
};

static int fail(struct mapping *g, const char *what, int i, int64_t v, const char *why)
{
	return err_set(g->e, EX_BADINPUT, "%s: %s: tensor_map.%s[%d] is %lld: %s", g->env->plan->file, g->where,
		       what, i, (long long)v, why);
}

static int number(struct mapping *g, const struct expr *x, const char *what, int i, int64_t min, int64_t max,
		  int64_t *out)
{
	char why[80];
	if (!x) {
		*out = 1;
		return 0;
	}
	if (plan_eval(g->env, x, 1, out, g->e))
		return -1;
	if (*out >= min && *out <= max)
		return 0;
	snprintf(why, sizeof why, "outside %lld..%lld", (long long)min, (long long)max);
	return fail(g, what, i, *out, why);
}

static int fill_dims(struct mapping *g, const struct plan_tensor_map *m, struct tensor_map *t)
{
	int64_t v, unit = m->interleave == 2 ? 32 : 16;
	for (int i = 0; i < m->rank; i++) {
		if (number(g, m->dim[i], "dims", i, 1, (int64_t)1 << 32, &v))
			return -1;
		t->dim[i] = (uint64_t)v;
		if (number(g, m->box[i], "box", i, 1, 256, &v))
			return -1;
		t->box[i] = (uint32_t)v;
		if (number(g, m->step[i], "element_strides", i, 1, 8, &v))
			return -1;
		t->step[i] = (uint32_t)v;
		if (i == 0)
			continue;
		if (number(g, m->stride[i - 1], "byte_strides", i - 1, 0, ((int64_t)1 << 40) - 1, &v))
			return -1;
		if (v % unit)
			return fail(g, "byte_strides", i - 1, v, unit == 16 ? "not a multiple of 16"
									    : "not a multiple of 32");
		t->stride[i - 1] = (uint64_t)v;
	}
	return 0;
}

static int check_box(struct mapping *g, const struct tensor_map *t)
{
	static const int64_t spans[] = {0, 32, 64, 128};
	int64_t inner = (int64_t)t->box[0] * t->element_bytes, total = t->element_bytes;
	if (t->interleave == 0 && inner % 16)
		return fail(g, "box", 0, t->box[0], "its bytes are not a multiple of 16");
	if (t->interleave == 0 && t->swizzle && inner > spans[t->swizzle])
		return fail(g, "box", 0, t->box[0], "its bytes are more than the swizzle span");
	if (t->interleave == 2 && t->swizzle != 1)
		return fail(g, "interleave", 0, 32, "32B interleave needs swizzle 32B");
	if (t->interleave && t->rank < 3)
		return fail(g, "interleave", 0, t->interleave * 16, "interleave needs rank 3 or more");
	for (int i = 0; i < t->rank; i++)
		total *= (t->box[i] + t->step[i] - 1) / t->step[i]; /* at most 256^5 * 8 */
	if (total > g->env->facts->max_shared)
		return fail(g, "box", 0, t->box[0], "the box is larger than shared memory");
	return 0;
}

/* The last byte described must be inside the buffer. Strides may be 0 or shorter than a row: rows
 * then overlap, which some kernels want. Interleaved layouts are bounded by the same sum. */
static int check_extent(struct mapping *g, const struct tensor_map *t, int64_t room)
{
	int64_t last = 0, term;
	for (int i = 0; i < t->rank; i++) {
		int64_t stride = i ? (int64_t)t->stride[i - 1] : t->element_bytes;
		if (expr_mul((int64_t)t->dim[i] - 1, stride, &term) || expr_add(last, term, &last))
			return fail(g, "dims", i, (int64_t)t->dim[i], "too large");
	}
	if (last > room - t->element_bytes)
		return err_set(g->e, EX_BADINPUT, "%s: %s: tensor_map reaches byte %lld of %lld", g->env->plan->file,
			       g->where, (long long)last + t->element_bytes, (long long)room);
	return 0;
}

int plan_resolve_map(const struct plan_env *env, const struct plan_tensor_map *m, const char *where,
		     int64_t bytes, enum dtype element, struct launch_arg *out, struct err *e)
{
	struct mapping g = {env, where, e};
	struct tensor_map *t = &out->map;
	enum dtype type = m->dtype != DT_NONE ? m->dtype : element;
	int64_t unit = m->interleave == 2 ? 32 : 16;
	if (element != DT_NONE && dtype_size(type) != dtype_size(element))
		return err_set(e, EX_BADINPUT, "%s: %s: tensor_map.dtype is %s: an element of '%s' has %zu bytes",
			       env->plan->file, where, dtype_name(type), m->buffer, dtype_size(element));
	*t = (struct tensor_map){.dtype = driver_dtype(type, m->tf32),
				 .element_bytes = (int)dtype_size(type),
				 .rank = m->rank,
				 .swizzle = m->swizzle,
				 .interleave = m->interleave,
				 .l2_promotion = m->l2_promotion,
				 .oob_fill = m->oob_fill};
	out->offset = 0;
	if (m->offset && plan_eval(env, m->offset, 1, &out->offset, e))
		return -1;
	if (out->offset < 0 || out->offset > bytes || out->offset % unit)
		return fail(&g, "offset", 0, out->offset, "outside the buffer or not a multiple of 16");
	if (m->oob_fill && !dtype_is_float(type))
		return fail(&g, "oob_fill", 0, m->oob_fill, "nan needs a float dtype");
	return fill_dims(&g, m, t) || check_box(&g, t) || check_extent(&g, t, bytes - out->offset) ? -1 : 0;
}
