/*
 * spec_rules.c - fills and comparators of spec.json.
 *
 *   fill    {"kind": "normal", "mean": 0, "std": 1}
 *           {"kind": "uniform", "low": 0, "high": 1}
 *           {"kind": "wide_integer", "low": -32768, "high": 32768}
 *           {"kind": "spikes", "mean": 0, "std": 1, "rate": 0.001, "scale": 64}
 *           {"kind": "index", "low": 0, "high": "V"}
 *           {"kind": "permutation"}
 *           {"kind": "page_table", "pages": "P"}
 *           {"kind": "skewed_routing", "experts": "E", "skew": 1.0}
 *           {"kind": "indptr", "total": "T", "min_step": 0}
 *           {"kind": "constant", "value": 1e-6}     {"kind": "zeros"}
 *   compare {"kind": "tolerance", "atol_rms", "rtol", "rel_l2", "row_rel_l2", "error_ratio"}
 *           {"kind": "exact"}
 *           {"kind": "ties", "source": INPUT, "tie": 0}
 *           {"kind": "topk", "source": INPUT, "tie": 0, "values": OUTPUT, "sorted": false}
 *           {"kind": "sort", "source": INPUT, "values": OUTPUT, "stable": false, "descending": false}
 *           {"kind": "distribution", "source": INPUT, "alpha": 1e-6}
 *
 * SPDX-License-Identifier: MIT
 */
#include "spec_parse.h"

#include <math.h>
#include <string.h>

#define MAX_KEYS 7

static const char *const FILL_NAMES[] = {
	"normal", "uniform", "wide_integer", "spikes", "index", "permutation", "page_table",
	"skewed_routing", "indptr", "constant", "zeros", NULL,
};

static const char *const FILL_KEYS[][MAX_KEYS] = {
	{"kind", "mean", "std"}, {"kind", "low", "high"}, {"kind", "low", "high"},
	{"kind", "mean", "std", "rate", "scale"}, {"kind", "low", "high"}, {"kind"}, {"kind", "pages"},
	{"kind", "experts", "skew"}, {"kind", "total", "min_step"}, {"kind", "value"}, {"kind"},
};

static const char *const COMPARE_NAMES[] = {
	"tolerance", "exact", "ties", "topk", "sort", "distribution", NULL,
};

static const char *const COMPARE_KEYS[][MAX_KEYS] = {
	{"kind", "atol_rms", "rtol", "rel_l2", "row_rel_l2", "error_ratio"}, {"kind"},
	{"kind", "source", "tie"}, {"kind", "source", "tie", "values", "sorted"},
	{"kind", "source", "values", "stable", "descending"}, {"kind", "source", "alpha"},
};

const char *fill_name(enum fill_kind k)
{
	return FILL_NAMES[k];
}

const char *compare_name(enum compare_kind k)
{
	return COMPARE_NAMES[k];
}

static int parse_kind(struct jwalk *w, const cJSON *item, const char *const *names, int *kind)
{
	if (jwalk_object(w, item, NULL))
		return -1;
	const cJSON *k = jwalk_need(w, item, "kind");
	if (!k)
		return -1;
	size_t at = jwalk_enter(w, "kind");
	if (jwalk_choice(w, k, names, kind))
		return -1;
	jwalk_leave(w, at);
	return 0;
}

static int need_expr(struct jwalk *w, const cJSON *item, const char *key, struct expr **out)
{
	return jwalk_need(w, item, key) ? jwalk_get_expr(w, item, key, out) : -1;
}

static int parse_fill_numbers(struct jwalk *w, const cJSON *item, struct spec_fill *f)
{
	if (jwalk_get_number(w, item, "mean", &f->mean) || jwalk_get_number(w, item, "std", &f->std) ||
	    jwalk_get_number(w, item, "low", &f->low) || jwalk_get_number(w, item, "high", &f->high) ||
	    jwalk_get_number(w, item, "rate", &f->rate) || jwalk_get_number(w, item, "scale", &f->scale))
		return -1;
	if (!(f->std >= 0))
		return jwalk_fail(w, "std is negative");
	if (!(f->low < f->high))
		return jwalk_fail(w, "low is not below high");
	if (!(f->rate >= 0 && f->rate <= 1))
		return jwalk_fail(w, "rate is outside 0..1");
	if (f->kind == FILL_WIDE_INTEGER && (f->low != floor(f->low) || f->high != floor(f->high)))
		return jwalk_fail(w, "low and high are not integers");
	return 0;
}

static int parse_fill_kind(struct jwalk *w, const cJSON *item, struct spec_fill *f)
{
	switch (f->kind) {
	case FILL_INDEX:
		return jwalk_get_expr(w, item, "low", &f->from) || need_expr(w, item, "high", &f->to) ? -1 : 0;
	case FILL_PAGE_TABLE:
		return need_expr(w, item, "pages", &f->to);
	case FILL_SKEWED_ROUTING:
		if (need_expr(w, item, "experts", &f->to) || jwalk_get_number(w, item, "skew", &f->skew))
			return -1;
		return f->skew >= 0 ? 0 : jwalk_fail(w, "skew is negative");
	case FILL_INDPTR:
		return jwalk_get_expr(w, item, "min_step", &f->from) || need_expr(w, item, "total", &f->to) ? -1 : 0;
	case FILL_CONSTANT:
		return jwalk_need(w, item, "value") ? jwalk_get_number(w, item, "value", &f->value) : -1;
	case FILL_PERMUTATION:
	case FILL_ZEROS:
		return 0;
	default:
		return parse_fill_numbers(w, item, f);
	}
}

static int fits_type(struct jwalk *w, const struct spec_tensor *t)
{
	enum fill_kind k = t->fill.kind;
	int is_index = k == FILL_INDEX || k == FILL_PERMUTATION || k == FILL_PAGE_TABLE ||
		       k == FILL_SKEWED_ROUTING || k == FILL_INDPTR;
	if (is_index && (dtype_is_float(t->dtype) || t->dtype == DT_BOOL))
		return jwalk_fail(w, "fill '%s' needs an integer dtype", fill_name(k));
	if ((k == FILL_NORMAL || k == FILL_SPIKES) && !dtype_is_float(t->dtype))
		return jwalk_fail(w, "fill '%s' needs a float dtype", fill_name(k));
	if (t->scalar && is_index && k != FILL_INDEX)
		return jwalk_fail(w, "fill '%s' needs a shape", fill_name(k));
	return 0;
}

static void fill_defaults(struct spec_tensor *t)
{
	struct spec_fill *f = &t->fill;
	f->std = f->high = f->skew = 1;
	f->rate = 0.001;
	f->scale = 64;
	if (f->kind == FILL_WIDE_INTEGER || (f->kind == FILL_UNIFORM && !dtype_is_float(t->dtype))) {
		int small = dtype_size(t->dtype) == 1, sign = dtype_is_float(t->dtype) || dtype_is_signed(t->dtype);
		f->low = !sign ? 0 : small ? -128 : -32768;
		f->high = t->dtype == DT_BOOL ? 2 : small ? (sign ? 128 : 256) : sign ? 32768 : 65536;
	}
}

int spec_parse_fill(struct jwalk *w, const cJSON *item, struct spec_tensor *t)
{
	int kind = dtype_is_float(t->dtype) ? FILL_NORMAL : FILL_UNIFORM;
	if (item && parse_kind(w, item, FILL_NAMES, &kind))
		return -1;
	t->fill.kind = (enum fill_kind)kind;
	fill_defaults(t);
	if (item && (jwalk_object(w, item, FILL_KEYS[kind]) || parse_fill_kind(w, item, &t->fill)))
		return -1;
	return fits_type(w, t);
}

static int parse_name(struct jwalk *w, const cJSON *item, const char *key, const struct spec *s, int output,
		      int *out)
{
	const cJSON *m = jwalk_find(item, key);
	if (!m)
		return 0;
	size_t at = jwalk_enter(w, key);
	const char *name = jwalk_string(w, m, 64);
	if (!name)
		return -1;
	*out = output ? spec_output_find(s, name) : spec_input_find(s, name);
	if (*out < 0)
		return jwalk_fail(w, "no %s is named '%s'", output ? "output" : "input", name);
	jwalk_leave(w, at);
	return 0;
}

static int parse_bounds(struct jwalk *w, const cJSON *item, struct spec_compare *c)
{
	static const char *const keys[] = {"atol_rms", "rtol", "rel_l2", "row_rel_l2", "error_ratio", "tie",
					   "alpha"};
	double *const at[] = {&c->atol_rms, &c->rtol, &c->rel_l2, &c->row_rel_l2, &c->error_ratio, &c->tie,
			      &c->alpha};
	for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
		if (jwalk_get_number(w, item, keys[i], at[i]))
			return -1;
		if (*at[i] < 0)
			return jwalk_fail(w, "%s is negative", keys[i]);
	}
	return 0;
}

int spec_parse_compare(struct jwalk *w, const cJSON *item, const struct spec *s, struct spec_tensor *t)
{
	int is_float = dtype_is_float(t->dtype), kind = is_float ? COMPARE_TOLERANCE : COMPARE_EXACT;
	struct spec_compare *c = &t->compare;
	if (item && parse_kind(w, item, COMPARE_NAMES, &kind))
		return -1;
	*c = (struct spec_compare){.kind = (enum compare_kind)kind, .atol_rms = NAN, .rtol = NAN,
				   .rel_l2 = NAN, .row_rel_l2 = NAN, .error_ratio = NAN, .source = -1,
				   .values = -1, .alpha = 1e-6};
	if (kind == COMPARE_TOLERANCE && !is_float)
		return jwalk_fail(w, "compare 'tolerance' needs a float dtype");
	if (!item)
		return 0;
	if (jwalk_object(w, item, COMPARE_KEYS[kind]) || parse_bounds(w, item, c) ||
	    parse_name(w, item, "source", s, 0, &c->source) || parse_name(w, item, "values", s, 1, &c->values) ||
	    jwalk_get_bool(w, item, "sorted", &c->sorted) || jwalk_get_bool(w, item, "stable", &c->stable) ||
	    jwalk_get_bool(w, item, "descending", &c->descending))
		return -1;
	if (kind < COMPARE_TIES)
		return 0;
	if (c->source < 0)
		return jwalk_fail(w, "key 'source' is missing");
	if (is_float)
		return jwalk_fail(w, "compare '%s' needs an integer dtype", compare_name(c->kind));
	if (s->input[c->source].scalar)
		return jwalk_fail(w, "source '%s' is a scalar", s->input[c->source].name);
	return 0;
}
