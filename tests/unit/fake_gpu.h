/*
 * fake_gpu.h - what tests of GPU code on the fake driver (tests/fake/cuda) share: the driver, an artefact,
 * memory as the checker makes it: x, y and out of N floats.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_FAKE_GPU_H
#define TS_FAKE_GPU_H

#include "../../stages/lib/box_call.h"
#include "../../stages/lib/buf.h"
#include "../../stages/lib/cuda_api.h"
#include "../../stages/lib/file.h"
#include "../../stages/lib/worker_call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GPU "GPU-fa4e0000-0000-4000-8000-000000000001"
#define CHECK(x) assert_int_equal(x, CUDA_OK)

enum { N = 1000, MEMS = 3 };

static const char *why_not; /* no test can run here */

/* ---- memory, as the checker makes it ---- */

static struct set {
	struct mem_layout l;
	int fd[3];
	CUdeviceptr at[3]; /* our mapping of each segment */
} set[MEMS];

static float *payload(int mem, int buffer)
{
	const struct mem_buf *b = &set[mem].l.buf[buffer];
	return (float *)(uintptr_t)(set[mem].at[buffer] + (b->addr - b->seg_addr));
}

static void set_make(int mem)
{
	struct set *s = &set[mem];
	struct err e = {0};
	struct rng r;
	uint8_t key[32] = {(uint8_t)mem};
	CUmemProp prop = {.type = CU_MEM_PINNED, .handle_types = CU_MEM_POSIX_FD, .location = {CU_MEM_ON_DEVICE, 0}};
	CUmemAccess rw = {{CU_MEM_ON_DEVICE, 0}, CU_MEM_READ_WRITE};
	size_t unit;

	CHECK(cu.MemGetAllocationGranularity(&unit, &prop, 0));
	s->l.page = unit;
	assert_int_equal(mem_add(&s->l, "x", MEM_INPUT, 0, DT_F32, N * 4, &e), 0);
	assert_int_equal(mem_add(&s->l, "y", MEM_INPUT, 1, DT_F32, N * 4, &e), 0);
	assert_int_equal(mem_add(&s->l, "out", MEM_OUTPUT, 0, DT_F32, N * 4, &e), 0);
	rng_open(&r, key, "memory");
	do
		assert_int_equal(mem_plan(&s->l, 0, &r, &e), 0);
	while (mem > 0 && mem_overlaps(&s->l, &set[mem - 1].l));
	rng_close(&r);
	for (int i = 0; i < 3; i++) {
		const struct mem_buf *b = &s->l.buf[i];
		CUmemHandle h;
		CHECK(cu.MemCreate(&h, b->seg_len, &prop, 0));
		CHECK(cu.MemExport(&s->fd[i], h, CU_MEM_POSIX_FD, 0));
		CHECK(cu.MemAddressReserve(&s->at[i], b->seg_len, 0, 0, 0));
		CHECK(cu.MemMap(s->at[i], b->seg_len, 0, h, 0));
		CHECK(cu.MemSetAccess(s->at[i], b->seg_len, &rw, 1));
	}
}

static void set_fill(int mem, float a)
{
	float x[N], y[N], out[N];

	for (int i = 0; i < N; i++) {
		x[i] = a * (float)i;
		y[i] = 1;
		out[i] = -1;
	}
	CHECK(cu.MemcpyHtoD((CUdeviceptr)(uintptr_t)payload(mem, 0), x, sizeof x));
	CHECK(cu.MemcpyHtoD((CUdeviceptr)(uintptr_t)payload(mem, 1), y, sizeof y));
	CHECK(cu.MemcpyHtoD((CUdeviceptr)(uintptr_t)payload(mem, 2), out, sizeof out));
}

/* How many elements of the output are x + y. */
static int set_right(int mem, float a)
{
	float out[N];
	int n = 0;

	CHECK(cu.MemcpyDtoH(out, (CUdeviceptr)(uintptr_t)payload(mem, 2), sizeof out));
	for (int i = 0; i < N; i++)
		n += out[i] == a * (float)i + 1;
	return n;
}

/* ---- start ---- */

/* The artefact, and where it lies. */
static int compile(const struct buf *text, struct buf *out, struct box_result *r)
{
	struct err e = {0};
	struct box_request q = {.mode = "cuda", .source = buf_str(text), .source_len = text->len, .arch = "sm_90a",
				.trusted = 1};

	memset(r, 0, sizeof *r);
	int rc = box_compile(&q, r, &e);
	if (rc < 0 && e.code == EX_NOENV) {
		why_not = "no NVRTC here";
		return 0;
	}
	if (rc == 0 && r->ok)
		rc = file_read(r->path, 1 << 24, out, &e);
	else
		fprintf(stderr, "cannot compile: %s\n", rc < 0 ? e.text : r->message);
	box_result_free(r);
	return rc < 0 || out->len == 0 ? -1 : 0;
}

static int fake_start(void)
{
	char self[PATH_MAX], path[PATH_MAX + 32];
	struct err e = {0};
	CUdevice dev;
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	if (n < 0)
		return -1;
	self[n] = 0;
	*strrchr(self, '/') = 0;
	snprintf(path, sizeof path, "%s/fake/cuda", self);
	setenv("LD_LIBRARY_PATH", path, 1); /* for the worker */
	strcat(path, "/libcuda.so.1");
	if (!dlopen(path, RTLD_NOW)) { /* found by its name from now on */
		why_not = "no fake driver was built";
		return 0;
	}
	if (cuda_start(&dev, &e) == 0)
		return 0;
	fprintf(stderr, "cannot start the fake driver: %s\n", e.text);
	return -1;
}

#endif
