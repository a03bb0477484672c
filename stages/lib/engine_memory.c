/*
 * engine_memory.c - see engine_memory.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_memory.h"

#include "cuda_api.h"

static int64_t last = -1;

static int64_t used_now(void)
{
	size_t free_bytes, total;
	if (!cu.MemGetInfo || cu.MemGetInfo(&free_bytes, &total) != CUDA_OK || free_bytes > total)
		return -1;
	return (int64_t)(total - free_bytes);
}

void engine_memory_begin(void)
{
	last = used_now();
}

void engine_memory_look(struct engine_memory *m)
{
	const int64_t now = last < 0 ? -1 : used_now();
	if (now < 0)
		return;
	m->known = 1;
	m->held += now - last;
	last = now;
	if (m->held > m->peak)
		m->peak = m->held;
}
