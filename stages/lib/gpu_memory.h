/*
 * gpu_memory.h - the memory of one workload on a GPU.
 *
 * The layout is memory.h's with the granule as its page. Every segment is an allocation of its own,
 * mapped in our context wherever the driver likes and exported as a POSIX descriptor; whoever gets the
 * descriptors maps them at the layout's addresses, inputs read-only (the GPU enforces that). Needs a
 * current context.
 *
 * gpu_granule -> layout.page; mem_plan; gpu_mem_create -> gpu_mem_destroy. A GPU that is too small is
 * EX_NOENV, one whose memory others hold EX_AGAIN.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_GPU_MEMORY_H
#define TS_GPU_MEMORY_H

#include "cuda_api.h"
#include "memory.h"

struct gpu_mem {
	struct mem_layout l;
	CUdeviceptr base;          /* our reservation: all segments and the gaps between */
	uint64_t span;
	uint64_t seg[MEM_MAX];     /* by buffer: its segment in our context */
	CUmemHandle handle[MEM_MAX];
	int fd[MEM_MAX];           /* ours to close; -1 none */
	uint32_t made;             /* segments that exist */
};

int gpu_granule(CUdevice dev, uint64_t *bytes, struct err *e);
int gpu_mem_create(struct gpu_mem *m, const struct mem_layout *l, CUdevice dev, struct err *e);
void gpu_mem_destroy(struct gpu_mem *m);
uint64_t gpu_mem_at(const struct gpu_mem *m, const struct mem_buf *b); /* payload, in our context */
/* cuMemAlloc that says in words what was wanted. 0 bytes: *at = 0. */
int gpu_alloc(CUdeviceptr *at, uint64_t bytes, const char *what, struct err *e);

#endif
