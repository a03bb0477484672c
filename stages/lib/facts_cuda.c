/*
 * facts_cuda.c - see facts_cuda.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "facts_cuda.h"

#include <stdio.h>
#include <string.h>

/* CUdevice_attribute, and where each goes. */
enum {
	MAX_THREADS = 1, BLOCK_X = 2, BLOCK_Y = 3, BLOCK_Z = 4, GRID_X = 5, GRID_Y = 6, GRID_Z = 7, WARP = 10,
	SMS = 16, L2 = 38, THREADS_SM = 39, SHARED_SM = 81, REGISTERS_SM = 82, SHARED_OPTIN = 97,
	BLOCKS_SM = 106, SHARED_RESERVED = 111, CLUSTERS = 120,
};

static int ask(CUdevice dev, int which, int64_t *out, struct err *e)
{
	int v = 0;
	CUresult r = cu.DeviceGetAttribute(&v, which, dev);
	*out = v;
	return r == CUDA_OK ? 0 : cuda_fail(e, "cuDeviceGetAttribute", r);
}

void facts_slug(const char *name, char out[65])
{
	int n = 0;
	for (const char *p = name; *p && n < 64; p++) {
		char c = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
		if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
			out[n++] = c;
		else if (n && out[n - 1] != '-')
			out[n++] = '-';
	}
	while (n && out[n - 1] == '-')
		n--;
	out[n] = '\0';
	/* A name of ours, or none: it must not be taken for one. */
	if (!n || device_class_of(out) != DEVICE_CUDA || !strcmp(out, "cuda"))
		snprintf(out, 65, "gpu");
}

int facts_cuda(CUdevice dev, struct facts *f, struct err *e)
{
	memset(f, 0, sizeof *f);
	f->class = DEVICE_CUDA;
	CUresult r = cu.DeviceGetName(f->name, sizeof f->name, dev);
	if (r != CUDA_OK)
		return cuda_fail(e, "cuDeviceGetName", r);
	f->name[sizeof f->name - 1] = '\0';
	facts_slug(f->name, f->slug);
	int64_t cluster;
	struct {
		int which;
		int64_t *to;
	} all[] = {
		{SMS, &f->sm_count}, {SHARED_OPTIN, &f->max_shared}, {SHARED_SM, &f->max_shared_sm},
		{SHARED_RESERVED, &f->shared_reserved}, {MAX_THREADS, &f->max_threads},
		{THREADS_SM, &f->max_threads_sm}, {BLOCKS_SM, &f->max_blocks_sm},
		{REGISTERS_SM, &f->max_registers_sm}, {WARP, &f->warp_size}, {L2, &f->l2_bytes},
		{GRID_X, &f->max_grid[0]}, {GRID_Y, &f->max_grid[1]}, {GRID_Z, &f->max_grid[2]},
		{BLOCK_X, &f->max_block[0]}, {BLOCK_Y, &f->max_block[1]}, {BLOCK_Z, &f->max_block[2]},
		{CLUSTERS, &cluster},
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (ask(dev, all[i].which, all[i].to, e))
			return -1;
	f->max_registers = 255; /* of the instruction set; no attribute tells it */
	/* Portable is 8; 16 is what Hopper and later take with the non-portable attribute. Which
	 * sizes do fit is in `clusters`. */
	f->max_cluster = cluster ? 16 : 1;
	return 0;
}

static int load(CUmodule *m, CUfunction *fn)
{
	/* The driver compiles this for whatever GPU it has: no toolkit is needed to ask. */
	static const char text[] = ".version 7.8\n.target sm_90\n.address_size 64\n"
				   ".visible .entry probe()\n{\n\tret;\n}\n";
	if (cu.ModuleLoadData(m, text) != CUDA_OK)
		return -1;
	if (cu.ModuleGetFunction(fn, *m, "probe") == CUDA_OK)
		return 0;
	cu.ModuleUnload(*m);
	return -1;
}

void facts_cuda_clusters(struct facts *f)
{
	CUmodule m;
	CUfunction fn;
	memset(f->clusters, 0, sizeof f->clusters);
	if (f->max_cluster < 2 || load(&m, &fn))
		return;
	/* All the shared memory: one block per SM. */
	if (cu.FuncSetAttribute(fn, CU_FUNC_MAX_DYNAMIC, (int)f->max_shared) == CUDA_OK &&
	    cu.FuncSetAttribute(fn, CU_FUNC_NON_PORTABLE_CLUSTER, 1) == CUDA_OK)
		for (uint32_t i = 1; i <= (uint32_t)f->max_cluster; i++) {
			CUlaunchAttr a = {.id = CU_LAUNCH_CLUSTER, .value.u = {i, 1, 1}};
			CUlaunch l = {.grid = {i, 1, 1}, .block = {128, 1, 1},
				      .shared = (uint32_t)f->max_shared, .attrs = &a, .nattrs = 1};
			int n = 0;
			if (cu.OccupancyClusters(&n, fn, &l) == CUDA_OK && n > 0)
				f->clusters[i] = n;
		}
	cu.ModuleUnload(m);
}
