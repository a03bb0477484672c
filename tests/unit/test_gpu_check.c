/*
 * test_gpu_check.c - the checker's kernels, built for the host, against compare.c, dtype.c and
 * memory.c: same codes, same figures, same conversions; poison and guards from the key alone.
 * Writes nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#include "host_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

static const struct check_runner RUN = {host_launch, NULL};
static uint8_t key[32] = {3};
static struct rng rnd;
static struct check_report report;

static uint64_t here(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* ---- element types ---- */

static void conversions(void **state)
{
	(void)state;
	static const enum dtype T[] = {DT_F32, DT_F16, DT_BF16, DT_E4M3, DT_E5M2, DT_I64, DT_I32, DT_I16,
				       DT_I8, DT_U64, DT_U32, DT_U16, DT_U8, DT_BOOL, DT_F64};

	for (uint32_t v = 0; v < 65536; v++) {
		uint16_t h = (uint16_t)v;
		uint8_t b = (uint8_t)v;
		double p = dtype_load(DT_F16, &h, 0), q = load(CK_F16, &h, 0);
		assert_true(p == q || (isnan(p) && isnan(q)));
		for (enum dtype t = DT_E4M3; t <= DT_E5M2; t++) {
			p = dtype_load(t, &b, 0);
			q = load(t, &b, 0);
			assert_true(p == q || (isnan(p) && isnan(q)));
		}
	}
	for (int k = 0; k < 400000; k++) {
		uint64_t bits = rng_u64(&rnd), x, y;
		double v;
		if (k % 2) { /* around the range of the narrow types */
			bits = (bits & 0x800fffffffffffff) | (1023 - 30 + rng_below(&rnd, 60)) << 52;
			bits &= k % 4 == 1 ? ~0ull << 40 : ~0ull; /* many ties */
		}
		memcpy(&v, &bits, sizeof v);
		for (size_t i = 0; i < sizeof T / sizeof *T; i++) {
			x = y = 0;
			dtype_store(T[i], &x, 0, v);
			store(T[i], &y, 0, v);
			if (isnan(v) && dtype_is_float(T[i]))
				assert_true(isnan(dtype_load(T[i], &y, 0)));
			else
				assert_true(x == y);
			if (dtype_is_float(T[i]) && dtype_mantissa(T[i]) < 24)
				assert_true(step_of(T[i], v) == dtype_ulp(T[i], v));
		}
	}
}

/* ---- comparison ---- */

enum { N = 40000 };
static _Alignas(16) uint8_t got[N * 8], base[N * 8];
static double ref[N];
static struct mem_layout layout;
static uint8_t *seg;
static uint64_t seg_at[1];
static struct check_memory mem;

static void memory_for(enum dtype t, size_t n, unsigned pattern)
{
	struct err e;

	memset(&layout, 0, sizeof layout);
	assert_int_equal(mem_add(&layout, "y", MEM_OUTPUT, 0, (int)t, n * dtype_size(t), &e), 0);
	assert_int_equal(mem_plan(&layout, 0, NULL, &e), 0);
	free(seg);
	seg = aligned_alloc(16, layout.buf[0].seg_len);
	seg_at[0] = here(seg);
	mem = (struct check_memory){.l = &layout, .seg = seg_at, .pattern = pattern};
	memcpy(mem.key, key, sizeof key);
	assert_int_equal(check_poison_all(&RUN, &mem, &e), 0);
}

struct one {
	enum dtype t;
	size_t n, row;
	int with_base, exact;
	struct compare_bounds b;
};

/* Both walks over got, ref and base; the codes must agree, and figures to rounding. */
static const char *both(const struct one *o)
{
	static struct compare_result p, q;
	static struct check_reference about;
	struct spec_compare c = {.kind = COMPARE_TOLERANCE, .source = -1, .values = -1};
	struct compare_side s = {.name = "y", .dtype = o->t, .n = o->n, .row = o->row, .ref = ref, .slack = 1,
				 .base = o->with_base ? base : NULL, .exact = o->exact};
	size_t bytes = o->n * dtype_size(o->t);
	uint8_t *poison = malloc(bytes), *out = seg + (layout.buf[0].addr - layout.buf[0].seg_addr);
	uint64_t scratch = check_scratch(o->n, o->row);
	struct check_side d = {.got = here(out), .ref = here(ref), .base = o->with_base ? here(base) : 0,
			       .about = here(&about), .report = here(&report), .mem = &mem,
			       .scratch = {here(malloc(scratch)), here(malloc(scratch))}};
	struct err e;

	/* elements left at zero bits of a special value mean: unwritten */
	memcpy(poison, out, bytes);
	memcpy(out, got, bytes);
	s.poison = poison;
	s.got = out;
	for (size_t i = 0, w = dtype_size(o->t); i < o->n; i++)
		if (ref[i] == 77) /* a case marks these as not written */
			memcpy(out + i * w, poison + i * w, w);
	compare_begin(&p);
	compare_output(&p, &c, &o->b, &s);
	memset(&report, 0, sizeof report);
	memset(&about, 0, sizeof about);
	assert_int_equal(check_reference_scan(&RUN, d.ref, o->n, d.about, d.scratch, &e), 0);
	assert_int_equal(check_output(&RUN, &s, &d, &o->b, &e), 0);
	compare_begin(&q);
	if (!check_reference_ok(&about))
		compare_fail(&q, "judge.reference", "y");
	else
		check_judge(&q, &report, 0, &s, &o->b);
	memcpy(out, poison, bytes);
	free(poison);
	free((void *)(uintptr_t)d.scratch[0]);
	free((void *)(uintptr_t)d.scratch[1]);
	if (strcmp(p.code, q.code))
		fail_msg("type %d n %zu row %zu: host %s, kernels %s", o->t, o->n, o->row, p.code, q.code);
	double a[] = {p.worst, p.rel_l2, p.row_l2, p.ratio, p.wrong, p.poison};
	double b[] = {q.worst, q.rel_l2, q.row_l2, q.ratio, q.wrong, q.poison};
	for (int i = 0; i < 6; i++)
		if (!(a[i] == b[i] || fabs(a[i] - b[i]) <= 1e-11 * fabs(a[i])))
			fail_msg("type %d %s figure %d: %g, %g", o->t, p.code, i, a[i], b[i]);
	return p.code;
}

static void right(const struct one *o)
{
	for (size_t i = 0; i < o->n; i++) {
		ref[i] = rng_normal(&rnd);
		if (o->exact)
			ref[i] = rint(8 * ref[i]) / (o->t >= DT_E4M3 ? 8 : 1);
		dtype_store(o->t, got, i, ref[i]);
		dtype_store(o->t, base, i, ref[i] * (1 + 1e-7 * rng_normal(&rnd)));
	}
}

static double scale(const struct one *o)
{
	return ldexp(1, -dtype_mantissa(o->t));
}

/* Break one rule. */
static void damage(const struct one *o, int how)
{
	size_t at = (size_t)rng_below(&rnd, o->n), row = at / o->row * o->row;
	double eps = scale(o);

	switch (how) {
	case 1: dtype_store(o->t, got, at, ref[at] + 1000 * eps + 0.5); break;
	case 2: dtype_store(o->t, got, at, NAN); break;
	case 3: dtype_store(o->t, got, at, o->t == DT_E4M3 ? NAN : INFINITY); break;
	case 4: ref[at] = 77; break; /* unwritten */
	case 5: /* a row, less than an element's bound each */
		for (size_t i = row; i < row + o->row && i < o->n; i++)
			dtype_store(o->t, got, i, ref[i] * (1 + 6 * eps));
		break;
	case 6: ref[at] = NAN; break;
	case 7: /* beyond the type: wants its infinity */
		ref[at] = 1e100;
		dtype_store(o->t, got, at, o->t == DT_F64 ? 1e100 : INFINITY);
		break;
	case 14: ref[at] = 1e300; break; /* bounds would be infinite */
	case 8: ref[at] = -INFINITY; break;
	case 9: /* all a little wrong: ratio */
		for (size_t i = 0; i < o->n; i++)
			dtype_store(o->t, got, i, ref[i] * (1 + 3 * eps * rng_normal(&rnd)));
		break;
	case 10: /* common push, hidden below rounding of each */
		for (size_t i = 0; i < o->n; i++)
			dtype_store(o->t, got, i, ref[i] * (1 + eps));
		break;
	case 11: /* rows that repeat one value, and empty rows */
		for (size_t i = row; i < row + o->row && i < o->n; i++)
			dtype_store(o->t, got, i, ref[i] = i % 2 ? ref[row] : 0);
		break;
	case 12:
		for (size_t i = 0; i < o->n; i++) {
			ref[i] = 0;
			dtype_store(o->t, got, i, i == at ? 1e-3 : 0);
		}
		break;
	case 13: memset(got, 0, o->n * dtype_size(o->t)); break;
	default: break;
	}
}

static void same_verdicts(void **state)
{
	(void)state;
	static const size_t SIZE[][2] = {{1, 1}, {7, 7}, {130, 1}, {300, 3}, {1000, 10}, {4096, 4096},
					 {6000, 5000}, {6000, 1500}, {5000, 2100}, {6000, 150}, {40000, 40000}, {40000, 19000}};
	char *seen[64];
	int nseen = 0;

	for (enum dtype t = DT_F64; t <= DT_E5M2; t++)
		for (size_t z = 0; z < sizeof SIZE / sizeof *SIZE; z++)
			for (int how = 0; how <= 14; how++)
				for (int k = 0; k < 4; k++) {
					struct one o = {.t = t, .n = SIZE[z][0], .row = SIZE[z][1],
							.with_base = k & 1, .exact = k == 2};
					double eps = scale(&o);
					o.b = (struct compare_bounds){8 * eps, 8 * eps, 2 * eps, 3 * eps, 2,
								      eps, k == 3 ? INFINITY : 1e-5};
					memory_for(t, o.n, (unsigned)how);
					right(&o);
					damage(&o, how);
					const char *code = both(&o);
					int known = 0;
					for (int i = 0; i < nseen; i++)
						known |= !strcmp(seen[i], code);
					if (!known)
						seen[nseen++] = strdup(code);
				}
	static const char *const WANT[] = {"ok", "judge.element", "judge.nan", "judge.nonfinite",
					   "judge.unwritten", "judge.row", "judge.reference", "judge.rel_l2",
					   "judge.error_ratio", "judge.bias", "judge.exact"};
	for (size_t i = 0; i < sizeof WANT / sizeof *WANT; i++) {
		int found = 0;
		for (int k = 0; k < nseen; k++)
			found |= !strcmp(seen[k], WANT[i]);
		if (!found)
			fail_msg("no case came to %s", WANT[i]);
	}
	for (int k = 0; k < nseen; k++)
		free(seen[k]);
}

static void integers_exact(void **state)
{
	(void)state;
	struct spec_compare c = {.kind = COMPARE_EXACT, .source = -1, .values = -1};
	struct compare_bounds b = {0};
	static int64_t want[500], have[500];
	struct err e;

	for (int how = 0; how < 3; how++) {
		memory_for(DT_I64, 500, 0);
		int64_t *out = (int64_t *)(seg + (layout.buf[0].addr - layout.buf[0].seg_addr));
		memcpy(have, out, sizeof have);
		for (int i = 0; i < 500; i++)
			want[i] = (int64_t)rng_u64(&rnd);
		memcpy(out, want, sizeof want);
		if (how == 1)
			out[77] ^= 1;
		if (how == 2)
			out[499] = have[499];
		struct compare_side s = {.name = "y", .dtype = DT_I64, .n = 500, .row = 10, .got = out,
					 .ref = want, .poison = have, .slack = 1};
		struct check_side d = {.got = here(out), .ref = here(want), .report = here(&report), .mem = &mem};
		struct compare_result p, q;
		compare_begin(&p);
		compare_begin(&q);
		compare_output(&p, &c, &b, &s);
		memset(&report, 0, sizeof report);
		assert_int_equal(check_output(&RUN, &s, &d, &b, &e), 0);
		check_judge(&q, &report, 0, &s, &b);
		assert_string_equal(p.code, q.code);
		assert_string_equal(p.code, how == 0 ? "ok" : how == 1 ? "judge.exact" : "judge.unwritten");
		assert_true(p.wrong == q.wrong && p.poison == q.poison);
	}
}

/* ---- poison and guards ---- */

static int hit(uint64_t used)
{
	struct err e;
	char name[MEM_NAME];

	mem.ws = &used;
	mem.n_ws = 1;
	memset(&report, 0, sizeof report);
	assert_int_equal(check_guards(&RUN, &mem, here(&report), &e), 0);
	return check_guard_result(&report, &layout, name) != MEM_CLEAN;
}

static void guards_notice(void **state)
{
	(void)state;
	struct err e;

	for (int k = 0; k < 12; k++) {
		enum mem_kind kind = k % 3 == 0 ? MEM_INPUT : k % 3 == 1 ? MEM_OUTPUT : MEM_WORKSPACE;
		uint64_t used = kind == MEM_WORKSPACE ? (k < 6 ? 0 : 5003) : 9001;
		memset(&layout, 0, sizeof layout);
		assert_int_equal(mem_add(&layout, "b", kind, 0, kind == MEM_WORKSPACE ? DT_NONE : DT_F32,
					 9001, &e), 0);
		assert_int_equal(mem_plan(&layout, k & 1, NULL, &e), 0);
		struct mem_buf *b = &layout.buf[0];
		free(seg);
		seg = aligned_alloc(16, b->seg_len);
		memset(seg, 0x5a, b->seg_len);
		seg_at[0] = here(seg);
		mem = (struct check_memory){.l = &layout, .seg = seg_at, .pattern = (unsigned)k / 2, .ws = &used,
					    .n_ws = 1};
		assert_int_equal(check_poison_all(&RUN, &mem, &e), 0);
		uint64_t off = b->addr - b->seg_addr;
		for (uint64_t i = 0; i < b->bytes && kind == MEM_INPUT; i++)
			assert_int_equal(seg[off + i], 0x5a);
		assert_false(hit(used));
		for (uint64_t i = 0; i < b->seg_len; i += i + 40 > off && i < off + 40 ? 1 : 37) {
			seg[i] ^= 4;
			assert_int_equal(hit(used), !(i >= off && i < off + used));
			seg[i] ^= 4;
		}
		/* Another key, another pattern. */
		mem.key[0] ^= 1;
		assert_true(hit(used));
	}
}

static void poison_kinds(void **state)
{
	(void)state;
	for (enum dtype t = DT_F64; t <= DT_E5M2; t++)
		for (unsigned pattern = 0; pattern < 2; pattern++) {
			memory_for(t, 701, pattern);
			for (size_t i = 0; i < 701; i++) {
				double v = dtype_load(t, seg + (layout.buf[0].addr - layout.buf[0].seg_addr), i);
				if (!pattern)
					assert_true(isnan(v));
				else if (dtype_size(t) > 1)
					assert_true(isfinite(v) && fabs(v) > 1000);
			}
		}
}

static void hashes(void **state)
{
	(void)state;
	uint64_t a[4] = {0}, b[4];
	struct err e;

	memory_for(DT_F16, 333, 0);
	assert_int_equal(check_payloads(&RUN, &mem, MEM_OUTPUT, key, here(a), &e), 0);
	uint8_t *p = seg + (layout.buf[0].addr - layout.buf[0].seg_addr);
	for (size_t i = 0; i < 666; i += 5) {
		p[i] ^= 16;
		memset(b, 0, sizeof b);
		assert_int_equal(check_payloads(&RUN, &mem, MEM_OUTPUT, key, here(b), &e), 0);
		for (int k = 0; k < 4; k++)
			assert_true(a[k] != b[k]);
		p[i] ^= 16;
	}
	p[666] ^= 1; /* guard: no part of it */
	memset(b, 0, sizeof b);
	assert_int_equal(check_payloads(&RUN, &mem, MEM_OUTPUT, key, here(b), &e), 0);
	assert_memory_equal(a, b, sizeof a);
}

static int begin(void **state)
{
	(void)state;
	rng_open(&rnd, key, "gpu check");
	return 0;
}

static int end(void **state)
{
	(void)state;
	rng_close(&rnd);
	free(seg);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conversions),    cmocka_unit_test(same_verdicts),
		cmocka_unit_test(integers_exact), cmocka_unit_test(guards_notice),
		cmocka_unit_test(poison_kinds),   cmocka_unit_test(hashes),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
