/*
 * arm_sim.c - an arm that runs nothing: a deterministic figure from the timing model of sim.h.
 *
 * For demonstration and scale tests; every figure is labelled simulated by the stages.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arm_impl.h"
#include "buf.h"
#include "sim.h"

#include <stdlib.h>

static int arm_sim_open(struct arm *a, const struct arm_opts *o, struct err *e)
{
	struct sim *m = xcalloc(1, sizeof *m);

	if (sim_open(m, o->spec, o->plan, o->axes, o->sim_key ? o->sim_key : "", e) < 0) {
		free(m);
		return -1;
	}
	a->impl = m;
	return 0;
}

static int arm_sim_run(struct arm *a, const struct arm_run_opts *r, struct arm_result *out,
		       struct err *e)
{
	(void)e;
	out->status = ARM_OK;
	out->late_ns = 0;
	out->elapsed_ns = out->wall_ns = out->cpu_ns = sim_ns(a->impl, r->sim_session, r->sim_rep);
	return 0;
}

static void arm_sim_close(struct arm *a)
{
	free(a->impl);
}

static int arm_sim_alive(struct arm *a)
{
	(void)a;
	return 1;
}

static int64_t arm_sim_late(struct arm *a)
{
	(void)a;
	return 0;
}

const struct arm_ops ARM_SIM_OPS = {.open = arm_sim_open, .run = arm_sim_run, .close = arm_sim_close,
				     .alive = arm_sim_alive, .late = arm_sim_late};
