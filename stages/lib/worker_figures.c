/*
 * worker_figures.c - how this GPU measures, and how fast it is. See worker_rep.h, worker_call.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "worker_rep.h"

#include <stdlib.h>
#include <string.h>

enum { WINDOWS = 101, PROBES = 25, CEILINGS = 9, WARM = 2, THOROUGH = 16 };
#define GIB ((uint64_t)1 << 30)

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static double median(int64_t *v, int n)
{
	qsort(v, (size_t)n, sizeof *v, by_size);
	return n % 2 ? (double)v[n / 2] : ((double)v[n / 2 - 1] + (double)v[n / 2]) / 2;
}

static int64_t gcd(int64_t a, int64_t b)
{
	while (b) {
		int64_t t = a % b;
		a = b;
		b = t;
	}
	return a;
}

/* A GPU without persisting lines has nothing to reset, and says so. */
static int persisting_reset(struct err *e)
{
	CUresult x = cu.CtxResetPersistingL2Cache();

	return cuda_sticky(x) ? cuda_fail(e, "cuCtxResetPersistingL2Cache", x) : 0;
}

/* ---- windows ---- */

static int window_graph(struct rep *r, int null, CUgraphExec *x, struct err *e)
{
	CUgraph g = NULL;
	CUlaunch l = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .stream = r->stream};

	TRY(StreamBeginCapture, r->stream, CU_CAPTURE_THREAD);
	r->capturing = 1;
	int rc = rep_scrub(r, 1, 0, e) || rep_flush(r, e) || rep_begin(r, e) ||
		 (null && cu.LaunchKernelEx(&l, r->null, NULL, NULL) != CUDA_OK) || rep_end(r, e);
	r->capturing = 0;
	CUresult end = cu.StreamEndCapture(r->stream, &g);
	if (rc || end)
		return err_set(e, EX_HARNESS, "cannot capture an empty window");
	CUresult made = cu.GraphInstantiate(x, g, 0);
	cu.GraphDestroy(g);
	return made ? cuda_fail(e, "cuGraphInstantiateWithFlags", made) : 0;
}

static int windows(struct rep *r, int null, int64_t *v, int64_t *tick, struct err *e)
{
	CUgraphExec x;

	if (window_graph(r, null, &x, e))
		return -1;
	for (int i = -WARM; i < WINDOWS; i++) {
		int64_t ns;
		if (persisting_reset(e))
			return -1;
		TRY(GraphLaunch, x, r->stream);
		TRY(StreamSynchronize, r->stream);
		if (rep_elapsed(r, &ns, e))
			return -1;
		*tick = gcd(*tick, ns);
		if (i >= 0)
			v[i] = ns;
	}
	TRY(GraphExecDestroy, x);
	return 0;
}

/* ---- does the flush empty the cache? ---- */

static int read_some(struct rep *r, CUdeviceptr p, uint64_t bytes, struct err *e)
{
	uint64_t n = bytes / 16;
	CUdeviceptr sink = r->small + 512;
	void *args[] = {&p, &n, &sink};
	CUlaunch l = {.grid = {(uint32_t)r->sms * 4, 1, 1}, .block = {512, 1, 1}, .stream = r->stream};

	TRY(LaunchKernelEx, &l, r->read, args, NULL);
	return 0;
}

/* Time of reading `probe`, dirty a moment ago, after reading `bytes` of `by`. */
static int probe_after(struct rep *r, CUdeviceptr probe, uint64_t size, CUdeviceptr by, uint64_t bytes,
		       double *out, struct err *e)
{
	int64_t v[PROBES];

	for (int i = 0; i < PROBES; i++) {
		TRY(MemsetD8Async, probe, (unsigned char)i, size, r->stream);
		if (persisting_reset(e))
			return -1;
		if (read_some(r, by, bytes, e) || rep_begin(r, e) || read_some(r, probe, size, e) || rep_end(r, e))
			return -1;
		TRY(StreamSynchronize, r->stream);
		if (rep_elapsed(r, &v[i], e))
			return -1;
	}
	*out = median(v, PROBES);
	return 0;
}

static int flush_check(struct rep *r, double *out, struct err *e)
{
	uint64_t size = r->l2 / 2, big = THOROUGH * r->l2;
	CUdeviceptr probe = 0, by = 0;
	double ours = 0, thorough = 0;

	TRY(MemAlloc, &probe, size);
	TRY(MemAlloc, &by, big);
	TRY(MemsetD8Async, by, 1, big, r->stream);
	if (probe_after(r, probe, size, r->flush, r->flush_bytes, &ours, e) ||
	    probe_after(r, probe, size, by, big, &thorough, e))
		return -1;
	TRY(MemFree, by);
	TRY(MemFree, probe);
	*out = thorough > 0 ? ours / thorough : 0;
	return 0;
}

int rep_figures(struct rep *r, struct worker_figures *f, struct err *e)
{
	int64_t v[WINDOWS], tick = 0;

	memset(f, 0, sizeof *f);
	f->flush_bytes = r->flush_bytes;
	if (windows(r, 0, v, &tick, e))
		return -1;
	f->empty_ns = median(v, WINDOWS);
	if (windows(r, 1, v, &tick, e))
		return -1;
	f->null_ns = median(v, WINDOWS);
	f->tick_ns = (double)tick;
	return flush_check(r, &f->flush_check, e);
}

/* ---- ceilings ---- */

/* What a window holds: a kernel of ours, or (no kernel) the driver's own copy. */
struct job {
	CUfunction f;
	uint32_t blocks, threads;
	void **args;
	CUdeviceptr from, to;
	uint64_t bytes;
};

static int go(struct rep *r, const struct job *j, struct err *e)
{
	CUlaunch l = {.grid = {j->blocks, 1, 1}, .block = {j->threads, 1, 1}, .stream = r->stream};

	if (j->f)
		TRY(LaunchKernelEx, &l, j->f, j->args, NULL);
	else
		TRY(MemcpyDtoDAsync, j->to, j->from, j->bytes, r->stream);
	return 0;
}

static int timed_job(struct rep *r, const struct job *j, double *ns, struct err *e)
{
	int64_t v[CEILINGS];

	for (int i = -WARM; i < CEILINGS; i++) {
		int64_t one;
		if (rep_begin(r, e) || go(r, j, e) || rep_end(r, e))
			return -1;
		TRY(StreamSynchronize, r->stream);
		if (rep_elapsed(r, &one, e))
			return -1;
		if (i >= 0)
			v[i] = one;
	}
	*ns = median(v, CEILINGS);
	return 0;
}

static int timed(struct rep *r, CUfunction f, uint32_t blocks, uint32_t threads, void **args, double *ns,
		 struct err *e)
{
	return timed_job(r, &(struct job){.f = f, .blocks = blocks, .threads = threads, .args = args}, ns, e);
}

static double rate(double amount, double ns)
{
	return ns > 0 ? amount / ns : 0;
}

/* Buffers far beyond the cache, but no more than an eighth of the free memory. */
static int memory_ceilings(struct rep *r, struct worker_ceilings *c, struct err *e)
{
	size_t room = 0, all = 0;
	CUdeviceptr a = 0, b = 0, sink = r->small + 512;
	double ns;

	TRY(MemGetInfo, &room, &all);
	uint64_t bytes = room / 8 < GIB ? room / 8 / 4096 * 4096 : GIB, n = bytes / 16;
	uint32_t v = 7, blocks = (uint32_t)r->sms * 16;
	TRY(MemAlloc, &a, bytes);
	TRY(MemAlloc, &b, bytes);
	TRY(MemsetD8Async, a, 1, bytes, r->stream);
	void *read[] = {&a, &n, &sink}, *write[] = {&b, &n, &v}, *copy[] = {&a, &b, &n};
	if (timed(r, r->read, blocks, 512, read, &ns, e))
		return -1;
	c->read_gbs = rate((double)bytes, ns);
	if (timed(r, r->write, blocks, 512, write, &ns, e))
		return -1;
	c->write_gbs = rate((double)bytes, ns);
	if (timed(r, r->copy, blocks, 512, copy, &ns, e))
		return -1;
	double own = ns;
	if (timed_job(r, &(struct job){.from = a, .to = b, .bytes = bytes}, &ns, e))
		return -1;
	c->copy_gbs = rate(2 * (double)bytes, own < ns ? own : ns);
	TRY(MemFree, a);
	TRY(MemFree, b);
	return 0;
}

static int tensor(struct rep *r, CUfunction f, double *tflops, struct err *e)
{
	uint32_t rounds = 4000, flop = 0, blocks = (uint32_t)r->sms;
	CUdeviceptr sink = r->small + 512, said = r->small + 1024;
	void *args[] = {&rounds, &sink, &said};
	double ns;

	if (timed(r, f, blocks, 256, args, &ns, e))
		return -1;
	TRY(MemcpyDtoH, &flop, said, sizeof flop);
	*tflops = rate((double)flop * rounds * blocks, ns) * 1e-3;
	return 0;
}

int rep_ceilings(struct rep *r, struct worker_ceilings *c, struct err *e)
{
	uint32_t rounds = 8192, blocks = (uint32_t)r->sms * 4;
	float x = 0.99f;
	CUdeviceptr sink = r->small + 512;
	void *args[] = {&rounds, &x, &sink};
	double ns;

	memset(c, 0, sizeof *c);
	if (memory_ceilings(r, c, e) || timed(r, r->fma, blocks, 512, args, &ns, e))
		return -1;
	c->fp32_tflops = rate(2.0 * 16 * rounds * blocks * 512, ns) * 1e-3;
	return tensor(r, r->bf16, &c->bf16_tflops, e) || tensor(r, r->fp16, &c->fp16_tflops, e) ? -1 : 0;
}
