/*
 * fill.c - write the inputs of a rep from a key. See fill.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fill.h"
#include "buf.h"
#include "rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One tensor being filled. */
struct job {
	const struct spec_tensor *t;
	enum dtype dt;
	uint8_t *out;
	size_t n, row;       /* elements, and of the last dimension */
	int64_t from, to;    /* evaluated expressions of the fill */
	int bits;            /* significant bits of a wide operand in the exact regimes */
	struct rng r;
};

const char *fill_regime_name(enum fill_regime r)
{
	static const char *const NAME[] = {"spec", "mixed", "near_equal", "exact_a", "exact_b"};

	return r < REGIME_COUNT ? NAME[r] : "?";
}

/* ---- draws of single elements ---- */

static double draw_normal(struct job *j)
{
	const struct spec_fill *f = &j->t->fill;

	return f->mean + f->std * rng_normal(&j->r);
}

static double draw_uniform(struct job *j)
{
	const struct spec_fill *f = &j->t->fill;

	if (dtype_is_float(j->dt))
		return f->low + (f->high - f->low) * rng_unit(&j->r);
	return f->low + (double)rng_below(&j->r, (uint64_t)(f->high - f->low));
}

static double draw_one(struct job *j)
{
	const struct spec_fill *f = &j->t->fill;

	switch (f->kind) {
	case FILL_NORMAL: return draw_normal(j);
	case FILL_UNIFORM: return draw_uniform(j);
	case FILL_WIDE_INTEGER:
		return f->low + (double)rng_below(&j->r, (uint64_t)(f->high - f->low));
	case FILL_SPIKES: {
		double v = draw_normal(j);
		return rng_unit(&j->r) < f->rate ? v * f->scale : v;
	}
	case FILL_INDEX:
		return (double)(j->from + (int64_t)rng_below(&j->r, (uint64_t)(j->to - j->from)));
	case FILL_CONSTANT: return f->value;
	default: return 0;
	}
}

/* ---- structured fills ---- */

static void shuffle(struct rng *r, int64_t *v, size_t n)
{
	for (size_t i = n; i > 1; i--) {
		size_t k = (size_t)rng_below(r, i);
		int64_t x = v[i - 1];
		v[i - 1] = v[k];
		v[k] = x;
	}
}

static void fill_permutation(struct job *j)
{
	int64_t *v = xmalloc(j->row * sizeof *v);

	for (size_t at = 0; at < j->n; at += j->row) {
		for (size_t i = 0; i < j->row; i++)
			v[i] = (int64_t)i;
		shuffle(&j->r, v, j->row);
		for (size_t i = 0; i < j->row; i++)
			dtype_store(j->dt, j->out, at + i, (double)v[i]);
	}
	free(v);
}

/* n distinct integers of [0, to). */
static int fill_pages(struct job *j, struct err *e)
{
	if (j->to < (int64_t)j->n || j->to > 1 << 28)
		return err_set(e, EX_BADINPUT, "input '%s': %zu distinct pages out of %lld",
			       j->t->name, j->n, (long long)j->to);
	int64_t *v = xmalloc((size_t)j->to * sizeof *v + 1);
	for (int64_t i = 0; i < j->to; i++)
		v[i] = i;
	shuffle(&j->r, v, (size_t)j->to);
	for (size_t i = 0; i < j->n; i++)
		dtype_store(j->dt, j->out, i, (double)v[i]);
	free(v);
	return 0;
}

/* Each row: `row` distinct experts of `to`, drawn one after the other by Zipf weight. Which
 * expert is popular is itself random. */
static int fill_routing(struct job *j, struct err *e)
{
	size_t experts = (size_t)j->to;

	if (j->to < (int64_t)j->row || j->to > 1 << 20)
		return err_set(e, EX_BADINPUT, "input '%s': %zu distinct experts out of %lld",
			       j->t->name, j->row, (long long)j->to);
	double *w = xmalloc(experts * sizeof *w), *left = xmalloc(experts * sizeof *w);
	int64_t *rank = xmalloc(experts * sizeof *rank);
	for (size_t i = 0; i < experts; i++)
		rank[i] = (int64_t)i;
	shuffle(&j->r, rank, experts);
	for (size_t i = 0; i < experts; i++)
		w[rank[i]] = pow((double)i + 1, -j->t->fill.skew);
	for (size_t at = 0; at < j->n; at += j->row) {
		double total = 0;
		memcpy(left, w, experts * sizeof *w);
		for (size_t i = 0; i < experts; i++)
			total += w[i];
		for (size_t i = 0; i < j->row; i++) {
			double x = rng_unit(&j->r) * total;
			size_t k = 0, last = 0;
			for (; k < experts; k++) {
				if (left[k] <= 0)
					continue;
				last = k;
				if (x < left[k])
					break;
				x -= left[k];
			}
			k = k < experts ? k : last;
			total -= left[k];
			left[k] = 0;
			dtype_store(j->dt, j->out, at + i, (double)k);
		}
	}
	free(w);
	free(left);
	free(rank);
	return 0;
}

static int cmp_int64(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Offsets 0 = p[0] <= p[1] ... = to, each step at least `from`: sorted cuts of what is spare. */
static int fill_indptr(struct job *j, struct err *e)
{
	int64_t steps = (int64_t)j->n - 1, spare = j->to - j->from * steps;

	if (steps < 0 || (steps == 0 && j->to != 0) || spare < 0)
		return err_set(e, EX_BADINPUT, "input '%s': no offsets with these steps", j->t->name);
	int64_t *v = xmalloc(j->n * sizeof *v);
	for (int64_t i = 0; i + 1 < steps; i++)
		v[i] = (int64_t)rng_below(&j->r, (uint64_t)spare + 1);
	if (steps > 1)
		qsort(v, (size_t)steps - 1, sizeof *v, cmp_int64);
	dtype_store(j->dt, j->out, 0, 0);
	for (int64_t i = 1; i <= steps; i++)
		dtype_store(j->dt, j->out, (size_t)i,
			    (double)(j->from * i + (i < steps ? v[i - 1] : spare)));
	free(v);
	return 0;
}

/* ---- regimes ---- */

static int is_free(const struct spec_fill *f)
{
	return f->kind == FILL_NORMAL || f->kind == FILL_SPIKES;
}

/* Rows of magnitudes from 2^-6 to 2^2, one element in 512 sixteen times larger, some zeros. */
static void fill_mixed(struct job *j)
{
	double scale = 1;

	for (size_t i = 0; i < j->n; i++) {
		if (i % j->row == 0)
			scale = ldexp(1, (int)rng_below(&j->r, 9) - 6);
		double v = draw_normal(j) * scale;
		uint64_t u = rng_below(&j->r, 512);
		if (u == 0)
			v *= 16;
		else if (u == 1)
			v = 0;
		dtype_store(j->dt, j->out, i, v);
	}
}

static void fill_near_equal(struct job *j)
{
	for (size_t i = 0; i < j->row; i++)
		dtype_store(j->dt, j->out, i, draw_one(j));
	size_t w = dtype_size(j->dt), bytes = j->row * w;
	for (size_t at = j->row; at < j->n; at += j->row) {
		memcpy(j->out + at * w, j->out, bytes);
		for (int k = 0; k < 2; k++)
			dtype_store(j->dt, j->out, at + rng_below(&j->r, j->row), draw_one(j));
	}
}

static void fill_exact(struct job *j, int wide)
{
	uint64_t top = 1ULL << j->bits;

	for (size_t i = 0; i < j->n; i++) {
		double v = wide ? (double)rng_below(&j->r, 2 * top + 1) - (double)top
				: (double)rng_below(&j->r, 3) - 1;
		dtype_store(j->dt, j->out, i, v);
	}
}

static int ceil_log2(int64_t n)
{
	int k = 0;

	while (n > 1 && (1LL << k) < n)
		k++;
	return k;
}

/* Significant bits a wide operand may have so that every sum stays below 2^24, or 0. A sum may
 * run over all of a row, a column, or (reductions) the whole of an input. */
static int exact_bits(const struct spec *s, const struct axes *a)
{
	int64_t longest = 1, floats = 0;
	int bits = 12;

	for (int i = 0; i < s->ninputs; i++) {
		const struct spec_tensor *t = &s->input[i];
		int64_t dims[SPEC_MAX_RANK], n;
		if (t->scalar || !dtype_is_float(t->dtype))
			continue;
		if (!is_free(&t->fill) && t->fill.kind != FILL_UNIFORM)
			return 0;
		if (spec_shape(s, t, a, dims, &n, NULL) < 0)
			return 0;
		floats++;
		int m = dtype_mantissa(t->dtype);
		bits = m < bits ? m : bits;
		for (int d = 0; d < t->rank; d++)
			longest = dims[d] > longest ? dims[d] : longest;
	}
	int room = 23 - ceil_log2(longest);
	bits = room < bits ? room : bits;
	return floats > 0 && bits >= 4 ? bits : 0;
}

uint32_t fill_regimes(const struct spec *s, const struct axes *a)
{
	uint32_t bits = 1u << REGIME_SPEC;
	int floats = 0;

	for (int i = 0; i < s->ninputs; i++) {
		const struct spec_tensor *t = &s->input[i];
		if (t->scalar || !dtype_is_float(t->dtype))
			continue;
		floats++;
		if (is_free(&t->fill))
			bits |= 1u << REGIME_MIXED;
		if (is_free(&t->fill) && t->rank > 1)
			bits |= 1u << REGIME_NEAR_EQUAL;
	}
	if (exact_bits(s, a)) {
		bits |= 1u << REGIME_EXACT_A;
		if (floats > 1)
			bits |= 1u << REGIME_EXACT_B;
	}
	return bits;
}

/* ---- whole tensors ---- */

static int bound(const struct spec *s, const struct axes *a, const struct expr *x, int64_t none,
		 int64_t *out, struct err *e)
{
	struct spec_axes_env env = {s, a};
	struct expr_env xe = {.name = spec_axes_name, .ctx = &env};

	*out = none;
	return x ? expr_eval(x, &xe, out, e) : 0;
}

static int job_open(struct job *j, const struct spec *s, const struct axes *a, int i, struct err *e)
{
	int64_t dims[SPEC_MAX_RANK], n;

	memset(j, 0, sizeof *j);
	j->t = &s->input[i];
	j->dt = j->t->dtype;
	j->bits = exact_bits(s, a);
	if (spec_shape(s, j->t, a, dims, &n, e) < 0 ||
	    bound(s, a, j->t->fill.from, 0, &j->from, e) < 0 ||
	    bound(s, a, j->t->fill.to, 0, &j->to, e) < 0)
		return -1;
	j->n = (size_t)n;
	j->row = j->t->rank ? (size_t)dims[j->t->rank - 1] : 1;
	if (j->t->fill.kind == FILL_INDEX && j->to <= j->from)
		return err_set(e, EX_BADINPUT, "input '%s': empty index range", j->t->name);
	return 0;
}

static int fill_whole(struct job *j, enum fill_how how, struct err *e)
{
	switch (how) {
	case FILL_MIXED: fill_mixed(j); return 0;
	case FILL_NEAR_EQUAL: fill_near_equal(j); return 0;
	case FILL_EXACT_WIDE: fill_exact(j, 1); return 0;
	case FILL_EXACT_SMALL: fill_exact(j, 0); return 0;
	default: break;
	}
	switch (j->t->fill.kind) {
	case FILL_PERMUTATION: fill_permutation(j); return 0;
	case FILL_PAGE_TABLE: return fill_pages(j, e);
	case FILL_SKEWED_ROUTING: return fill_routing(j, e);
	case FILL_INDPTR: return fill_indptr(j, e);
	default: break;
	}
	for (size_t i = 0; i < j->n; i++)
		dtype_store(j->dt, j->out, i, draw_one(j));
	return 0;
}

/* A few random elements to change, keeping what the fill promises. Normals get a large value: its
 * absence must show in the output. Nothing drawn here depends on the tensor's content. */
static int draw_changes(struct job *j, enum fill_regime regime, int wide, struct fill_change *c)
{
	int exact = regime == REGIME_EXACT_A || regime == REGIME_EXACT_B;
	int count = 2 + (int)rng_below(&j->r, 3), n = 0;

	for (int k = 0; k < count && j->n; k++) {
		struct fill_change x = {.kind = FILL_SET, .at = rng_below(&j->r, j->n)};
		size_t base = (size_t)x.at / j->row * j->row;
		double big = (rng_below(&j->r, 2) ? 1 : -1) * (3 + 2 * rng_unit(&j->r));

		switch (j->t->fill.kind) {
		case FILL_PERMUTATION:
		case FILL_SKEWED_ROUTING:
			x.kind = FILL_SWAP;
			x.other = base + rng_below(&j->r, j->row);
			break;
		case FILL_PAGE_TABLE:
			x.kind = FILL_SWAP;
			x.other = rng_below(&j->r, j->n);
			break;
		case FILL_INDPTR:
		case FILL_CONSTANT:
		case FILL_ZEROS: continue;
		default:
			if (exact && dtype_is_float(j->dt)) {
				x.kind = FILL_FLIP;
				x.value = wide ? ldexp(1, j->bits) : 1;
			} else if (is_free(&j->t->fill)) {
				x.value = j->t->fill.mean + j->t->fill.std * big;
			} else {
				x.value = draw_one(j);
			}
		}
		c[n++] = x;
	}
	return n;
}

static void apply(const struct job *j, const struct fill_change *c)
{
	size_t w = dtype_size(j->dt), a = (size_t)c->at * w, b = (size_t)c->other * w;
	uint8_t x[8];

	if (c->kind == FILL_SWAP) {
		memcpy(x, j->out + a, w);
		memcpy(j->out + a, j->out + b, w);
		memcpy(j->out + b, x, w);
		return;
	}
	double v = c->value;
	if (c->kind == FILL_FLIP && dtype_load(j->dt, j->out, (size_t)c->at) > 0)
		v = -v;
	dtype_store(j->dt, j->out, (size_t)c->at, v);
}

/* The wide operand of EXACT_A is the first float tensor; of EXACT_B the second. */
static int is_wide(const struct spec *s, int i, enum fill_regime regime)
{
	int nth = 0;

	for (int k = 0; k < i; k++)
		nth += !s->input[k].scalar && dtype_is_float(s->input[k].dtype);
	return nth == (regime == REGIME_EXACT_B ? 1 : 0);
}

int fill_input(const struct spec *s, const struct axes *a, int i, enum fill_regime regime,
	       const uint8_t set_key[32], const uint8_t *rep_key, void *out, struct err *e)
{
	struct job j;
	char label[160];
	struct fill_way w;

	if (job_open(&j, s, a, i, e) < 0 || fill_describe(s, a, i, regime, &w, e) < 0)
		return -1;
	j.out = out;
	int r = 0;
	if (set_key) {
		snprintf(label, sizeof label, "fill:%s:%s", s->input[i].name, fill_regime_name(regime));
		rng_open(&j.r, set_key, label);
		r = j.n ? fill_whole(&j, w.how, e) : 0;
		rng_close(&j.r);
	}
	if (r == 0 && rep_key) {
		struct fill_change c[FILL_CHANGES];
		int n = 0;
		r = fill_changes(s, a, i, regime, rep_key, c, &n, e);
		for (int k = 0; k < n; k++)
			apply(&j, &c[k]);
	}
	return r;
}

int fill_changes(const struct spec *s, const struct axes *a, int i, enum fill_regime regime,
		 const uint8_t rep_key[32], struct fill_change out[FILL_CHANGES], int *n, struct err *e)
{
	struct job j;
	char label[160];

	if (job_open(&j, s, a, i, e) < 0)
		return -1;
	snprintf(label, sizeof label, "perturb:%s", s->input[i].name);
	rng_open(&j.r, rep_key, label);
	*n = draw_changes(&j, regime, is_wide(s, i, regime), out);
	rng_close(&j.r);
	return 0;
}

int fill_describe(const struct spec *s, const struct axes *a, int i, enum fill_regime regime,
		  struct fill_way *w, struct err *e)
{
	struct job j;

	if (job_open(&j, s, a, i, e) < 0)
		return -1;
	const struct spec_fill *f = &j.t->fill;
	int is_float = dtype_is_float(j.dt), exact = regime == REGIME_EXACT_A || regime == REGIME_EXACT_B;
	*w = (struct fill_way){.n = j.n, .row = j.row, .from = j.from, .to = j.to, .bits = j.bits};
	if (f->kind == FILL_PERMUTATION || f->kind == FILL_PAGE_TABLE || f->kind == FILL_SKEWED_ROUTING ||
	    f->kind == FILL_INDPTR)
		w->how = FILL_STRUCTURED;
	else if (is_float && exact)
		w->how = is_wide(s, i, regime) ? FILL_EXACT_WIDE : FILL_EXACT_SMALL;
	else if (is_float && is_free(f) && regime == REGIME_MIXED)
		w->how = FILL_MIXED;
	else if (is_float && is_free(f) && regime == REGIME_NEAR_EQUAL && j.t->rank > 1)
		w->how = FILL_NEAR_EQUAL;
	return 0;
}

int fill_scalar(const struct spec *s, const struct axes *a, int i, enum fill_regime regime,
		const uint8_t rep_key[32], double *out, struct err *e)
{
	struct job j;
	char label[160];
	uint8_t cell[8] = {0};

	if (job_open(&j, s, a, i, e) < 0)
		return -1;
	j.n = j.row = 1;
	snprintf(label, sizeof label, "scalar:%s", s->input[i].name);
	rng_open(&j.r, rep_key, label);
	double v = draw_one(&j);
	rng_close(&j.r);
	if (regime == REGIME_EXACT_A || regime == REGIME_EXACT_B)
		v = v < 0 ? -1 : 1; /* scales must not cost bits */
	dtype_store(j.dt, cell, 0, v);
	*out = dtype_load(j.dt, cell, 0);
	return 0;
}
