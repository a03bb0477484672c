/*
 * roofline.h - how fast could a problem be done on this GPU at best?
 *
 * Pure arithmetic: what the spec says has to be moved and computed (cost), over what this GPU was
 * measured to do (worker_ceilings). The longer of the two times is the floor, and says what binds.
 *
 *   ROOFLINE_FAIR   for reports and prompts: copy bandwidth, the unit of the spec's compute class
 *   ROOFLINE_LIMIT  what no honest kernel undercuts: the best bandwidth seen, and for float32 also
 *                   sums of three bfloat16 products on the tensor cores. Traffic that stays in L2 can
 *                   still be faster: only for workloads that are much larger than it.
 *
 * Classes without a measured unit (float64, integers) have no compute floor.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ROOFLINE_H
#define TS_ROOFLINE_H

#include "spec.h"
#include "worker_call.h"

enum roofline_use { ROOFLINE_FAIR, ROOFLINE_LIMIT };
enum roofline_bound { ROOFLINE_NONE, ROOFLINE_MEMORY, ROOFLINE_COMPUTE };

struct roofline {
	enum roofline_bound bound;
	double floor_ns;       /* 0 with ROOFLINE_NONE */
	double gbs, tflops;    /* the ceilings used; 0 none */
	double memory_ns, compute_ns;
	int64_t bytes, flops;  /* of the spec */
};

/* ROOFLINE_NONE when the spec names no cost or nothing was measured. */
void roofline_of(const struct spec *s, const struct axes *a, const struct worker_ceilings *c,
		 enum roofline_use use, struct roofline *out);
const char *roofline_bound_name(enum roofline_bound b); /* "none", "memory", "compute" */

#endif
