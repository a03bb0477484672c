/*
 * gpu_module.c - a cubin on the GPU, and its writable data put back. See gpu_run.h.
 *
 * The first content of every global is copied into a mapping that is then made read-only: what a
 * kernel could change there would outlive a rep.
 *
 * SPDX-License-Identifier: MIT
 */
#include "buf.h"
#include "cubin.h"
#include "gpu_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *gpu_symbol(const struct gpu_module *m, const char *entry)
{
	const struct cubin_entry *x = cubin_find(m->cubin, entry);

	return x ? x->name : entry;
}

/* The driver finds variables that are local to their file, too (measured); of two that share a name it
 * finds one, so the size must be right. What it does not find is restored by loading anew. */
static int global_find(const struct gpu_module *m, const struct cubin_global *c, struct gpu_global *g)
{
	return cu.ModuleGetGlobal(&g->at, &g->bytes, m->module, c->name) == CUDA_OK && g->bytes == c->bytes;
}

static void globals_find(struct gpu_module *m)
{
	const struct cubin *c = m->cubin;

	m->reload = c->hidden > 0;
	for (int i = 0; i < c->nglobals; i++) {
		struct gpu_global g = {0};
		int twice = 0;
		if (c->global[i].bytes == 0)
			continue;
		int found = m->nglobals < GPU_GLOBALS && global_find(m, &c->global[i], &g);
		for (int k = 0; k < m->nglobals; k++)
			twice |= m->global[k].at == g.at;
		if (found && !twice)
			m->global[m->nglobals++] = g;
		else
			m->reload = 1;
	}
}

static int images_map(struct gpu_module *m, size_t bytes, struct err *e)
{
	CUmemProp prop = {.type = CU_MEM_PINNED, .location = {CU_MEM_ON_DEVICE, 0}};
	CUmemAccess rw = {{CU_MEM_ON_DEVICE, 0}, CU_MEM_READ_WRITE};
	size_t unit = 0;
	CUresult r = cu.MemGetAllocationGranularity(&unit, &prop, 0);

	if (r == CUDA_OK && unit == 0)
		return err_set(e, EX_HARNESS, "the driver names no granularity");
	if (r == CUDA_OK)
		m->images_len = (bytes + unit - 1) / unit * unit;
	if (r == CUDA_OK)
		r = cu.MemCreate(&m->images_handle, m->images_len, &prop, 0);
	if (r == CUDA_OK)
		r = cu.MemAddressReserve(&m->images, m->images_len, 0, 0, 0);
	if (r == CUDA_OK)
		r = cu.MemMap(m->images, m->images_len, 0, m->images_handle, 0);
	if (r == CUDA_OK)
		r = cu.MemSetAccess(m->images, m->images_len, &rw, 1);
	return r ? cuda_fail(e, "memory for the first content of globals", r) : 0;
}

static int images_take(struct gpu_module *m, struct err *e)
{
	CUmemAccess ro = {{CU_MEM_ON_DEVICE, 0}, CU_MEM_READ};
	size_t bytes = 0;

	for (int i = 0; i < m->nglobals; i++)
		bytes += (m->global[i].bytes + 255) / 256 * 256;
	if (bytes == 0)
		return 0;
	if (images_map(m, bytes, e))
		return -1;
	CUdeviceptr at = m->images;
	CUresult r = CUDA_OK;
	for (int i = 0; i < m->nglobals && r == CUDA_OK; i++) {
		m->global[i].image = at;
		r = cu.MemcpyDtoDAsync(at, m->global[i].at, m->global[i].bytes, NULL);
		at += (m->global[i].bytes + 255) / 256 * 256;
	}
	if (r == CUDA_OK)
		r = cu.CtxSynchronize();
	if (r == CUDA_OK)
		r = cu.MemSetAccess(m->images, m->images_len, &ro, 1);
	return r ? cuda_fail(e, "copy of the first content of globals", r) : 0;
}

int gpu_module_load(struct gpu_module *m, const void *cubin, size_t len, char text[GPU_TEXT], struct err *e)
{
	memset(m, 0, sizeof *m);
	text[0] = 0;
	m->bytes = xmalloc(len + 1);
	memcpy(m->bytes, cubin, len);
	((char *)m->bytes)[len] = 0;
	m->len = len;
	CUresult r = cu.ModuleLoadData(&m->module, m->bytes);
	if (r) {
		free(m->bytes);
		memset(m, 0, sizeof *m);
		if (cuda_sticky(r) || r == CUDA_OUT_OF_MEMORY)
			return cuda_fail(e, "cuModuleLoadData", r);
		snprintf(text, GPU_TEXT, "the driver does not load the artefact: %s", cuda_error(r));
		return 1;
	}
	m->cubin = xcalloc(1, sizeof *m->cubin);
	int rc = cubin_parse(m->bytes, m->len, m->cubin, e);
	if (rc == 0)
		globals_find(m);
	/* nothing to copy back into a module that is loaded anew */
	if (rc == 0 && m->reload)
		m->nglobals = 0;
	if (rc == 0)
		rc = images_take(m, e);
	if (rc)
		gpu_module_unload(m);
	return rc;
}

void gpu_module_unload(struct gpu_module *m)
{
	if (m->images) {
		cu.MemUnmap(m->images, m->images_len);
		cu.MemAddressFree(m->images, m->images_len);
	}
	if (m->images_handle)
		cu.MemRelease(m->images_handle);
	if (m->module)
		cu.ModuleUnload(m->module);
	free(m->bytes);
	free(m->cubin);
	memset(m, 0, sizeof *m);
}

int gpu_module_again(struct gpu_module *m, struct err *e)
{
	CUresult r = cu.ModuleUnload(m->module);

	m->module = NULL;
	if (r == CUDA_OK)
		r = cu.ModuleLoadData(&m->module, m->bytes);
	m->loads++;
	return r ? cuda_fail(e, "cuModuleLoadData", r) : 0;
}
