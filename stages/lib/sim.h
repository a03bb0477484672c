/*
 * sim.h - the `sim` device: invented times, the same on every machine.
 *
 * Reads a plan's tunables and the spec's cost; runs nothing, reads no clock and no key. It exists
 * for demonstrations, for tests of the loop at scale and for the scheduler. Every figure that
 * comes from here is labelled simulated; it says nothing about any GPU.
 *
 * True time = (2 us + bytes / 3 TB/s + flops / 50 TFLOP/s) * exp(shape), where shape is a convex
 * quadratic in the positions of the tunables' values, its optimum and curvature drawn from the
 * spec's name: smooth, one optimum, inside the space. A plan without tunables has shape between
 * 0.5 and 0.7, drawn from its key, so that a naive baseline leaves something to find.
 * Noise is a hash of (key, session, rep): log-normal, 0.6 % a rep, 0.1 % an arm in a session.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_SIM_H
#define TS_SIM_H

#include "err.h"
#include "plan.h"
#include "spec.h"

#include <stdint.h>

#define SIM_REP_SD 0.006
#define SIM_SESSION_SD 0.001

struct sim {
	double true_ns;  /* without noise */
	uint64_t stream; /* of the noise */
};

/* `key` identifies candidate and search seed, such as "SEED:SHA256". Nothing to close. */
int sim_open(struct sim *s, const struct spec *spec, const struct plan *plan,
	     const struct axes *axes, const char *key, struct err *e);
int64_t sim_ns(const struct sim *s, uint64_t session, uint64_t rep); /* >= 1 */

#endif
