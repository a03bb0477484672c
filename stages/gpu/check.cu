/*
 * check.cu - the checker's work on a GPU: inputs, poison and guards, comparison, hashes.
 *
 * Random words come from Philox4x32-10 under 128 bits of HMAC-SHA-256 for each purpose (set and
 * input, rep and buffer, ...). Philox is no cipher, and need not be one: all that candidate code could
 * work out from the words it sees is the key of words that it sees already. The next rep's key is
 * another HMAC of a key that never comes here.
 *
 * Sums are added in a fixed order (chunk by warp, then CK_FOLD at a time), counts and maxima do not
 * depend on order: the same data gives the same figures. Only + - * / sqrt and bit operations are
 * used, compiled without contraction: the host's build gives the same bits where it adds in the same
 * order. Rules are those of stages/lib/compare.c; the unit test holds the two against each other.
 *
 * Written in what C and CUDA have in common, for that test. Elsewhere than on a GPU one thread does
 * a warp's work.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_CHECK_H
#include "check.h"
#endif
#ifndef TS_CHECK_BASE_H
#include "check_base.h"
#endif

#ifdef __cplusplus
#define KERNEL extern "C" __global__ __launch_bounds__(CK_THREADS) void
#else
#define KERNEL static void
#endif
#define RANK ((check_u64)blockIdx.x * blockDim.x + threadIdx.x)
#define COUNT ((check_u64)gridDim.x * blockDim.x)

/* ---- inputs ---- */

enum { TAG_DRAW, TAG_ROW, TAG_PLACE, TAG_FIRST, TAG_SECOND };

DEVICE double draw(const struct check_fill *j, check_u32 tag, check_u64 i)
{
	check_u32 w[4];

	philox(&j->key, tag, i, w);
	check_u64 a = join(w[0], w[1]), b = join(w[2], w[3]);
	switch (j->kind) {
	case CK_NORMAL: return j->mean + j->std * normal(a);
	case CK_SPIKES: {
		double v = j->mean + j->std * normal(a);
		return unit(b) < j->rate ? v * j->scale : v;
	}
	case CK_UNIFORM: return j->low + (j->high - j->low) * unit(a);
	case CK_INTEGER: return (double)(j->from + (check_i64)below(a, j->span));
	default: return j->value;
	}
}

/* What becomes of v as element c of a row that is loud in few places (draw_loud in fill.c). */
DEVICE double draw_loud(const struct check_fill *j, check_u64 row, check_u64 c, check_u32 coin, double v)
{
	check_u32 w[4], most = 0;

	if (j->row < 32 || coin % 4 == 0)
		return v;
	philox(&j->key, TAG_PLACE, row, w);
	while (j->row >> (most + 1) >= 8 && most < 10)
		most++;
	check_u32 pick = coin / 4 % 4, k = pick < 2 ? 0 : pick == 2 ? most : w[0] % (most + 1);
	check_u64 step = 1ull << k, n = j->row >> k >> (1 + w[1] % 7);
	n = n < 8 ? 8 : n;
	check_u64 from = below(join(w[2], w[3]), j->row - (n - 1) * step);
	if (c < from || (c - from) % step || (c - from) / step >= n)
		return v / 16;
	return coin / 16 % 2 ? fabs(v) : -fabs(v);
}

/* Magnitudes from 2^-6 to 2^2 by row, one element in 512 sixteen times larger, some zeros. */
DEVICE double draw_mixed(const struct check_fill *j, check_u64 i)
{
	struct check_fill plain = *j;
	check_u32 w[4], r[4];

	philox(&j->key, TAG_DRAW, i, w);
	philox(&j->key, TAG_ROW, i / j->row, r);
	plain.kind = CK_NORMAL; /* of spikes, the plain part */
	double v = draw(&plain, TAG_DRAW, i) * power2((int)below(join(r[0], r[1]), 9) - 6);
	v = draw_loud(j, i / j->row, i % j->row, r[2], v);
	check_u64 u = below(join(w[2], w[3]), 512);
	return u == 0 ? v * 16 : u == 1 ? 0 : v;
}

/* Every row is the first one but for two elements. */
DEVICE double draw_near(const struct check_fill *j, check_u64 i)
{
	check_u64 r = i / j->row, c = i % j->row;
	check_u32 w[4];

	if (r) {
		philox(&j->key, TAG_PLACE, r, w);
		if (c == below(join(w[2], w[3]), j->row))
			return draw(j, TAG_SECOND, r);
		if (c == below(join(w[0], w[1]), j->row))
			return draw(j, TAG_FIRST, r);
	}
	return draw(j, TAG_DRAW, c);
}

DEVICE double draw_exact(const struct check_fill *j, check_u64 i)
{
	check_u64 top = j->mode == CK_EXACT_WIDE ? 1ull << j->bits : 1;
	check_u32 w[4];

	philox(&j->key, TAG_DRAW, i, w);
	return (double)below(join(w[0], w[1]), 2 * top + 1) - (double)top;
}

KERNEL check_fill(const struct check_fill j)
{
	for (check_u64 i = RANK; i < j.n; i += COUNT) {
		double v;
		switch (j.mode) {
		case CK_MIXED: v = draw_mixed(&j, i); break;
		case CK_NEAR_EQUAL: v = draw_near(&j, i); break;
		case CK_EXACT_WIDE:
		case CK_EXACT_SMALL: v = draw_exact(&j, i); break;
		default: v = draw(&j, TAG_DRAW, i); break;
		}
		store(j.dtype, j.out, i, v);
	}
}

DEVICE void change(const struct check_op *op)
{
	unsigned char *p = (unsigned char *)op->base;
	check_u64 w = width_of(op->dtype);

	if (op->kind == CK_SET) {
		store(op->dtype, op->base, op->at, op->value);
	} else if (op->kind == CK_FLIP) {
		store(op->dtype, op->base, op->at,
		      load(op->dtype, op->base, op->at) > 0 ? -op->value : op->value);
	} else {
		for (check_u64 k = 0; k < w; k++) {
			unsigned char x = p[op->at * w + k];
			p[op->at * w + k] = p[op->other * w + k];
			p[op->other * w + k] = x;
		}
	}
}

KERNEL check_change(const struct check_change j)
{
	for (check_u64 t = RANK; t < j.inputs; t += COUNT)
		for (check_u32 i = 0; i < j.n; i++)
			if (j.op[i].input == t)
				change(&j.op[i]);
}

/* ---- poison and guards ---- */

DEVICE void segment_words(const struct check_segment *s, check_u64 block, check_u64 out[2])
{
	check_u32 w[4];

	philox(&s->key, TAG_DRAW, block, w);
	out[0] = join(w[0], w[1]);
	out[1] = join(w[2], w[3]);
}

DEVICE check_u64 masked(const struct check_segment *s, check_u64 at, check_u64 word)
{
	check_u64 m = bytes_in(at, s->off, s->off + s->used / s->width * s->width);

	return (word & (s->keep | ~m)) | (s->set & m);
}

KERNEL check_poison(const struct check_segment s)
{
	for (check_u64 b = RANK; b < s.len / 16; b += COUNT) {
		check_u64 w[2];
		segment_words(&s, b, w);
		for (int k = 0; k < 2; k++) {
			check_u64 at = 16 * b + 8 * (check_u64)k, *p = (check_u64 *)(s.seg + at);
			check_u64 payload = s.leave ? bytes_in(at, s.off, s.off + s.used) : 0;
			if (payload == ~0ull)
				continue;
			*p = (masked(&s, at, w[k]) & ~payload) | (payload ? *p & payload : 0);
		}
	}
}

/* Words outside the payload, in front and behind. */
KERNEL check_guard(const struct check_segment s)
{
	check_u64 front = s.off / 16, back = (s.off + s.used) / 16, n = front + (s.len / 16 - back);

	for (check_u64 i = RANK; i < n; i += COUNT) {
		check_u64 b = i < front ? i : back + (i - front), w[2], hits = 0;
		segment_words(&s, b, w);
		for (int k = 0; k < 2; k++) {
			check_u64 at = 16 * b + 8 * (check_u64)k;
			check_u64 guard = ~bytes_in(at, s.off, s.off + s.used);
			hits += ((*(const check_u64 *)(s.seg + at) ^ w[k]) & guard) != 0;
		}
		if (hits)
			atomicAdd(s.hits, hits);
	}
}

/* Does element i of `got` still hold the poison? */
DEVICE int still_poison(const struct check_segment *s, const void *got, check_u64 i, check_u32 width)
{
	const unsigned char *p = (const unsigned char *)got + i * width;
	check_u64 at = s->off + i * width, w[2];

	segment_words(s, at / 16, w);
	check_u64 word = masked(s, at / 8 * 8, w[at / 8 % 2]);
	for (check_u32 k = 0; k < width; k++)
		if (p[k] != (unsigned char)(word >> 8 * (at % 8 + k)))
			return 0;
	return 1;
}

/* ---- sums ---- */

struct span {
	check_u64 from, to;
};

DEVICE struct span chunk_of(const struct check_shape *s, check_u64 c)
{
	check_u64 g = c / s->per, end;
	struct span r;

	if (g >= s->groups)
		g = s->groups - 1;
	end = g + 1 == s->groups ? s->n : (g + 1) * s->group;
	r.from = g * s->group + (c - g * s->per) * CK_CHUNK;
	r.to = r.from + CK_CHUNK < end ? r.from + CK_CHUNK : end;
	return r;
}

KERNEL check_scan(const struct check_scan j)
{
	check_u64 chunks = (j.shape.groups - 1) * j.shape.per + j.shape.last, lane = RANK % LANES;

	for (check_u64 c = RANK / LANES; c < chunks; c += COUNT / LANES) {
		struct span at = chunk_of(&j.shape, c);
		double sum = 0;
		check_u64 nan = 0, odd = 0;
		for (check_u64 i = at.from + lane; i < at.to; i += LANES) {
			double v = j.ref[i];
			nan += is_nan(v) ? 1 : 0;
			odd += !(fabs(v) < 0x1p24) || v != rint(v) ? 1 : 0;
			sum = sum + (is_inf(v) ? 0 : v * v);
		}
		sum = lanes_add(sum);
		nan = lanes_count(nan);
		odd = lanes_count(odd);
		if (lane)
			continue;
		struct check_sums s = {0, 0, 0, 0, 0, 0};
		s.ref2 = sum;
		j.out[c] = s;
		if (nan)
			atomicAdd(&j.about->nan, nan);
		if (odd)
			keep_max(&j.about->odd, odd);
	}
}

KERNEL check_fold(const struct check_fold j)
{
	check_u64 n = (j.groups - 1) * j.out_per + j.out_last;

	for (check_u64 o = RANK; o < n; o += COUNT) {
		check_u64 g = o / j.out_per;
		if (g >= j.groups)
			g = j.groups - 1;
		check_u64 k = (o - g * j.out_per) * CK_FOLD, have = g + 1 == j.groups ? j.last : j.per;
		check_u64 end = k + CK_FOLD < have ? k + CK_FOLD : have;
		struct check_sums s = {0, 0, 0, 0, 0, 0};
		for (; k < end; k++) {
			const struct check_sums *x = &j.in[g * j.per + k];
			s.err2 = s.err2 + x->err2;
			s.ref2 = s.ref2 + x->ref2;
			s.base2 = s.base2 + x->base2;
			s.push = s.push + x->push;
			s.quanta2 = s.quanta2 + x->quanta2;
			s.same += x->same;
		}
		j.out[o] = s;
	}
}

/* ---- comparison ---- */

/* See error_of in compare.c. */
DEVICE double error_of(double got, double ref, double rounded)
{
	if (is_inf(rounded))
		return got == rounded ? 0 : infinity();
	if (!is_finite(got))
		return infinity();
	return fabs(got - ref);
}

DEVICE double rounded_of(const struct check_compare *j, double ref)
{
	return j->exact || !(fabs(ref) <= 448) ? round_to(j->dtype, ref) : ref;
}

/* What a lane gathers besides the sums. */
struct tally {
	check_u64 wrong, nonfinite, nan, poisoned, worst;
};

DEVICE void bias(const struct check_compare *j, struct check_sums *s, double got, double ref, int first,
		 check_u64 i)
{
	double rounded = round_to(j->dtype, ref), step = step_of(j->dtype, ref);

	if (!first) {
		double before = j->ref[i - 1];
		s->same += ref == (is_inf(rounded_of(j, before)) || is_inf(before) ? 0 : before) ? 1 : 0;
	}
	if (!is_finite(got) || !is_finite(rounded))
		return;
	s->push = s->push + (got - rounded) * ref;
	s->quanta2 = s->quanta2 + step * step * ref * ref;
}

DEVICE void element(const struct check_compare *j, double rms, struct check_sums *s, struct tally *t,
		    check_u64 i, int first)
{
	double ref = j->ref[i], got = load(j->dtype, j->got, i), rounded = rounded_of(j, ref);
	double err = error_of(got, ref, rounded), bound = j->atol_rms * rms + j->rtol * fabs(ref);

	if (is_inf(rounded) || is_inf(ref)) {
		bound = 0;
		ref = 0;
	}
	if (j->exact) {
		err = got == rounded ? 0 : infinity();
		bound = 0;
	}
	if (!(err <= bound && err < infinity())) {
		t->wrong++;
		t->nonfinite += is_finite(got) ? 0 : 1;
		t->nan += is_nan(got) ? 1 : 0;
		t->poisoned += (check_u64)still_poison(&j->poison, j->got, i, width_of(j->dtype));
	}
	check_u64 over = as_max(err == 0 ? 0 : bound > 0 ? err / bound : infinity());
	if (over > t->worst)
		t->worst = over;
	if (j->narrow)
		bias(j, s, got, ref, first, i);
	s->err2 = s->err2 + err * err;
	s->ref2 = s->ref2 + ref * ref;
	if (j->base) {
		double be = error_of(load(j->dtype, j->base, i), ref, rounded);
		s->base2 = s->base2 + (is_finite(be) ? be * be : 0);
	}
}

DEVICE void tally_add(struct check_figures *f, const struct tally *t)
{
	if (t->wrong)
		atomicAdd(&f->wrong, t->wrong);
	if (t->nonfinite)
		atomicAdd(&f->nonfinite, t->nonfinite);
	if (t->nan)
		atomicAdd(&f->nan, t->nan);
	if (t->poisoned)
		atomicAdd(&f->poisoned, t->poisoned);
	keep_max(&f->worst, t->worst);
}

DEVICE double rms_of(const struct check_reference *about, check_u64 n)
{
	return sqrt(about->sums.ref2 / (double)n);
}

KERNEL check_compare(const struct check_compare j)
{
	check_u64 chunks = (j.shape.groups - 1) * j.shape.per + j.shape.last, lane = RANK % LANES;
	double rms = rms_of(j.about, j.shape.n);

	for (check_u64 c = RANK / LANES; c < chunks; c += COUNT / LANES) {
		struct span at = chunk_of(&j.shape, c);
		struct check_sums s = {0, 0, 0, 0, 0, 0};
		struct tally t = {0, 0, 0, 0, 0};
		/* The first of its group has nothing before it. */
		check_u64 g = c / j.shape.per < j.shape.groups ? c / j.shape.per : j.shape.groups - 1;
		for (check_u64 i = at.from + lane; i < at.to; i += LANES)
			element(&j, rms, &s, &t, i, i == g * j.shape.group);
		s.err2 = lanes_add(s.err2);
		s.ref2 = lanes_add(s.ref2);
		if (j.base)
			s.base2 = lanes_add(s.base2);
		if (j.narrow) {
			s.push = lanes_add(s.push);
			s.quanta2 = lanes_add(s.quanta2);
			s.same = lanes_count(s.same);
		}
		t.wrong = lanes_count(t.wrong);
		t.nonfinite = lanes_count(t.nonfinite);
		t.nan = lanes_count(t.nan);
		t.poisoned = lanes_count(t.poisoned);
		t.worst = lanes_max(t.worst);
		if (lane)
			continue;
		j.out[c] = s;
		tally_add(j.figures, &t);
	}
}

/* See is_biased in compare.c. */
DEVICE int is_biased(const struct check_groups *j, const struct check_sums *s, check_u64 n, double rms)
{
	double own = sqrt(s->ref2), all = sqrt((double)n) * rms;
	double most = j->bias * own * (own > all ? own : all) + 7 * sqrt(s->quanta2 / 12);

	return 2 * s->same < n && !(fabs(s->push) <= most);
}

KERNEL check_groups(const struct check_groups j)
{
	double rms = rms_of(j.about, j.shape.n);

	for (check_u64 g = RANK; g < j.shape.groups; g += COUNT) {
		const struct check_sums *s = &j.in[g];
		check_u64 k = g + 1 == j.shape.groups ? j.shape.n - g * j.shape.group : j.shape.group;
		double n = (double)k, floor_rms = j.ratio_floor * sqrt(s->ref2 / n);
		double l2 = s->err2 == 0 ? 0 : sqrt(s->err2) / sqrt(s->ref2 > 0 ? s->ref2 : n * rms * rms);
		keep_max(&j.figures->row_l2, as_max(l2));
		if (j.base && s->err2 > 0) {
			double base = sqrt(s->base2 / n);
			keep_max(&j.figures->ratio,
				 as_max(sqrt(s->err2 / n) / (base > floor_rms ? base : floor_rms)));
		}
		if (j.narrow && is_biased(&j, s, k, rms))
			keep_max(&j.figures->biased, 1);
	}
}

KERNEL check_integers(const struct check_integers j)
{
	for (check_u64 i = RANK; i < j.n; i += COUNT) {
		const unsigned char *got = (const unsigned char *)j.got + i * j.width;
		const unsigned char *ref = (const unsigned char *)j.ref + i * j.width;
		int differ = 0;
		for (check_u32 k = 0; k < j.width; k++)
			differ |= got[k] ^ ref[k];
		if (!differ)
			continue;
		atomicAdd(&j.figures->wrong, 1ull);
		if (still_poison(&j.poison, j.got, i, j.width))
			atomicAdd(&j.figures->poisoned, 1ull);
	}
}

/* ---- hashes ---- */

/* A sum over 16-byte blocks of what two keyed permutations make of block and place. Without the key
 * nobody can tell which other content has the same sum; 256 bits leave no room for accidents. */
KERNEL check_hash(const struct check_hash j)
{
	check_u64 sum[4] = {0, 0, 0, 0};

	for (check_u64 b = RANK; b < (j.bytes + 15) / 16; b += COUNT) {
		check_u64 in[2] = {0, 0};
		if (16 * b + 16 <= j.bytes) {
			in[0] = *(const check_u64 *)(j.data + 16 * b);
			in[1] = *(const check_u64 *)(j.data + 16 * b + 8);
		} else {
			for (check_u64 k = 16 * b; k < j.bytes; k++)
				in[k / 8 % 2] |= (check_u64)j.data[k] << 8 * (k % 8);
		}
		for (int half = 0; half < 2; half++) {
			struct check_key key = j.key;
			check_u32 w[4];
			/* key: place; counter: content */
			key.w[0] ^= (check_u32)b;
			key.w[1] ^= (check_u32)(b >> 32) ^ (check_u32)half << 31;
			key.w[2] ^= (check_u32)in[1];
			key.w[3] ^= (check_u32)(in[1] >> 32);
			philox(&key, 0, in[0], w);
			sum[2 * half] += join(w[0], w[1]);
			sum[2 * half + 1] += join(w[2], w[3]);
		}
	}
	for (int k = 0; k < 4; k++) {
		check_u64 v = lanes_count(sum[k]);
		if (RANK % LANES == 0 && v)
			atomicAdd(&j.out[k], v);
	}
}
