/*
 * gpu_region.c - see gpu_region.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "gpu_region.h"
#include "defence.h"

#include <string.h>

#define PIECE ((uint64_t)2 << 20) /* what the driver takes memory in */
#define MOST ((uint64_t)64 << 20) /* more than modules may have: not a piece of theirs */

static enum gpu_regions_how mode;
static struct gpu_region region[GPU_REGIONS_MAX];
static int nregions;

/* ---- where ---- */

static void extent(CUdeviceptr at, size_t bytes, uint64_t *from, uint64_t *to)
{
	CUdeviceptr base = 0;
	size_t len = 0;

	*from = at;
	*to = at + bytes;
	if (cu.MemGetAddressRange(&base, &len, at) == CUDA_OK && base <= at && len <= MOST && *to <= base + len) {
		*from = base;
		*to = base + len;
	}
	if (mode == GPU_REGIONS_PAGE) {
		*from = *from / PIECE * PIECE;
		*to = (*to + PIECE - 1) / PIECE * PIECE;
	}
}

static struct gpu_region *find(CUdeviceptr at, size_t bytes)
{
	for (int i = 0; i < nregions; i++)
		if (at >= region[i].at && at - region[i].at <= region[i].bytes &&
		    bytes <= region[i].bytes - (at - region[i].at))
			return &region[i];
	return NULL;
}

static int image_map(struct gpu_region *g, struct err *e)
{
	CUmemProp prop = {.type = CU_MEM_PINNED, .location = {CU_MEM_ON_DEVICE, 0}};
	CUmemAccess ro = {{CU_MEM_ON_DEVICE, 0}, CU_MEM_READ};
	size_t unit = 0;
	CUresult r = cu.MemGetAllocationGranularity(&unit, &prop, 0);

	if (r == CUDA_OK && unit == 0)
		return err_set(e, EX_HARNESS, "the driver names no granularity");
	if (r == CUDA_OK)
		g->mapped = (g->bytes + unit - 1) / unit * unit;
	if (r == CUDA_OK)
		r = cu.MemCreate(&g->handle, g->mapped, &prop, 0);
	if (r == CUDA_OK)
		r = cu.MemAddressReserve(&g->image, g->mapped, 0, 0, 0);
	if (r == CUDA_OK)
		r = cu.MemMap(g->image, g->mapped, 0, g->handle, 0);
	if (r == CUDA_OK)
		r = cu.MemSetAccess(g->image, g->mapped, &ro, 1);
	return r ? cuda_fail(e, "memory for a copy of module memory", r) : 0;
}

static void image_free(struct gpu_region *g)
{
	if (g->image) {
		cu.MemUnmap(g->image, g->mapped);
		cu.MemAddressFree(g->image, g->mapped);
	}
	if (g->handle)
		cu.MemRelease(g->handle);
	*g = region[--nregions];
	memset(&region[nregions], 0, sizeof *region);
}

void gpu_regions_open(enum gpu_regions_how how)
{
	mode = how;
}

void gpu_regions_close(void)
{
	mode = GPU_REGIONS_OFF;
	while (nregions)
		image_free(&region[0]);
}

int gpu_region_note(CUdeviceptr at, size_t bytes, struct err *e)
{
	uint64_t from, to;

	if (mode == GPU_REGIONS_OFF)
		return 0;
	struct gpu_region *g = find(at, bytes);
	if (g) {
		g->users++;
		return 0;
	}
	if (nregions == GPU_REGIONS_MAX)
		return err_set(e, EX_HARNESS, "the variables of modules lie in more than %d places", GPU_REGIONS_MAX);
	extent(at, bytes, &from, &to);
	g = &region[nregions++];
	*g = (struct gpu_region){.at = from, .bytes = (size_t)(to - from), .users = 1};
	int rc = image_map(g, e);
	if (rc)
		image_free(g);
	return rc;
}

void gpu_region_forget(CUdeviceptr at, size_t bytes)
{
	struct gpu_region *g = find(at, bytes);

	if (g && --g->users == 0)
		image_free(g);
}

int gpu_regions(void)
{
	return DEFENCE("image.beside") ? nregions : 0;
}

const struct gpu_region *gpu_region(int i)
{
	return &region[i];
}

int gpu_region_holds(CUdeviceptr at, size_t bytes)
{
	return gpu_regions() && find(at, bytes);
}

/* ---- copies ---- */

int gpu_regions_take(struct err *e)
{
	CUmemAccess rw = {{CU_MEM_ON_DEVICE, 0}, CU_MEM_READ_WRITE}, ro = {{CU_MEM_ON_DEVICE, 0}, CU_MEM_READ};
	CUresult r = CUDA_OK;

	for (int i = 0; i < gpu_regions() && r == CUDA_OK; i++) {
		struct gpu_region *g = &region[i];
		r = cu.MemSetAccess(g->image, g->mapped, &rw, 1);
		if (r == CUDA_OK)
			r = cu.MemcpyDtoDAsync(g->image, g->at, g->bytes, NULL);
		if (r == CUDA_OK)
			r = cu.CtxSynchronize();
		if (r == CUDA_OK)
			r = cu.MemSetAccess(g->image, g->mapped, &ro, 1);
	}
	return r ? cuda_fail(e, "copy of module memory", r) : 0;
}

int gpu_regions_put(CUstream s, struct err *e)
{
	CUresult r = CUDA_OK;

	for (int i = 0; i < gpu_regions() && r == CUDA_OK; i++)
		r = cu.MemcpyDtoDAsync(region[i].at, region[i].image, region[i].bytes, s);
	return r ? cuda_fail(e, "module memory put back", r) : 0;
}

int gpu_regions_put_now(struct err *e)
{
	if (!gpu_regions())
		return 0;
	if (gpu_regions_put(NULL, e))
		return -1;
	CUresult r = cu.CtxSynchronize();
	return r ? cuda_fail(e, "module memory put back", r) : 0;
}
