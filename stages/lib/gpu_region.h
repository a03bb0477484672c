/*
 * gpu_region.h - the pieces of memory that the driver keeps the variables of modules in, kept whole.
 *
 * A kernel can write past a variable of its module, and nobody faults it: seen on an H200 up to the end of the
 * 2 MiB that the variable lies in. What it leaves there would be found again in the next rep. So a worker keeps
 * a copy of such a piece where no kernel can write, as it was when the last module came or went, and puts all
 * of it back: before each rep, and before a module is loaded or unloaded, so that no copy ever holds what a
 * kernel left. Modules share pieces; one that has none of its own may know the address of another's. Therefore
 * the worker's own kernels have a variable, too (stages/gpu/rep.cu), and its piece is kept from the start.
 *
 * How far a piece goes: the driver says (cuMemGetAddressRange), or it is taken to be the 2 MiB around
 * (GPU_REGIONS_PAGE), which the caller must have found out to be readable: see worker_start.c.
 *
 * One set for a process; off until gpu_regions_open. Return 0, or -1 with the error.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_GPU_REGION_H
#define TS_GPU_REGION_H

#include "cuda_api.h"

enum { GPU_REGIONS_MAX = 32 };
enum gpu_regions_how { GPU_REGIONS_OFF, GPU_REGIONS_DRIVER, GPU_REGIONS_PAGE };

struct gpu_region {
	CUdeviceptr at, image; /* image: the copy */
	size_t bytes;
	int users; /* variables noted in it */
	CUmemHandle handle;
	size_t mapped;
};

void gpu_regions_open(enum gpu_regions_how how);
/* Nothing is kept any more. */
void gpu_regions_close(void);
/* A variable lies there; the piece around it is kept until as many are forgotten. */
int gpu_region_note(CUdeviceptr at, size_t bytes, struct err *e);
void gpu_region_forget(CUdeviceptr at, size_t bytes);

int gpu_regions(void); /* how many are put back */
const struct gpu_region *gpu_region(int i);
int gpu_region_holds(CUdeviceptr at, size_t bytes); /* is it put back with one of them? */

/* What is there now is what is put back from now on; waits for the GPU. */
int gpu_regions_take(struct err *e);
/* Enqueue; the stream may be capturing. */
int gpu_regions_put(CUstream s, struct err *e);
/* Put back and wait. */
int gpu_regions_put_now(struct err *e);

#endif
