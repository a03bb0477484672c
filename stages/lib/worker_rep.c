/*
 * worker_rep.c - see worker_rep.h. The figures are in worker_figures.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "worker_rep.h"

#include "defence.h"

#include <math.h>
#include <string.h>

enum {
	SINK = 512, CHANGED = 2048, COUNTER = 64, /* bytes: counter i of the scrubs at i * COUNTER */
	COUNTERS = 4096,                        /* all of the above */
	CANARY = 4096,                          /* words */
	FLUSHES = 3,                            /* times L2: dirty lines need as much */
};
enum { ATTR_SMS = 16, ATTR_L2 = 38, ATTR_SHARED_OPTIN = 97 };

static const uint64_t LOCAL[REP_LOCALS] = {256, 1024, 4096, 16384};

static uint32_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= 0x9E3779B97F4A7C15ull;
	x ^= x >> 29;
	x *= 0xBF58476D1CE4E5B9ull;
	return (uint32_t)(x >> 32);
}

static int functions_take(struct rep *r, struct err *e)
{
	const struct {
		const char *name;
		CUfunction *to;
	} all[] = {
		{"ts_null", &r->null}, {"ts_canary", &r->canary}, {"ts_same", &r->same}, {"ts_scrub_shared", &r->shared},
		{"ts_scrub_local_256", &r->local[0]}, {"ts_scrub_local_1024", &r->local[1]},
		{"ts_scrub_local_4096", &r->local[2]}, {"ts_scrub_local_16384", &r->local[3]},
		{"ts_read", &r->read}, {"ts_write", &r->write}, {"ts_copy", &r->copy}, {"ts_fma", &r->fma},
		{"ts_mma_bf16", &r->bf16}, {"ts_mma_fp16", &r->fp16},
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		TRY(ModuleGetFunction, all[i].to, r->module, all[i].name);
	TRY(FuncSetAttribute, r->shared, CU_FUNC_MAX_DYNAMIC, r->shared_bytes);
	for (int i = 0; i < REP_LOCALS; i++)
		TRY(OccupancyBlocks, &r->local_blocks[i], r->local[i], 256, 0);
	return 0;
}

static int canary(struct rep *r, struct err *e)
{
	static uint32_t got[CANARY];
	uint32_t n = CANARY;
	uint64_t key = 0x746f756368ull;
	CUdeviceptr out = r->flush;
	void *args[] = {&out, &n, &key};
	CUlaunch l = {.grid = {CANARY / 256, 1, 1}, .block = {256, 1, 1}, .stream = r->stream};
	CUresult x = cu.LaunchKernelEx(&l, r->canary, args, NULL);

	if (x == CUDA_OK)
		x = cu.StreamSynchronize(r->stream);
	if (x == CUDA_OK)
		x = cu.MemcpyDtoH(got, out, sizeof got);
	if (x)
		return err_set(e, EX_AGAIN, "this GPU is not healthy: a trivial kernel ends in %s", cuda_error(x));
	for (uint32_t i = 0; i < n; i++)
		if (got[i] != mix(key + i))
			return err_set(e, EX_AGAIN, "this GPU is not healthy: a trivial kernel computes nonsense");
	return 0;
}

/* A mapping of its own: a kernel that goes astray next to it meets nothing. *bytes grows to whole units. */
static int map(CUdeviceptr *at, uint64_t *bytes, struct err *e)
{
	CUmemProp prop = {.type = CU_MEM_PINNED, .location = {CU_MEM_ON_DEVICE, 0}};
	CUmemAccess rw = {{CU_MEM_ON_DEVICE, 0}, CU_MEM_READ_WRITE};
	CUmemHandle h;
	size_t unit = 0;

	TRY(MemGetAllocationGranularity, &unit, &prop, 0);
	if (unit == 0)
		return err_set(e, EX_HARNESS, "the driver names no granularity");
	*bytes = (*bytes + unit - 1) / unit * unit;
	TRY(MemCreate, &h, *bytes, &prop, 0);
	TRY(MemAddressReserve, at, *bytes, 0, 0, 0);
	TRY(MemMap, *at, *bytes, 0, h, 0);
	TRY(MemSetAccess, *at, *bytes, &rw, 1);
	return 0;
}

/* What a kernel of a candidate can write and nobody wipes, it can keep something in from rep to rep. The
 * flush is larger than any cache and only ever read, so nobody may write there again. */
static int flush_close(struct rep *r, uint64_t mapped, struct err *e)
{
	CUmemAccess ro = {{CU_MEM_ON_DEVICE, 0}, CU_MEM_READ};

	if (DEFENCE("readonly.flush"))
		TRY(MemSetAccess, r->flush, mapped, &ro, 1);
	return 0;
}

int rep_open(struct rep *r, CUdevice dev, const void *cubin, struct err *e)
{
	int l2 = 0;

	memset(r, 0, sizeof *r);
	r->dev = dev;
	TRY(DeviceGetAttribute, &r->sms, ATTR_SMS, dev);
	TRY(DeviceGetAttribute, &l2, ATTR_L2, dev);
	TRY(DeviceGetAttribute, &r->shared_bytes, ATTR_SHARED_OPTIN, dev);
	r->l2 = l2 > 0 ? (uint64_t)l2 : 1 << 20;
	r->flush_bytes = FLUSHES * r->l2;
	TRY(StreamCreate, &r->stream, CU_STREAM_NON_BLOCKING);
	TRY(ModuleLoadData, &r->module, cubin);
	if (functions_take(r, e))
		return -1;
	TRY(EventCreate, &r->dummy, 0);
	TRY(EventCreate, &r->start, 0);
	TRY(EventCreate, &r->stop, 0);
	uint64_t mapped = r->flush_bytes;
	r->small_bytes = 1;
	if (map(&r->flush, &mapped, e) || map(&r->small, &r->small_bytes, e))
		return -1;
	TRY(MemsetD8Async, r->flush, 0x3c, r->flush_bytes, r->stream);
	if (canary(r, e) || flush_close(r, mapped, e))
		return -1;
	/* Lines that a kernel asks to keep must not outlive its rep (h200-facts.md 2); a GPU without such a
	 * limit has no such lines. */
	if (DEFENCE("persisting.limit"))
		cu.CtxSetLimit(CU_LIMIT_PERSISTING_L2, 0);
	return 0;
}

int rep_local(uint64_t bytes)
{
	if (bytes == 0)
		return 0;
	for (int i = 0; i < REP_LOCALS; i++)
		if (bytes <= LOCAL[i])
			return i + 1;
	return -1;
}

/* All blocks wait for one another, so they must be resident at once: cooperative says so. */
static int together(struct rep *r, CUfunction f, uint32_t blocks, uint32_t threads, uint32_t shared,
		    void **args, struct err *e)
{
	CUlaunchAttr a = {.id = CU_LAUNCH_COOPERATIVE};
	CUlaunch l = {.grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .shared = shared, .stream = r->stream,
		      .attrs = &a, .nattrs = 1};

	a.value.u[0] = 1;
	TRY(LaunchKernelEx, &l, f, args, NULL);
	return 0;
}

int rep_scrub(struct rep *r, uint64_t seed, int local, struct err *e)
{
	uint32_t words = (uint32_t)r->shared_bytes / 4;
	CUdeviceptr arrived = r->small, sink = r->small + SINK;
	void *args[] = {&seed, &words, &arrived};

	/* the counters must be zero in any case */
	TRY(MemsetD8Async, r->small, 0, DEFENCE("image.small") ? r->small_bytes : COUNTERS, r->stream);
	if (DEFENCE("scrub.shared") &&
	    together(r, r->shared, (uint32_t)r->sms, 1024, (uint32_t)r->shared_bytes, args, e))
		return -1;
	if (local < 1 || !DEFENCE("scrub.local"))
		return 0;
	CUdeviceptr counter = r->small + (CUdeviceptr)local * COUNTER;
	void *more[] = {&seed, &counter, &sink};
	return together(r, r->local[local - 1], (uint32_t)(r->sms * r->local_blocks[local - 1]), 256, 0, more, e);
}

int rep_flush(struct rep *r, struct err *e)
{
	uint64_t n = r->flush_bytes / 16;
	CUdeviceptr sink = r->small + SINK;
	void *args[] = {&r->flush, &n, &sink};
	CUlaunch l = {.grid = {(uint32_t)r->sms * 4, 1, 1}, .block = {512, 1, 1}, .stream = r->stream};

	if (DEFENCE("flush.l2"))
		TRY(LaunchKernelEx, &l, r->read, args, NULL);
	return 0;
}

int rep_same(struct rep *r, CUdeviceptr p, CUdeviceptr q, uint64_t bytes, struct err *e)
{
	CUdeviceptr changed = r->small + CHANGED;
	void *args[] = {&p, &q, &bytes, &changed};
	CUlaunch l = {.grid = {(uint32_t)r->sms, 1, 1}, .block = {512, 1, 1}, .stream = r->stream};

	TRY(LaunchKernelEx, &l, r->same, args, NULL);
	return 0;
}

int rep_changed(struct rep *r, int *changed, struct err *e)
{
	uint32_t word = 0;

	TRY(MemcpyDtoH, &word, r->small + CHANGED, sizeof word);
	*changed = word != 0;
	return 0;
}

static int mark(struct rep *r, CUevent event, struct err *e)
{
	/* the flag makes a node that records; the driver refuses it where nothing is captured */
	if (r->capturing)
		TRY(EventRecordWithFlags, event, r->stream, CU_EVENT_EXTERNAL);
	else
		TRY(EventRecord, event, r->stream);
	return 0;
}

int rep_begin(struct rep *r, struct err *e)
{
	/* the first record after a kernel costs more than the next (h200-facts.md 1) */
	return mark(r, r->dummy, e) || mark(r, r->start, e) ? -1 : 0;
}

int rep_end(struct rep *r, struct err *e)
{
	return mark(r, r->stop, e);
}

int rep_elapsed(struct rep *r, int64_t *ns, struct err *e)
{
	float ms = 0;

	TRY(EventElapsedTime, &ms, r->start, r->stop);
	*ns = llround((double)ms * 1e6);
	return 0;
}
