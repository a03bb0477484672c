/*
 * test_gpu_path.c - checker and worker together, on the fake CUDA driver: who wrote what where, which
 * fault is whose, and that the next candidate finds a healthy GPU.
 *
 * Runs itself again with LD_LIBRARY_PATH at a copy of the fake that is set to be quick. Skipped where
 * NVRTC or the fake is missing, and under a sanitizer (the fixed addresses of workers are its own).
 *
 * SPDX-License-Identifier: MIT
 */
#include "../fake/cuda/nvrtc.h"
#include "checker_call.h"
#include "gpu.h"
#include "plan.h"
#include "spec.h"
#include "worker_call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#define UUID "GPU-fa4e0000-0000-4000-8000-000000000001"
#define SPEC "tests/fake/cuda/fake_add"

static struct err e;
static struct spec *spec;
static struct facts facts;
static struct checker *checker;
static struct checker_work work;
static struct worker *worker;
static char *cubin;
static size_t cubin_len;
static uint64_t rep;

#define DO(call) \
	if ((call) < 0) \
	fail_msg("%s: %s", #call, e.text)

static int setup(void **state)
{
	struct gpu g[GPU_MAX];
	char why[GPU_WHY];
	int n = 0;
	struct checker_opts o = {.gpu = UUID, .spec_dir = SPEC, .trial = "test", .stage = "test"};
	struct checker_open q = {.mode = CHECKER_PUBLIC, .index = 0};
	(void)state;
	if (gpu_list(g, &n, why, &e) < 0 || n != 1)
		return -1;
	facts = g[0].facts;
	o.device = facts.slug;
	if (spec_load(SPEC, &spec, &e) < 0 || checker_start(&checker, &o, &e) < 0 ||
	    checker_open(checker, &q, &work, &e) < 0) {
		print_error("%s\n", e.text);
		return -1;
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	checker_close(checker, &work);
	checker_stop(checker);
	spec_free(spec);
	return 0;
}

static void fresh_worker(int64_t timeout_ns)
{
	struct worker_opts o = {.gpu = UUID, .timeout_ns = timeout_ns};
	if (worker)
		worker_stop(worker);
	worker = NULL;
	DO(worker_start(&worker, &o, &e));
	DO(worker_map(worker, 0, &work.layout, work.fd, &e));
}

static enum worker_outcome load(int slot, const char *entry, int us)
{
	char text[1024];
	struct plan *p;
	struct launches l;
	struct worker_result r;
	int mem = 0;
	int n = snprintf(text, sizeof text,
			 "{\"schema\":\"touchstone/plan/1\",\"entries\":[\"%s\"],\"launches\":[{\"entry\":\"%s\","
			 "\"grid\":[32],\"block\":[256],\"args\":[{\"in\":\"x\"},{\"in\":\"y\"},{\"out\":\"out\"},"
			 "{\"axis\":\"N\",\"type\":\"i32\"},{\"const\":%d,\"type\":\"i32\"}]}]}", entry, entry, us);
	DO(plan_parse(text, (size_t)n, "plan.json", &p, &e));
	DO(plan_resolve(p, spec, &work.axes, &facts, 0, &l, &e));
	DO(worker_load(worker, slot, cubin, cubin_len, &l, spec, 1, &mem, &r, &e));
	launches_free(&l);
	plan_free(p);
	return r.outcome;
}

/* One rep: inputs, the run, the verdict. */
static struct compare_result shoot(int slot, struct worker_result *r)
{
	struct checker_prep p = {.rep = ++rep, .set = 0, .perturb = 1, .poison = (uint32_t)rep};
	struct worker_run q = {.scrub_seed = rep};
	double scalars[CHECKER_SCALARS];
	struct compare_result c = {0};
	DO(checker_prepare(checker, &work, &p, scalars, &e));
	DO(worker_run(worker, slot, &q, r, &e));
	DO(checker_verify(checker, &work, &c, &e));
	return c;
}

/* A good candidate in a new worker: what came before left nothing behind. */
static void healthy(void)
{
	struct worker_result r;
	fresh_worker(0);
	assert_int_equal(load(0, "add_good", 0), WORKER_OK);
	struct compare_result c = shoot(0, &r);
	assert_int_equal(r.outcome, WORKER_OK);
	assert_string_equal(c.code, "ok");
}

/* --- tests --- */

static void good_and_wrong(void **state)
{
	struct worker_result r;
	(void)state;
	fresh_worker(0);
	assert_int_equal(load(0, "add_good", 100), WORKER_OK);
	assert_int_equal(load(1, "add_wrong", 100), WORKER_OK);
	for (int i = 0; i < 4; i++) { /* in turn: one's result never passes for the other's */
		struct compare_result c = shoot(0, &r);
		assert_int_equal(r.outcome, WORKER_OK);
		assert_true(c.pass);
		assert_true(r.elapsed_ns > 100000 && r.elapsed_ns < 3000000);
		c = shoot(1, &r);
		assert_int_equal(r.outcome, WORKER_OK);
		assert_false(c.pass);
		assert_string_equal(c.code, "judge.element");
		assert_true(i == 0 || !r.rebuilt); /* the same shape: the same executable graph */
	}
}

static void times_are_the_kernels(void **state)
{
	struct worker_result r;
	int64_t slow = 0, fast = 0;
	(void)state;
	fresh_worker(0);
	assert_int_equal(load(0, "add_good", 300), WORKER_OK);
	assert_int_equal(load(1, "add_good", 100), WORKER_OK);
	for (int i = 0; i < 8; i++) {
		shoot(0, &r);
		slow += r.elapsed_ns;
		shoot(1, &r);
		fast += r.elapsed_ns;
	}
	/* 200 us apart a rep, whatever the host's own part is */
	assert_true(slow - fast > 8 * 150000 && slow - fast < 8 * 350000);
}

static void state_is_put_back(void **state)
{
	struct worker_result r;
	(void)state;
	fresh_worker(0);
	assert_int_equal(load(0, "add_lazy", 0), WORKER_OK);
	assert_int_equal(load(1, "add_counter", 0), WORKER_OK);
	for (int i = 0; i < 3; i++) { /* right in their first call only: every rep is the first */
		assert_string_equal(shoot(0, &r).code, "ok");
		assert_string_equal(shoot(1, &r).code, "ok");
	}
}

static void guard_write(void **state)
{
	struct worker_result r;
	(void)state;
	fresh_worker(0);
	assert_int_equal(load(0, "add_guard", 0), WORKER_OK);
	assert_string_equal(shoot(0, &r).code, "judge.guard_write");
	assert_int_equal(r.outcome, WORKER_OK);
}

static void fault(const char *entry, enum worker_outcome want)
{
	struct worker_result r;
	struct checker_prep p = {.rep = ++rep, .poison = (uint32_t)rep};
	struct worker_run q = {.scrub_seed = rep};
	double scalars[CHECKER_SCALARS];
	struct compare_result c;
	fresh_worker(1500000000);
	assert_int_equal(load(0, entry, 0), WORKER_OK);
	DO(checker_prepare(checker, &work, &p, scalars, &e));
	DO(worker_run(worker, 0, &q, &r, &e));
	assert_int_equal(r.outcome, want);
	assert_true(r.text[0] && !r.killed);
	assert_int_equal(worker_alive(worker), 0);
	DO(checker_verify(checker, &work, &c, &e)); /* the checker's own context is well */
	healthy();
}

static void illegal_address(void **state)
{
	(void)state;
	fault("add_illegal", WORKER_FAULT);
}
static void inputs_are_read_only(void **state)
{
	(void)state;
	fault("add_write_input", WORKER_FAULT);
}
static void trap(void **state)
{
	(void)state;
	fault("add_trap", WORKER_FAULT);
}
static void hang(void **state)
{
	(void)state;
	fault("add_hang", WORKER_TIMEOUT);
}

static void what_does_not_fit(void **state)
{
	(void)state;
	fresh_worker(0);
	assert_int_equal(load(0, "no_such_entry", 0), WORKER_REFUSED);
	assert_true(worker_alive(worker)); /* refused is no fault */
	assert_int_equal(load(0, "add_good", 0), WORKER_OK);
}

static void figures(void **state)
{
	struct worker_figures f;
	struct worker_ceilings c;
	(void)state;
	fresh_worker(0);
	DO(worker_figures(worker, &f, &e));
	assert_true(f.tick_ns >= 32 && f.empty_ns > 0 && f.null_ns > f.empty_ns && f.flush_bytes > 0);
	DO(worker_ceilings(worker, &c, &e));
	assert_true(c.copy_gbs > 0 && c.read_gbs > 0 && c.write_gbs > 0 && c.fp32_tflops > 0 && c.bf16_tflops > 0);
	worker_stop(worker);
	worker = NULL;
}

/* A copy of the fake with settings of its own: they reach confined processes too. */
static void again(char **argv)
{
	const char *dir = getenv("BUILD");
	char command[8192], path[4096], gpu[] = "/tmp/test_gpu_path.XXXXXX";
	snprintf(path, sizeof path, "%s/test/fake/cuda/libcuda.so.1", dir && *dir ? dir : ".build");
	if (access(path, R_OK) || !mkdtemp(gpu))
		return;
	snprintf(command, sizeof command,
		 "chmod 755 %s && cp %s/test/fake/cuda/*.so.1 %s && "
		 "printf 'FAKE_CUDA_GRANULE=65536\\nFAKE_CUDA_L2=65536\\n' >%s/fake.conf",
		 gpu, dir && *dir ? dir : ".build", gpu, gpu);
	setenv("LD_LIBRARY_PATH", gpu, 1);
	setenv("TEST_GPU_PATH", gpu, 1);
	if (system(command) == 0)
		execv(argv[0], argv);
}

int main(int argc, char **argv)
{
	(void)argc;
#ifdef __SANITIZE_ADDRESS__
	puts("1..0 # SKIP programs with sanitizers cannot map the addresses that workers share");
	return 0;
#endif
	const char *gpu = getenv("TEST_GPU_PATH");
	if (!gpu)
		again(argv);
	if (!gpu || !nvrtc_open()) {
		puts("1..0 # SKIP no NVRTC on this machine, or no fake driver built");
		return 0;
	}
	cubin = cubin_of("tests/fake/cuda/kernels/add.cu", &cubin_len);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_and_wrong),	cmocka_unit_test(times_are_the_kernels),
		cmocka_unit_test(state_is_put_back),	cmocka_unit_test(guard_write),
		cmocka_unit_test(illegal_address),	cmocka_unit_test(inputs_are_read_only),
		cmocka_unit_test(trap),			cmocka_unit_test(hang),
		cmocka_unit_test(what_does_not_fit),	cmocka_unit_test(figures),
	};
	int failed = cmocka_run_group_tests(tests, setup, teardown);
	char command[4096];
	snprintf(command, sizeof command, "rm -rf %s", gpu);
	return system(command) != 0 || failed;
}
