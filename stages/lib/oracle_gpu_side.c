/*
 * oracle_gpu_side.c - reference or baseline of one workload on a GPU. See oracle_gpu.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "oracle_gpu.h"

#include <string.h>

static uint64_t up(uint64_t n)
{
	return (n + 255) / 256 * 256;
}

int oracle_gpu_side_plan(struct oracle_gpu_side *d, const struct spec *s, const struct axes *a,
			 int reference, struct err *e)
{
	d->size = 0;
	for (int i = 0; i < s->noutputs; i++) {
		int64_t n;
		int r = reference ? spec_reference_bytes(s, &s->output[i], a, &n, e)
				  : spec_bytes(s, &s->output[i], a, &n, e);
		if (r < 0)
			return -1;
		d->off[i] = d->size;
		d->bytes[i] = (uint64_t)n;
		d->size += up((uint64_t)n) + 256; /* room between outputs */
	}
	return gpu_alloc(&d->out, d->size, reference ? "reference outputs" : "baseline outputs", e);
}

struct where {
	const struct oracle_gpu_side *d;
	const struct gpu_mem *m;
};

static uint64_t place(void *ctx, enum buffer_role role, int index, uint64_t *bytes)
{
	const struct where *w = ctx;

	if (role == ROLE_OUTPUT) {
		*bytes = w->d->bytes[index];
		return w->d->out + w->d->off[index];
	}
	if (role == ROLE_WORKSPACE) {
		*bytes = (uint64_t)w->d->launches.workspace[index].bytes;
		return w->d->ws + w->d->ws_off[index];
	}
	const struct mem_buf *b = mem_find(&w->m->l, MEM_INPUT, index);
	*bytes = b ? b->bytes : 0;
	return b ? gpu_mem_at(w->m, b) : 0;
}

int oracle_gpu_side_open(struct oracle_gpu_side *d, struct oracle_gpu_kit *k, const struct gpu_mem *m,
			 const struct plan *p, struct gpu_module *module, const struct spec *s,
			 const struct axes *a, int reference, struct err *e)
{
	struct where w = {d, m};
	char text[GPU_TEXT] = "";
	uint64_t ws = 0;

	if (plan_resolve(p, s, a, &k->facts, reference, &d->launches, e) < 0)
		return -1;
	d->open = 1;
	for (int i = 0; i < d->launches.nworkspaces; i++) {
		d->ws_off[i] = ws;
		ws += up((uint64_t)d->launches.workspace[i].bytes) + 256;
	}
	if (oracle_gpu_side_plan(d, s, a, reference, e) < 0 ||
	    gpu_alloc(&d->ws, ws, "workspaces of a reference", e) < 0)
		return -1;
	int r = gpu_prepare(&d->prepared, &d->launches, module, place, &w, text, e);
	if (r > 0)
		r = err_set(e, EX_BADINPUT, "the %s of '%s': %s", reference ? "reference" : "baseline", s->name,
			    text);
	return r;
}

int oracle_gpu_side_run(struct oracle_gpu_side *d, struct oracle_gpu_kit *k, const struct spec *s,
			const double *scalars, struct err *e)
{
	char text[GPU_TEXT] = "";

	for (int i = 0; i < s->ninputs; i++)
		if (s->input[i].scalar) {
			uint8_t cell[8] = {0};
			dtype_store(s->input[i].dtype, cell, 0, scalars[i]);
			gpu_scalar(d->prepared, i, cell, (int)dtype_size(s->input[i].dtype));
		}
	CUresult c = d->size ? cu.MemsetD8Async(d->out, 0xff, d->size, k->stream) : CUDA_OK; /* NaN */
	if (c != CUDA_OK)
		return cuda_fail(e, "cuMemsetD8Async", c);
	if (gpu_restore(d->prepared, k->stream, e) < 0)
		return -1;
	int r = gpu_enqueue(d->prepared, k->stream, text, e);
	return r > 0 ? err_set(e, EX_BADINPUT, "a reference of '%s': %s", s->name, text) : r;
}

void oracle_gpu_side_close(struct oracle_gpu_side *d)
{
	if (d->prepared)
		gpu_prepared_free(d->prepared);
	if (d->open)
		launches_free(&d->launches);
	if (d->out)
		cu.MemFree(d->out);
	if (d->ws)
		cu.MemFree(d->ws);
	memset(d, 0, sizeof *d);
}
