/*
 * test_worker.c - a worker on the fake driver (tests/fake/cuda): start, memory, reps, faults.
 *
 * Needs NVRTC, which makes the real cubins that the fake driver reads; skipped without.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_gpu.h"
#include "../../stages/lib/worker_part.h"

#include <stdio.h>
#include <signal.h>

static struct buf cubin = BUF_INIT, crowded = BUF_INIT; /* the second has more variables than a list holds */

static int compile_both(void)
{
	struct buf text = BUF_INIT;
	struct err e = {0};

	if (file_read("tests/fake/cuda/kernels/add.cu", 1 << 20, &text, &e) < 0)
		return -1;
	static struct box_result r;
	int rc = compile(&text, &cubin, &r);
	for (int i = 0; i < 80; i++)
		buf_addf(&text, "__device__ int pad_%d;\n", i);
	buf_adds(&text, "extern \"C\" __global__ void pads(int *o)\n{\n	o[0] = 0");
	for (int i = 0; i < 80; i++)
		buf_addf(&text, " + pad_%d++", i);
	buf_adds(&text, ";\n}\n");
	if (rc == 0 && !why_not)
		rc = compile(&text, &crowded, &r);
	buf_free(&text);
	return rc;
}

static int setup(void **state)
{
	(void)state;
	if (fake_start() < 0 || (!why_not && compile_both() < 0))
		return -1;
	for (int i = 0; i < MEMS && !why_not; i++)
		set_make(i);
	return 0;
}

static struct worker *worker_new(void)
{
	struct worker_opts o = {.gpu = GPU, .timeout_ns = 20000000000};
	struct worker *w;
	struct err e = {0};

	if (why_not) {
		print_message("skipped: %s\n", why_not);
		skip();
	}
	if (worker_start(&w, &o, &e) < 0)
		fail_msg("worker_start: %s", e.text);
	for (int i = 0; i < MEMS; i++)
		assert_int_equal(worker_map(w, i, &set[i].l, set[i].fd, &e), 0);
	return w;
}

static const struct buf *artefact = &cubin;

static void load(struct worker *w, int slot, const char *entry, int windows, int nargs, struct worker_result *r)
{
	static const int mem[MEMS] = {0, 1, 2};
	struct launch_arg arg[5] = {
		{.kind = ARG_BUFFER, .role = ROLE_INPUT, .index = 0}, {.kind = ARG_BUFFER, .role = ROLE_INPUT, .index = 1},
		{.kind = ARG_BUFFER, .role = ROLE_OUTPUT, .index = 0}, {.kind = ARG_BYTES, .n = 4},
		{.kind = ARG_BYTES, .n = 4},
	};
	struct launch l = {.grid = {4, 1, 1}, .block = {256, 1, 1}, .cluster = {1, 1, 1}, .nargs = nargs, .arg = arg};
	struct launches all = {.n = 1, .launch = &l};
	int n = N, us = 20;
	struct err e = {0};

	memcpy(arg[3].data, &n, 4);
	memcpy(arg[4].data, &us, 4);
	snprintf(l.entry, sizeof l.entry, "%s", entry);
	if (worker_load(w, slot, artefact->data, artefact->len, &all, NULL, windows, mem, r, &e) < 0)
		fail_msg("worker_load: %s", e.text);
}

static void run(struct worker *w, int slot, const struct worker_run *q, struct worker_result *r)
{
	struct err e = {0};

	if (worker_run(w, slot, q, r, &e) < 0)
		fail_msg("worker_run: %s", e.text);
}

/* ---- tests ---- */

static void a_rep_is_right_and_timed(void **state)
{
	(void)state;
	struct worker *w = worker_new();
	struct worker_result r;
	struct worker_run q = {.scrub_seed = 1}, drained = {.scrub_seed = 2, .drain = 1};
	struct err e = {0};

	assert_true(confine_minimum(worker_isolation(w)));
	load(w, 0, "add_good", 1, 5, &r);
	assert_int_equal(r.outcome, WORKER_OK);
	set_fill(0, 2);
	run(w, 0, &q, &r);
	assert_int_equal(r.outcome, WORKER_OK);
	assert_int_equal(set_right(0, 2), N);
	assert_true(r.elapsed_ns > 20000 && r.elapsed_ns < 100000000);
	assert_int_equal(r.rebuilt, 1);
	set_fill(0, 3);
	run(w, 0, &q, &r);
	assert_int_equal(set_right(0, 3), N);
	assert_int_equal(r.rebuilt, 0);
	/* The shortest of five each: other work on this processor only ever adds. */
	int64_t plain = INT64_MAX, drain = INT64_MAX;
	for (int i = 0; i < 5; i++) {
		run(w, 0, &q, &r);
		plain = r.elapsed_ns < plain ? r.elapsed_ns : plain;
	}
	run(w, 0, &drained, &r);
	assert_int_equal(r.rebuilt, 1);
	for (int i = 0; i < 5; i++) {
		run(w, 0, &drained, &r);
		drain = r.elapsed_ns < drain ? r.elapsed_ns : drain;
	}
	assert_true(drain > plain);
	assert_int_equal(worker_unmap(w, 2, &e), 0);
	assert_int_equal(worker_unload(w, 0, &e), 0);
	worker_stop(w);
}

static void slots_share_one_graph(void **state)
{
	(void)state;
	struct worker *w = worker_new();
	struct worker_result r;
	struct worker_run q = {.scrub_seed = 1};

	load(w, 0, "add_good", 1, 5, &r);
	load(w, 1, "add_wrong", 1, 5, &r);
	for (int i = 0; i < 6; i++) {
		set_fill(0, 2);
		run(w, i % 2, &q, &r);
		assert_int_equal(set_right(0, 2), i % 2 ? N - 1 : N);
		assert_int_equal(r.rebuilt, i == 0);
	}
	worker_stop(w);
}

static void windows_have_memory_of_their_own(void **state)
{
	(void)state;
	struct worker *w = worker_new();
	struct worker_result r;
	struct worker_run q = {.scrub_seed = 1};

	load(w, 0, "add_good", MEMS, 5, &r);
	for (int i = 0; i < MEMS; i++)
		set_fill(i, (float)i + 1);
	run(w, 0, &q, &r);
	assert_int_equal(r.outcome, WORKER_OK);
	for (int i = 0; i < MEMS; i++)
		assert_int_equal(set_right(i, (float)i + 1), N);
	assert_true(r.elapsed_ns > MEMS * 20000);
	worker_stop(w);
}

/* Right in its first call only; and one that computes once: neither sees its own past. */
static void globals_are_restored(void **state)
{
	(void)state;
	struct worker *w = worker_new();
	struct worker_result r;
	struct worker_run q = {.scrub_seed = 1};
	const char *const entry[] = {"add_counter", "add_lazy"};

	for (int k = 0; k < 2; k++) {
		load(w, k, entry[k], 1, 5, &r);
		for (int i = 0; i < 3; i++) {
			set_fill(0, 2);
			run(w, k, &q, &r);
			assert_int_equal(set_right(0, 2), N);
		}
	}
	worker_stop(w);
}

/* Nor do they from one window to the next; and a rep that looks is as right as any. */
static void globals_are_restored_between_windows(void **state)
{
	(void)state;
	struct worker *w = worker_new();
	struct worker_result r;
	const char *const entry[] = {"add_counter", "add_lazy", "add_good"};

	for (int k = 0; k < 3; k++) {
		load(w, k, entry[k], MEMS, 5, &r);
		for (int i = 0; i < 3; i++) {
			struct worker_run q = {.scrub_seed = 1, .look = i == 1};
			for (int m = 0; m < MEMS; m++)
				set_fill(m, (float)(i + m));
			run(w, k, &q, &r);
			assert_int_equal(r.outcome, WORKER_OK);
			for (int m = 0; m < MEMS; m++)
				assert_int_equal(set_right(m, (float)(i + m)), N);
		}
	}
	artefact = &crowded;
	load(w, 3, "pads", MEMS, 1, &r);
	assert_int_equal(r.outcome, WORKER_REFUSED);
	artefact = &cubin;
	worker_stop(w);
}

/* Variables that cannot all be put back: the module is loaded anew before each rep. */
static void modules_are_reloaded(void **state)
{
	(void)state;
	struct worker *w = worker_new();
	struct worker_result r;
	struct worker_run q = {.scrub_seed = 1};

	artefact = &crowded;
	load(w, 0, "add_counter", 1, 5, &r);
	artefact = &cubin;
	assert_int_equal(r.outcome, WORKER_OK);
	load(w, 1, "add_good", 1, 5, &r);
	for (int i = 0; i < 4; i++) {
		set_fill(0, 2);
		run(w, i == 2, &q, &r);
		assert_int_equal(set_right(0, 2), N);
	}
	worker_stop(w);
}

static void a_fault_ends_the_worker_alone(void **state)
{
	(void)state;
	const char *const entry[] = {"add_illegal", "add_write_input"};

	for (int k = 0; k < 2; k++) {
		struct worker *w = worker_new();
		struct worker_result r;
		struct worker_run q = {.scrub_seed = 1};
		load(w, 0, entry[k], 1, 5, &r);
		set_fill(0, 2);
		run(w, 0, &q, &r);
		assert_int_equal(r.outcome, WORKER_FAULT);
		assert_non_null(strstr(r.text, "CUDA_ERROR_ILLEGAL_ADDRESS"));
		assert_false(worker_alive(w));
		worker_stop(w);
	}
	CHECK(cu.CtxSynchronize());
	worker_stop(worker_new());
}

static void a_hang_is_killed(void **state)
{
	(void)state;
	struct worker *w = worker_new();
	struct worker_result r;
	struct worker_run q = {.scrub_seed = 1, .timeout_ns = 700000000};

	load(w, 0, "add_hang", 1, 5, &r);
	set_fill(0, 2);
	run(w, 0, &q, &r);
	assert_int_equal(r.outcome, WORKER_TIMEOUT);
	assert_false(r.killed);
	assert_false(worker_alive(w));
	worker_stop(w);
	worker_stop(worker_new());
}

/* A stopped worker cannot answer: no fault of the kernel in it. */
static void a_stop_is_nobodys_timeout(void **state)
{
	(void)state;
	struct worker *w = worker_new();
	struct worker_result r;
	struct worker_run q = {.scrub_seed = 1, .timeout_ns = 300000000};
	struct err e = {0};

	load(w, 0, "add_good", 1, 5, &r);
	set_fill(0, 2);
	assert_int_equal(kill(w->proc.pid, SIGSTOP), 0);
	assert_int_equal(worker_run(w, 0, &q, &r, &e), 0);
	assert_int_equal(r.outcome, WORKER_DIED);
	assert_true(r.killed);
	assert_false(worker_alive(w));
	worker_stop(w);
}

static void what_does_not_fit_is_refused(void **state)
{
	(void)state;
	struct worker *w = worker_new();
	struct worker_result r;
	struct worker_run q = {.scrub_seed = 1};

	load(w, 0, "add_good", 1, 4, &r);
	assert_int_equal(r.outcome, WORKER_REFUSED);
	assert_non_null(strstr(r.text, "takes 5 arguments, the plan passes 4"));
	load(w, 0, "no_such_entry", 1, 5, &r);
	assert_int_equal(r.outcome, WORKER_REFUSED);
	/* and the worker goes on */
	load(w, 0, "add_good", 1, 5, &r);
	set_fill(0, 2);
	run(w, 0, &q, &r);
	assert_int_equal(set_right(0, 2), N);
	worker_stop(w);
}

static void the_machine_has_figures(void **state)
{
	(void)state;
	struct worker *w = worker_new();
	struct worker_figures f;
	struct worker_ceilings c;
	struct err e = {0};

	assert_int_equal(worker_figures(w, &f, &e), 0);
	assert_int_equal((int)f.tick_ns, 32);
	assert_true(f.empty_ns > 0 && f.null_ns > f.empty_ns);
	assert_int_equal(f.flush_bytes, 3 * 2097152);
	assert_true(f.flush_check > 0);
	assert_int_equal(worker_ceilings(w, &c, &e), 0);
	assert_true(c.copy_gbs > 0 && c.read_gbs > 0 && c.write_gbs > 0 && c.fp32_tflops > 0);
	worker_stop(w);
}

int main(void)
{
#ifdef __SANITIZE_ADDRESS__
	puts("1..0 # SKIP programs with sanitizers cannot map the addresses that workers share");
	return 0;
#endif
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rep_is_right_and_timed),
		cmocka_unit_test(slots_share_one_graph),
		cmocka_unit_test(windows_have_memory_of_their_own),
		cmocka_unit_test(globals_are_restored),
		cmocka_unit_test(globals_are_restored_between_windows),
		cmocka_unit_test(modules_are_reloaded),
		cmocka_unit_test(a_fault_ends_the_worker_alone),
		cmocka_unit_test(a_hang_is_killed),
		cmocka_unit_test(a_stop_is_nobodys_timeout),
		cmocka_unit_test(what_does_not_fit_is_refused),
		cmocka_unit_test(the_machine_has_figures),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
