/*
 * module.c - modules, functions and launches of the fake driver, with the limits and codes that were
 * measured on an H200 (tests/gpu/truth/README.md).
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { COOPERATIVE = CU_LAUNCH_COOPERATIVE, CLUSTER = CU_LAUNCH_CLUSTER, SMS = 132 };

/* An image carries no length: it ends behind its section headers, or behind the last section. */
static size_t image_bytes(const uint8_t *data)
{
	Elf64_Ehdr h;
	if (memcmp(data, ELFMAG, SELFMAG))
		return 0;
	memcpy(&h, data, sizeof h);
	size_t end = h.e_shoff + (size_t)h.e_shnum * sizeof(Elf64_Shdr);
	size_t programs = h.e_phoff + (size_t)h.e_phnum * sizeof(Elf64_Phdr);
	for (unsigned i = 0; h.e_shoff && i < h.e_shnum; i++) {
		Elf64_Shdr s;
		memcpy(&s, data + h.e_shoff + i * sizeof s, sizeof s);
		if (s.sh_type != SHT_NOBITS && s.sh_offset + s.sh_size > end)
			end = s.sh_offset + s.sh_size;
	}
	return end > programs ? end : programs;
}

/* PTX: entries without parameters and nothing else, for who asks the driver about an empty kernel. */
static int ptx_read(struct CUmod_st *m, const char *text)
{
	if (strncmp(text, ".version", 8))
		return FAKE_INVALID_IMAGE;
	m->func = calloc(FAKE_FUNCS, sizeof *m->func);
	if (!m->func)
		return CUDA_OUT_OF_MEMORY;
	while ((text = strstr(text, ".entry ")) != NULL && m->nfuncs < FAKE_FUNCS) {
		struct CUfunc_st *f = &m->func[m->nfuncs++];
		text += strlen(".entry ");
		size_t n = strcspn(text, "( \n");
		if (strncmp(text + n, "()", 2))
			return 218; /* invalid PTX */
		*f = (struct CUfunc_st){.module = m, .regs = 8, .max_threads = 1024, .max_dynamic = 49152};
		snprintf(f->name, sizeof f->name, "%.*s", (int)n, text);
	}
	return m->nfuncs ? 0 : FAKE_INVALID_IMAGE;
}

CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
	int r = fake_ready_uncaptured();
	if (r || !image)
		return r ? r : CUDA_INVALID_VALUE;
	size_t n = image_bytes(image);
	uint8_t *copy = n ? malloc(n) : NULL; /* aligned, as the reader wants it */
	struct CUmod_st *m = calloc(1, sizeof *m);
	if (!m || (n && !copy)) {
		free(copy);
		free(m);
		return CUDA_OUT_OF_MEMORY;
	}
	if (n)
		memcpy(copy, image, n);
	r = n ? fake_elf_read(m, copy, n) : ptx_read(m, image);
	free(copy);
	if (r)
		cuModuleUnload(m);
	else
		*out = m;
	return r;
}

/* The records stay: a graph may still name a function, and running that is then an error. */
CUresult cuModuleUnload(CUmodule m)
{
	if (!m || m->dead)
		return FAKE_INVALID_HANDLE;
	fake_drain();
	for (size_t i = 0; i < sizeof m->section / sizeof *m->section; i++)
		if (m->section[i])
			fake_module_free(m->section[i]);
	free(m->object);
	m->object = NULL;
	m->nobjects = 0;
	m->dead = 1;
	return 0;
}

CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name)
{
	int r = fake_ready();
	if (r || !m || m->dead)
		return r ? r : FAKE_INVALID_HANDLE;
	for (int i = 0; i < m->nfuncs; i++)
		if (strcmp(m->func[i].name, name) == 0) {
			*f = &m->func[i];
			return 0;
		}
	return CUDA_NOT_FOUND;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *at, size_t *bytes, CUmodule m, const char *name)
{
	int r = fake_ready();
	if (r || !m || m->dead)
		return r ? r : FAKE_INVALID_HANDLE;
	for (int i = 0; i < m->nobjects; i++)
		if (strcmp(m->object[i].name, name) == 0) {
			if (at)
				*at = m->object[i].at;
			if (bytes)
				*bytes = m->object[i].bytes;
			return 0;
		}
	return CUDA_NOT_FOUND;
}

CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction f)
{
	int r = fake_ready();
	if (r || !f)
		return r ? r : FAKE_INVALID_HANDLE;
	switch (attribute) {
	case 0: *value = f->max_threads; return 0;
	case 1: *value = f->shared; return 0;
	case 2: *value = 0; return 0;
	case 3: *value = f->local; return 0;
	case 4: *value = f->regs; return 0;
	case 5:
	case 6: *value = 90; return 0;
	case 7: *value = 0; return 0;
	case 8: *value = f->max_dynamic; return 0;
	case 9: *value = -1; return 0;
	case 10: *value = f->cluster[0] != 0; return 0;
	case 11:
	case 12:
	case 13: *value = (int)f->cluster[attribute - 11]; return 0;
	case 14: *value = f->non_portable; return 0;
	case 15: *value = 0; return 0;
	default: return CUDA_INVALID_VALUE;
	}
}

CUresult cuFuncSetAttribute(CUfunction f, int attribute, int value)
{
	int r = fake_ready();
	if (r || !f)
		return r ? r : FAKE_INVALID_HANDLE;
	if (attribute == 8) {
		if (value < 0 || value > FAKE_SHARED_MOST - f->shared)
			return CUDA_INVALID_VALUE;
		f->max_dynamic = value;
		return 0;
	}
	if (attribute == 14) {
		f->non_portable = value != 0;
		return 0;
	}
	return attribute == 9 || attribute == 15 ? 0 : CUDA_INVALID_VALUE;
}

CUresult cuFuncGetParamInfo(CUfunction f, size_t i, size_t *offset, size_t *size)
{
	int r = fake_ready();
	if (r || !f)
		return r ? r : FAKE_INVALID_HANDLE;
	if (i >= (size_t)f->nparams)
		return CUDA_INVALID_VALUE;
	*offset = f->param[i].offset;
	if (size)
		*size = f->param[i].size;
	return 0;
}

/* --- occupancy --- */

static int blocks_per_sm(const struct CUfunc_st *f, int threads, size_t dynamic)
{
	int warps = (threads + 31) / 32;
	int by_threads = 2048 / (warps * 32), n = by_threads < 32 ? by_threads : 32;
	int by_regs = f->regs ? 65536 / ((f->regs * 32 + 255) / 256 * 256) / 4 * 4 / warps : n;
	size_t shared = (dynamic + (size_t)f->shared + 1024 + 127) & ~(size_t)127;
	if (by_regs < n)
		n = by_regs;
	if ((int)(FAKE_SHARED_SM / shared) < n)
		n = (int)(FAKE_SHARED_SM / shared);
	return n;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction f, int threads, size_t dynamic)
{
	int r = fake_ready();
	if (r || !f || threads <= 0)
		return r ? r : CUDA_INVALID_VALUE;
	int fits = threads <= f->max_threads && dynamic <= (size_t)f->max_dynamic;
	*n = fits ? blocks_per_sm(f, threads, dynamic) : 0;
	return 0;
}

/* What an H200 holds: some of its processors have no neighbours to share a larger cluster with. */
static int clusters_of(uint32_t size)
{
	return size <= 2 ? SMS / (int)size : size <= 4 ? 120 / (int)size : size <= 8 ? 120 / (int)size :
							 112 / (int)size;
}

static void launch_attrs(const CUlaunch *l, const struct CUfunc_st *f, uint32_t cluster[3], int *cooperative)
{
	for (int k = 0; k < 3; k++)
		cluster[k] = f->cluster[0] ? f->cluster[k] : 1;
	*cooperative = 0;
	for (uint32_t i = 0; i < l->nattrs; i++) {
		if (l->attrs[i].id == CLUSTER)
			memcpy(cluster, l->attrs[i].value.u, 3 * sizeof *cluster);
		if (l->attrs[i].id == COOPERATIVE)
			*cooperative = l->attrs[i].value.u[0] != 0;
	}
}

CUresult cuOccupancyMaxActiveClusters(int *n, CUfunction f, const CUlaunch *l)
{
	uint32_t c[3];
	int cooperative, r = fake_ready();
	if (r || !f)
		return r ? r : FAKE_INVALID_HANDLE;
	launch_attrs(l, f, c, &cooperative);
	uint64_t size = (uint64_t)c[0] * c[1] * c[2];
	if (size == 0 || size > (f->non_portable ? 16u : 8u))
		return FAKE_INVALID_CLUSTER;
	*n = clusters_of((uint32_t)size) *
	     blocks_per_sm(f, (int)(l->block[0] * l->block[1] * l->block[2]), l->shared);
	return 0;
}

/* --- launch --- */

static CUresult launch_check(const CUlaunch *l, const struct CUfunc_st *f, const uint32_t c[3], int cooperative)
{
	uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2], size = (uint64_t)c[0] * c[1] * c[2];
	if (!l->grid[0] || !l->grid[1] || !l->grid[2] || l->grid[0] > 2147483647u || l->grid[1] > 65535 ||
	    l->grid[2] > 65535)
		return CUDA_INVALID_VALUE;
	if (!threads || l->block[0] > 1024 || l->block[1] > 1024 || l->block[2] > 64 ||
	    threads > (uint64_t)f->max_threads)
		return CUDA_INVALID_VALUE;
	if (l->shared > (uint32_t)f->max_dynamic)
		return CUDA_INVALID_VALUE;
	if (!size || size > (f->non_portable ? 16u : 8u) || l->grid[0] % c[0] || l->grid[1] % c[1] ||
	    l->grid[2] % c[2])
		return FAKE_INVALID_CLUSTER;
	uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
	if (cooperative && blocks > (uint64_t)SMS * (uint64_t)blocks_per_sm(f, (int)threads, l->shared))
		return FAKE_COOPERATIVE_TOO_LARGE;
	return 0;
}

/* Why the host build of a kernel cannot stand in for it; NULL when it can. */
static const char *host_wrong(const struct CUfunc_st *f)
{
	if (!f->host)
		return "nobody wrote a host build";
	if ((int)f->host->n_params != f->nparams)
		return "its host build has another number of parameters";
	for (int i = 0; i < f->nparams; i++)
		if (f->host->param_bytes[i] != f->param[i].size)
			return "a parameter of its host build has another size";
	return NULL;
}

/* For tests: the first kernel of a module that could not run here. */
__attribute__((visibility("default"))) const char *fake_missing(CUmodule m, const char **why);
const char *fake_missing(CUmodule m, const char **why)
{
	for (int i = 0; i < m->nfuncs; i++)
		if ((*why = host_wrong(&m->func[i])) != NULL)
			return m->func[i].name;
	return NULL;
}

CUresult cuLaunchKernelEx(const CUlaunch *l, CUfunction f, void **args, void **extra)
{
	struct fake_op op = {.kind = FAKE_KERNEL, .func = f}, own;
	int r = fake_ready();
	if (r || !f || f->module->dead)
		return r ? r : FAKE_INVALID_HANDLE;
	if (extra || (f->nparams && !args))
		return CUDA_INVALID_VALUE;
	launch_attrs(l, f, op.cluster, &op.cooperative);
	r = launch_check(l, f, op.cluster, op.cooperative);
	if (r)
		return r;
	const char *wrong = host_wrong(f);
	if (wrong) {
		fake_say("kernel '%s': %s (tests/fake/cuda/kernels)", f->name, wrong);
		return FAKE_NOT_SUPPORTED;
	}
	memcpy(op.grid, l->grid, sizeof op.grid);
	memcpy(op.block, l->block, sizeof op.block);
	op.shared = l->shared;
	op.args = args;
	r = fake_op_copy(&own, &op);
	if (r)
		return r;
	r = fake_enqueue(l->stream, &own);
	if (r)
		fake_op_free(&own);
	return r;
}
