/*
 * spec.c - see spec.h: find things, bind axes, compute sizes. Reading is in spec_parse.c,
 * spec_rules.c and spec_workloads.c; the file list in spec_files.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "spec.h"

#include "buf.h"
#include "file.h"

#include <stdlib.h>
#include <string.h>

int spec_load(const char *dir, struct spec **out, struct err *e)
{
	struct buf text = BUF_INIT;
	char *path = xasprintf("%s/spec.json", dir);
	int rc = file_read(path, 262144, &text, e);
	if (!rc)
		rc = spec_parse(buf_str(&text), text.len, path, out, e);
	buf_free(&text);
	free(path);
	return rc;
}

static void tensor_free(struct spec_tensor *t)
{
	for (int i = 0; i < SPEC_MAX_RANK; i++)
		expr_free(t->dim[i]);
	expr_free(t->fill.from);
	expr_free(t->fill.to);
}

void spec_free(struct spec *s)
{
	if (!s)
		return;
	for (int i = 0; i < s->nconstraints; i++)
		expr_free(s->constraint[i]);
	for (int i = 0; i < SPEC_MAX_TENSORS; i++) {
		tensor_free(&s->input[i]);
		tensor_free(&s->output[i]);
	}
	for (int i = 0; i < SPEC_MAX_AXES; i++) {
		expr_free(s->held_out[i].equals);
		expr_free(s->held_out_emu[i].equals);
	}
	for (int i = 0; i < s->reference_argc; i++)
		free(s->reference_argv[i]);
	for (int i = 0; i < s->nheaders; i++)
		free(s->header[i]);
	expr_free(s->cost_bytes);
	expr_free(s->cost_flops);
	free(s->description);
	free(s->reference_source);
	free(s->reference_plan);
	free(s->start);
	free(s);
}

int spec_axis_find(const struct spec *s, const char *name)
{
	for (int i = 0; i < s->naxes; i++)
		if (!strcmp(s->axis[i].name, name))
			return i;
	return -1;
}

static int tensor_find(const struct spec_tensor *t, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(t[i].name, name))
			return i;
	return -1;
}

int spec_input_find(const struct spec *s, const char *name)
{
	return tensor_find(s->input, s->ninputs, name);
}

int spec_output_find(const struct spec *s, const char *name)
{
	return tensor_find(s->output, s->noutputs, name);
}

int spec_axes_bind(const struct spec *s, int (*get)(void *ctx, const char *name, int64_t *v), void *ctx,
		   struct axes *out, struct err *e)
{
	for (int i = 0; i < s->naxes; i++) {
		const struct spec_axis *a = &s->axis[i];
		out->v[i] = a->value;
		if (!a->is_const && get(ctx, a->name, &out->v[i]))
			return err_set(e, EX_BADINPUT, "%s: no value for axis '%s'", s->file, a->name);
	}
	return spec_axes_check(s, out, e);
}

int spec_axes_name(void *ctx, const char *name, int64_t *out)
{
	const struct spec_axes_env *v = ctx;
	int i = spec_axis_find(v->spec, name);
	if (i < 0 || v->axes->v[i] < 1) /* 0: not bound yet */
		return -1;
	*out = v->axes->v[i];
	return 0;
}

static int eval(const struct spec *s, const struct expr *x, const struct axes *a, int64_t *out, struct err *e)
{
	struct spec_axes_env ctx = {s, a};
	struct expr_env env = {spec_axes_name, NULL, &ctx};
	return expr_eval(x, &env, out, e);
}

int spec_shape(const struct spec *s, const struct spec_tensor *t, const struct axes *a,
	       int64_t dims[SPEC_MAX_RANK], int64_t *elements, struct err *e)
{
	*elements = 1;
	for (int i = 0; i < t->rank; i++) {
		int64_t d;
		if (eval(s, t->dim[i], a, &d, e))
			return -1;
		if (d < 1)
			return err_set(e, EX_BADINPUT, "%s: is %lld, less than 1", expr_where(t->dim[i]),
				       (long long)d);
		if (expr_mul(*elements, d, elements))
			return err_set(e, EX_BADINPUT, "%s: too many elements", expr_where(t->dim[i]));
		if (dims)
			dims[i] = d;
	}
	return 0;
}

static int sized(const struct spec *s, const struct spec_tensor *t, const struct axes *a, int64_t size,
		 int64_t *bytes, struct err *e)
{
	int64_t n;
	if (spec_shape(s, t, a, NULL, &n, e))
		return -1;
	if (expr_mul(n, size, bytes) || *bytes > s->limits.buffer_bytes)
		return err_set(e, EX_BADINPUT, "%s: '%s' has %lld elements: more than limits.buffer_bytes %lld",
			       s->file, t->name, (long long)n, (long long)s->limits.buffer_bytes);
	return 0;
}

int spec_bytes(const struct spec *s, const struct spec_tensor *t, const struct axes *a, int64_t *bytes,
	       struct err *e)
{
	return sized(s, t, a, (int64_t)dtype_size(t->dtype), bytes, e);
}

int spec_reference_bytes(const struct spec *s, const struct spec_tensor *t, const struct axes *a,
			 int64_t *bytes, struct err *e)
{
	int64_t n;
	if (!dtype_is_float(t->dtype))
		return spec_bytes(s, t, a, bytes, e);
	if (spec_shape(s, t, a, NULL, &n, e))
		return -1;
	/* The reference is ours: only the arithmetic must hold, not the buffer limit. */
	return expr_mul(n, 8, bytes) ? err_set(e, EX_BADINPUT, "%s: '%s' is too large", s->file, t->name) : 0;
}

/* Each kind's demand on its range and the tensor's shape. */
static const char *range_wrong(const struct spec_tensor *t, int64_t from, int64_t to, int64_t n, int64_t last)
{
	int64_t least;
	switch (t->fill.kind) {
	case FILL_INDEX:
		return from < to ? NULL : "low is not below high";
	case FILL_PAGE_TABLE:
		return to >= n ? NULL : "fewer pages than entries of the page table";
	case FILL_SKEWED_ROUTING:
		return to >= last ? NULL : "fewer experts than choices per row";
	case FILL_INDPTR:
		if (last < 2 || from < 0 || to < 0)
			return "indptr needs two entries, total >= 0 and min_step >= 0";
		return expr_mul(from, last - 1, &least) || least > to ? "total is less than min_step per step"
								      : NULL;
	default:
		return NULL;
	}
}

int spec_fill_range(const struct spec *s, const struct spec_tensor *t, const struct axes *a, int64_t *from,
		    int64_t *to, struct err *e)
{
	int64_t n, dims[SPEC_MAX_RANK] = {1};
	*from = *to = 0;
	if (spec_shape(s, t, a, dims, &n, e) || (t->fill.from && eval(s, t->fill.from, a, from, e)) ||
	    (t->fill.to && eval(s, t->fill.to, a, to, e)))
		return -1;
	int64_t last = t->rank ? dims[t->rank - 1] : 1;
	if (t->fill.kind == FILL_PERMUTATION)
		*to = last;
	const char *why = range_wrong(t, *from, *to, n, last);
	if (!why && t->fill.to) { /* the largest value must fit the dtype */
		int bits = (int)dtype_size(t->dtype) * 8 - (dtype_is_signed(t->dtype) ? 1 : 0);
		int64_t most = t->fill.kind == FILL_INDPTR ? *to : *to - 1;
		if (bits < 63 && (most >> bits) > 0)
			why = "the largest value does not fit the dtype";
	}
	return why ? err_set(e, EX_BADINPUT, "%s: inputs.%s.fill: %s", s->file, t->name, why) : 0;
}

int spec_axes_check(const struct spec *s, const struct axes *a, struct err *e)
{
	int64_t v, total = 0, from, to;
	for (int i = 0; i < s->naxes; i++)
		if (a->v[i] < 1)
			return err_set(e, EX_BADINPUT, "%s: axis '%s' is %lld, less than 1", s->file,
				       s->axis[i].name, (long long)a->v[i]);
	for (int i = 0; i < s->nconstraints; i++) {
		if (eval(s, s->constraint[i], a, &v, e))
			return -1;
		if (!v)
			return err_set(e, EX_BADINPUT, "%s: does not hold: %.200s", expr_where(s->constraint[i]),
				       expr_text(s->constraint[i]));
	}
	for (int i = 0; i < s->ninputs + s->noutputs; i++) {
		const struct spec_tensor *t = i < s->ninputs ? &s->input[i] : &s->output[i - s->ninputs];
		if (spec_bytes(s, t, a, &v, e))
			return -1;
		if (i < s->ninputs && spec_fill_range(s, t, a, &from, &to, e))
			return -1;
		if (expr_add(total, v, &total) || total > s->limits.total_bytes)
			return err_set(e, EX_BADINPUT, "%s: the buffers need more than limits.total_bytes %lld",
				       s->file, (long long)s->limits.total_bytes);
	}
	return 0;
}

int spec_cost(const struct spec *s, const struct axes *a, int64_t *bytes, int64_t *flops, struct err *e)
{
	*bytes = *flops = 0;
	if (s->cost_bytes && eval(s, s->cost_bytes, a, bytes, e))
		return -1;
	return s->cost_flops ? eval(s, s->cost_flops, a, flops, e) : 0;
}
