/*
 * test_corrupt.c - any single corruption above tolerance of any declared output, at any place, in any rep,
 * fails; below tolerance it passes. Places come from a key. The comparators for every output of every shipped
 * problem, on the host and as the kernels of check.cu; then the checker itself, after honest runs of baselines.
 * Writes nothing; needs a host compiler.
 *
 * SPDX-License-Identifier: MIT
 */
#include "host_check.h"

#include "../../stages/lib/buf.h"
#include "../../stages/lib/file.h"
#include "../../stages/lib/image.h"
#include "../../stages/lib/proof.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static const char *const SHIPPED[] = {"vector_add", "silu_mul", "rmsnorm", "softmax", "transpose", "matmul",
				      "matmul_bf16", "attention", "paged_decode", "topk"};
enum { PLACES = 48, MOST = 20000 };

static const struct check_runner RUN = {host_launch, NULL};
static const uint8_t KEY[32] = {7, 1};
static struct rng rnd;

static uint64_t here(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* ---- one output, both comparators ---- */

struct one {
	struct compare_side s;
	struct compare_bounds b;
	struct spec_compare c;
	struct mem_layout l;
	struct check_memory mem;
	uint64_t seg_at[1];
	uint8_t *seg, *got;
	double *ref;
	double rms;
};

static void one_open(struct one *o, enum dtype t, size_t n, size_t row, const struct spec_compare *c,
		     const struct compare_bounds *b)
{
	struct err e;
	double sum = 0;

	memset(o, 0, sizeof *o);
	assert_int_equal(mem_add(&o->l, "y", MEM_OUTPUT, 0, (int)t, n * dtype_size(t), &e), 0);
	assert_int_equal(mem_plan(&o->l, 0, NULL, &e), 0);
	o->seg = aligned_alloc(16, o->l.buf[0].seg_len);
	o->seg_at[0] = here(o->seg);
	o->got = o->seg + (o->l.buf[0].addr - o->l.buf[0].seg_addr);
	o->mem = (struct check_memory){.l = &o->l, .seg = o->seg_at, .pattern = 1};
	assert_int_equal(check_poison_all(&RUN, &o->mem, &e), 0);
	o->ref = xmalloc(n * sizeof *o->ref);
	for (size_t i = 0; i < n; i++) {
		o->ref[i] = dtype_is_float(t) ? rng_normal(&rnd) : (double)rng_below(&rnd, 100);
		if (dtype_is_float(t) && c->kind == COMPARE_EXACT)
			dtype_store(t, o->got, i, o->ref[i]), o->ref[i] = dtype_load(t, o->got, i);
		dtype_store(t, o->got, i, o->ref[i]);
		sum += o->ref[i] * o->ref[i];
	}
	o->rms = sqrt(sum / (double)n);
	o->b = *b;
	o->c = *c;
	o->s = (struct compare_side){.name = "y", .dtype = t, .n = n, .row = row, .got = o->got, .ref = o->ref,
				     .slack = 1, .exact = c->kind == COMPARE_EXACT};
	if (!dtype_is_float(t)) { /* integers are compared with integers */
		void *same = xmalloc(n * dtype_size(t));
		memcpy(same, o->got, n * dtype_size(t));
		free(o->ref);
		o->ref = same;
		o->s.ref = same;
	}
}

static void one_close(struct one *o)
{
	free(o->seg);
	free(o->ref);
}

static int by_host(const struct one *o)
{
	struct compare_result r;

	compare_begin(&r);
	compare_output(&r, &o->c, &o->b, &o->s);
	return r.pass;
}

static int by_kernels(struct one *o)
{
	static struct check_report report;
	static struct check_reference about;
	uint64_t bytes = check_scratch(o->s.n, o->s.row);
	void *scratch[2] = {xmalloc(bytes), xmalloc(bytes)};
	struct check_side d = {.got = here(o->got), .ref = here(o->ref), .about = here(&about), .report = here(&report),
			       .mem = &o->mem, .scratch = {here(scratch[0]), here(scratch[1])}};
	struct compare_result r;
	struct err e;

	memset(&report, 0, sizeof report);
	memset(&about, 0, sizeof about);
	compare_begin(&r);
	if (dtype_is_float(o->s.dtype))
		assert_int_equal(check_reference_scan(&RUN, d.ref, o->s.n, d.about, d.scratch, &e), 0);
	assert_int_equal(check_output(&RUN, &o->s, &d, &o->b, &e), 0);
	check_judge(&r, &report, 0, &o->s, &o->b);
	free(scratch[0]);
	free(scratch[1]);
	return r.pass;
}

/* `how`: 0 just above what is allowed, 1 a bit of it, 2 NaN, 3 infinity, 4 what was there before, 5 far below the
 * bound. 1 when such a value exists at this place; then it is there. */
static int corrupt(const struct one *o, size_t at, int how)
{
	enum dtype t = o->s.dtype;
	size_t w = dtype_size(t);
	uint8_t was[8];

	memcpy(was, o->got + at * w, w);
	if (how == 1)
		o->got[at * w + w - 1] ^= 0x40; /* of a float: its exponent */
	else if (!dtype_is_float(t))
		o->got[at * w] ^= (uint8_t)(1u << rng_below(&rnd, 8));
	else if (how == 2)
		dtype_store(t, o->got, at, NAN);
	else if (how == 3)
		dtype_store(t, o->got, at, INFINITY);
	if (!dtype_is_float(t))
		return how <= 3 && memcmp(was, o->got + at * w, w) != 0;
	double ref = o->ref[at], bound = o->s.exact ? 0 : o->b.atol_rms * o->rms + o->b.rtol * fabs(ref);
	if (how >= 1 && how <= 3)
		return !(fabs(dtype_load(t, o->got, at) - ref) <= bound);
	double sign = rng_below(&rnd, 2) ? 1 : -1, step = t == DT_F64 ? fabs(ref) * 0x1p-50 : t == DT_F32 ?
		fabs(ref) * 0x1p-21 : dtype_ulp(t, fabs(ref) + 2 * bound);
	double v = how == 5 ? ref + sign * 0.4 * bound : ref + sign * (1.01 * bound + step);
	dtype_store(t, o->got, at, v);
	double err = fabs(dtype_load(t, o->got, at) - ref);
	return how == 5 ? err <= 0.95 * bound : err > bound;
}

static void try_places(struct one *o, const char *who)
{
	size_t w = dtype_size(o->s.dtype);
	int tried[6] = {0};

	if (!by_host(o) || !by_kernels(o))
		fail_msg("%s: the right output is refused", who);
	for (int k = 0; k < PLACES; k++) {
		size_t at = k == 0 ? 0 : k == 1 ? o->s.n - 1 : (size_t)rng_below(&rnd, o->s.n);
		uint8_t was[8];
		int how = k % 6, want = how == 5;
		memcpy(was, o->got + at * w, w);
		if (how != 4 && corrupt(o, at, how)) {
			tried[how]++;
			int a = by_host(o), b = by_kernels(o);
			if (a != want || b != want)
				fail_msg("%s: corruption %d at %zu of %zu: host %d, kernels %d", who, how, at, o->s.n, a, b);
		}
		memcpy(o->got + at * w, was, w);
	}
	assert_true(tried[0] && tried[1]);
	if (dtype_is_float(o->s.dtype) && !o->s.exact)
		assert_true(tried[2] && tried[5]);
}

static void shipped_outputs(void **state)
{
	(void)state;
	struct err e = {0};
	char dir[64], who[160];
	int n_outputs = 0;

	for (size_t i = 0; i < sizeof SHIPPED / sizeof *SHIPPED; i++) {
		struct spec *s;
		snprintf(dir, sizeof dir, "specs/%s", SHIPPED[i]);
		if (spec_load(dir, &s, &e) < 0)
			fail_msg("%s", e.text);
		for (int k = 0; k < s->noutputs * s->npublic; k++) {
			const struct spec_tensor *t = &s->output[k % s->noutputs];
			int64_t dims[SPEC_MAX_RANK], n;
			struct compare_bounds b;
			struct one o;
			assert_int_equal(spec_shape(s, t, &s->public[k / s->noutputs].emu, dims, &n, &e), 0);
			if (t->compare.kind != COMPARE_TOLERANCE && t->compare.kind != COMPARE_EXACT)
				continue;
			compare_defaults(s, t, &b);
			snprintf(who, sizeof who, "%s.%s", s->name, t->name);
			size_t row = (size_t)dims[t->rank - 1], most = row > MOST ? MOST : MOST / row * row;
			one_open(&o, t->dtype, (size_t)n < most ? (size_t)n : most, row < most ? row : most, &t->compare, &b);
			try_places(&o, who);
			one_close(&o);
			n_outputs++;
		}
		spec_free(s);
	}
	assert_true(n_outputs >= 10);
}

static void all_types(void **state)
{
	(void)state;
	static const enum dtype T[] = {DT_F64, DT_F32, DT_F16, DT_BF16, DT_E4M3, DT_E5M2, DT_I64, DT_I32, DT_I16,
				       DT_I8, DT_U64, DT_U32, DT_U16, DT_U8};
	static const size_t SIZE[][2] = {{300, 3}, {4096, 4096}, {6000, 1500}};

	for (size_t i = 0; i < sizeof T / sizeof *T; i++)
		for (size_t z = 0; z < 3; z++)
			for (int exact = 0; exact < 2; exact++) {
				double eps = dtype_is_float(T[i]) ? ldexp(1, -dtype_mantissa(T[i])) : 0;
				struct compare_bounds b = {8 * eps, 8 * eps, 2 * eps, 3 * eps, 8, eps, INFINITY};
				struct spec_compare c = {.kind = exact ? COMPARE_EXACT : COMPARE_TOLERANCE, .source = -1,
							 .values = -1};
				struct one o;
				one_open(&o, T[i], SIZE[z][0], SIZE[z][1], &c, &b);
				try_places(&o, dtype_name(T[i]));
				one_close(&o);
			}
}

/* ---- sets and orders ---- */

/* An index moved anywhere else must show where values differ. */
static void moved_indices(void **state)
{
	(void)state;
	enum { R = 40, C = 50, K = 7 };
	static float x[R][C];
	static int32_t ref[R][C], got[R][C];
	static const enum compare_kind KIND[] = {COMPARE_TIES, COMPARE_TOPK, COMPARE_SORT};

	for (int i = 0; i < R * C; i++)
		x[i / C][i % C] = (float)rng_normal(&rnd);
	for (int kind = 0; kind < 3; kind++) {
		int n = kind == 0 ? 1 : kind == 1 ? K : C;
		int32_t *a = ref[0], *b = got[0];
		for (int r = 0; r < R; r++)
			for (int k = 0; k < n; k++) { /* the k-th largest */
				int best = -1;
				for (int c = 0; c < C; c++) {
					int used = 0;
					for (int q = 0; q < k; q++)
						used |= a[r * n + q] == c;
					if (!used && (best < 0 || x[r][c] > x[r][best]))
						best = c;
				}
				a[r * n + k] = b[r * n + k] = best;
			}
		struct spec_compare c = {.kind = KIND[kind], .source = 0, .values = -1, .sorted = 1, .descending = 1};
		struct compare_bounds bounds = {0};
		struct compare_side s = {.name = "i", .dtype = DT_I32, .n = (size_t)(R * n), .row = (size_t)n, .got = b,
					 .ref = a, .source = x, .source_dtype = DT_F32, .source_row = C, .slack = 1};
		struct compare_result r;
		for (int k = 0; k <= 200; k++) {
			size_t at = (size_t)rng_below(&rnd, s.n);
			int32_t was = b[at];
			b[at] = k == 200 ? was : k % 5 == 4 ? (int32_t)rng_u32(&rnd) | INT32_MIN
							     : (was + 1 + (int32_t)rng_below(&rnd, C - 1)) % C;
			compare_begin(&r);
			compare_output(&r, &c, &bounds, &s);
			if (r.pass != (k == 200))
				fail_msg("comparator %d: index %d for %d passes: %d", kind, b[at], was, r.pass);
			b[at] = was;
		}
	}
}

/* ---- the checker, rep by rep ---- */

struct live {
	struct proof proof;
	struct proof_arm arm;
	struct proof_work w;
	uint8_t *rw;
};

static double rms_at(const uint8_t *p, enum dtype t, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += dtype_load(t, p, i) * dtype_load(t, p, i);
	return sqrt(sum / (double)n);
}

/* After an honest rep: every output in turn, at places of the key. */
static void corrupt_rep(struct live *v, int rep, const char *name)
{
	const struct spec *s = v->proof.spec;
	struct compare_result r;
	struct err e = {0};

	for (int i = 0; i < s->noutputs; i++) {
		const struct mem_buf *m = mem_find(&v->w.w.layout, MEM_OUTPUT, i);
		enum dtype t = s->output[i].dtype;
		size_t w = dtype_size(t), n = m->bytes / w;
		struct compare_bounds b;
		compare_defaults(s, &s->output[i], &b);
		for (int k = 0; k < 6; k++) {
			size_t at = (size_t)rng_below(&rnd, n);
			uint8_t *p = v->rw + m->offset + at * w, was[8];
			memcpy(was, p, w);
			double now = dtype_load(t, p, 0), bound = b.atol_rms * rms_at(v->rw + m->offset, t, n) +
				b.rtol * fabs(now);
			if (!dtype_is_float(t))
				*p ^= 1;
			else if (s->output[i].compare.kind == COMPARE_EXACT)
				*p ^= (uint8_t)(now == 0 ? 3 : 1);
			else if (k % 3 == 0)
				dtype_store(t, p, 0, k ? NAN : INFINITY);
			else
				dtype_store(t, p, 0, now + (k % 2 ? 1 : -1) * (2.1 * bound + 1e-30));
			if (checker_verify(v->proof.checker, &v->w.w, &r, &e) < 0)
				fail_msg("%s", e.text);
			if (r.pass)
				fail_msg("%s: output %s, rep %d, element %zu of %zu, way %d: a corruption passes", name,
					 s->output[i].name, rep, at, n, k);
			memcpy(p, was, w);
		}
	}
	if (checker_verify(v->proof.checker, &v->w.w, &r, &e) < 0 || !r.pass)
		fail_msg("%s: rep %d: the honest output is refused after all: %s", name, rep, r.code);
}

static void live_problem(const char *name, int reps)
{
	struct buf kernel = BUF_INIT, plan = BUF_INIT;
	struct live v = {.w = {.p = NULL}};
	struct spec *s;
	struct image m;
	struct err e = {0};
	char dir[64];

	snprintf(dir, sizeof dir, "specs/%s", name);
	struct checker_opts o = {.spec_dir = dir, .trial = "test", .stage = "test"};
	char *source = xasprintf("%s/baseline/kernel.cu", dir), *json = xasprintf("%s/baseline/plan.json", dir);
	if (spec_load(dir, &s, &e) < 0 || checker_start(&v.proof.checker, &o, &e) < 0 ||
	    file_read(source, 1 << 20, &kernel, &e) < 0 || file_read(json, PLAN_MAX_BYTES, &plan, &e) < 0 ||
	    image_text(&m, s, &kernel, &plan, "plan.json", &e) < 0 || image_build(&m, s, "emu-fast", NULL, NULL, &e) < 0)
		fail_msg("%s: %s", name, e.text);
	v.proof.spec = s;
	v.proof.device = "emu";
	v.arm = (struct proof_arm){.plan = m.plan, .artefact = m.box.path, .artefact_sha = m.box.sha256};
	struct checker_open q = {.mode = CHECKER_TINY, .index = 1, .baseline = 1};
	if (proof_open(&v.proof, &v.arm, &q, &v.w, &e) < 0)
		fail_msg("%s: %s", name, e.text);
	v.rw = mmap(NULL, v.w.w.layout.rw_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, v.w.w.rw_fd, 0);
	assert_true(v.rw != MAP_FAILED);
	struct proof_out *out = xcalloc(1, sizeof *out);
	for (int rep = 0; rep < reps; rep++) {
		enum fill_regime g = (enum fill_regime)(rep % REGIME_COUNT);
		struct checker_prep p = {.rep = (uint64_t)rep + 1, .set = (uint32_t)rep, .perturb = 1, .poison = (uint32_t)rep,
					 .ratio = 1, .regime = v.w.w.regimes & 1u << g ? g : REGIME_SPEC};
		if (proof_rep(&v.w, &p, ARM_SHUFFLED, (uint64_t)rep, out, &e) < 0 || !out->pass)
			fail_msg("%s: the baseline is refused: %s %s", name, out->word, e.text);
		corrupt_rep(&v, rep, name);
	}
	free(out);
	munmap(v.rw, v.w.w.layout.rw_bytes);
	proof_close(&v.w);
	checker_stop(v.proof.checker);
	image_free(&m);
	spec_free(s);
	buf_free(&kernel);
	buf_free(&plan);
	free(source);
	free(json);
}

static void checker_sees_all(void **state)
{
	(void)state;
	live_problem("vector_add", 10);
	live_problem("topk", 10); /* two outputs, one of them indices */
	live_problem("rmsnorm", 10);
}

static int begin(void **state)
{
	(void)state;
	rng_open(&rnd, KEY, "corrupt");
	return 0;
}

static int end(void **state)
{
	(void)state;
	rng_close(&rnd);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shipped_outputs), cmocka_unit_test(all_types), cmocka_unit_test(moved_indices),
		cmocka_unit_test(checker_sees_all),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
