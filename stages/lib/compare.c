/*
 * compare.c - is an output right? See compare.h.
 *
 * Every test is written as !(error <= bound), so that a NaN on either side fails. This file is
 * compiled without any fast-math flag; ieee.h proves it at the start of the checker.
 *
 * SPDX-License-Identifier: MIT
 */
#include "compare.h"
#include "defence.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Rows shorter than this are merged: the error of three elements is luck, not precision. */
enum { GROUP = 128 };

void compare_begin(struct compare_result *r)
{
	memset(r, 0, sizeof *r);
	r->pass = 1;
	strcpy(r->code, "ok");
}

void compare_fail(struct compare_result *r, const char *code, const char *output)
{
	if (!r->pass)
		return;
	r->pass = 0;
	snprintf(r->code, sizeof r->code, "%s", code);
	snprintf(r->output, sizeof r->output, "%s", output);
}

static double unit(enum dtype t)
{
	return dtype_is_float(t) ? ldexp(1, -dtype_mantissa(t)) : 0;
}

/*
 * What honest kernels of a compute class need, with room: 256 roundings of the accumulator (a
 * sum of 4,096 in any order stays within 100), four of a narrower intermediate, one of the
 * output. The cheapest cheats are a factor of 50 and more above (make check prints both).
 */
void compare_defaults(const struct spec *s, const struct spec_tensor *out, struct compare_bounds *b)
{
	const struct spec_compare *c = &out->compare;
	double eps = unit(out->dtype), noise = 256 * unit(s->accumulator);

	if (unit(s->intermediate) > unit(s->accumulator))
		noise += 4 * unit(s->intermediate);
	if (s->tf32)
		noise += 4 * 0x1p-11;
	b->rtol = isnan(c->rtol) ? 2 * eps + noise : c->rtol;
	b->atol_rms = isnan(c->atol_rms) ? eps + noise : c->atol_rms;
	b->rel_l2 = isnan(c->rel_l2) ? eps + noise / 2 : c->rel_l2;
	b->row_rel_l2 = isnan(c->row_rel_l2) ? 2 * b->rel_l2 : c->row_rel_l2;
	b->error_ratio = isnan(c->error_ratio) ? 8 : c->error_ratio;
	/* A spec that sets its own bounds has its own idea of precision. */
	b->bias = isnan(c->rtol) && isnan(c->rel_l2) ? noise : INFINITY;
	b->ratio_floor = eps > 32 * unit(s->accumulator) ? eps : 32 * unit(s->accumulator);
}

static double ref_at(const struct compare_side *s, size_t i)
{
	return dtype_is_float(s->dtype) ? ((const double *)s->ref)[i] : dtype_load(s->dtype, s->ref, i);
}

static double round_to(enum dtype t, double v)
{
	uint64_t cell = 0;

	dtype_store(t, &cell, 0, v);
	return dtype_load(t, &cell, 0);
}

/* A reference beyond the range of the type, or infinite by contract, wants that infinity. NaN
 * in the reference is for the caller to refuse before. */
static double error_of(double got, double ref, double rounded)
{
	if (isinf(rounded))
		return got == rounded ? 0 : INFINITY;
	if (!isfinite(got))
		return INFINITY;
	return fabs(got - ref);
}

struct sums {
	double err2, ref2, base2;
	double push, quanta2; /* see walk_bias */
	size_t n, same;
};

struct walk {
	const struct compare_bounds *b;
	const struct compare_side *s;
	double rms;              /* of the whole reference */
	struct compare_figures f;
	double ref_before;
	int narrow;
	struct sums all;
};

/* What candidate and rounded reference have in common along the row, and how much of it single
 * roundings that fell the other way could make. */
static void walk_bias(struct walk *w, struct sums *g, double got, double ref)
{
	double rounded = round_to(w->s->dtype, ref), ulp = dtype_ulp(w->s->dtype, ref);

	g->same += g->n && ref == w->ref_before;
	w->ref_before = ref;
	if (!isfinite(got) || !isfinite(rounded))
		return;
	g->push += (got - rounded) * ref;
	g->quanta2 += ulp * ulp * ref * ref;
}

/* Seven standard deviations of independent roundings. Rows that repeat one value have no
 * independent ones. */
static int is_biased(const struct walk *w, const struct sums *g)
{
	/* A row of little content may be what is left of large terms: errors scale with those. */
	double scale = fmax(sqrt(g->ref2), sqrt((double)g->n) * w->rms);
	double most = w->b->bias * sqrt(g->ref2) * scale + 7 * sqrt(g->quanta2 / 12);

	return w->narrow && 2 * g->same < g->n && !(fabs(g->push) <= most);
}

static void walk_element(struct walk *w, struct sums *g, size_t i)
{
	const struct compare_side *s = w->s;
	double ref = ((const double *)s->ref)[i];
	double got = s->dtype == DT_F32 ? (double)((const float *)s->got)[i]
					: dtype_load(s->dtype, s->got, i);
	/* Rounding matters beyond the range of a type (448 is the smallest) and to exactness. */
	double rounded = s->exact || !(fabs(ref) <= 448) ? round_to(s->dtype, ref) : ref;
	double err = error_of(got, ref, rounded);
	double bound = w->b->atol_rms * w->rms + w->b->rtol * fabs(ref);

	/* An infinite reference in a type without infinity: nothing is right, least of all by an
	 * infinite bound. */
	if (isinf(rounded) || isinf(ref)) {
		bound = 0;
		ref = 0;
	}
	if (s->exact) { /* the sign of zero does not matter */
		err = got == rounded ? 0 : INFINITY;
		bound = 0;
	}
	if (!(err <= bound && err < INFINITY)) {
		w->f.wrong++;
		w->f.nonfinite += isfinite(got) ? 0 : 1;
		w->f.nan += isnan(got) ? 1 : 0;
		size_t k = dtype_size(s->dtype);
		if (s->poison)
			w->f.poisoned += !memcmp((const char *)s->got + i * k,
					       (const char *)s->poison + i * k, k);
	}
	double over = err == 0 ? 0 : bound > 0 ? err / bound : INFINITY;
	if (!(over <= w->f.worst))
		w->f.worst = over;
	if (w->narrow)
		walk_bias(w, g, got, ref);
	g->err2 += err * err;
	g->ref2 += ref * ref;
	if (s->base) {
		double be = error_of(dtype_load(s->dtype, s->base, i), ref, rounded);
		g->base2 += isfinite(be) ? be * be : 0;
	}
	g->n++;
}

/* Close a group of rows: relative L2, and the error ratio. Its floor: half a unit in the last place
 * of a typical element, below which nobody can be better, and 32 roundings of the accumulator,
 * because a plain loop over a row of a thousand equal signs is honest and drifts that far (measured:
 * 3.6e-6 against the tree sum's 9e-8 for softmax, 1,024 columns, near-equal rows). A row in the next
 * narrower precision (tf32, fp16) stands at 1e-4 and above, 20 times over floor times ratio. */
static void walk_group(struct walk *w, struct sums *g)
{
	double n = (double)g->n;
	double typical = sqrt(g->ref2 / n), floor_rms = w->b->ratio_floor * typical;
	double l2 = g->err2 == 0 ? 0 : sqrt(g->err2) / sqrt(g->ref2 > 0 ? g->ref2 : n * w->rms * w->rms);

	if (!(l2 <= w->f.row_l2))
		w->f.row_l2 = l2;
	if (w->s->base && g->err2 > 0) {
		double base = sqrt(g->base2 / n);
		double ratio = sqrt(g->err2 / n) / (base > floor_rms ? base : floor_rms);
		if (!(ratio <= w->f.ratio))
			w->f.ratio = ratio;
	}
	w->f.biased |= is_biased(w, g);
	w->all.err2 += g->err2;
	w->all.ref2 += g->ref2;
	w->all.n += g->n;
	memset(g, 0, sizeof *g);
}

static void keep(double *have, double v)
{
	if (!(v <= *have))
		*have = v;
}

/* What single elements say. */
static const char *element_rule(const struct compare_side *s, const struct compare_figures *f)
{
	if (f->poisoned && f->poisoned * 2 >= f->wrong)
		return "judge.unwritten";
	if (f->nan)
		return "judge.nan";
	if (f->nonfinite)
		return "judge.nonfinite";
	return s->exact ? "judge.exact" : "judge.element";
}

/* Without its rule a value that is no number is taken as others take it: it is no error where one
 * asks `error > bound`, or scales the bound by what is judged. */
static int excused(const struct compare_figures *f)
{
	uint64_t inf = f->nonfinite - f->nan;

	return (!DEFENCE("judge.nan") && f->nan && f->nan == f->wrong) ||
	       (!DEFENCE("judge.nonfinite") && inf && inf == f->wrong);
}

static const char *rule_broken(const struct compare_bounds *b, const struct compare_side *s,
			       const struct compare_figures *f)
{
	int big = s->n >= GROUP / 8; /* relative L2 of a handful of elements is their condition */

	if (excused(f))
		return NULL;
	if (f->wrong && (s->exact ? DEFENCE("judge.exact") : DEFENCE("judge.element")))
		return element_rule(s, f);
	if (s->exact)
		return NULL;
	if (big && !(f->rel_l2 <= b->rel_l2) && DEFENCE("judge.rel_l2"))
		return "judge.rel_l2";
	if (big && !(f->row_l2 <= b->row_rel_l2) && DEFENCE("judge.row"))
		return "judge.row";
	if (s->base && !(f->ratio <= b->error_ratio * s->slack) && DEFENCE("judge.error_ratio"))
		return "judge.error_ratio";
	return f->biased && DEFENCE("judge.bias") ? "judge.bias" : NULL;
}

void compare_conclude(struct compare_result *r, const struct compare_bounds *b,
		      const struct compare_side *s, const struct compare_figures *f)
{
	const char *code = rule_broken(b, s, f);

	keep(&r->worst, f->worst);
	keep(&r->rel_l2, f->rel_l2);
	keep(&r->row_l2, f->row_l2);
	keep(&r->ratio, f->ratio);
	if (code && r->pass) {
		r->wrong = (double)f->wrong / (double)s->n;
		r->poison = (double)f->poisoned / (double)s->n;
		compare_fail(r, code, s->name);
	}
}

size_t compare_group(size_t n, size_t row)
{
	size_t group = row;

	while (group < GROUP && group < n)
		group += row;
	return group;
}

int compare_narrow(const struct compare_bounds *b, enum dtype t, size_t n, int exact)
{
	return !exact && dtype_mantissa(t) < 24 && n >= GROUP && isfinite(b->bias);
}

static int reference_rms(const struct compare_side *s, double *rms)
{
	double sum = 0;

	for (size_t i = 0; i < s->n; i++) {
		double v = ref_at(s, i);
		if (isnan(v))
			return -1;
		sum += isinf(v) ? 0 : v * v;
	}
	*rms = sqrt(sum / (double)s->n);
	return isfinite(*rms) ? 0 : -1; /* beyond 1e154 every bound would be infinite */
}

static void compare_floats(struct compare_result *r, const struct compare_bounds *b,
			   const struct compare_side *s)
{
	struct walk w = {.b = b, .s = s};
	struct sums g = {0};

	w.narrow = compare_narrow(b, s->dtype, s->n, s->exact);
	if (reference_rms(s, &w.rms) < 0) {
		compare_fail(r, "judge.reference", s->name);
		return;
	}
	size_t group = compare_group(s->n, s->row);
	for (size_t i = 0; i < s->n; i++) {
		walk_element(&w, &g, i);
		/* A short tail joins the group before it. */
		if (g.n >= group && s->n - i - 1 >= group)
			walk_group(&w, &g);
	}
	if (g.n)
		walk_group(&w, &g);
	w.f.rel_l2 = w.all.err2 == 0 ? 0 : sqrt(w.all.err2) / sqrt(w.all.ref2);
	compare_conclude(r, b, s, &w.f);
}

/* Integers by their own type: a double would merge neighbours beyond 2^53. */
static void compare_integers(struct compare_result *r, const struct compare_side *s)
{
	size_t wrong = 0, poisoned = 0, k = dtype_size(s->dtype);

	for (size_t i = 0; i < s->n; i++) {
		const char *got = (const char *)s->got + i * k, *ref = (const char *)s->ref + i * k;
		if (!memcmp(got, ref, k))
			continue;
		wrong++;
		poisoned += s->poison && !memcmp(got, (const char *)s->poison + i * k, k);
	}
	compare_conclude_integers(r, s, wrong, poisoned);
}

void compare_conclude_integers(struct compare_result *r, const struct compare_side *s, uint64_t wrong,
			       uint64_t poisoned)
{
	if (!wrong || !DEFENCE("judge.exact"))
		return;
	keep(&r->worst, INFINITY);
	if (r->pass) {
		r->wrong = (double)wrong / (double)s->n;
		r->poison = (double)poisoned / (double)s->n;
	}
	compare_fail(r, poisoned == wrong ? "judge.unwritten" : "judge.exact", s->name);
}

void compare_output(struct compare_result *r, const struct spec_compare *c,
		    const struct compare_bounds *b, const struct compare_side *s)
{
	if (s->n == 0)
		return;
	if (c->kind == COMPARE_TOLERANCE && dtype_is_float(s->dtype)) {
		compare_floats(r, b, s);
	} else if (c->kind == COMPARE_EXACT && dtype_is_float(s->dtype)) {
		struct compare_side exact = *s;
		exact.exact = 1;
		compare_floats(r, b, &exact);
	} else if (c->kind == COMPARE_TOLERANCE || c->kind == COMPARE_EXACT) {
		compare_integers(r, s);
	} else {
		double wrong = 0;
		const char *code = compare_set(c, s, &wrong);
		if (code && r->pass)
			r->wrong = wrong;
		if (code)
			compare_fail(r, code, s->name);
	}
}
