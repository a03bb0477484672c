/*
 * rig_sim.c - reps of the sim device: no process, no clock, no key. See rig.h and sim.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rig.h"
#include "sim.h"

#include <stdio.h>

static int open_workload(void *ctx, int session, int workload, struct err *e)
{
	struct rig *r = ctx;
	(void)session;
	for (int i = 0; i < RAW_ARMS; i++) {
		const struct rig_arm *a = &r->arm[i];
		struct sim sim;
		char key[HASH_HEX + 32];
		if (!a->present)
			continue;
		snprintf(key, sizeof key, "%lld:%s", (long long)r->s->run.seed, a->candidate);
		if (sim_open(&sim, r->spec, a->plan, &r->workload[workload].axes, key, e) != 0)
			return -1;
		r->place[i].true_ns = sim.true_ns;
		r->place[i].stream = sim.stream;
	}
	return 0;
}

static int start(void *ctx, enum raw_arm arm, enum shot_outcome *outcome, char text[256],
		 struct err *e)
{
	(void)ctx, (void)arm, (void)outcome, (void)text, (void)e;
	return 0;
}

static int stop(void *ctx, enum raw_arm arm, struct err *e)
{
	(void)ctx, (void)arm, (void)e;
	return 0;
}

static int shoot(void *ctx, struct shot *s, struct err *e)
{
	struct rig *r = ctx;
	(void)e;
	const struct sim_place *p = &r->place[s->arm];
	struct sim sim = {.true_ns = p->true_ns, .stream = p->stream};
	uint64_t session = (r->sim_session + (uint64_t)s->session) * SESSION_WORKLOADS +
			   (uint64_t)s->workload;
	s->start = r->sim_clock;
	s->stop = s->start + (uint64_t)sim_ns(&sim, session, s->rep);
	r->sim_clock = s->stop + 1000;
	s->check = RAW_UNCHECKED;
	return 0;
}

static void close_workload(void *ctx)
{
	(void)ctx;
}

const struct session_ops RIG_SIM_OPS = {open_workload, start, stop, shoot, close_workload, NULL};
