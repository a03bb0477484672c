/*
 * spec_draw.c - the draw of held-out shapes, and the edges of their ranges.
 *
 * Reads a parsed spec and a stream of words; deterministic in both. Draws for a purpose: plain ones
 * are uniform (what is timed should be typical), probes gather where kernels go wrong: at powers of
 * two, at multiples of usual tiles, one step to either side of them, at the ends of the range.
 *
 * SPDX-License-Identifier: MIT
 */
#include "spec_parse.h"

#define DRAWS 10000

void spec_consts(const struct spec *s, struct axes *a)
{
	for (int i = 0; i < s->naxes; i++)
		a->v[i] = s->axis[i].is_const ? s->axis[i].value : 0;
}

/* Uniform in [0, n), n > 0, unbiased. */
static uint64_t below(uint64_t (*next)(void *), void *ctx, uint64_t n)
{
	uint64_t limit = UINT64_MAX - UINT64_MAX % n, v;
	do
		v = next(ctx);
	while (v >= limit);
	return v % n;
}

/* A power of two, or a multiple of a usual tile, within the range as far as there are any. */
static int64_t round_value(const struct spec_range *r, uint64_t (*next)(void *), void *ctx)
{
	int low = 0, high = 0, tiles = 1;
	if (below(next, ctx, 5) < 2) {
		while (low < 40 && (int64_t)2 << low <= r->min)
			low++;
		for (high = low; high < 40 && (int64_t)1 << high < r->max;)
			high++;
		return (int64_t)1 << (low + (int)below(next, ctx, (uint64_t)(high - low) + 1));
	}
	while (tiles < 5 && (int64_t)8 << tiles <= r->max)
		tiles++;
	int64_t tile = (int64_t)8 << below(next, ctx, (uint64_t)tiles);
	int64_t first = r->min / tile, last = r->max / tile;
	return (first + (int64_t)below(next, ctx, (uint64_t)(last - first) + 1)) * tile;
}

/* `off` steps away from such a value; clamped to the range. */
static int64_t near_value(const struct spec_range *r, int off, uint64_t (*next)(void *), void *ctx)
{
	int64_t lo = (r->min - 1) / r->multiple_of + 1, hi = r->max / r->multiple_of;
	int64_t v = round_value(r, next, ctx) / r->multiple_of + off;
	return (v < lo ? lo : v > hi ? hi : v) * r->multiple_of;
}

static int64_t draw_axis(const struct spec_range *r, uint64_t (*next)(void *), void *ctx)
{
	if (r->nvalues)
		return r->value[below(next, ctx, (uint64_t)r->nvalues)];
	int64_t lo = (r->min - 1) / r->multiple_of + 1, hi = r->max / r->multiple_of;
	return (lo + (int64_t)below(next, ctx, (uint64_t)(hi - lo) + 1)) * r->multiple_of;
}

/* An axis of a probe. `all`: 1 or 2 when every axis of this shape is to lie just below or just above
 * a round value (a bug may need two tails at once), else each axis for itself: half of them near
 * something, one in sixteen at an end, the rest anywhere. */
static int64_t probe_axis(const struct spec_range *r, uint64_t all, uint64_t (*next)(void *), void *ctx)
{
	if (r->nvalues)
		return draw_axis(r, next, ctx);
	if (all == 1 || all == 2)
		return near_value(r, all == 1 ? -1 : 1, next, ctx);
	uint64_t kind = below(next, ctx, 16);
	if (kind < 8)
		return near_value(r, (int)below(next, ctx, 3) - 1, next, ctx);
	if (kind == 8)
		return (below(next, ctx, 2) ? r->max / r->multiple_of : (r->min - 1) / r->multiple_of + 1) *
		       r->multiple_of;
	return draw_axis(r, next, ctx);
}

static int derive_axes(const struct spec *s, const struct spec_range *r, struct axes *a)
{
	struct spec_axes_env ctx = {s, a};
	struct expr_env env = {spec_axes_name, NULL, &ctx};
	for (int i = 0; i < s->naxes; i++) {
		if (s->axis[i].is_const || !r[i].equals)
			continue;
		if (expr_eval(r[i].equals, &env, &a->v[i], NULL))
			return -1;
	}
	return 0;
}

int spec_draw(const struct spec *s, int emu, int probe, uint64_t (*next)(void *ctx), void *ctx,
	      struct axes *out, struct err *e)
{
	const struct spec_range *r = emu ? s->held_out_emu : s->held_out;
	for (int i = 0; i < s->naxes; i++)
		if (!s->axis[i].is_const && !r[i].set)
			return err_set(e, EX_BADINPUT, "%s: workloads.held_out: there is none", s->file);
	for (int k = 0; k < DRAWS; k++) {
		uint64_t all = probe ? below(next, ctx, 6) : 0;
		spec_consts(s, out);
		for (int i = 0; i < s->naxes; i++)
			if (!s->axis[i].is_const && !r[i].equals)
				out->v[i] = probe ? probe_axis(&r[i], all, next, ctx)
						  : draw_axis(&r[i], next, ctx);
		if (!derive_axes(s, r, out) && !spec_axes_check(s, out, NULL))
			return 0;
	}
	return err_set(e, EX_BADINPUT, "%s: workloads.held_out: no draw of %d satisfies the constraints", s->file,
		       DRAWS);
}

/* The value of a range `step` allowed values away from one of its ends. */
static int64_t end_of(const struct spec_range *r, int high, int64_t step)
{
	int64_t lo = (r->min - 1) / r->multiple_of + 1, hi = r->max / r->multiple_of, v = high ? hi - step : lo + step;
	if (!r->nvalues)
		return (v < lo ? lo : v > hi ? hi : v) * r->multiple_of;
	v = r->value[0];
	for (int i = 1; i < r->nvalues; i++)
		if (high ? r->value[i] > v : r->value[i] < v)
			v = r->value[i];
	return v;
}

int spec_edge(const struct spec *s, int emu, int k, struct axes *out)
{
	enum { STEPS = 64 };
	const struct spec_range *r = emu ? s->held_out_emu : s->held_out;
	int odd = k / 2 - 1, high = k % 2, vars = 0; /* edges 0 and 1: no odd one out */
	for (int i = 0; i < s->naxes; i++) {
		if (s->axis[i].is_const)
			continue;
		if (!r[i].set)
			return -1;
		vars += !r[i].equals;
	}
	if (odd >= vars || !vars || (k > 1 && vars == 1))
		return -1;
	for (int64_t step = 0; step < STEPS; step++) {
		spec_consts(s, out);
		for (int i = 0, n = 0; i < s->naxes; i++)
			if (!s->axis[i].is_const && !r[i].equals)
				out->v[i] = end_of(&r[i], high ^ (n++ == odd), step);
		if (!derive_axes(s, r, out) && !spec_axes_check(s, out, NULL))
			return 1;
	}
	return 0;
}

/* Step k away from `from`: 1, 3, 5, 7, then twice those, and so on, to either side. 0 where there is none. */
static int64_t step_from(const struct spec_range *r, int64_t from, int k)
{
	if (r->nvalues)
		return k < r->nvalues && r->value[k] != from ? r->value[k] : 0;
	int64_t by = (int64_t)(2 * (k / 2 % 4) + 1) << (k / 8);
	int64_t v = k % 2 ? from + by * r->multiple_of : from - by * r->multiple_of;
	return v < r->min || v > r->max || v % r->multiple_of ? 0 : v;
}

int spec_near(const struct spec *s, int emu, const struct axes *from, int axis, int k, struct axes *out)
{
	const struct spec_range *r = emu ? s->held_out_emu : s->held_out;
	enum { DOUBLINGS = 40 };
	int most = r[axis].nvalues ? r[axis].nvalues : 8 * DOUBLINGS;
	if (!r[axis].set || r[axis].equals || s->axis[axis].is_const || k >= most)
		return -1;
	*out = *from;
	out->v[axis] = step_from(&r[axis], from->v[axis], k);
	return out->v[axis] > 0 && !derive_axes(s, r, out) && !spec_axes_check(s, out, NULL);
}
