/*
 * test_oracle_gpu.c - the checker on the fake driver (tests/fake/cuda): a rep from open to verdict, every
 * kind of damage found, inputs a function of key, set and rep, several workloads at once.
 *
 * Needs NVRTC, which makes the real cubins that the fake driver reads; skipped without.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/oracle_gpu.h"
#include "../../stages/lib/toolkit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPEC_DIR "tests/fake/cuda/fake_add"
#define GPU "GPU-fa4e0000-0000-4000-8000-000000000001"
#define CHECK(x) assert_int_equal(x, CUDA_OK)

enum { N = 2048 }; /* of the fake problem */

static struct spec *spec;
static struct oracle_gpu_kit kit = {.dir = SPEC_DIR};
static const char *why_not;
static float x[N], y[N], out[N];
static double scalars[CHECKER_SCALARS];

static int setup(void **state)
{
	(void)state;
	char self[PATH_MAX], path[PATH_MAX + 32];
	static struct toolkit found;
	struct err e = {0};
	CUdevice dev;
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	if (n < 0)
		return -1;
	self[n] = 0;
	*strrchr(self, '/') = 0;
	snprintf(path, sizeof path, "%s/fake/cuda", self);
	setenv("LD_LIBRARY_PATH", path, 1); /* for the checker */
	strcat(path, "/libcuda.so.1");
	if (!dlopen(path, RTLD_NOW)) /* found by its name from now on */
		why_not = "no fake driver was built";
	else if (toolkit_find(&found, &e) < 0)
		why_not = "no NVRTC on this machine";
	if (why_not)
		return 0;
	if (cuda_start(&dev, &e) < 0 || spec_load(SPEC_DIR, &spec, &e) < 0) {
		print_error("%s\n", e.text);
		return -1;
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	oracle_gpu_kit_free(&kit);
	spec_free(spec);
	return 0;
}

static void need(void)
{
	if (why_not) {
		print_message("skipped: %s\n", why_not);
		skip();
	}
}

/* ---- the whole way, through the checker's process ---- */

static struct checker *checker;
static struct checker_work work;
static CUdeviceptr seg[3];

static uint8_t *payload(int i)
{
	const struct mem_buf *b = &work.layout.buf[i];

	return (uint8_t *)(uintptr_t)(seg[i] + (b->addr - b->seg_addr));
}

/* As a worker does, but all writable: what cannot happen must be noticed too. */
static void map(void)
{
	CUmemAccess rw = {{CU_MEM_ON_DEVICE, 0}, CU_MEM_READ_WRITE};

	assert_int_equal(work.layout.n, 3);
	assert_int_equal(work.nfds, 3);
	for (int i = 0; i < 3; i++) {
		const struct mem_buf *b = &work.layout.buf[i];
		CUmemHandle h;
		CHECK(cu.MemImport(&h, (void *)(intptr_t)work.fd[i], CU_MEM_POSIX_FD));
		CHECK(cu.MemAddressReserve(&seg[i], b->seg_len, work.layout.page, b->seg_addr, 0));
		assert_true(seg[i] == b->seg_addr);
		CHECK(cu.MemMap(seg[i], b->seg_len, 0, h, 0));
		CHECK(cu.MemSetAccess(seg[i], b->seg_len, &rw, 1));
		CHECK(cu.MemRelease(h));
	}
}

static void unmap(void)
{
	for (int i = 0; i < 3; i++) {
		CHECK(cu.MemUnmap(seg[i], work.layout.buf[i].seg_len));
		CHECK(cu.MemAddressFree(seg[i], work.layout.buf[i].seg_len));
	}
}

static void begin(const struct checker_prep *p)
{
	struct err e = {0};

	if (checker_prepare(checker, &work, p, scalars, &e) < 0)
		fail_msg("prepare: %s", e.text);
	memcpy(x, payload(0), sizeof x);
	memcpy(y, payload(1), sizeof y);
}

/* The right answer into the output. */
static void answer(void)
{
	for (int i = 0; i < N; i++)
		out[i] = x[i] + y[i];
	memcpy(payload(2), out, sizeof out);
}

static const char *verdict(struct compare_result *r)
{
	struct err e = {0};

	if (checker_verify(checker, &work, r, &e) < 0)
		fail_msg("verify: %s", e.text);
	return r->code;
}

static void all_damage(void)
{
	static struct compare_result r;
	const struct mem_buf *b = &work.layout.buf[2];
	uint8_t *guard[] = {(uint8_t *)(uintptr_t)seg[2], payload(2) - 1, payload(2) + sizeof out,
			    (uint8_t *)(uintptr_t)(seg[2] + b->seg_len - 1), payload(0) - 1};
	struct checker_prep p = {.rep = 5, .set = 1, .perturb = 1, .ratio = 1};
	float *got = (float *)payload(2), keep;
	struct err e;
	int same;

	begin(&p);
	answer();
	assert_string_equal(verdict(&r), "ok");
	assert_true(r.pass && r.worst <= 1 && r.rel_l2 < 1e-6);
	assert_int_equal(checker_again(checker, &work, &same, &e), 0);
	assert_true(same);
	keep = got[N - 1];
	got[N - 1] = keep + 1e-3f * (1 + fabsf(keep)); /* late, and wrong */
	assert_int_equal(checker_again(checker, &work, &same, &e), 0);
	assert_false(same);
	assert_string_equal(verdict(&r), "judge.element");
	got[N - 1] = NAN;
	assert_string_equal(verdict(&r), "judge.nan");
	got[N - 1] = INFINITY;
	assert_string_equal(verdict(&r), "judge.nonfinite");
	got[N - 1] = keep;
	for (size_t i = 0; i < sizeof guard / sizeof *guard; i++) {
		*guard[i] ^= 0x10;
		assert_string_equal(verdict(&r), "judge.guard_write");
		*guard[i] ^= 0x10;
	}
	x[7] = ((float *)payload(0))[7];
	((float *)payload(0))[7] += 1;
	assert_string_equal(verdict(&r), "judge.input_write");
	((float *)payload(0))[7] = x[7];
	assert_string_equal(verdict(&r), "ok");
}

static void poison_of_both_kinds(void)
{
	static struct compare_result r;

	for (uint32_t k = 0; k < 2; k++) {
		struct checker_prep p = {.rep = 9, .set = 2, .perturb = 1, .poison = k};
		begin(&p);
		for (int i = 0; i < N; i++) {
			float v = ((float *)payload(2))[i];
			assert_true(k ? isfinite(v) && fabsf(v) > 1000 : isnan(v));
			out[i] = i == N / 2 ? v : x[i] + y[i];
		}
		memcpy(payload(2), out, sizeof out);
		assert_string_equal(verdict(&r), "judge.unwritten");
		assert_true(r.poison > 0 && r.poison < 2.0 / N);
	}
}

static int differences(const float *a, const float *b)
{
	int n = 0;

	for (int i = 0; i < N; i++)
		n += memcmp(&a[i], &b[i], 4) != 0;
	return n;
}

/* Inputs are a function of set, rep and regime; cached or not; whatever the poison. */
static void reps_and_sets(void)
{
	static float first[N];
	struct compare_result r;
	struct checker_prep p = {.rep = 1, .set = 3, .perturb = 1};

	begin(&p);
	memcpy(first, x, sizeof x);
	p.rep = 2;
	begin(&p);
	assert_in_range(differences(first, x), 1, 8);
	p.set = 4;
	begin(&p);
	assert_true(differences(first, x) > N - 10);
	p = (struct checker_prep){.rep = 1, .set = 3, .perturb = 1, .poison = 7};
	begin(&p);
	assert_int_equal(differences(first, x), 0);
	for (uint32_t k = 0; k < 4; k++) { /* the second time from the ring */
		p = (struct checker_prep){.rep = k, .set = k % 2, .ratio = 1};
		begin(&p);
		if (k == 0)
			memcpy(first, x, sizeof x);
		if (k == 2)
			assert_int_equal(differences(first, x), 0);
		answer();
		assert_string_equal(verdict(&r), "ok");
	}
	/* The ring's reference is that of its set. */
	p = (struct checker_prep){.set = 0};
	begin(&p);
	p.set = 1;
	begin(&p);
	memcpy(payload(2), out, sizeof out);
	answer();
	assert_string_equal(verdict(&r), "ok");
	for (enum fill_regime g = REGIME_SPEC; g < REGIME_COUNT; g++) {
		if (!(work.regimes & 1u << g))
			continue;
		p = (struct checker_prep){.rep = 50 + g, .set = 6, .perturb = 1, .regime = g};
		begin(&p);
		answer();
		assert_string_equal(verdict(&r), "ok");
		((float *)payload(2))[1] += 1e-2f + fabsf(out[1]);
		assert_false(strcmp(verdict(&r), "ok") == 0);
	}
}

static void whole_way(void **state)
{
	(void)state;
	need();
	struct checker_opts o = {.device = "fake-gpu-tests", .gpu = GPU, .spec_dir = SPEC_DIR, .trial = "t",
				 .stage = "test"};
	struct err e = {0};

	assert_int_equal(checker_start(&checker, &o, &e), 0);
	for (int fence = 0; fence < 2; fence++) {
		struct checker_open q = {.mode = CHECKER_PUBLIC, .fence = fence, .baseline = 1};
		if (checker_open(checker, &q, &work, &e) < 0)
			fail_msg("open: %s", e.text);
		assert_true(work.regimes & 1u << REGIME_EXACT_A && work.regimes & 1u << REGIME_MIXED);
		assert_true(work.ref_ns > 0);
		map();
		if (!fence) {
			all_damage();
			reps_and_sets();
		}
		poison_of_both_kinds();
		unmap();
		checker_close(checker, &work);
	}
	checker_stop(checker);
}

/* ---- keys, and several at once: in this process ---- */

static void inputs_of(struct oracle_gpu *o, float *to)
{
	struct checker_prep p = {.rep = 3, .set = 1, .perturb = 1};
	const struct gpu_mem *m = oracle_gpu_memory(o);
	struct err e = {0};

	if (oracle_gpu_prepare(o, &p, scalars, &e) < 0)
		fail_msg("prepare: %s", e.text);
	CHECK(cu.MemcpyDtoH(to, gpu_mem_at(m, &m->l.buf[0]), N * sizeof(float)));
}

static void keys_and_windows(void **state)
{
	(void)state;
	need();
	struct checker_open q = {.mode = CHECKER_PUBLIC};
	const struct mem_layout *others[3];
	struct oracle_gpu *o[3];
	struct err e = {0};
	uint8_t key[32] = {1};

	for (int i = 0; i < 3; i++) {
		key[1] = i == 2; /* the first two: one key */
		if (oracle_gpu_open(&o[i], &kit, spec, &spec->public[0].gpu, &q, key, others, i, &e) < 0)
			fail_msg("open: %s", e.text);
		others[i] = &oracle_gpu_memory(o[i])->l;
		for (int k = 0; k < i; k++)
			assert_false(mem_overlaps(others[i], others[k]));
	}
	inputs_of(o[0], x);
	inputs_of(o[1], y);
	inputs_of(o[2], out);
	assert_int_equal(differences(x, y), 0);
	assert_true(differences(x, out) > N - 10);
	/* No exact regime without a baseline to find it by. */
	assert_false(oracle_gpu_regimes(o[0]) & 1u << REGIME_EXACT_A);
	for (int i = 0; i < 3; i++)
		oracle_gpu_close(o[i]);
}

/* ---- an output judged as a set, a reference by a command: both go over the host ---- */

static const char ARGMAX[] =
	"{\"schema\":\"touchstone/spec/1\",\"name\":\"argmax\",\"op_type\":\"t\",\"description\":\"d\","
	"\"axes\":{\"R\":{\"type\":\"var\"},\"C\":{\"type\":\"var\"}},"
	"\"inputs\":{\"s\":{\"shape\":[\"R\",\"C\"],\"dtype\":\"float32\"},"
	"\"p\":{\"shape\":[\"C\"],\"dtype\":\"int32\",\"fill\":{\"kind\":\"permutation\"}}},"
	"\"outputs\":{\"i\":{\"shape\":[\"R\"],\"dtype\":\"int32\",\"compare\":{\"kind\":\"ties\",\"source\":\"s\"}}},"
	"\"compute\":{\"operand\":\"float32\",\"accumulator\":\"float32\",\"intermediate\":\"float32\"},"
	"\"reference\":{\"command\":[\"sh\",\"-c\",\"cd \\\"$0\\\" && printf \\\"$(od -An -v -w32 -tf4 s.bin | "
	"awk '{ b = 1; for (k = 2; k <= NF; k++) if ($k + 0 > $b + 0) b = k; printf \\\"%c0%02o%c000%c000%c000\\\", "
	"92, b - 1, 92, 92, 92 }')\\\" >i.bin\"]},"
	"\"workloads\":{\"public\":[{\"name\":\"w\",\"axes\":{\"R\":4,\"C\":8}}],\"tiny\":[{\"R\":1,\"C\":8}]}}";

static void sets_and_commands(void **state)
{
	(void)state;
	need();
	struct checker_open q = {.mode = CHECKER_PUBLIC};
	struct oracle_gpu *o;
	struct spec *s;
	struct compare_result r;
	struct err e = {0};
	uint8_t key[32] = {7};
	float in[4][8];
	int32_t got[4], p[8];

	if (spec_parse(ARGMAX, strlen(ARGMAX), "argmax", &s, &e) < 0 ||
	    oracle_gpu_open(&o, &kit, s, &s->public[0].gpu, &q, key, NULL, 0, &e) < 0)
		fail_msg("%s", e.text);
	const struct gpu_mem *m = oracle_gpu_memory(o);
	for (uint32_t k = 0; k < 8; k++) {
		struct checker_prep prep = {.rep = k, .set = k % 3, .perturb = k > 5};
		if (oracle_gpu_prepare(o, &prep, scalars, &e) < 0)
			fail_msg("%s", e.text);
		CHECK(cu.MemcpyDtoH(in, gpu_mem_at(m, &m->l.buf[0]), sizeof in));
		CHECK(cu.MemcpyDtoH(p, gpu_mem_at(m, &m->l.buf[1]), sizeof p));
		int seen = 0;
		for (int i = 0; i < 8; i++)
			seen |= 1 << p[i];
		assert_int_equal(seen, 255);
		for (int row = 0; row < 4; row++) {
			got[row] = 0;
			for (int c = 1; c < 8; c++)
				got[row] = in[row][c] > in[row][got[row]] ? c : got[row];
		}
		static const char *const WANT[] = {"ok", "judge.ties", "judge.index"};
		for (int how = 0; how < 3; how++) {
			got[3] = how == 0 ? got[3] : how == 1 ? got[3] ^ 1 : 8;
			CHECK(cu.MemcpyHtoD(gpu_mem_at(m, &m->l.buf[2]), got, sizeof got));
			if (oracle_gpu_verify(o, &r, &e) < 0)
				fail_msg("%s", e.text);
			assert_string_equal(r.code, WANT[how]);
		}
	}
	oracle_gpu_close(o);
	spec_free(s);
}

static void too_large(void **state)
{
	(void)state;
	need();
	struct mem_layout l = {.page = 2 << 20};
	struct gpu_mem m;
	struct err e = {0};

	assert_int_equal(mem_add(&l, "x", MEM_INPUT, 0, DT_F32, 1ULL << 40, &e), 0);
	l.buf[0].seg_len = l.in_bytes = 1ULL << 40;
	l.buf[0].seg_addr = 1ULL << 40;
	assert_int_equal(gpu_mem_create(&m, &l, 0, &e), -1);
	assert_int_equal(e.code, EX_NOENV);
	assert_non_null(strstr(e.text, "1024.0 GiB wanted"));
}

int main(void)
{
#ifdef __SANITIZE_ADDRESS__
	puts("1..0 # SKIP programs with sanitizers cannot map the addresses that workers share");
	return 0;
#endif
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_way),
		cmocka_unit_test(keys_and_windows),
		cmocka_unit_test(sets_and_commands),
		cmocka_unit_test(too_large),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
