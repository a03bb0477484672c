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
#include <string.h>

struct sim_arm {
	char *key, *role;
	uint64_t reps;
};

static int sim_open(struct arm *a, const struct arm_opts *o, struct err *e)
{
	struct sim_arm *m = xcalloc(1, sizeof *m);

	(void)e;
	m->key = xstrdup(o->sim_key ? o->sim_key : "");
	m->role = xstrdup(o->sim_role ? o->sim_role : "candidate");
	a->impl = m;
	return 0;
}

static int sim_run(struct arm *a, const struct arm_run_opts *r, struct arm_result *out,
		   struct err *e)
{
	struct sim_arm *m = a->impl;

	(void)e;
	out->status = ARM_OK;
	out->late_ns = 0;
	out->elapsed_ns = out->cpu_ns =
		sim_time_ns(m->key, m->role, a->spec, &a->axes, r->sim_session, r->sim_rep);
	m->reps++;
	return 0;
}

static void sim_close(struct arm *a)
{
	struct sim_arm *m = a->impl;

	free(m->key);
	free(m->role);
	free(m);
}

static int sim_alive(struct arm *a)
{
	(void)a;
	return 1;
}

static int64_t sim_late(struct arm *a)
{
	(void)a;
	return 0;
}

const struct arm_ops ARM_SIM_OPS = {sim_open, sim_run, sim_close, sim_alive, sim_late};
