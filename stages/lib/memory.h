/*
 * memory.h - the memory of one workload: inputs, outputs, workspaces, guards and slack.
 *
 * Two memfds. The inputs memfd is mapped read-only by candidates (sealed against growth,
 * shrinking and, where the kernel knows F_SEAL_FUTURE_WRITE, against any further writable
 * mapping); the rw memfd holds outputs and workspaces. Every buffer lies in a segment of its
 * own, with guard bytes in front and behind up to whole pages. All of a memfd that is not the
 * payload of a buffer is guard: random when a rep begins, unchanged when it ends.
 *
 * With `fence`, a payload ends at the end of its segment (rounded up to MEM_ALIGN) and nothing
 * is mapped behind it: the first access past the end faults.
 *
 * Addresses are chosen once per session and are the same for every arm.
 *
 * On a GPU (gpu_memory.h) the page is the granule of its virtual memory, every segment is an
 * allocation of its own with a shareable handle, and one granule between segments stays unmapped.
 * Layout and rules are the same.
 *
 * Life: mem_plan (sizes) -> mem_create (memfds, our mapping) -> rep: mem_poison, the launch,
 * mem_guard_check -> mem_destroy. Only the checker creates; others get layout and fds.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_MEMORY_H
#define TS_MEMORY_H

#include "err.h"
#include "rng.h"

#include <stdint.h>

enum {
	MEM_MAX = 96,     /* buffers of a workload */
	MEM_NAME = 72,    /* with the NUL */
	MEM_ALIGN = 16,   /* end alignment under a fence: the widest vector load */
	MEM_GUARD = 4096, /* least guard in front and behind, bytes */
	MEM_PAGE = 4096,  /* of the emulated device */
};

enum mem_kind { MEM_INPUT, MEM_OUTPUT, MEM_WORKSPACE };

struct mem_buf {
	char name[MEM_NAME];
	int32_t kind;     /* enum mem_kind */
	int32_t index;    /* input or output of the spec, or workspace of the plan */
	int32_t dtype;    /* enum dtype; DT_NONE for a workspace */
	uint64_t bytes;   /* payload; for a workspace, its capacity in this session */
	uint64_t offset;  /* of the payload in its memfd */
	uint64_t addr;    /* of the payload in every arm */
	uint64_t seg_off; /* its segment: whole pages of the memfd, mapped at seg_addr */
	uint64_t seg_len;
	uint64_t seg_addr;
};

struct mem_layout {
	uint64_t in_bytes, rw_bytes; /* memfd sizes; on a GPU the sums of segments */
	uint64_t page;               /* segments are whole pages; set before mem_plan, 0: MEM_PAGE */
	uint32_t n, fence;
	struct mem_buf buf[MEM_MAX];
};

struct mem {
	struct mem_layout l;
	int in_fd, rw_fd;  /* rw_fd is for arms; in_fd is writable only through `in` */
	uint8_t *in, *rw;  /* our own mapping of each memfd, from offset 0 */
	uint8_t *want;     /* what the rw memfd held when the rep began */
	uint8_t *want_in;  /* what the inputs memfd held */
};

/* Append a buffer (offset and addresses still open). */
int mem_add(struct mem_layout *l, const char *name, enum mem_kind kind, int index, int dtype,
	    uint64_t bytes, struct err *e);
/* Fix offsets and addresses. `r` chooses the base address; NULL takes a fixed one. May be called
 * again, for another base. */
int mem_plan(struct mem_layout *l, int fence, struct rng *r, struct err *e);
int mem_create(struct mem *m, const struct mem_layout *l, struct err *e);
void mem_destroy(struct mem *m);

/* Do the address ranges of two planned layouts meet? */
int mem_overlaps(const struct mem_layout *a, const struct mem_layout *b);
/* What the coming arm uses of a buffer: all of it, or the used part of a workspace. */
uint64_t mem_used(const struct mem_buf *b, const uint64_t *ws, uint32_t n_ws);

const struct mem_buf *mem_find(const struct mem_layout *l, enum mem_kind kind, int index); /* or NULL */
void *mem_at(const struct mem *m, const struct mem_buf *b); /* our pointer to the payload */

/*
 * Fill guards of both memfds, outputs and workspaces for a rep. `pattern` picks the poison of
 * payloads: even, NaN-class words; odd, finite random values of large magnitude. Guards are
 * always random. `ws[i]` is what the coming arm uses of workspace i: the rest of its capacity
 * is guard. Call it after the inputs are written: it also takes the copies that checks compare.
 */
void mem_poison(struct mem *m, struct rng *r, unsigned pattern, const uint64_t *ws, uint32_t n_ws);

enum mem_check { MEM_CLEAN = 0, MEM_GUARD_HIT, MEM_INPUT_HIT };
/* Compare everything that is not an output or used workspace. `name` gets the buffer's name. */
enum mem_check mem_guard_check(const struct mem *m, const uint64_t *ws, uint32_t n_ws,
			       char name[MEM_NAME]);
/* Is byte `at` of a buffer's payload (guards: below 0, past its end) in its segment? For checker_touch. */
int mem_reaches(const struct mem_layout *l, uint32_t buffer, int64_t at);
/* SHA-256 over all output payloads in order. */
void mem_hash_outputs(const struct mem *m, uint8_t out[32]);

#endif
