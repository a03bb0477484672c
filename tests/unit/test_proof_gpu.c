/*
 * test_proof_gpu.c - the examination on a GPU, on the fake driver of the tests: honest kernels pass,
 * each slip fails for its own reason, and a failure costs no more than its deadline. Also tune's
 * timings. Runs the real box, worker and checker; needs NVRTC to make cubins.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/arm_impl.h"
#include "../../stages/lib/file.h"
#include "../../stages/lib/gpu.h"
#include "../../stages/lib/image.h"
#include "../../stages/lib/proof.h"
#include "../../stages/lib/toolkit.h"
#include "../../stages/lib/tune_gpu.h"
#include "../../stages/lib/worker_pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPEC_DIR "tests/fake/cuda/fake_add"

/* The driver runs the host build of that name; what it does is said in tests/fake/cuda/kernels/add.cu. */
static const struct {
	const char *entry, *words;
} ZOO[] = {
	{"add_good", "ok"},
	{"add_shared", "ok"},
	{"add_counter", "ok"},      /* its variable is put back before each run */
	{"add_lazy", "ok"},
	{"add_wrong", "wrong"},
	{"add_guard", "guard_write"},
	{"add_write_input", "fault"},
	{"add_illegal", "fault"},
	{"add_trap", "fault"},
	{"add_hang", "timeout"},
	{"add_good", "ok"},         /* after all of those the GPU works as before */
};

static struct spec *spec;
static struct checker *checker;
static struct gpu gpu;
static struct proof proof;
static int missing; /* why there is nothing to test here */

static int setup(void **state)
{
	(void)state;
	char fake[PATH_MAX + 32], lib[PATH_MAX + 64];
	const char *build = getenv("BUILD");
	struct toolkit *kit = xcalloc(1, sizeof *kit);
	struct err e = {0};

	snprintf(fake, sizeof fake, "%s/test/fake/cuda", build ? build : ".build");
	snprintf(lib, sizeof lib, "%s/libcuda.so.1", fake);
	missing = access(lib, R_OK) != 0 || toolkit_find(kit, &e) < 0 || !realpath(fake, lib);
	free(kit);
	if (missing)
		return 0;
	setenv("LD_LIBRARY_PATH", lib, 1);
	if (spec_load(SPEC_DIR, &spec, &e) < 0 || gpu_find("cuda", &gpu, &e) < 0) {
		print_error("%s\n", e.text);
		return -1;
	}
	struct checker_opts o = {.device = gpu.facts.slug, .gpu = gpu.uuid, .spec_dir = SPEC_DIR,
				 .trial = "test", .stage = "test"};
	if (checker_start(&checker, &o, &e) < 0) {
		print_error("%s\n", e.text);
		return -1;
	}
	proof = (struct proof){.checker = checker, .spec = spec, .device = gpu.facts.slug, .gpu = gpu.uuid,
			       .facts = &gpu.facts};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	worker_pool_stop();
	checker_stop(checker);
	spec_free(spec);
	return 0;
}

/* The baseline with another entry and `us` microseconds more. */
static void build(struct image *m, const char *entry, int us)
{
	static const char KERNEL[] =
		"%sextern \"C\" __global__ void %s(const float *x, const float *y, float *out, int n, int us)\n{\n"
		"\tint i = blockIdx.x * blockDim.x + threadIdx.x;\n\tif (i < n)\n\t\tout[i] = x[i] + y[i] + us;\n"
		"%s}\n";
	static const char PLAN[] =
		"{\"schema\":\"touchstone/plan/1\",\"entries\":[\"%s\"],"
		"\"tunables\":{\"US\":{\"values\":[100,200,400],\"value\":%d}},"
		"\"launches\":[{\"entry\":\"%s\",\"grid\":[\"ceil_div(N, 256)\"],\"block\":[256],"
		"\"args\":[{\"in\":\"x\"},{\"in\":\"y\"},{\"out\":\"out\"},{\"axis\":\"N\",\"type\":\"i32\"},"
		"{\"expr\":\"US\",\"type\":\"i32\"}]}]}";
	struct buf kernel = BUF_INIT, plan = BUF_INIT;
	struct err e = {0};

	/* Variables belong to a module: those that the host build uses must be there. That it writes them, guard does not
	 * see: as if it had been got round. */
	int state = !strcmp(entry, "add_counter") || !strcmp(entry, "add_lazy");
	buf_addf(&kernel, KERNEL, state ? "__device__ int add_calls;\n__device__ int add_seed = 7;\n" : "", entry,
		 state ? "\tout[0] += add_calls + add_seed;\n" : "");
	buf_addf(&plan, PLAN, entry, us, entry);
	if (image_text(m, spec, &kernel, &plan, "plan.json", &e) < 0 ||
	    image_build_gpu(m, spec, SPEC_DIR, gpu.arch, NULL, &e) < 0)
		fail_msg("%s: %s", entry, e.text);
	if (!m->ok)
		fail_msg("%s: %s %s\n%s", entry, m->box.code, m->box.message, m->box.log);
	buf_free(&kernel);
	buf_free(&plan);
}

/* "wrong": any way in which values differ, the order of regimes is secret. */
static int is_word(const char *want, const char *word)
{
	static const char *const WRONG[] = {"element", "exact", "rel_l2", "row", "error_ratio", "bias", NULL};

	for (int i = 0; !strcmp(want, "wrong") && WRONG[i]; i++)
		if (!strcmp(word, WRONG[i]))
			return 1;
	return !strcmp(want, word);
}

static void zoo(void **state)
{
	(void)state;
	struct proof_report *r = xcalloc(1, sizeof *r);

	if (missing)
		skip();
	for (size_t i = 0; i < sizeof ZOO / sizeof ZOO[0]; i++) {
		struct image m;
		struct err e = {0};
		build(&m, ZOO[i].entry, 100);
		struct proof_arm a = {.plan = m.plan, .set = &m.set};
		int64_t from = arm_now_ns();
		if (proof_judge(&proof, &a, &PROOF_JUDGE_CUDA, r, &e) < 0)
			fail_msg("%s: %s", ZOO[i].entry, e.text);
		double s = (double)(arm_now_ns() - from) * 1e-9;
		print_message("    %-18s %-12s at %-20s %.2f s, %d shapes\n", ZOO[i].entry, r->word, r->where, s,
			      r->n);
		if (!is_word(ZOO[i].words, r->word))
			fail_msg("%s: '%s' at '%s', not '%s'\n%s", ZOO[i].entry, r->word, r->where,
				 ZOO[i].words, r->text);
		if (r->pass)
			assert_true(r->deterministic && !r->orders);
		image_free(&m);
	}
	free(r);
}

/* A hang must not hold the lane for the spec's limit of many seconds. */
static void hang_is_short(void **state)
{
	(void)state;
	struct checker_open q = {.mode = CHECKER_PUBLIC, .index = 0};
	struct checker_prep p = {.rep = 3, .perturb = 1};
	struct proof_out *o = xcalloc(1, sizeof *o);
	struct proof_work w;
	struct image m;
	struct err e = {0};

	if (missing)
		skip();
	build(&m, "add_hang", 100);
	struct proof_arm a = {.plan = m.plan, .set = &m.set};
	assert_int_equal(proof_open(&proof, &a, &q, &w, &e), 0);
	int64_t from = arm_now_ns();
	assert_int_equal(proof_rep(&w, &p, ARM_FORWARD, 1, o, &e), 0);
	assert_int_equal(o->status, ARM_TIMEOUT);
	assert_true(arm_now_ns() - from < 5000000000);
	proof_close(&w);
	image_free(&m);
	free(o);
}

static void tune_times(void **state)
{
	(void)state;
	static const int US[4] = {400, 100, 200, 100};
	static const char *const ENTRY[4] = {"add_good", "add_good", "add_wrong", "add_illegal"};
	struct tune_timing t[4];
	struct image m[4];
	struct err e = {0};

	if (missing)
		skip();
	memset(t, 0, sizeof t);
	for (int i = 0; i < 4; i++) {
		build(&m[i], ENTRY[i], US[i]);
		t[i] = (struct tune_timing){.plan = m[i].plan, .set = &m[i].set, .right = 1};
	}
	if (tune_gpu_time(&proof, t, 4, &e) < 0)
		fail_msg("%s", e.text);
	assert_true(t[0].right && t[1].right && !t[2].right && !t[3].right);
	assert_string_equal(t[3].word, "fault");
	assert_true(is_word("wrong", t[2].word));
	for (int k = 0; k < spec->npublic; k++)
		assert_true(t[0].ns[k] - t[1].ns[k] > 200000 && t[0].ns[k] - t[1].ns[k] < 450000);
	for (int i = 0; i < 4; i++)
		image_free(&m[i]);
}

/* Two that hang are enough to know the source. */
static void tune_stops_at_hangs(void **state)
{
	(void)state;
	static const char *const ENTRY[3] = {"add_hang", "add_hang", "add_good"};
	struct tune_timing t[3];
	struct image m[3];
	struct err e = {0};

	if (missing)
		skip();
	memset(t, 0, sizeof t);
	for (int i = 0; i < 3; i++) {
		build(&m[i], ENTRY[i], i < 2 ? 100 * (i + 1) : 400);
		t[i] = (struct tune_timing){.plan = m[i].plan, .set = &m[i].set, .right = 1};
	}
	if (tune_gpu_time(&proof, t, 3, &e) < 0)
		fail_msg("%s", e.text);
	for (int i = 0; i < 3; i++) {
		assert_false(t[i].right);
		assert_string_equal(t[i].word, "timeout");
		image_free(&m[i]);
	}
}

int main(void)
{
#ifdef __SANITIZE_ADDRESS__
	puts("1..0 # SKIP programs with sanitizers cannot map the addresses that workers share");
	return 0;
#endif
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zoo),
		cmocka_unit_test(hang_is_short),
		cmocka_unit_test(tune_times),
		cmocka_unit_test(tune_stops_at_hangs),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
