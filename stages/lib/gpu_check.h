/*
 * gpu_check.h - the checker's kernels (stages/gpu/check.cu): what to launch, and what came out.
 *
 * Makes jobs (check.h) out of specs, layouts and keys and hands them to a runner, which launches them
 * in order; nothing here waits. Addresses are those of the runner's device. The unit test's runner is
 * the host itself.
 *
 * Of a rep: check_poison_all, the launch, check_guards, check_output of each output, check_payloads
 * (hash); bring the report back; check_judge of each output.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_GPU_CHECK_H
#define TS_GPU_CHECK_H

#include "../gpu/check.h"
#include "compare.h"
#include "err.h"
#include "fill.h"
#include "memory.h"

enum check_kernel {
	CHECK_FILL, CHECK_CHANGE, CHECK_POISON, CHECK_GUARD, CHECK_SCAN, CHECK_FOLD, CHECK_COMPARE,
	CHECK_GROUPS, CHECK_INTEGERS, CHECK_HASH, CHECK_KERNELS
};
const char *check_kernel_name(enum check_kernel k); /* entry: "check_fill", ... */

struct check_runner {
	/* `work`: how many threads would have something to do. */
	int (*launch)(void *ctx, enum check_kernel k, const void *job, uint64_t work, struct err *e);
	void *ctx;
};

/* Memory of a workload as the runner's device sees it. */
struct check_memory {
	const struct mem_layout *l;
	const uint64_t *seg;          /* by buffer: its segment */
	uint8_t key[32];              /* of this rep's poison and guards */
	unsigned pattern;             /* even: NaN, odd: finite (memory.h) */
	const uint64_t *ws;
	uint32_t n_ws;
};

/* What one output is compared with; addresses on the device. */
struct check_side {
	int index;                    /* of the output: place in the report */
	uint64_t got, ref, base;      /* base 0: none */
	uint64_t about;               /* struct check_reference, by check_reference_scan */
	uint64_t scratch[2];          /* check_scratch bytes each */
	uint64_t report;              /* struct check_report, zeroed */
	const struct check_memory *mem;
};

/* Fill input i. 1 when its fill is structured: the caller draws it (fill_input) and copies it. */
int check_queue_fill(const struct check_runner *r, const struct spec *s, const struct axes *a, int i,
		     enum fill_regime regime, const uint8_t set_key[32], uint64_t out, struct err *e);
/* The rep's changes to one input, appended to op[] (room for FILL_CHANGES). */
int check_ops(const struct spec *s, const struct axes *a, int i, enum fill_regime regime,
	      const uint8_t rep_key[32], uint64_t input, struct check_op *op, uint32_t *n, struct err *e);
int check_queue_ops(const struct check_runner *r, uint64_t ops, uint32_t n, struct err *e);

int check_poison_all(const struct check_runner *r, const struct check_memory *m, struct err *e);
int check_guards(const struct check_runner *r, const struct check_memory *m, uint64_t report, struct err *e);
/* Sums of a float reference of n elements, and whether it is usable. `about` zeroed. */
int check_reference_scan(const struct check_runner *r, uint64_t ref, uint64_t n, uint64_t about,
			 const uint64_t scratch[2], struct err *e);
/* Is what came back of it good for a comparison? */
int check_reference_ok(const struct check_reference *about);
/* Compare one output; c is of s->output, tolerance or exact. */
int check_output(const struct check_runner *r, const struct compare_side *s, const struct check_side *d,
		 const struct compare_bounds *b, struct err *e);
/* Hash of all payloads of a kind into 4 words at `out`, zeroed. */
int check_payloads(const struct check_runner *r, const struct check_memory *m, enum mem_kind kind,
		   const uint8_t key[32], uint64_t out, struct err *e);

/* Bytes of each scratch for an output of n elements in rows of `row`. */
uint64_t check_scratch(uint64_t n, uint64_t row);
/* The verdict on an output from the report that came back. */
void check_judge(struct compare_result *r, const struct check_report *rep, int index,
		 const struct compare_side *s, const struct compare_bounds *b);
enum mem_check check_guard_result(const struct check_report *rep, const struct mem_layout *l,
				  char name[MEM_NAME]);

#endif
