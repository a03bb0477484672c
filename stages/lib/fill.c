/*
 * fill.c - write the inputs of a rep from a key. See fill.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fill_part.h"
#include "defence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *fill_regime_name(enum fill_regime r)
{
	static const char *const NAME[] = {"spec", "mixed", "near_equal", "exact_a", "exact_b"};

	return r < REGIME_COUNT ? NAME[r] : "?";
}

/* ---- draws of single elements ---- */

static double draw_normal(struct fill_job *j)
{
	const struct spec_fill *f = &j->t->fill;

	return f->mean + f->std * rng_normal(&j->r);
}

static double draw_uniform(struct fill_job *j)
{
	const struct spec_fill *f = &j->t->fill;

	if (dtype_is_float(j->dt))
		return f->low + (f->high - f->low) * rng_unit(&j->r);
	return f->low + (double)rng_below(&j->r, (uint64_t)(f->high - f->low));
}

static double draw_one(struct fill_job *j)
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

/* How others fill: a pattern of period 13, or a generator that a kernel can run itself. Both are what
 * tests of the judge put in the place of keyed draws. */
static double weak_draw(struct fill_job *j, size_t i)
{
	uint32_t x = (uint32_t)i * 2654435761u + 12345u;

	if (!DEFENCE("fill.entropy"))
		return (double)(i % 13) / 4 - 1.5;
	if (!DEFENCE("fill.keyed"))
		return (double)(x >> 8) * 0x1p-23 - 1;
	return draw_one(j);
}

/* ---- regimes ---- */

static int is_free(const struct spec_fill *f)
{
	return f->kind == FILL_NORMAL || f->kind == FILL_SPIKES;
}

/* Elements of a row that are loud: `n` of them, `step` apart, of one sign unless that is 0. */
struct loud {
	size_t from, step, n;
	int sign;
};

/* In three rows of four the loud ones are few and lie together, or on a comb: whoever keeps too few of
 * each part of a row, looks at a sample, or forgets what was long ago, misses them. */
static struct loud draw_loud(struct fill_job *j)
{
	struct loud s = {0, 1, j->row, 0};
	unsigned most = 0;

	if (j->row < 32 || rng_below(&j->r, 4) == 0 || !DEFENCE("fill.stretch"))
		return s;
	while (j->row >> (most + 1) >= 8 && most < 10)
		most++;
	uint64_t pick = rng_below(&j->r, 4), any = rng_below(&j->r, most + 1);
	unsigned k = pick < 2 ? 0 : pick == 2 ? most : (unsigned)any;
	s.step = (size_t)1 << k;
	s.n = j->row >> k >> (1 + rng_below(&j->r, 7));
	s.n = s.n < 8 ? 8 : s.n;
	s.from = (size_t)rng_below(&j->r, j->row - (s.n - 1) * s.step);
	s.sign = rng_below(&j->r, 2) ? 1 : -1;
	return s;
}

/* Rows of magnitudes from 2^-6 to 2^2, a sixteenth where they are quiet; one element in 512 sixteen times
 * larger, some zeros. */
static void fill_mixed(struct fill_job *j)
{
	struct loud s = {0};
	double scale = 1;

	for (size_t i = 0; i < j->n; i++) {
		size_t at = i % j->row;
		if (at == 0) {
			scale = ldexp(1, (int)rng_below(&j->r, 9) - 6);
			s = draw_loud(j);
		}
		double v = draw_normal(j) * scale;
		int loud = at >= s.from && (at - s.from) % s.step == 0 && (at - s.from) / s.step < s.n;
		v = !loud ? v / 16 : s.sign ? s.sign * fabs(v) : v;
		uint64_t u = rng_below(&j->r, 512);
		if (u == 0)
			v *= 16;
		else if (u == 1)
			v = 0;
		dtype_store(j->dt, j->out, i, v);
	}
}

static void fill_near_equal(struct fill_job *j)
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

static void fill_exact(struct fill_job *j, int wide)
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

/* Significant bits a wide operand may have so that every sum stays below 2^24, or 0: as many as fit, so
 * that operands or sums of 16 bits show. A sum may run over all of a row, a column, or (reductions) the
 * whole of an input. */
static int exact_bits(const struct spec *s, const struct axes *a)
{
	int64_t longest = 1, floats = 0;
	int bits = 17;

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
		int m = s->tf32 && t->dtype == DT_F32 ? 11 : dtype_mantissa(t->dtype);
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
		if (is_free(&t->fill) && DEFENCE("regime.mixed"))
			bits |= 1u << REGIME_MIXED;
		if (is_free(&t->fill) && t->rank > 1 && DEFENCE("regime.near_equal"))
			bits |= 1u << REGIME_NEAR_EQUAL;
	}
	if (exact_bits(s, a) && DEFENCE("regime.exact")) {
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

static int job_open(struct fill_job *j, const struct spec *s, const struct axes *a, int i, struct err *e)
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

static int fill_whole(struct fill_job *j, enum fill_how how, struct err *e)
{
	switch (how) {
	case FILL_MIXED: fill_mixed(j); return 0;
	case FILL_NEAR_EQUAL: fill_near_equal(j); return 0;
	case FILL_EXACT_WIDE: fill_exact(j, 1); return 0;
	case FILL_EXACT_SMALL: fill_exact(j, 0); return 0;
	default: break;
	}
	if (how == FILL_STRUCTURED)
		return fill_structured(j, e);
	for (size_t i = 0; i < j->n; i++)
		dtype_store(j->dt, j->out, i, weak_draw(j, i));
	return 0;
}

/* A few random elements to change, keeping what the fill promises. Normals get a large value: its
 * absence must show in the output. Nothing drawn here depends on the tensor's content. */
static int draw_changes(struct fill_job *j, enum fill_regime regime, int wide, struct fill_change *c)
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

static void apply(const struct fill_job *j, const struct fill_change *c)
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
	struct fill_job j;
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
	struct fill_job j;
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
	struct fill_job j;

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
	struct fill_job j;
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
	if (!DEFENCE("fresh.scalars"))
		v = s->input[i].fill.low;
	dtype_store(j.dt, cell, 0, v);
	*out = dtype_load(j.dt, cell, 0);
	return 0;
}
