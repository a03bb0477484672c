/*
 * test_plans.c - every example plan parses, fits its spec and resolves to the expected numbers.
 *
 * Reads tests/plans/ and tests/gpu/truth/ below the working directory (the root of the repository).
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/file.h"
#include "../../stages/lib/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct spec *spec;
static struct plan *plan;
static struct launches now;
static struct facts facts;

static void load_at(const char *dir)
{
	struct err e = {0};
	struct buf text = BUF_INIT;
	char path[128];
	if (spec_load(dir, &spec, &e))
		fail_msg("%s", e.text);
	snprintf(path, sizeof path, "%s/plan.json", dir);
	if (file_read(path, PLAN_MAX_BYTES, &text, &e) ||
	    plan_parse(buf_str(&text), text.len, path, &plan, &e) || plan_check(plan, spec, &e))
		fail_msg("%s", e.text);
	buf_free(&text);
}

static void load(const char *name)
{
	char dir[128];
	snprintf(dir, sizeof dir, "tests/plans/%s", name);
	load_at(dir);
}

static void unload(void)
{
	launches_free(&now);
	plan_free(plan);
	spec_free(spec);
}

/* Resolve at public workload w: as it is on a full-size device, or its emu variant. */
static void resolve(int w, const char *device)
{
	struct err e = {0};
	struct plan_config c;
	int legal;
	launches_free(&now);
	assert_int_equal(facts_find(device, &facts, &e), 0);
	const struct axes *a = strcmp(device, "emu") ? &spec->public[w].gpu : &spec->public[w].emu;
	if (plan_resolve(plan, spec, a, &facts, 0, &now, &e))
		fail_msg("%s", e.text);
	assert_int_equal(plan_config_for(plan, spec, a, &facts, &c, &e), 0);
	if (plan_config_legal(plan, spec, a, &facts, &c, &legal, &e))
		fail_msg("%s", e.text);
	assert_true(legal);
}

static void launch_is(int i, const char *entry, uint32_t x, uint32_t y, uint32_t z, uint32_t threads,
		      uint32_t shared)
{
	const struct launch *l = &now.launch[i];
	assert_true(i < now.n);
	assert_string_equal(l->entry, entry);
	assert_int_equal(l->grid[0], x);
	assert_int_equal(l->grid[1], y);
	assert_int_equal(l->grid[2], z);
	assert_int_equal(l->block[0] * l->block[1] * l->block[2], threads);
	assert_int_equal(l->shared, shared);
}

static int64_t number(const struct launch_arg *a)
{
	int64_t v = 0;
	assert_int_equal(a->kind, ARG_BYTES);
	memcpy(&v, a->data, (size_t)a->n);
	return v;
}

static void test_flash_attention_2(void **state)
{
	(void)state;
	load("flash_attention_2");
	resolve(0, "sim");
	assert_int_equal(now.n, 1);
	launch_is(0, "attention", 32, 16, 2, 128, 98304);
	const struct launch_arg *a = now.launch[0].arg;
	assert_int_equal(a[5].kind, ARG_SCALAR);
	assert_int_equal(a[5].index, 3);
	assert_int_equal(a[5].n, 4);
	assert_int_equal(number(&a[8]), 4);                   /* heads per key head */
	assert_int_equal(a[9].n, 8);
	assert_int_equal(number(&a[9]), 16 * 4096 * 128);
	float scale = 0.25f, log2e;
	memcpy(&log2e, a[10].data, 4);
	assert_true(log2e == 1.44269504f);
	launches_scalar(&now, 3, &scale, 4);
	assert_memory_equal(a[5].data, &scale, 4);
	resolve(1, "sim"); /* the tunable chosen for short sequences */
	launch_is(0, "attention", 4, 16, 8, 256, 98304);
	resolve(1, "emu"); /* one build serves all sizes: not looked at */
	launch_is(0, "attention", 1, 2, 1, 128, 98304);
	unload();
}

static void test_flash_attention_3(void **state)
{
	(void)state;
	load("flash_attention_3");
	resolve(0, "sim");
	launch_is(0, "attention_tma", 132, 1, 1, 384, 197664);
	assert_int_equal(now.launch[0].cluster[0], 2);
	assert_true(now.launch[0].has_cluster);
	const struct launch_arg *k = &now.launch[0].arg[1];
	assert_int_equal(k->kind, ARG_MAP);
	assert_int_equal(k->role, ROLE_INPUT);
	assert_int_equal(k->index, 1);
	assert_int_equal(k->writes, 0);
	assert_int_equal(k->map.rank, 4);
	assert_int_equal(k->map.dtype, 9); /* CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 */
	assert_int_equal(k->map.dim[1], 4096);
	assert_int_equal(k->map.dim[2], 4);
	assert_int_equal(k->map.stride[0], 256);
	assert_int_equal(k->map.stride[1], 256 * 4096);
	assert_int_equal(k->map.stride[2], 256 * 4096 * 4);
	assert_int_equal(k->map.box[1], 64);
	assert_int_equal(k->map.step[3], 1);
	assert_int_equal(k->map.swizzle, 3);
	assert_int_equal(k->map.l2_promotion, 3);
	assert_int_equal(now.launch[0].arg[3].role, ROLE_OUTPUT);
	assert_int_equal(now.launch[0].arg[3].map.l2_promotion, 0);
	unload();
}

static void test_split_k(void **state)
{
	(void)state;
	load("split_k_gemm");
	resolve(1, "sim");
	assert_int_equal(now.n, 2);
	launch_is(0, "gemm_split", 8, 1, 8, 256, 36864);
	launch_is(1, "reduce", 64, 1, 1, 256, 0);
	assert_int_equal(now.workspace[0].bytes, 4 * 128 * 512 * 8);
	assert_int_equal(now.workspace[0].zero, 0);
	assert_false(now.launch[0].pdl);
	assert_true(now.launch[1].pdl);
	assert_int_equal(number(&now.launch[0].arg[6]), 2048);
	resolve(0, "sim"); /* large outputs are not split */
	launch_is(0, "gemm_split", 64, 32, 1, 256, 36864);
	assert_int_equal(number(&now.launch[1].arg[3]), 1);
	unload();
}

static void test_stream_k(void **state)
{
	(void)state;
	load("stream_k_gemm");
	resolve(0, "sim");
	/* 48 KiB of shared memory a block: four blocks an SM, all 132 SMs */
	launch_is(0, "stream_k", 528, 1, 1, 256, 49152);
	assert_true(now.launch[0].cooperative);
	assert_int_equal(now.workspace[0].bytes, 4 * 128 * 128 * 528);
	assert_int_equal(now.workspace[1].bytes, 4 * 32 * 32);
	assert_true(now.workspace[1].zero);
	resolve(1, "emu");
	launch_is(0, "stream_k", 16, 1, 1, 256, 49152);
	unload();
}

static void test_wgmma(void **state)
{
	(void)state;
	load("wgmma_tma_gemm");
	resolve(0, "sim");
	launch_is(0, "gemm", 132, 1, 1, 384, 181248);
	assert_int_equal(now.launch[0].arg[1].map.box[1], 128);
	assert_int_equal(now.launch[0].arg[2].map.stride[0], 8192);
	assert_true(now.launch[0].arg[2].writes);
	unload();
}

static void test_paged_decode(void **state)
{
	(void)state;
	load("paged_decode_attention");
	resolve(0, "sim");
	assert_int_equal(now.n, 2);
	launch_is(0, "decode", 8, 16, 8, 128, 16384);
	launch_is(1, "combine", 32, 16, 1, 128, 0);
	assert_int_equal(now.workspace[0].bytes, 4 * 16 * 32 * 130 * 8);
	assert_int_equal(now.launch[0].arg[6].offset, 4 * 16 * 32 * 128 * 8);
	resolve(1, "sim");
	launch_is(0, "decode", 8, 1, 32, 128, 16384);
	unload();
}

static void test_top_k(void **state)
{
	(void)state;
	struct err e;
	load("top_k");
	resolve(0, "sim");
	assert_int_equal(now.n, 2);
	launch_is(0, "select_block", 64, 128, 1, 256, 16384);
	launch_is(1, "merge", 128, 1, 1, 512, 1024);
	assert_int_equal(number(&now.launch[1].arg[4]), 6);
	launches_free(&now);
	assert_int_equal(plan_resolve(plan, spec, &spec->tiny[1].gpu, &facts, 0, &now, &e), 0);
	assert_int_equal(now.n, 1);
	launch_is(0, "select_small", 2, 1, 1, 256, 1024);
	assert_int_equal(now.workspace[0].bytes, 0);
	char **m = plan_macros(plan, spec, &(struct plan_config){.n = 1, .v = {1024}});
	assert_string_equal(m[0], "CHUNK=1024");
	assert_string_equal(m[1], "AXIS_K=64");
	assert_null(m[2]);
	plan_macros_free(m);
	unload();
}

static void test_radix_sort(void **state)
{
	(void)state;
	static const char *const pass[] = {"histogram", "scan", "scatter"};
	load("radix_sort");
	resolve(0, "sim");
	assert_int_equal(now.n, 14);
	launch_is(0, "prepare", 16384, 1, 1, 256, 0);
	launch_is(13, "finish", 16384, 1, 1, 256, 0);
	for (int p = 0; p < 4; p++) {
		for (int k = 0; k < 3; k++)
			assert_string_equal(now.launch[1 + 3 * p + k].entry, pass[k]);
		const struct launch_arg *a = now.launch[3 + 3 * p].arg;
		assert_int_equal(a[0].index, p % 2);
		assert_int_equal(a[1].index, 1 - p % 2);
		assert_int_equal(number(&a[4]), 8 * p);
	}
	assert_int_equal(now.launch[13].arg[0].index, 0);
	unload();
}

static void test_fused_moe(void **state)
{
	(void)state;
	load("fused_moe");
	resolve(0, "sim");
	assert_int_equal(now.n, 4);
	launch_is(0, "sort_tokens", 1, 1, 1, 1024, 260);
	launch_is(1, "up", 8, 575, 1, 256, 122880);
	launch_is(2, "down", 16, 575, 1, 256, 73728);
	launch_is(3, "reduce", 8192, 1, 1, 256, 0);
	assert_int_equal(now.launch[1].arg[1].map.dim[2], 64);
	assert_int_equal(now.launch[1].arg[1].map.stride[1], 2 * 2048 * 2048);
	resolve(1, "sim");
	launch_is(1, "up", 8, 68, 1, 256, 104448);
	unload();
}

static void test_cluster_split(void **state)
{
	(void)state;
	load("cluster_split_gemm");
	assert_string_equal(plan->compile.arch, "sm_90a");
	resolve(0, "sim");
	assert_int_equal(now.n, 2);
	launch_is(0, "gemm", 132, 1, 1, 384, 132096); /* 33 clusters of 4, one block an SM */
	assert_int_equal(now.launch[0].cluster[0], 4);
	assert_int_equal(now.workspace[0].bytes, (int64_t)8 * 4096 * 4096);
	assert_int_equal(now.workspace[1].bytes, 0);
	assert_false(now.workspace[1].zero); /* nothing to be zeroed */
	const struct launch_arg *a = now.launch[0].arg;
	assert_int_equal(a[0].map.dtype, 9); /* the buffer's */
	assert_int_equal(a[0].map.stride[0], 8192);
	assert_int_equal(a[3].role, ROLE_WORKSPACE);
	assert_int_equal(a[3].index, 0);
	assert_true(a[3].writes);
	assert_int_equal(a[3].offset, (int64_t)4 * 4096 * 4096);
	assert_int_equal(a[3].map.rank, 1);
	assert_int_equal(a[3].map.dim[0], 4096 * 4096);
	assert_int_equal(a[3].map.dtype, 7);
	resolve(1, "sim"); /* both tunables chosen for small M; four blocks an SM */
	launch_is(0, "gemm", 128, 1, 1, 256, 50176);
	resolve(2, "sim"); /* strides that no tensor map may have: not looked at */
	assert_int_equal(now.n, 1);
	launch_is(0, "plain", 33, 21, 1, 256, 0);
	assert_int_equal(now.workspace[0].bytes, 0);
	assert_int_equal(now.workspace[1].bytes, 4 * 333 * 517);
	assert_true(now.workspace[1].zero);
	struct plan_config c[PLAN_MAX_CONFIGS];
	struct err e;
	int n;
	assert_int_equal(plan_configs(plan, c, &n, &e), 0);
	assert_int_equal(n, 2);
	assert_int_equal(c[0].v[0], 128);
	assert_int_equal(c[1].v[0], 64);
	assert_int_equal(c[1].v[1], 2);
	unload();
}

/* The plan that was compiled, encoded, launched and timed on an H200, as its driver saw it. */
static void test_truth(void **state)
{
	(void)state;
	struct err e = {0};
	struct plan_sizes sizes;
	load_at("tests/gpu/truth");
	resolve(0, "sim");
	assert_int_equal(now.n, 1);
	launch_is(0, "gemm", 132, 1, 1, 384, 230400);
	assert_int_equal(now.launch[0].cluster[0], 2);
	assert_int_equal(now.launch[0].nargs, 6);
	const struct launch_arg *a = now.launch[0].arg;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(a[i].kind, ARG_MAP);
		assert_int_equal(a[i].map.rank, 2);
		assert_int_equal(a[i].map.dtype, 9);
		assert_int_equal(a[i].map.element_bytes, 2);
		assert_int_equal(a[i].map.dim[0], 4096);
		assert_int_equal(a[i].map.dim[1], 4096);
		assert_int_equal(a[i].map.stride[0], 8192);
		assert_int_equal(a[i].map.box[0], 64);
		assert_int_equal(a[i].map.swizzle, 3);
	}
	assert_int_equal(a[0].map.box[1], 128);
	assert_int_equal(a[1].map.box[1], 128);
	assert_int_equal(a[2].map.box[1], 64);
	assert_int_equal(a[1].map.l2_promotion, 3);
	assert_int_equal(a[2].role, ROLE_OUTPUT);
	assert_int_equal(now.workspace[0].bytes, 0);
	resolve(1, "sim");
	launch_is(0, "gemm", 32, 1, 1, 384, 230400);
	assert_int_equal(now.launch[0].arg[2].map.dim[0], 1016);
	assert_int_equal(now.launch[0].arg[2].map.dim[1], 1000);
	resolve(2, "sim");
	assert_int_equal(now.n, 2);
	launch_is(0, "gemm_any", 33, 21, 1, 256, 0);
	assert_int_equal(number(&now.launch[0].arg[6]), 144);
	launch_is(1, "round_any", 673, 1, 1, 256, 0);
	assert_int_equal(number(&now.launch[1].arg[2]), 333 * 517);
	assert_int_equal(now.launch[1].arg[2].n, 8);
	assert_int_equal(now.workspace[0].bytes, 4 * 333 * 517);
	assert_true(now.workspace[0].zero);
	resolve(0, "emu");
	launch_is(0, "gemm", 2, 1, 1, 384, 230400);
	if (plan_sizes(plan, spec, &facts, 0, &sizes, &e))
		fail_msg("%s", e.text);
	assert_int_equal(sizes.n, 5);
	assert_int_equal(sizes.launches[0], 1);
	assert_int_equal(sizes.launches[3], 2);
	assert_int_equal(sizes.edges, 8); /* all low, all high, each of three axes at the other end */
	assert_int_equal(sizes.shared[0], 230400);
	assert_int_equal(sizes.shared[1], 0);
	int64_t fixed[PLAN_MAX_ENTRIES] = {232448 - 230400, 232448};
	assert_int_equal(plan_shared_fits(plan, &facts, fixed, sizes.shared, &e), 0);
	fixed[0]++;
	assert_int_equal(plan_shared_fits(plan, &facts, fixed, sizes.shared, &e), -1);
	assert_non_null(strstr(e.text, "entry 'gemm' has 2049 bytes of static shared memory and is launched with 230400"));
	unload();
}

/* Writing a plan and reading it again changes nothing. */
static void test_round_trip(void **state)
{
	(void)state;
	static const char *const names[] = {"cluster_split_gemm", "../gpu/truth", "flash_attention_2", "flash_attention_3", "split_k_gemm",
					    "stream_k_gemm", "wgmma_tma_gemm", "paged_decode_attention",
					    "top_k", "radix_sort", "fused_moe"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		struct err e = {0};
		struct jsonw a = {0}, b = {0};
		struct plan *again;
		load(names[i]);
		plan_write(plan, &a, NULL);
		if (plan_parse(buf_str(&a.out), a.out.len, "again", &again, &e) || plan_check(again, spec, &e))
			fail_msg("%s", e.text);
		plan_write(again, &b, NULL);
		assert_string_equal(buf_str(&a.out), buf_str(&b.out));
		jw_free(&a);
		jw_free(&b);
		plan_free(again);
		unload();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flash_attention_2), cmocka_unit_test(test_flash_attention_3),
		cmocka_unit_test(test_split_k),		  cmocka_unit_test(test_stream_k),
		cmocka_unit_test(test_wgmma),		  cmocka_unit_test(test_paged_decode),
		cmocka_unit_test(test_top_k),		  cmocka_unit_test(test_radix_sort),
		cmocka_unit_test(test_fused_moe),	  cmocka_unit_test(test_cluster_split),
		cmocka_unit_test(test_truth),		  cmocka_unit_test(test_round_trip),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
