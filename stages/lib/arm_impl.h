/*
 * arm_impl.h - what arm.c and the device implementations share. Private to them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ARM_IMPL_H
#define TS_ARM_IMPL_H

#include "arm.h"
#include "facts.h"
#include "plan.h"

struct arm_ops {
	int (*open)(struct arm *a, const struct arm_opts *o, struct err *e);
	int (*run)(struct arm *a, const struct arm_run_opts *r, struct arm_result *out, struct err *e);
	void (*close)(struct arm *a);
	int (*alive)(struct arm *a);
	int64_t (*late)(struct arm *a);
	void (*wipe)(struct arm *a, struct arm_result *out); /* NULL: nothing to do */
	/* NULL, or: add to a->facts what resolving the plan needs. `open` frees what it made. */
	int (*before)(struct arm *a, const struct arm_opts *o, struct err *e);
	void (*undo)(struct arm *a); /* `open` will not be called after all */
};

struct arm {
	const struct arm_ops *ops;
	const struct spec *spec;
	struct axes axes;
	struct facts facts;
	struct launches l;
	char isolation[192];
	void *impl;
};

extern const struct arm_ops ARM_EMU_OPS, ARM_SIM_OPS, ARM_CUDA_OPS;

int64_t arm_now_ns(void); /* CLOCK_MONOTONIC */

#endif
