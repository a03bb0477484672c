/*
 * gpu_copy.h - host copies of a workload's inputs and outputs on a GPU, for make check alone.
 *
 * Two memory files laid out as those of emu (memory.h): whoever gets the descriptors reads and writes
 * them, and each gpu_copy_run moves all payloads one way. Workspaces and guards stay where they are.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_GPU_COPY_H
#define TS_GPU_COPY_H

#include "checker_call.h"
#include "gpu_memory.h"

struct gpu_copy {
	int open, fd[2];  /* inputs, outputs */
	uint8_t *at[2];
	uint64_t len[2];
};

/* Made at the first use. */
int gpu_copy_run(struct gpu_copy *c, const struct gpu_mem *m, enum checker_way way, struct err *e);
void gpu_copy_close(struct gpu_copy *c);
/* One bit of one byte that mem_reaches. */
int gpu_copy_touch(const struct gpu_mem *m, uint32_t buffer, int64_t at, struct err *e);

#endif
