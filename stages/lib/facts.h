/*
 * facts.h - what a device is, as plain numbers.
 *
 * Expressions in plans read these (sm_count, max_shared, max_threads, warp_size, l2_bytes,
 * occupancy(entry), max_clusters(entry)) and plan_resolve checks launches against them. `emu` and
 * `sim` are constants here; a GPU's facts are read from its driver by the worker and handed over
 * as this struct.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_FACTS_H
#define TS_FACTS_H

#include "err.h"

#include <stdint.h>

enum device_class { DEVICE_EMU, DEVICE_SIM, DEVICE_CUDA };

struct facts {
	enum device_class class;
	char name[96];            /* for people: "emulated CUDA on the host CPU" */
	char slug[65];            /* folder name: emu, sim, nvidia-h200 */
	int64_t sm_count;
	int64_t max_shared;       /* bytes one block may have, static + dynamic */
	int64_t max_shared_sm;    /* bytes all blocks of one SM share */
	int64_t shared_reserved;  /* bytes the system takes of that per block */
	int64_t max_threads;      /* per block */
	int64_t max_threads_sm;
	int64_t max_blocks_sm;
	int64_t max_registers;    /* per thread */
	int64_t max_registers_sm;
	int64_t warp_size;
	int64_t l2_bytes;
	int64_t max_cluster;      /* blocks of one cluster */
	int64_t clusters[17];     /* GPU: clusters of i blocks that fit at once, one block per SM; 0 unknown */
	int64_t max_grid[3];
	int64_t max_block[3];
	int one_config;           /* one build serves all sizes: a tunable's `choose` is not looked at */

	/* Resident blocks per SM of a compiled entry. NULL: from threads and shared memory alone
	 * (registers unknown), as emu does. Returns 0, or -1 with `e`. */
	int (*occupancy)(void *ctx, const char *entry, int64_t threads, int64_t shared,
			 int64_t *blocks, struct err *e);
	/* Clusters of that shape that the whole device holds at a time. NULL: from the occupancy, as
	 * if clusters could take any SMs; a GPU holds fewer, and only its driver knows. */
	int (*max_clusters)(void *ctx, const char *entry, int64_t threads, int64_t shared,
			    const int64_t cluster[3], int64_t *clusters, struct err *e);
	void *occupancy_ctx; /* of both */
};

/* "emu" or "sim". Any other name: -1, EX_BADUSE: a GPU's come from gpu.h. */
int facts_find(const char *device, struct facts *out, struct err *e);
/* Any other name is the slug of a GPU's model: DEVICE_CUDA. */
enum device_class device_class_of(const char *device);

/* Resident blocks per SM for `threads` per block and `shared` bytes per block; 0 if none fits. */
int facts_occupancy(const struct facts *f, const char *entry, int64_t threads, int64_t shared,
		    int64_t *blocks, struct err *e);

/* At least 1. */
int facts_clusters(const struct facts *f, const char *entry, int64_t threads, int64_t shared,
		   const int64_t cluster[3], int64_t *clusters, struct err *e);

const char *device_class_name(enum device_class c); /* "emu", "sim", "cuda" */

#endif
