/*
 * test_gpu_run.c - what is decided before a GPU is asked: bounds of tensor maps, sizes of arguments,
 * launches as bytes, which scrub a kernel needs.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/gpu_run.h"
#include "../../stages/lib/worker_rep.h"
#include "../../stages/lib/worker_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static struct tensor_map map2(uint64_t w, uint64_t h, uint64_t stride)
{
	struct tensor_map m = {.element_bytes = 2, .rank = 2, .dim = {w, h}, .stride = {stride}};
	return m;
}

static void maps_stay_inside(void **state)
{
	(void)state;
	struct tensor_map m = map2(64, 8, 128);

	assert_true(gpu_map_fits(&m, 1024));
	assert_false(gpu_map_fits(&m, 1023));
	/* the last row may be shorter than the stride */
	m = map2(40, 8, 128);
	assert_true(gpu_map_fits(&m, 7 * 128 + 80));
	assert_false(gpu_map_fits(&m, 7 * 128 + 79));
	/* a stride shorter than a row, or none: the same bytes again, still inside */
	m = map2(64, 8, 0);
	assert_true(gpu_map_fits(&m, 128));
	assert_false(gpu_map_fits(&m, 127));
	m = map2(1, 1, 1ull << 40);
	assert_true(gpu_map_fits(&m, 2));
	assert_false(gpu_map_fits(&m, 1));
}

static void maps_that_overflow_are_outside(void **state)
{
	(void)state;
	struct tensor_map m = {.element_bytes = 8, .rank = 5,
			       .dim = {1ull << 32, 1ull << 32, 1ull << 32, 1ull << 32, 1ull << 32},
			       .stride = {1ull << 40, 1ull << 40, 1ull << 40, 1ull << 40}};

	assert_false(gpu_map_fits(&m, UINT64_MAX));
	m.dim[4] = 0;
	assert_false(gpu_map_fits(&m, UINT64_MAX));
	m = map2(1ull << 33, 1, 0);
	assert_false(gpu_map_fits(&m, UINT64_MAX));
	m = map2(4, 4, (1ull << 40) + 1);
	assert_false(gpu_map_fits(&m, UINT64_MAX));
	m = map2(4, 4, 8);
	m.rank = 0;
	assert_false(gpu_map_fits(&m, UINT64_MAX));
	m.rank = 6;
	assert_false(gpu_map_fits(&m, UINT64_MAX));
}

static void arguments_have_the_declared_sizes(void **state)
{
	(void)state;
	char text[GPU_TEXT] = "";
	struct launch_arg arg[3] = {{.kind = ARG_BUFFER}, {.kind = ARG_BYTES, .n = 4}, {.kind = ARG_MAP}};
	struct launch l = {.entry = "k", .nargs = 3, .arg = arg};
	const size_t good[] = {8, 4, 128}, wide[] = {8, 8, 128}, narrow[] = {8, 4, 64};

	assert_int_equal(gpu_args_fit(&l, good, 3, text), 0);
	assert_int_equal(gpu_args_fit(&l, good, 2, text), 1);
	assert_string_equal(text, "'k' takes 2 arguments, the plan passes 3");
	assert_int_equal(gpu_args_fit(&l, wide, 3, text), 1);
	assert_string_equal(text, "argument 1 of 'k' has 8 bytes, the plan passes 4");
	assert_int_equal(gpu_args_fit(&l, narrow, 3, text), 1);
}

static void local_memory_picks_its_scrub(void **state)
{
	(void)state;
	assert_int_equal(rep_local(0), 0);
	assert_int_equal(rep_local(1), 1);
	assert_int_equal(rep_local(256), 1);
	assert_int_equal(rep_local(257), 2);
	assert_int_equal(rep_local(16384), 4);
	assert_int_equal(rep_local(16385), -1);
}

static struct launches two(void)
{
	struct launches l = {.nworkspaces = 1, .n = 2, .launch = calloc(2, sizeof *l.launch)};

	strcpy(l.workspace[0].name, "scratch");
	l.workspace[0].bytes = 4096;
	for (int i = 0; i < 2; i++) {
		strcpy(l.launch[i].entry, i ? "second" : "first");
		l.launch[i].grid[0] = 7;
		l.launch[i].nargs = i;
		l.launch[i].arg = calloc(2, sizeof *l.launch[i].arg);
		l.launch[i].arg[0].kind = ARG_BYTES;
		l.launch[i].arg[0].n = 4;
		l.launch[i].arg[0].data[3] = 9;
	}
	return l;
}

static void launches_travel(void **state)
{
	(void)state;
	struct launches l = two(), got;
	struct buf b = BUF_INIT;
	struct err e = {0};

	wire_launches_put(&b, &l);
	assert_int_equal(wire_launches_get(b.data, b.len, &got, &e), 0);
	assert_int_equal(got.n, 2);
	assert_string_equal(got.workspace[0].name, "scratch");
	assert_string_equal(got.launch[1].entry, "second");
	assert_int_equal(got.launch[1].nargs, 1);
	assert_int_equal(got.launch[1].arg[0].data[3], 9);
	launches_free(&got);
	launches_free(&l);
	buf_free(&b);
}

static void cut_launches_are_refused(void **state)
{
	(void)state;
	struct launches l = two(), got;
	struct buf b = BUF_INIT;
	struct err e = {0};

	wire_launches_put(&b, &l);
	for (size_t n = 0; n < b.len; n += 13)
		assert_int_equal(wire_launches_get(b.data, n, &got, &e), -1);
	buf_addc(&b, 'x');
	assert_int_equal(wire_launches_get(b.data, b.len, &got, &e), -1);
	/* a count of arguments beyond any plan */
	int many = PLAN_MAX_ARGS + 1;
	memcpy((char *)b.data + sizeof(int) * 2 + sizeof l.workspace + offsetof(struct launch, nargs), &many,
	       sizeof many);
	assert_int_equal(wire_launches_get(b.data, b.len - 1, &got, &e), -1);
	launches_free(&l);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_stay_inside),
		cmocka_unit_test(maps_that_overflow_are_outside),
		cmocka_unit_test(arguments_have_the_declared_sizes),
		cmocka_unit_test(local_memory_picks_its_scrub),
		cmocka_unit_test(launches_travel),
		cmocka_unit_test(cut_launches_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
