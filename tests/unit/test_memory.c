/*
 * test_memory.c - guards notice every byte outside the payloads; inputs cannot be mapped writable;
 * fills keep what they promise. Reads tests/plans specs; writes nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/buf.h"
#include "../../stages/lib/dtype.h"
#include "../../stages/lib/fill.h"
#include "../../stages/lib/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct mem m;
static const uint64_t WS[1] = {5000};
static uint8_t key[32] = {7};

static void make(int fence)
{
	struct mem_layout l = {0};
	struct rng r;
	struct err e;

	assert_int_equal(mem_add(&l, "x", MEM_INPUT, 0, DT_F32, 4 * 1001, &e), 0);
	assert_int_equal(mem_add(&l, "y", MEM_OUTPUT, 0, DT_BF16, 2 * 777, &e), 0);
	assert_int_equal(mem_add(&l, "z", MEM_OUTPUT, 1, DT_F64, 8 * 3, &e), 0);
	assert_int_equal(mem_add(&l, "w", MEM_WORKSPACE, 0, DT_NONE, 9000, &e), 0);
	rng_open(&r, key, "layout");
	assert_int_equal(mem_plan(&l, fence, &r, &e), 0);
	rng_close(&r);
	assert_int_equal(mem_create(&m, &l, &e), 0);
}

static void poison(unsigned pattern)
{
	struct rng r;

	rng_open(&r, key, pattern & 1 ? "odd" : "even");
	mem_poison(&m, &r, pattern, WS, 1);
	rng_close(&r);
}

static int inside(uint64_t at)
{
	for (uint32_t i = 0; i < m.l.n; i++) {
		const struct mem_buf *b = &m.l.buf[i];
		uint64_t n = b->kind == MEM_WORKSPACE ? WS[0] : b->bytes;
		if (b->kind != MEM_INPUT && at >= b->offset && at < b->offset + n)
			return 1;
	}
	return 0;
}

/* Flip bytes all over: exactly those outside the payloads are noticed. */
static void guards_notice(void **state)
{
	(void)state;
	char name[MEM_NAME];

	for (int fence = 0; fence < 2; fence++) {
		make(fence);
		poison(0);
		assert_int_equal(mem_guard_check(&m, WS, 1, name), MEM_CLEAN);
		for (uint64_t at = 0; at < m.l.rw_bytes; at += 37) {
			m.rw[at] ^= 1;
			assert_int_equal(mem_guard_check(&m, WS, 1, name),
					 inside(at) ? MEM_CLEAN : MEM_GUARD_HIT);
			m.rw[at] ^= 1;
		}
		for (uint64_t at = 0; at < m.l.in_bytes; at += 37) {
			m.in[at] ^= 1;
			assert_int_not_equal(mem_guard_check(&m, WS, 1, name), MEM_CLEAN);
			m.in[at] ^= 1;
		}
		mem_destroy(&m);
	}
}

static void fences_end_pages(void **state)
{
	(void)state;
	make(1);
	for (uint32_t i = 0; i < m.l.n; i++) {
		const struct mem_buf *b = &m.l.buf[i];
		assert_true(b->seg_off + b->seg_len - (b->offset + b->bytes) < MEM_ALIGN);
		assert_int_equal(b->addr % MEM_ALIGN, 0);
		if (i + 1 < m.l.n)
			assert_true(b->seg_addr + b->seg_len < m.l.buf[i + 1].seg_addr);
	}
	mem_destroy(&m);
}

/* Whole granules, one of them unmapped in between; payloads aligned for the widest access. */
static void granules(void **state)
{
	(void)state;
	enum { G = 2 << 20 };
	struct mem_layout l = {.page = G}, other = {.page = G};
	struct rng r;
	struct err e;

	rng_open(&r, key, "granules");
	assert_int_equal(mem_add(&l, "x", MEM_INPUT, 0, DT_F32, 4 * 1001, &e), 0);
	assert_int_equal(mem_add(&l, "y", MEM_OUTPUT, 0, DT_F32, G, &e), 0);
	assert_int_equal(mem_add(&l, "w", MEM_WORKSPACE, 0, DT_NONE, 0, &e), 0);
	for (int fence = 0; fence < 2; fence++) {
		assert_int_equal(mem_plan(&l, fence, &r, &e), 0);
		for (uint32_t i = 0; i < l.n; i++) {
			const struct mem_buf *b = &l.buf[i];
			uint64_t front = b->addr - b->seg_addr, end = front + b->bytes;
			assert_int_equal(b->seg_addr % G, 0);
			assert_int_equal(b->seg_len % G, 0);
			assert_int_equal(b->addr % (fence ? MEM_ALIGN : 256), 0);
			assert_true(front >= MEM_GUARD && end <= b->seg_len);
			if (fence)
				assert_true(b->seg_len - end < MEM_ALIGN);
			else
				assert_true(b->seg_len - end >= MEM_GUARD);
			if (i)
				assert_int_equal(b->seg_addr - l.buf[i - 1].seg_addr, l.buf[i - 1].seg_len + G);
		}
	}
	assert_int_equal(l.buf[1].seg_len, 2 * G);
	other = l;
	assert_true(mem_overlaps(&l, &other));
	uint64_t far = l.buf[2].seg_addr + l.buf[2].seg_len + G - other.buf[0].seg_addr;
	for (uint32_t i = 0; i < other.n; i++)
		other.buf[i].seg_addr += far;
	assert_false(mem_overlaps(&l, &other));
	rng_close(&r);
}

static void poison_kinds(void **state)
{
	(void)state;
	make(0);
	for (unsigned pattern = 0; pattern < 2; pattern++) {
		poison(pattern);
		for (uint32_t i = 0; i < m.l.n; i++) {
			const struct mem_buf *b = &m.l.buf[i];
			if (b->kind != MEM_OUTPUT)
				continue;
			for (size_t k = 0; k < b->bytes / dtype_size((enum dtype)b->dtype); k++) {
				double v = dtype_load((enum dtype)b->dtype, mem_at(&m, b), k);
				assert_true(pattern ? isfinite(v) && fabs(v) > 1000 : isnan(v));
			}
		}
	}
	mem_destroy(&m);
}

static void inputs_are_sealed(void **state)
{
	(void)state;
	make(0);
	assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, m.in_fd, 0), MAP_FAILED);
	assert_int_equal(pwrite(m.in_fd, "x", 1, 0), -1);
	assert_int_equal(ftruncate(m.in_fd, 0), -1);
	assert_int_equal(ftruncate(m.rw_fd, 1 << 20), -1);
	m.in[0] = 1; /* ours stays */
	mem_destroy(&m);
}

/* ---- fills ---- */

static struct spec *spec_of(const char *inputs)
{
	struct spec *s;
	struct err e = {0};
	char *text = xasprintf(
		"{\"schema\":\"touchstone/spec/1\",\"name\":\"t\",\"op_type\":\"t\",\"description\":\"d\","
		"\"axes\":{\"N\":{\"type\":\"var\"},\"K\":{\"type\":\"var\"}},\"inputs\":{%s},"
		"\"outputs\":{\"y\":{\"shape\":[\"N\"],\"dtype\":\"float32\"}},"
		"\"compute\":{\"operand\":\"float32\",\"accumulator\":\"float32\",\"intermediate\":\"float32\"},"
		"\"reference\":{\"source\":\"reference.cu\",\"plan\":\"reference.json\"},"
		"\"workloads\":{\"public\":[{\"name\":\"w\",\"axes\":{\"N\":64,\"K\":8}}],\"tiny\":[{\"N\":8,\"K\":1}]}}",
		inputs);
	if (spec_parse(text, strlen(text), "t", &s, &e) < 0)
		fail_msg("%s", e.text);
	free(text);
	return s;
}

static void fills_keep_promises(void **state)
{
	(void)state;
	struct spec *s = spec_of(
		"\"perm\":{\"shape\":[\"N\",\"K\"],\"dtype\":\"int32\",\"fill\":{\"kind\":\"permutation\"}},"
		"\"pages\":{\"shape\":[\"N\"],\"dtype\":\"int32\",\"fill\":{\"kind\":\"page_table\",\"pages\":\"2*N\"}},"
		"\"route\":{\"shape\":[\"N\",\"K\"],\"dtype\":\"int32\",\"fill\":{\"kind\":\"skewed_routing\","
		"\"experts\":\"4*K\"}},"
		"\"ptr\":{\"shape\":[\"N\"],\"dtype\":\"int32\",\"fill\":{\"kind\":\"indptr\",\"total\":\"5*N\",\"min_step\":1}}");
	struct axes a = s->public[0].gpu;
	struct err e;
	int32_t v[512];
	uint8_t rep[32] = {0};

	for (int round = 0; round < 20; round++) {
		rep[0] = (uint8_t)round;
		for (int i = 0; i < 4; i++) {
			assert_int_equal(fill_input(s, &a, i, REGIME_SPEC, key, rep, v, &e), 0);
			int rows = i == 0 || i == 2 ? 64 : 1, n = rows == 64 ? 8 : 64;
			int limit = i == 0 ? 8 : i == 1 ? 128 : i == 2 ? 32 : 321;
			for (int r = 0; r < rows; r++)
				for (int k = 0; k < n; k++) {
					int32_t x = v[r * n + k];
					assert_true(x >= 0 && x < limit);
					for (int j = 0; j < k; j++)
						if (i < 3)
							assert_int_not_equal(x, v[r * n + j]);
					if (i == 3 && k)
						assert_true(x > v[k - 1]);
				}
			if (i == 3) {
				assert_int_equal(v[0], 0);
				assert_int_equal(v[63], 320);
			}
		}
	}
	spec_free(s);
}

static void reps_differ_a_little(void **state)
{
	(void)state;
	struct spec *s = spec_of("\"x\":{\"shape\":[\"N\",\"K\"],\"dtype\":\"float32\",\"fill\":{\"kind\":\"normal\"}}");
	struct axes a = s->public[0].gpu;
	struct err e;
	float u[512], v[512];
	uint8_t rep[32] = {1}, other[32] = {2};
	int differ = 0;

	assert_int_equal(fill_input(s, &a, 0, REGIME_SPEC, key, rep, u, &e), 0);
	assert_int_equal(fill_input(s, &a, 0, REGIME_SPEC, key, rep, v, &e), 0);
	assert_memory_equal(u, v, sizeof u);
	assert_int_equal(fill_input(s, &a, 0, REGIME_SPEC, key, other, v, &e), 0);
	for (int i = 0; i < 512; i++)
		differ += memcmp(&u[i], &v[i], 4) != 0;
	assert_in_range(differ, 1, 10);
	/* Exact regimes: integers of as many bits as the sums leave room for, and {-1,0,1} when another operand is wide. */
	assert_int_equal(fill_input(s, &a, 0, REGIME_EXACT_A, key, rep, v, &e), 0);
	for (int i = 0; i < 512; i++)
		assert_true(v[i] == rintf(v[i]) && fabsf(v[i]) <= 131072); /* 17 bits */
	assert_int_equal(fill_input(s, &a, 0, REGIME_EXACT_B, key, rep, v, &e), 0);
	for (int i = 0; i < 512; i++)
		assert_true(v[i] == rintf(v[i]) && fabsf(v[i]) <= 1);
	spec_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(guards_notice),       cmocka_unit_test(fences_end_pages),
		cmocka_unit_test(granules),
		cmocka_unit_test(poison_kinds),        cmocka_unit_test(inputs_are_sealed),
		cmocka_unit_test(fills_keep_promises), cmocka_unit_test(reps_differ_a_little),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
