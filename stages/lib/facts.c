/*
 * facts.c - see facts.h. The constants of emu and sim live here.
 *
 * The emulated device is a small Hopper: block limits are those of sm_90, so that a plan which
 * passes here has a chance there, with 4 SMs so that a grid of waves is still a grid of waves.
 * `sim` is the full-size one.
 *
 * SPDX-License-Identifier: MIT
 */
#include "facts.h"

#include <stdio.h>
#include <string.h>

static const struct facts SMALL = {
	.class = DEVICE_EMU,
	.name = "emulated CUDA on the host CPU",
	.slug = "emu",
	.sm_count = 4,
	.max_shared = 232448,
	.max_shared_sm = 233472,
	.shared_reserved = 1024,
	.max_threads = 1024,
	.max_threads_sm = 2048,
	.max_blocks_sm = 32,
	.max_registers = 255,
	.max_registers_sm = 65536,
	.warp_size = 32,
	.l2_bytes = 4 << 20,
	.max_cluster = 16,
	.max_grid = {2147483647, 65535, 65535},
	.max_block = {1024, 1024, 64},
	.one_config = 1,
};

int facts_find(const char *device, struct facts *out, struct err *e)
{
	*out = SMALL;
	if (!strcmp(device, "emu"))
		return 0;
	if (strcmp(device, "sim"))
		return err_set(e, EX_BADUSE, "unknown device '%s' (emu, sim)", device);
	out->class = DEVICE_SIM;
	out->one_config = 0;
	snprintf(out->name, sizeof out->name, "simulated, no code is run");
	snprintf(out->slug, sizeof out->slug, "sim");
	out->sm_count = 132;
	out->l2_bytes = 50 << 20;
	return 0;
}

int facts_occupancy(const struct facts *f, const char *entry, int64_t threads, int64_t shared,
		    int64_t *blocks, struct err *e)
{
	if (threads < 1 || shared < 0)
		return err_set(e, EX_BADINPUT, "occupancy(%s): block of %lld threads, %lld shared bytes",
			       entry, (long long)threads, (long long)shared);
	if (f->occupancy)
		return f->occupancy(f->occupancy_ctx, entry, threads, shared, blocks, e);
	*blocks = 0;
	if (threads > f->max_threads || shared > f->max_shared)
		return 0;
	int64_t warps = (threads + f->warp_size - 1) / f->warp_size;
	int64_t by_threads = f->max_threads_sm / (warps * f->warp_size);
	int64_t by_shared = f->max_shared_sm / (shared + f->shared_reserved);
	int64_t n = by_threads < by_shared ? by_threads : by_shared;
	*blocks = n < f->max_blocks_sm ? n : f->max_blocks_sm;
	return 0;
}

int facts_clusters(const struct facts *f, const char *entry, int64_t threads, int64_t shared,
		   const int64_t cluster[3], int64_t *clusters, struct err *e)
{
	int64_t per_sm, blocks = cluster[0] * cluster[1] * cluster[2];
	if (f->max_clusters) {
		if (f->max_clusters(f->occupancy_ctx, entry, threads, shared, cluster, clusters, e))
			return -1;
	} else {
		if (facts_occupancy(f, entry, threads, shared, &per_sm, e))
			return -1;
		*clusters = f->sm_count * per_sm / blocks;
	}
	if (*clusters < 1)
		*clusters = 1;
	return 0;
}

enum device_class device_class_of(const char *device)
{
	return !strcmp(device, "emu") ? DEVICE_EMU : !strcmp(device, "sim") ? DEVICE_SIM : DEVICE_CUDA;
}

const char *device_class_name(enum device_class c)
{
	return c == DEVICE_EMU ? "emu" : c == DEVICE_SIM ? "sim" : "cuda";
}
