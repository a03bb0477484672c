/*
 * gpu_run.c - see gpu_run.h. Modules are in gpu_module.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "gpu_run.h"
#include "buf.h"
#include "cubin.h"
#include "defence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACK = 1024 }; /* of a thread, as the driver grants it unless a kernel is known to need more */

struct value {
	_Alignas(64) uint8_t b[128];
};

struct ready { /* a launch */
	CUfunction f;
	CUlaunch config;
	CUlaunchAttr attr[3];
	int nargs;
	void *arg[PLAN_MAX_ARGS];
	int scalar[PLAN_MAX_ARGS]; /* input index, -1 none */
	int overtaken; /* the next launch may start, and end, before this one has ended */
	struct value *value;
	char entry[PLAN_NAME];
};

struct gpu_prepared {
	struct gpu_module *m;
	int loads;
	int n;
	struct ready *launch;
	CUgraphNode *early; /* nodes of launches that are overtaken, while a stream captures */
	int nzero;
	struct {
		CUdeviceptr at;
		size_t bytes;
	} zero[PLAN_MAX_WORKSPACES];
	uint64_t shape, local;
	int attributes; /* functions: number of settings below */
	struct {
		char entry[PLAN_NAME];
		int shared, wide;
	} function[PLAN_MAX_LAUNCHES];
};

int gpu_map_fits(const struct tensor_map *m, uint64_t room)
{
	unsigned __int128 last = 0;

	if (m->rank < 1 || m->rank > 5 || m->element_bytes < 1)
		return 0;
	for (int i = 0; i < m->rank; i++) {
		uint64_t step = i ? m->stride[i - 1] : (uint64_t)m->element_bytes;
		if (m->dim[i] < 1 || m->dim[i] > (uint64_t)1 << 32 || step > (uint64_t)1 << 40)
			return 0;
		last += (unsigned __int128)(m->dim[i] - 1) * step;
	}
	return last + (unsigned)m->element_bytes <= room;
}

int gpu_args_fit(const struct launch *l, const size_t *size, int n, char text[GPU_TEXT])
{
	if (l->nargs != n) {
		snprintf(text, GPU_TEXT, "'%s' takes %d arguments, the plan passes %d", l->entry, n, l->nargs);
		return 1;
	}
	for (int i = 0; i < n; i++) {
		const struct launch_arg *a = &l->arg[i];
		size_t have = a->kind == ARG_BUFFER ? 8 : a->kind == ARG_MAP ? 128 : (size_t)a->n;
		if (have != size[i]) {
			snprintf(text, GPU_TEXT, "argument %d of '%s' has %zu bytes, the plan passes %zu", i, l->entry,
				 size[i], have);
			return 1;
		}
	}
	return 0;
}

static int refused(const char *what, const char *entry, CUresult r, char text[GPU_TEXT], struct err *e)
{
	if (cuda_sticky(r))
		return cuda_fail(e, what, r);
	snprintf(text, GPU_TEXT, "'%s': %s: %s", entry, what, cuda_error(r));
	return 1;
}

/* ---- functions ---- */

static int params_check(const struct launch *l, CUfunction f, char text[GPU_TEXT])
{
	size_t size[PLAN_MAX_ARGS + 1], at;
	int n = 0;

	while (n <= PLAN_MAX_ARGS && cu.FuncGetParamInfo(f, (size_t)n, &at, &size[n]) == CUDA_OK)
		n++;
	return gpu_args_fit(l, size, n, text);
}

/* One setting serves all launches of an entry: the largest. It also lowers. */
static void settings_note(struct gpu_prepared *p, const struct launch *l)
{
	int i = 0, blocks = (int)(l->cluster[0] * l->cluster[1] * l->cluster[2]);

	while (i < p->attributes && strcmp(p->function[i].entry, l->entry))
		i++;
	if (i == PLAN_MAX_LAUNCHES)
		return;
	if (i == p->attributes)
		snprintf(p->function[p->attributes++].entry, PLAN_NAME, "%s", l->entry);
	if ((int)l->shared > p->function[i].shared)
		p->function[i].shared = (int)l->shared;
	if (l->has_cluster && blocks > 8)
		p->function[i].wide = 1;
}

static int functions_bind(struct gpu_prepared *p, char text[GPU_TEXT], struct err *e)
{
	CUfunction f;
	CUresult r;

	for (int i = 0; i < p->attributes; i++) {
		const char *entry = p->function[i].entry;
		if ((r = cu.ModuleGetFunction(&f, p->m->module, gpu_symbol(p->m, entry))) != 0)
			return refused("not found in the module", entry, r, text, e);
		r = cu.FuncSetAttribute(f, CU_FUNC_MAX_DYNAMIC, p->function[i].shared);
		if (r)
			return refused("its dynamic shared memory", entry, r, text, e);
		if (p->function[i].wide && (r = cu.FuncSetAttribute(f, CU_FUNC_NON_PORTABLE_CLUSTER, 1)) != 0)
			return refused("a cluster of more than 8 blocks", entry, r, text, e);
		int local = 0;
		if (cu.FuncGetAttribute(&local, CU_FUNC_LOCAL, f) == CUDA_OK && (uint64_t)local > p->local)
			p->local = (uint64_t)local;
		for (int k = 0; k < p->n; k++)
			if (!strcmp(p->launch[k].entry, entry))
				p->launch[k].f = f;
	}
	if (p->m->cubin->calls && p->local < STACK)
		p->local = STACK;
	p->loads = p->m->loads;
	return 0;
}

/* ---- arguments ---- */

static int place(const struct launch_arg *a, gpu_at at, void *ctx, uint64_t *addr, uint64_t *room,
		 char text[GPU_TEXT])
{
	uint64_t bytes = 0, base = at(ctx, a->role, a->index, &bytes);

	if (!base || a->offset < 0 || (uint64_t)a->offset > bytes) {
		snprintf(text, GPU_TEXT, "an argument lies outside its buffer (offset %lld of %llu bytes)",
			 (long long)a->offset, (unsigned long long)bytes);
		return 1;
	}
	*addr = base + (uint64_t)a->offset;
	*room = bytes - (uint64_t)a->offset;
	return 0;
}

static int map_encode(const struct launch_arg *a, uint64_t addr, uint64_t room, struct value *v,
		      const char *entry, char text[GPU_TEXT], struct err *e)
{
	const struct tensor_map *m = &a->map;
	CUtensorMap out;

	if (!gpu_map_fits(m, room)) {
		snprintf(text, GPU_TEXT, "'%s': a tensor map reaches beyond its buffer", entry);
		return 1;
	}
	CUresult r = cu.TensorMapEncodeTiled(&out, m->dtype, (uint32_t)m->rank, (void *)(uintptr_t)addr, m->dim,
					     m->stride, m->box, m->step, m->interleave, m->swizzle,
					     m->l2_promotion, m->oob_fill);
	if (r)
		return refused("a tensor map", entry, r, text, e);
	memcpy(v->b, &out, sizeof out);
	return 0;
}

static int arg_fill(struct ready *to, const struct launch *l, int i, gpu_at at, void *ctx,
		    char text[GPU_TEXT], struct err *e)
{
	const struct launch_arg *a = &l->arg[i];
	struct value *v = &to->value[i];
	uint64_t addr = 0, room = 0;

	to->arg[i] = v->b;
	to->scalar[i] = a->kind == ARG_SCALAR ? a->index : -1;
	if (a->kind == ARG_BYTES || a->kind == ARG_SCALAR) {
		memcpy(v->b, a->data, sizeof v->b);
		return 0;
	}
	int rc = place(a, at, ctx, &addr, &room, text);
	if (rc)
		return rc;
	if (a->kind == ARG_MAP)
		return map_encode(a, addr, room, v, l->entry, text, e);
	memcpy(v->b, &addr, sizeof addr);
	return 0;
}

static void attr_add(struct ready *to, uint32_t id, uint32_t x, uint32_t y, uint32_t z)
{
	CUlaunchAttr *a = &to->attr[to->config.nattrs++];

	a->id = id;
	a->value.u[0] = x;
	a->value.u[1] = y;
	a->value.u[2] = z;
}

static int launch_ready(struct ready *to, const struct launch *l, gpu_at at, void *ctx,
			char text[GPU_TEXT], struct err *e)
{
	if (l->nargs > PLAN_MAX_ARGS)
		return err_set(e, EX_HARNESS, "too many arguments");
	snprintf(to->entry, sizeof to->entry, "%s", l->entry);
	for (int i = 0; i < 3; i++) {
		to->config.grid[i] = l->grid[i];
		to->config.block[i] = l->block[i];
	}
	to->config.shared = l->shared;
	if (l->has_cluster)
		attr_add(to, CU_LAUNCH_CLUSTER, l->cluster[0], l->cluster[1], l->cluster[2]);
	if (l->cooperative)
		attr_add(to, CU_LAUNCH_COOPERATIVE, 1, 0, 0);
	if (l->pdl)
		attr_add(to, CU_LAUNCH_PDL, 1, 0, 0);
	to->nargs = l->nargs;
	size_t room = sizeof *to->value * (size_t)(l->nargs + 1);
	to->value = aligned_alloc(64, room);
	if (!to->value)
		return err_set(e, EX_SYS, "no memory for arguments");
	memset(to->value, 0, room);
	for (int i = 0; i < l->nargs; i++) {
		int rc = arg_fill(to, l, i, at, ctx, text, e);
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- the whole ---- */

static void mix(uint64_t *h, uint64_t v)
{
	*h = (*h ^ v) * 0x100000001b3ull;
	*h ^= *h >> 29;
}

static uint64_t shape_of(const struct gpu_prepared *p, const struct launches *l)
{
	uint64_t h = 0xcbf29ce484222325ull;

	mix(&h, (uint64_t)p->nzero);
	mix(&h, (uint64_t)p->m->nglobals);
	mix(&h, (uint64_t)l->n);
	for (int i = 0; i < l->n; i++) {
		const struct launch *x = &l->launch[i];
		mix(&h, (uint64_t)(x->has_cluster | x->cooperative << 1 | x->pdl << 2));
		for (int k = 0; x->has_cluster && k < 3; k++)
			mix(&h, x->cluster[k]);
	}
	return h;
}

static int zeros_find(struct gpu_prepared *p, const struct launches *l, gpu_at at, void *ctx, struct err *e)
{
	for (int i = 0; i < l->nworkspaces; i++) {
		const struct launch_workspace *w = &l->workspace[i];
		uint64_t bytes = 0, addr;
		if (w->bytes <= 0)
			continue;
		addr = at(ctx, ROLE_WORKSPACE, i, &bytes);
		if (!addr || bytes < (uint64_t)w->bytes)
			return err_set(e, EX_HARNESS, "workspace '%s' has less memory than the plan needs", w->name);
		if (!w->zero)
			continue;
		p->zero[p->nzero].at = addr;
		p->zero[p->nzero++].bytes = (size_t)w->bytes;
	}
	return 0;
}

static int prepare(struct gpu_prepared *p, const struct launches *l, gpu_at at, void *ctx,
		   char text[GPU_TEXT], struct err *e)
{
	int rc = zeros_find(p, l, at, ctx, e);

	for (int i = 0; i < l->n && !rc; i++) {
		settings_note(p, &l->launch[i]);
		rc = launch_ready(&p->launch[i], &l->launch[i], at, ctx, text, e);
		p->launch[i].overtaken = i + 1 < l->n && l->launch[i + 1].pdl;
	}
	if (!rc)
		rc = functions_bind(p, text, e);
	for (int i = 0; i < l->n && !rc; i++)
		rc = params_check(&l->launch[i], p->launch[i].f, text);
	p->shape = shape_of(p, l);
	return rc;
}

int gpu_prepare(struct gpu_prepared **out, const struct launches *l, struct gpu_module *m, gpu_at at,
		void *ctx, char text[GPU_TEXT], struct err *e)
{
	struct gpu_prepared *p = xcalloc(1, sizeof *p);

	*out = NULL;
	text[0] = 0;
	p->m = m;
	p->n = l->n;
	p->launch = xcalloc((size_t)(l->n ? l->n : 1), sizeof *p->launch);
	p->early = xcalloc((size_t)(l->n ? l->n : 1), sizeof *p->early);
	int rc = prepare(p, l, at, ctx, text, e);
	if (rc)
		gpu_prepared_free(p);
	else
		*out = p;
	return rc;
}

void gpu_scalar(struct gpu_prepared *p, int index, const void *data, int n)
{
	for (int i = 0; i < p->n; i++)
		for (int k = 0; k < p->launch[i].nargs; k++)
			if (p->launch[i].scalar[k] == index)
				memcpy(p->launch[i].value[k].b, data, (size_t)n);
}

int gpu_restore(struct gpu_prepared *p, CUstream s, struct err *e)
{
	for (int i = 0; DEFENCE("image.restore") && i < p->m->nglobals; i++) {
		const struct gpu_global *g = &p->m->global[i];
		CUresult r = cu.MemcpyDtoDAsync(g->at, g->image, g->bytes, s);
		if (r)
			return cuda_fail(e, "cuMemcpyDtoDAsync", r);
	}
	return 0;
}

int gpu_reload(struct gpu_prepared *p, struct err *e)
{
	return p->m->reload ? gpu_module_again(p->m, e) : 0;
}

/* A dependent launch that never waits for the one before it may end first, and what follows in the stream
 * waits for the last launch alone: a graph would then be timed to the end of a kernel that did nothing. So
 * the end of a capture depends on every launch. */
static int overtaken_note(struct gpu_prepared *p, CUstream s, int *n, struct err *e)
{
	const CUgraphNode *node = NULL;
	size_t nodes = 0;
	uint64_t id;
	int capturing = 0;
	CUresult r = cu.StreamGetCaptureInfo(s, &capturing, &id, NULL, &node, &nodes);

	if (r)
		return cuda_fail(e, "cuStreamGetCaptureInfo", r);
	if (capturing != 1)
		return 0;
	if (nodes != 1)
		return err_set(e, EX_HARNESS, "a launch made %zu nodes", nodes);
	p->early[(*n)++] = node[0];
	return 0;
}

static int overtaken_join(struct gpu_prepared *p, CUstream s, int n, struct err *e)
{
	CUresult r = n && DEFENCE("launch.join") ? cu.StreamUpdateCaptureDependencies(s, p->early, (size_t)n, 0) : CUDA_OK;

	return r ? cuda_fail(e, "cuStreamUpdateCaptureDependencies", r) : 0;
}

int gpu_enqueue(struct gpu_prepared *p, CUstream s, char text[GPU_TEXT], struct err *e)
{
	int rc = p->loads == p->m->loads ? 0 : functions_bind(p, text, e), early = 0;

	for (int i = 0; i < p->nzero && !rc; i++) {
		CUresult r = cu.MemsetD8Async(p->zero[i].at, 0, p->zero[i].bytes, s);
		if (r)
			rc = cuda_fail(e, "cuMemsetD8Async", r);
	}
	for (int i = 0; i < p->n && !rc; i++) {
		struct ready *l = &p->launch[i];
		l->config.stream = s;
		l->config.attrs = l->config.nattrs ? l->attr : NULL;
		CUresult r = cu.LaunchKernelEx(&l->config, l->f, l->arg, NULL);
		if (r)
			rc = refused("cuLaunchKernelEx", l->entry, r, text, e);
		else if (l->overtaken)
			rc = overtaken_note(p, s, &early, e);
	}
	return rc ? rc : overtaken_join(p, s, early, e);
}

void gpu_prepared_free(struct gpu_prepared *p)
{
	if (!p)
		return;
	for (int i = 0; i < p->n; i++)
		free(p->launch[i].value);
	free(p->launch);
	free(p->early);
	free(p);
}

uint64_t gpu_shape(const struct gpu_prepared *p)
{
	return p->shape;
}

uint64_t gpu_local(const struct gpu_prepared *p)
{
	return p->local;
}
