/*
 * test_arm_cuda.c - an arm on the fake GPU: plans resolved with the artefact's facts, outcomes, the
 * worker kept between two arms.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_gpu.h"

#include "../../stages/lib/arm.h"
#include "../../stages/lib/facts.h"
#include "../../stages/lib/worker_pool.h"

#include <stdio.h>
#include <time.h>

static struct box_result built;
static struct spec *spec;
static struct facts facts;

/* As many blocks as fit at once: only the artefact knows how many registers there are. */
static const char PLAN[] =
	"{\"schema\":\"touchstone/plan/1\",\"entries\":[\"%s\"],\"launches\":[{\"entry\":\"%s\","
	"\"grid\":[\"min(4, occupancy(%s) * sm_count)\"],\"block\":[256],\"args\":[{\"in\":\"x\"},{\"in\":\"y\"},"
	"{\"out\":\"out\"},{\"axis\":\"N\",\"type\":\"%s\"},{\"const\":20,\"type\":\"i32\"}]}]}";

static int setup(void **state)
{
	struct buf text = BUF_INIT, out = BUF_INIT;
	struct err e = {0};

	(void)state;
	if (fake_start() < 0)
		return -1;
	if (why_not)
		return 0;
	if (spec_load("tests/fake/cuda/fake_add", &spec, &e) < 0 || facts_find("sim", &facts, &e) < 0 ||
	    file_read("tests/fake/cuda/kernels/add.cu", 1 << 20, &text, &e) < 0 || compile(&text, &out, &built) < 0) {
		fprintf(stderr, "cannot set up: %s\n", e.text);
		return -1;
	}
	facts.class = DEVICE_CUDA;
	for (int i = 0; i < 2 && !why_not; i++)
		set_make(i);
	buf_free(&text);
	buf_free(&out);
	return 0;
}

static int arm_try(const char *entry, const char *axis_type, const char *sha, struct arm **a, struct err *e)
{
	char text[sizeof PLAN + 128];
	struct plan *plan;
	struct axes axes = {.v = {N}};

	if (why_not) {
		print_message("skipped: %s\n", why_not);
		skip();
	}
	snprintf(text, sizeof text, PLAN, entry, entry, entry, axis_type);
	if (plan_parse(text, strlen(text), "plan.json", &plan, e) < 0)
		fail_msg("%s", e->text);
	struct arm_opts o = {.device = "fake-gpu-tests", .facts = &facts, .gpu = GPU, .artefact = built.path,
			     .artefact_sha = sha, .spec = spec, .plan = plan, .axes = &axes, .layout = &set[0].l,
			     .in_fd = -1, .rw_fd = -1, .fd = set[0].fd, .timeout_ns = 1000000000};
	int rc = arm_open(a, &o, e);
	plan_free(plan);
	return rc;
}

static struct arm *arm_new(const char *entry, const char *axis_type)
{
	struct arm *a;
	struct err e = {0};

	if (arm_try(entry, axis_type, built.sha256, &a, &e) < 0)
		fail_msg("arm_open: %s", e.text);
	return a;
}

static enum arm_status run(struct arm *a, struct arm_result *r)
{
	struct arm_run_opts q = {.scrub_seed = 5};
	struct err e = {0};

	set_fill(0, 2);
	if (arm_run(a, &q, r, &e) < 0)
		fail_msg("arm_run: %s", e.text);
	return r->status;
}

static void good(void **state)
{
	(void)state;
	struct arm_result r;
	struct arm *a = arm_new("add_good", "i32");

	assert_true(confine_minimum(arm_isolation(a)));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(run(a, &r), ARM_OK);
		assert_int_equal(set_right(0, 2), N);
		assert_true(r.elapsed_ns > 20000 && r.wall_ns > r.elapsed_ns / 100);
		assert_int_equal(r.late_ns, 0);
		arm_wipe(a, &r);
		assert_int_equal(r.status, ARM_OK);
	}
	assert_true(arm_alive(a));
	arm_close(a);
}

static void the_worker_is_kept(void **state)
{
	(void)state;
	struct worker *w, *again;
	struct worker_opts o = {.gpu = GPU};
	struct err e = {0};

	arm_close(arm_new("add_good", "i32"));
	assert_int_equal(worker_pool_take(&w, &o, &e), 0);
	worker_pool_give(w, GPU);
	arm_close(arm_new("add_shared", "i32"));
	assert_int_equal(worker_pool_take(&again, &o, &e), 0);
	assert_ptr_equal(again, w);
	worker_pool_give(again, GPU);
}

static void refused(void **state)
{
	(void)state;
	struct arm_result r;
	struct arm *a = arm_new("add_good", "i64");

	assert_false(arm_alive(a));
	assert_int_equal(run(a, &r), ARM_REFUSED);
	assert_string_equal(r.text, "argument 3 of 'add_good' has 4 bytes, the plan passes 8");
	arm_close(a);
}

static void faulty(void **state)
{
	(void)state;
	struct arm_result r;
	struct arm *a = arm_new("add_trap", "i32");

	assert_int_equal(run(a, &r), ARM_FAULT);
	assert_false(arm_alive(a));
	arm_close(a);
	a = arm_new("add_hang", "i32");
	assert_int_equal(run(a, &r), ARM_TIMEOUT);
	assert_false(arm_alive(a));
	arm_close(a);
	/* and the next one has a worker of its own */
	a = arm_new("add_good", "i32");
	assert_int_equal(run(a, &r), ARM_OK);
	arm_close(a);
}

static void another_artefact_is_not_run(void **state)
{
	(void)state;
	struct arm *a = NULL;
	struct err e = {0};
	char sha[HASH_HEX];

	memset(sha, '0', sizeof sha - 1);
	sha[sizeof sha - 1] = 0;
	assert_int_equal(arm_try("add_good", "i32", sha, &a, &e), -1);
	assert_int_equal(e.code, EX_BADINPUT);
	assert_null(a);
	/* an entry that it lacks */
	struct arm_result r;
	a = arm_new("no_such_entry", "i32");
	assert_int_equal(run(a, &r), ARM_REFUSED);
	arm_close(a);
}

int main(void)
{
#ifdef __SANITIZE_ADDRESS__
	puts("1..0 # SKIP programs with sanitizers cannot map the addresses that workers share");
	return 0;
#endif
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good), cmocka_unit_test(the_worker_is_kept), cmocka_unit_test(refused),
		cmocka_unit_test(faulty), cmocka_unit_test(another_artefact_is_not_run),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
