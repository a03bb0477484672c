/*
 * gpu_memory.c - the memory of one workload on a GPU. See gpu_memory.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "gpu_memory.h"

#include <string.h>
#include <unistd.h>

static CUmemProp prop_of(CUdevice dev)
{
	return (CUmemProp){.type = CU_MEM_PINNED, .handle_types = CU_MEM_POSIX_FD,
			   .location = {CU_MEM_ON_DEVICE, dev}};
}

int gpu_granule(CUdevice dev, uint64_t *bytes, struct err *e)
{
	CUmemProp p = prop_of(dev);
	size_t n = 0;
	CUresult r = cu.MemGetAllocationGranularity(&n, &p, 0);

	if (r != CUDA_OK)
		return cuda_fail(e, "cuMemGetAllocationGranularity", r);
	if (n < MEM_PAGE || n & (n - 1))
		return err_set(e, EX_NOENV, "this GPU shares memory in units of %zu bytes", n);
	*bytes = n;
	return 0;
}

/* Too much for this GPU, or only now? */
static int no_room(uint64_t bytes, const char *what, struct err *e)
{
	size_t free_now = 0, total = 0;
	const double gib = 1 << 30;

	if (cu.MemGetInfo(&free_now, &total) != CUDA_OK)
		return err_set(e, EX_AGAIN, "no memory on the GPU for %s", what);
	if (bytes > total)
		return err_set(e, EX_NOENV, "%s: %.1f GiB wanted, this GPU has %.1f", what, (double)bytes / gib,
			       (double)total / gib);
	return err_set(e, EX_AGAIN, "%s: %.1f GiB wanted, %.1f of this GPU's %.1f are free", what,
		       (double)bytes / gib, (double)free_now / gib, (double)total / gib);
}

int gpu_alloc(CUdeviceptr *at, uint64_t bytes, const char *what, struct err *e)
{
	*at = 0;
	if (!bytes)
		return 0;
	CUresult r = cu.MemAlloc(at, bytes);
	if (r == CUDA_OUT_OF_MEMORY)
		return no_room(bytes, what, e);
	return r == CUDA_OK ? 0 : cuda_fail(e, "cuMemAlloc", r);
}

static int make_segment(struct gpu_mem *m, uint32_t i, CUdevice dev, struct err *e)
{
	const struct mem_buf *b = &m->l.buf[i];
	CUmemProp p = prop_of(dev);
	CUmemAccess rw = {{CU_MEM_ON_DEVICE, dev}, CU_MEM_READ_WRITE};
	CUresult r = cu.MemCreate(&m->handle[i], b->seg_len, &p, 0);

	if (r == CUDA_OUT_OF_MEMORY)
		return no_room(m->l.in_bytes + m->l.rw_bytes, "memory of a workload", e);
	if (r != CUDA_OK)
		return cuda_fail(e, "cuMemCreate", r);
	m->seg[i] = m->base + (b->seg_addr - m->l.buf[0].seg_addr);
	r = cu.MemMap(m->seg[i], b->seg_len, 0, m->handle[i], 0);
	if (r != CUDA_OK) {
		cu.MemRelease(m->handle[i]);
		return cuda_fail(e, "cuMemMap", r);
	}
	m->made = i + 1;
	r = cu.MemSetAccess(m->seg[i], b->seg_len, &rw, 1);
	if (r != CUDA_OK)
		return cuda_fail(e, "cuMemSetAccess", r);
	r = cu.MemExport(&m->fd[i], m->handle[i], CU_MEM_POSIX_FD, 0);
	if (r != CUDA_OK)
		m->fd[i] = -1;
	return r == CUDA_OK ? 0 : cuda_fail(e, "cuMemExportToShareableHandle", r);
}

int gpu_mem_create(struct gpu_mem *m, const struct mem_layout *l, CUdevice dev, struct err *e)
{
	const struct mem_buf *last = &l->buf[l->n - 1];
	size_t free_now = 0, total = 0;

	memset(m, 0, sizeof *m);
	m->l = *l;
	for (int i = 0; i < MEM_MAX; i++)
		m->fd[i] = -1;
	if (l->n == 0)
		return err_set(e, EX_HARNESS, "a workload without buffers");
	if (cu.MemGetInfo(&free_now, &total) == CUDA_OK && l->in_bytes + l->rw_bytes > total)
		return no_room(l->in_bytes + l->rw_bytes, "memory of a workload", e);
	m->span = last->seg_addr + last->seg_len - l->buf[0].seg_addr;
	CUresult r = cu.MemAddressReserve(&m->base, m->span, l->page, 0, 0);
	if (r != CUDA_OK)
		return cuda_fail(e, "cuMemAddressReserve", r);
	for (uint32_t i = 0; i < l->n; i++)
		if (make_segment(m, i, dev, e) < 0) {
			gpu_mem_destroy(m);
			return -1;
		}
	return 0;
}

void gpu_mem_destroy(struct gpu_mem *m)
{
	for (uint32_t i = 0; i < m->made; i++) {
		cu.MemUnmap(m->seg[i], m->l.buf[i].seg_len);
		cu.MemRelease(m->handle[i]);
	}
	for (uint32_t i = 0; m->span && i < MEM_MAX; i++)
		if (m->fd[i] >= 0)
			close(m->fd[i]);
	if (m->base)
		cu.MemAddressFree(m->base, m->span);
	memset(m, 0, sizeof *m);
}

uint64_t gpu_mem_at(const struct gpu_mem *m, const struct mem_buf *b)
{
	return m->seg[b - m->l.buf] + (b->addr - b->seg_addr);
}
