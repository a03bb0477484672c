/*
 * check.c - a worker on a real GPU: which layers hold, what a launch can see of the ones before it, how
 * faults end, what the machine's figures are. Prints a table; exit 0 when all that must hold does.
 *
 * SPDX-License-Identifier: MIT
 */
#include "box_call.h"
#include "cuda_api.h"
#include "file.h"
#include "worker_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct buf cubin = BUF_INIT;
static struct mem_layout layout;
static int fd[1], wrong;
static CUdeviceptr out;
static char gpu[64];
static int sms, shared;

static void need(int rc, const char *what, const struct err *e)
{
	if (rc) {
		printf("%s: %s\n", what, e->text);
		exit(1);
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void must(int ok, const char *what)
{
	printf("%-64s %s\n", what, ok ? "ok" : "WRONG");
	wrong += !ok;
}

static void memory(void)
{
	struct err e = {0};
	CUmemProp prop = {.type = CU_MEM_PINNED, .handle_types = CU_MEM_POSIX_FD, .location = {CU_MEM_ON_DEVICE, 0}};
	CUmemAccess rw = {{CU_MEM_ON_DEVICE, 0}, CU_MEM_READ_WRITE};
	CUmemHandle h;
	CUdeviceptr at;
	size_t unit;

	cu.MemGetAllocationGranularity(&unit, &prop, 0);
	layout.page = unit;
	need(mem_add(&layout, "out", MEM_OUTPUT, 0, DT_U32, 4096, &e), "memory", &e);
	need(mem_plan(&layout, 0, NULL, &e), "memory", &e);
	const struct mem_buf *b = &layout.buf[0];
	int bad = cu.MemCreate(&h, b->seg_len, &prop, 0) || cu.MemExport(&fd[0], h, CU_MEM_POSIX_FD, 0) ||
		  cu.MemAddressReserve(&at, b->seg_len, 0, 0, 0) || cu.MemMap(at, b->seg_len, 0, h, 0) ||
		  cu.MemSetAccess(at, b->seg_len, &rw, 1);
	if (bad)
		exit(printf("cannot make memory\n") > 0);
	out = at + (b->addr - b->seg_addr);
}

static struct worker *start(void)
{
	struct worker_opts o = {.gpu = gpu, .timeout_ns = 3000000000};
	struct worker *w;
	struct err e = {0};
	double t = now();

	need(worker_start(&w, &o, &e), "worker_start", &e);
	printf("worker started in %.0f ms: %s\n", (now() - t) * 1e3, worker_isolation(w));
	need(worker_map(w, 0, &layout, fd, &e), "worker_map", &e);
	return w;
}

static void load(struct worker *w, int slot, const char *entry, int blocks, int threads, int bytes, uint32_t width)
{
	static const int mem[1] = {0};
	struct launch_arg arg[2] = {{.kind = ARG_BUFFER, .role = ROLE_OUTPUT}, {.kind = ARG_BYTES, .n = 4}};
	struct launch l = {.grid = {(uint32_t)blocks, 1, 1}, .block = {(uint32_t)threads, 1, 1},
			   .cluster = {width ? width : 1, 1, 1}, .has_cluster = width > 0, .shared = (uint32_t)bytes,
			   .nargs = 2, .arg = arg};
	struct launches all = {.n = 1, .launch = &l};
	struct worker_result r;
	struct err e = {0};
	int words = bytes ? bytes / 4 : 1;

	memcpy(arg[1].data, &words, 4);
	snprintf(l.entry, sizeof l.entry, "%s", entry);
	need(worker_load(w, slot, cubin.data, cubin.len, &all, NULL, 1, mem, &r, &e), "worker_load", &e);
	if (r.outcome != WORKER_OK)
		printf("%s: %s\n", entry, r.text);
}

static uint32_t run(struct worker *w, int slot, struct worker_result *r)
{
	struct worker_run q = {.scrub_seed = 77};
	struct err e = {0};
	uint32_t got[2] = {0, 0};

	cu.MemcpyHtoD(out, got, sizeof got);
	need(worker_run(w, slot, &q, r, &e), "worker_run", &e);
	cu.MemcpyDtoH(got, out, sizeof got);
	return r->outcome == WORKER_OK && got[1] == 0 ? 0xffffffff : got[0];
}

/* Slot 0 writes, slot 1 looks. */
static void residue(struct worker *w, const char *write, const char *read, int blocks, int threads, int bytes)
{
	struct worker_result r;
	struct err e = {0};
	char what[96];
	uint32_t found = 0;

	load(w, 0, write, blocks, threads, bytes, 0);
	load(w, 1, read, blocks, threads, bytes, 0);
	for (int i = 0; i < 3; i++) {
		run(w, 0, &r);
		found |= run(w, 1, &r);
	}
	snprintf(what, sizeof what, "%s, then %s: %u words found", write, read, found);
	must(r.outcome == WORKER_OK && found == 0, what);
	need(worker_unload(w, 0, &e) || worker_unload(w, 1, &e), "worker_unload", &e);
}

static void figures(struct worker *w)
{
	struct worker_figures f;
	struct worker_ceilings c;
	struct err e = {0};

	need(worker_figures(w, &f, &e), "worker_figures", &e);
	need(worker_ceilings(w, &c, &e), "worker_ceilings", &e);
	printf("tick %g ns, empty window %g, null kernel %g, flush %llu bytes, flush check %.4f\n", f.tick_ns,
	       f.empty_ns, f.null_ns, (unsigned long long)f.flush_bytes, f.flush_check);
	printf("GB/s copy %.0f read %.0f write %.0f; TFLOP/s fp32 %.1f bf16 %.0f fp16 %.0f\n", c.copy_gbs, c.read_gbs,
	       c.write_gbs, c.fp32_tflops, c.bf16_tflops, c.fp16_tflops);
	must(f.flush_check > 0.97 && f.flush_check < 1.05, "the flush leaves the cache as 16 x L2 does");
}

static void state(struct worker *w)
{
	struct worker_result r;
	uint32_t changed = 0;

	residue(w, "shared_write", "shared_read", sms, 1024, shared);
	residue(w, "local_write_16", "local_read_16", sms * 8, 256, 0);
	residue(w, "local_write_64", "local_read_64", sms * 8, 256, 0);
	residue(w, "local_write_256", "local_read_256", sms * 8, 256, 0);
	residue(w, "local_write_1024", "local_read_64", sms * 8, 256, 0);
	residue(w, "local_write_4096", "local_read_4096", sms * 8, 256, 0);
	load(w, 0, "globals", 1, 32, 0, 0);
	for (int i = 0; i < 3; i++)
		changed += run(w, 0, &r);
	must(r.outcome == WORKER_OK && changed == 0, "globals are as compiled in every rep");
	load(w, 1, "cluster", 8, 32, 0, 2);
	load(w, 2, "cluster", 8, 32, 0, 4);
	uint32_t a = run(w, 1, &r), b = run(w, 2, &r), c = run(w, 1, &r);
	must(a == 2 && b == 4 && c == 2, "a change of slots changes the cluster");
	double t = now();
	for (int i = 0; i < 200; i++)
		run(w, 1, &r);
	printf("a rep with its round trip and two copies: %.0f us\n", (now() - t) / 200 * 1e6);
}

static void ends(void)
{
	struct worker_result r;
	struct worker *w = start();

	load(w, 0, "trap", 1, 1, 0, 0);
	run(w, 0, &r);
	must(r.outcome == WORKER_FAULT, r.text);
	worker_stop(w);
	w = start();
	load(w, 0, "hang", 1, 1, 0, 0);
	run(w, 0, &r);
	must(r.outcome == WORKER_TIMEOUT, r.text);
	double t = now();
	worker_stop(w);
	printf("stopped in %.0f ms\n", (now() - t) * 1e3);
	worker_stop(start());
}

int main(int argc, char **argv)
{
	struct buf text = BUF_INIT;
	static struct box_result b;
	struct err e = {0};
	CUdevice dev;
	uint8_t u[16];

	need(cuda_start(&dev, &e), "cuda_start", &e);
	cu.DeviceGetUuid(u, dev);
	snprintf(gpu, sizeof gpu, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
		 u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
	cu.DeviceGetAttribute(&sms, 16, dev);
	cu.DeviceGetAttribute(&shared, 97, dev);
	need(file_read(argc > 1 ? argv[1] : "tests/gpu/worker/residue.cu", 1 << 20, &text, &e), "residue.cu", &e);
	struct box_request q = {.mode = "cuda", .source = buf_str(&text), .source_len = text.len,
				.arch = argc > 2 ? argv[2] : "sm_90a", .trusted = 1};
	need(box_compile(&q, &b, &e), "box_compile", &e);
	if (!b.ok || file_read(b.path, 1 << 24, &cubin, &e))
		exit(printf("residue.cu: %s\n%s\n", b.message, b.log) > 0);
	memory();
	struct worker *w = start();
	must(confine_minimum(worker_isolation(w)), "the least that a worker must have of isolation");
	must(confine_has(worker_isolation(w), "mountns"), "the tightest cage");
	figures(w);
	state(w);
	worker_stop(w);
	ends();
	printf("%d wrong\n", wrong);
	return wrong != 0;
}
