/*
 * worker_slot.c - see worker_slot.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "worker_slot.h"

#include "defence.h"
#include "dtype.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The range that mem_plan takes addresses from. */
#define RANGE_BASE 0x3000000000ull
#define RANGE_END 0x7000000000ull
#define RANGE_STEP 0x2000000ull /* of reservations, as the driver seems to keep them */

struct piece {
	uint64_t addr, len;
	CUmemHandle handle;
};

static struct memory {
	int used;
	struct mem_layout layout;
	uint32_t n;
	struct piece piece[MEM_MAX];
} memory[WORKER_MEMS];

static struct slot {
	int used, windows, local;
	int ran, restores; /* restores: launches change their variables, so each window puts them back first */
	struct gpu_module module;
	struct gpu_prepared *ready[WORKER_WINDOWS];
	int32_t mem[WORKER_WINDOWS], scalar_type[CHECKER_SCALARS];
	uint64_t shape;
} slot[WORKER_SLOTS];

static CUgraphExec graph;
static uint64_t graph_shape;
static int graph_slot = -1;

static int outcome(struct worker_reply *r, enum worker_outcome o, const char *text)
{
	r->outcome = (int32_t)o;
	snprintf(r->text, sizeof r->text, "%s", text);
	return 1;
}

/* ---- memory ---- */

static struct {
	uint64_t from, to;
} range[WORKER_MEMS];
static int nranges;

static int reserve(uint64_t from, uint64_t to)
{
	CUdeviceptr got = 0;

	if (nranges == WORKER_MEMS || cu.MemAddressReserve(&got, to - from, 0, from, 0) != CUDA_OK)
		return 0;
	if (got != from) { /* elsewhere: the driver calls that success */
		cu.MemAddressFree(got, to - from);
		return 0;
	}
	range[nranges].from = from;
	range[nranges++].to = to;
	return 1;
}

/* All in one piece where the driver allows: a reservation close to another one is moved elsewhere. */
static int range_reserve(const struct mem_layout *l, struct err *e)
{
	uint64_t from = RANGE_END, to = RANGE_BASE;

	for (uint32_t i = 0; i < l->n; i++) {
		const struct mem_buf *b = &l->buf[i];
		if (b->seg_len && b->seg_addr < from)
			from = b->seg_addr;
		if (b->seg_len && b->seg_addr + b->seg_len > to)
			to = b->seg_addr + b->seg_len;
	}
	for (int i = 0; i < nranges; i++)
		if (from >= range[i].from && to <= range[i].to)
			return 0;
	if (from >= to || (nranges == 0 && reserve(RANGE_BASE, RANGE_END)) ||
	    reserve(from / RANGE_STEP * RANGE_STEP, (to + RANGE_STEP - 1) / RANGE_STEP * RANGE_STEP))
		return 0;
	return err_set(e, EX_AGAIN, "the driver does not give the addresses that all workers share");
}

static int in_range(const struct mem_buf *b)
{
	return b->seg_addr >= RANGE_BASE && b->seg_addr < RANGE_END && b->seg_len <= RANGE_END - b->seg_addr &&
	       b->addr >= b->seg_addr && b->addr - b->seg_addr <= b->seg_len &&
	       b->bytes <= b->seg_len - (b->addr - b->seg_addr);
}

static int piece_map(struct memory *m, const struct mem_buf *b, int fd, struct err *e)
{
	struct piece *p = &m->piece[m->n];
	int fixed = b->kind == MEM_INPUT && DEFENCE("readonly.inputs");
	CUmemAccess access = {{CU_MEM_ON_DEVICE, 0}, fixed ? CU_MEM_READ : CU_MEM_READ_WRITE};

	CUresult r = cu.MemImport(&p->handle, (void *)(intptr_t)fd, CU_MEM_POSIX_FD);
	if (r)
		return cuda_fail(e, "cuMemImportFromShareableHandle", r);
	r = cu.MemMap(b->seg_addr, b->seg_len, 0, p->handle, 0);
	if (r) {
		cu.MemRelease(p->handle);
		return cuda_fail(e, "cuMemMap", r);
	}
	p->addr = b->seg_addr;
	p->len = b->seg_len;
	m->n++;
	r = cu.MemSetAccess(p->addr, p->len, &access, 1);
	return r ? cuda_fail(e, "cuMemSetAccess", r) : 0;
}

static int pieces_unmap(struct memory *m, struct err *e)
{
	CUresult r = CUDA_OK, x;

	for (uint32_t i = 0; i < m->n; i++) {
		if ((x = cu.MemUnmap(m->piece[i].addr, m->piece[i].len)) != 0)
			r = x;
		if ((x = cu.MemRelease(m->piece[i].handle)) != 0)
			r = x;
	}
	memset(m, 0, sizeof *m);
	return r ? cuda_fail(e, "cuMemUnmap", r) : 0;
}

int slot_map(const struct worker_request *q, const int *fd, int nfds, struct err *e)
{
	if (q->mem < 0 || q->mem >= WORKER_MEMS || memory[q->mem].used)
		return err_set(e, EX_HARNESS, "memory %d cannot be mapped now", q->mem);
	struct memory *m = &memory[q->mem];
	if (q->layout.n > MEM_MAX || (int)q->layout.n != nfds)
		return err_set(e, EX_HARNESS, "a layout of %u buffers came with %d handles", q->layout.n, nfds);
	for (uint32_t i = 0; i < q->layout.n; i++)
		if (q->layout.buf[i].seg_len && !in_range(&q->layout.buf[i]))
			return err_set(e, EX_HARNESS, "buffer %u lies outside the shared range", i);
	if (range_reserve(&q->layout, e))
		return -1;
	m->layout = q->layout;
	for (uint32_t i = 0; i < q->layout.n; i++) {
		/* a workspace of no bytes may have no memory */
		if (q->layout.buf[i].seg_len == 0)
			continue;
		if (piece_map(m, &q->layout.buf[i], fd[i], e)) {
			pieces_unmap(m, NULL);
			return -1;
		}
	}
	m->used = 1;
	return 0;
}

int slot_unmap(const struct worker_request *q, struct err *e)
{
	if (q->mem < 0 || q->mem >= WORKER_MEMS || !memory[q->mem].used)
		return err_set(e, EX_HARNESS, "memory %d is not mapped", q->mem);
	for (int i = 0; i < WORKER_SLOTS; i++)
		for (int k = 0; slot[i].used && k < slot[i].windows; k++)
			if (slot[i].mem[k] == q->mem)
				return err_set(e, EX_HARNESS, "memory %d is in use by slot %d", q->mem, i);
	return pieces_unmap(&memory[q->mem], e);
}

/* ---- artefacts ---- */

static uint64_t buffer_at(void *ctx, enum buffer_role role, int index, uint64_t *bytes)
{
	const struct memory *m = ctx;
	enum mem_kind kind = role == ROLE_INPUT ? MEM_INPUT : role == ROLE_OUTPUT ? MEM_OUTPUT : MEM_WORKSPACE;
	const struct mem_buf *b = mem_find(&m->layout, kind, index);

	*bytes = b ? b->bytes : 0;
	return b ? b->addr : 0;
}

/* It would keep pointing at code that is gone. */
static void graph_drop(void)
{
	if (graph)
		cu.GraphExecDestroy(graph);
	graph = NULL;
	graph_slot = -1;
}

static void slot_free(struct slot *s)
{
	if (graph_slot == (int)(s - slot))
		graph_drop();
	for (int i = 0; i < s->windows; i++)
		gpu_prepared_free(s->ready[i]);
	gpu_module_unload(&s->module);
	memset(s, 0, sizeof *s);
}

static int windows_prepare(struct slot *s, const struct worker_request *q, const struct launches *l,
			   char text[GPU_TEXT], struct err *e)
{
	for (int i = 0; i < q->windows; i++) {
		int mem = q->mems[i];
		if (mem < 0 || mem >= WORKER_MEMS || !memory[mem].used)
			return err_set(e, EX_HARNESS, "memory %d is not mapped", mem);
		s->mem[i] = mem;
		int rc = gpu_prepare(&s->ready[i], l, &s->module, buffer_at, &memory[mem], text, e);
		if (rc)
			return rc;
		s->windows = i + 1;
	}
	if (s->module.reload && s->windows > 1) {
		snprintf(text, GPU_TEXT, "it has more variables in device memory than can be put back between launches "
					 "that are timed together: at most %d, each found by its name", GPU_GLOBALS);
		return 1;
	}
	s->shape = gpu_shape(s->ready[0]) * 31 + (uint64_t)s->windows;
	s->local = rep_local(gpu_local(s->ready[0]));
	if (s->local >= 0)
		return 0;
	snprintf(text, GPU_TEXT, "%llu bytes of local memory a thread: 16384 is the most that can be scrubbed",
		 (unsigned long long)gpu_local(s->ready[0]));
	return 1;
}

int slot_load(const struct worker_request *q, const void *cubin, const struct launches *l,
	      struct worker_reply *r, struct err *e)
{
	char text[GPU_TEXT] = "";

	if (q->slot < 0 || q->slot >= WORKER_SLOTS || slot[q->slot].used)
		return err_set(e, EX_HARNESS, "slot %d cannot be loaded now", q->slot);
	if (q->windows < 1 || q->windows > WORKER_WINDOWS)
		return err_set(e, EX_HARNESS, "%d windows", q->windows);
	struct slot *s = &slot[q->slot];
	int rc = gpu_module_load(&s->module, cubin, (size_t)q->cubin_len, text, e);
	if (rc == 0)
		rc = windows_prepare(s, q, l, text, e);
	if (rc) {
		slot_free(s);
		return rc < 0 ? -1 : outcome(r, WORKER_REFUSED, text);
	}
	memcpy(s->scalar_type, q->scalar_type, sizeof s->scalar_type);
	s->used = 1;
	return 0;
}

int slot_unload(const struct worker_request *q, struct err *e)
{
	if (q->slot < 0 || q->slot >= WORKER_SLOTS || !slot[q->slot].used)
		return err_set(e, EX_HARNESS, "slot %d is empty", q->slot);
	slot_free(&slot[q->slot]);
	return 0;
}

/* ---- a rep ---- */

static void scalars_set(struct slot *s, const struct worker_request *q)
{
	for (int w = 0; w < s->windows; w++)
		for (int i = 0; i < CHECKER_SCALARS; i++) {
			uint8_t data[8] = {0};
			enum dtype t = (enum dtype)s->scalar_type[i];
			if (t == DT_NONE || dtype_size(t) == 0)
				continue;
			dtype_store(t, data, 0, q->scalars[w][i]);
			gpu_scalar(s->ready[w], i, data, (int)dtype_size(t));
		}
}

/* What a kernel of any slot may leave in local memory, a kernel of any other could read. */
static int local_most(void)
{
	int most = 0;
	for (int i = 0; i < WORKER_SLOTS; i++)
		if (slot[i].used && slot[i].local > most)
			most = slot[i].local;
	return most;
}

/* One window has ended and the next one begins. What a launch left in a variable, or did ahead in another
 * window's outputs, must not serve the next: in a rep that looks, the first is noticed and the second spoilt. */
static int between(struct rep *rep, struct slot *s, int next, const struct worker_request *q, int look,
		   struct err *e)
{
	const struct mem_layout *l = next < s->windows ? &memory[s->mem[next]].layout : NULL;

	if (!DEFENCE("window.between"))
		return 0;
	for (int i = 0; look && i < s->module.nglobals; i++) {
		const struct gpu_global *g = &s->module.global[i];
		if (rep_same(rep, g->at, g->image, g->bytes, e))
			return -1;
	}
	if (l && s->restores && gpu_restore(s->ready[next], rep->stream, e))
		return -1;
	for (uint32_t i = 0; q->look && l && i < l->n; i++) {
		const struct mem_buf *b = &l->buf[i];
		CUresult r = b->kind == MEM_OUTPUT && b->bytes
				     ? cu.MemsetD8Async(b->addr, 0xa5, (size_t)b->bytes, rep->stream) : CUDA_OK;
		if (r)
			return cuda_fail(e, "cuMemsetD8Async", r);
	}
	return 0;
}

static int rep_enqueue(struct rep *rep, struct slot *s, const struct worker_request *q, int local,
		       int look, char text[GPU_TEXT], struct err *e)
{
	if (gpu_restore(s->ready[0], rep->stream, e) || rep_scrub(rep, q->scrub_seed, local, e) ||
	    (!q->untimed && rep_flush(rep, e)) || rep_begin(rep, e))
		return -1;
	for (int i = 0; i < s->windows; i++) {
		int rc = gpu_enqueue(s->ready[i], rep->stream, text, e);
		if (rc == 0 && s->windows > 1)
			rc = between(rep, s, i + 1, q, look, e);
		if (rc)
			return rc;
	}
	return (q->drain && rep_flush(rep, e)) || rep_end(rep, e) ? -1 : 0;
}

static int capture(struct rep *rep, struct slot *s, const struct worker_request *q, int local, int look,
		   CUgraph *out, char text[GPU_TEXT], struct err *e)
{
	CUresult r = cu.StreamBeginCapture(rep->stream, CU_CAPTURE_THREAD);

	if (r)
		return cuda_fail(e, "cuStreamBeginCapture", r);
	rep->capturing = 1;
	int rc = rep_enqueue(rep, s, q, local, look, text, e);
	rep->capturing = 0;
	r = cu.StreamEndCapture(rep->stream, out);
	if (rc && r == CUDA_OK)
		cu.GraphDestroy(*out);
	if (rc || r == CUDA_OK)
		return rc;
	if (cuda_sticky(r))
		return cuda_fail(e, "cuStreamEndCapture", r);
	snprintf(text, GPU_TEXT, "the launches cannot be captured: %s", cuda_error(r));
	return 1;
}

/* Bring the executable graph up to `g`; *rebuilt when it had to be made anew. */
static int graph_set(CUgraph g, uint64_t shape, int32_t *rebuilt, char text[GPU_TEXT], struct err *e)
{
	CUgraphUpdate u = {0};

	if (graph && graph_shape == shape && cu.GraphExecUpdate(graph, g, &u) == CUDA_OK)
		return 0;
	graph_drop();
	*rebuilt = 1;
	CUresult r = cu.GraphInstantiate(&graph, g, 0);
	if (r == CUDA_OK) {
		graph_shape = shape;
		return 0;
	}
	graph = NULL;
	if (cuda_sticky(r) || r == CUDA_OUT_OF_MEMORY)
		return cuda_fail(e, "cuGraphInstantiateWithFlags", r);
	snprintf(text, GPU_TEXT, "the launches make no graph: %s", cuda_error(r));
	return 1;
}

static int launch(struct rep *rep, struct worker_reply *r, struct err *e)
{
	char text[GPU_TEXT];
	CUresult x = DEFENCE("persisting.reset") ? cu.CtxResetPersistingL2Cache() : CUDA_OK;

	/* a GPU without persisting lines has nothing to reset */
	if (cuda_sticky(x))
		return cuda_fail(e, "cuCtxResetPersistingL2Cache", x);
	x = cu.GraphLaunch(graph, rep->stream);
	if (x && !cuda_sticky(x)) {
		snprintf(text, sizeof text, "cuGraphLaunch: %s", cuda_error(x));
		return outcome(r, WORKER_REFUSED, text);
	}
	if (x == CUDA_OK)
		x = cu.StreamSynchronize(rep->stream);
	if (x && cuda_sticky(x)) {
		snprintf(text, sizeof text, "the kernel ended in %s", cuda_error(x));
		return outcome(r, WORKER_FAULT, text);
	}
	return x ? cuda_fail(e, "cuStreamSynchronize", x) : rep_elapsed(rep, &r->elapsed_ns, e);
}

/* One rep, launched and waited for. `look`: are variables changed? */
static int rep_run(struct rep *rep, struct slot *s, const struct worker_request *q, int look, struct worker_reply *r,
		   struct err *e)
{
	char text[GPU_TEXT] = "";
	CUgraph g = NULL;

	if (s->module.reload)
		graph_drop();
	if (gpu_reload(s->ready[0], e))
		return -1;
	int local = local_most();
	uint64_t shape = ((s->shape * 31 + (uint64_t)local) * 2 + (q->untimed != 0)) * 2 + (q->drain != 0);
	shape = ((shape * 2 + (s->restores != 0)) * 2 + (look != 0)) * 2 + (q->look != 0);
	int rc = capture(rep, s, q, local, look, &g, text, e);
	if (rc)
		return rc < 0 ? -1 : outcome(r, WORKER_REFUSED, text);
	rc = graph_set(g, shape, &r->rebuilt, text, e);
	cu.GraphDestroy(g);
	if (rc)
		return rc < 0 ? -1 : outcome(r, WORKER_REFUSED, text);
	graph_slot = (int)(s - slot);
	return launch(rep, r, e);
}

int slot_run(struct rep *rep, const struct worker_request *q, struct worker_reply *r, struct err *e)
{
	int changed = 0;

	if (q->slot < 0 || q->slot >= WORKER_SLOTS || !slot[q->slot].used)
		return err_set(e, EX_HARNESS, "slot %d is empty", q->slot);
	struct slot *s = &slot[q->slot];
	if (q->scalars_set)
		scalars_set(s, q);
	int look = s->windows > 1 && s->module.nglobals > 0 && !s->restores && (q->look || !s->ran);
	int rc = rep_run(rep, s, q, look, r, e);
	s->ran = 1;
	if (rc || !look || rep_changed(rep, &changed, e))
		return rc || !look ? rc : -1;
	if (!changed)
		return 0;
	s->restores = 1; /* and this rep again, as all others will be */
	return rep_run(rep, s, q, 0, r, e);
}
