/*
 * gpu_copy.c - see gpu_copy.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "gpu_copy.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void gpu_copy_close(struct gpu_copy *c)
{
	for (int i = 0; i < 2 && c->open; i++) {
		if (c->at[i])
			munmap(c->at[i], c->len[i]);
		if (c->fd[i] >= 0)
			close(c->fd[i]);
	}
	memset(c, 0, sizeof *c);
}

static int make(struct gpu_copy *c, const struct mem_layout *l, struct err *e)
{
	c->open = 1;
	c->fd[0] = c->fd[1] = -1;
	c->len[0] = l->in_bytes;
	c->len[1] = l->rw_bytes;
	for (int i = 0; i < 2; i++) {
		c->fd[i] = memfd_create("touchstone-copy", MFD_CLOEXEC);
		void *at = c->fd[i] < 0 || ftruncate(c->fd[i], (off_t)c->len[i]) < 0
				   ? MAP_FAILED
				   : mmap(NULL, c->len[i], PROT_READ | PROT_WRITE, MAP_SHARED, c->fd[i], 0);
		if (at == MAP_FAILED)
			return err_sys(e, "cannot make a copy of the workload");
		c->at[i] = at;
	}
	return 0;
}

int gpu_copy_run(struct gpu_copy *c, const struct gpu_mem *m, enum checker_way way, struct err *e)
{
	CUresult r = CUDA_OK;

	if (!c->open && make(c, &m->l, e) < 0) {
		gpu_copy_close(c);
		return -1;
	}
	for (uint32_t i = 0; i < m->l.n && r == CUDA_OK; i++) {
		const struct mem_buf *b = &m->l.buf[i];
		if (b->kind == MEM_WORKSPACE || !b->bytes)
			continue;
		uint8_t *host = c->at[b->kind != MEM_INPUT] + b->offset;
		r = way == CHECKER_PUT ? cu.MemcpyHtoD(gpu_mem_at(m, b), host, b->bytes)
				       : cu.MemcpyDtoH(host, gpu_mem_at(m, b), b->bytes);
	}
	/* A copy from pageable memory may still be on its way when the call returns. */
	if (r == CUDA_OK)
		r = cu.CtxSynchronize();
	return r == CUDA_OK ? 0 : cuda_fail(e, "cuMemcpy", r);
}

int gpu_copy_touch(const struct gpu_mem *m, uint32_t buffer, int64_t at, struct err *e)
{
	CUdeviceptr where = gpu_mem_at(m, &m->l.buf[buffer]) + (uint64_t)at;
	uint8_t byte = 0;
	CUresult r = cu.MemcpyDtoH(&byte, where, 1);

	byte ^= 1;
	if (r == CUDA_OK)
		r = cu.MemcpyHtoD(where, &byte, 1);
	if (r == CUDA_OK)
		r = cu.CtxSynchronize();
	return r == CUDA_OK ? 0 : cuda_fail(e, "cuMemcpy", r);
}
