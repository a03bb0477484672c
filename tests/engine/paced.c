/*
 * paced.c - the plain engine with a time of its own: each step is said when its moment has come, not before.
 *
 * The moments are PACE_US apart, counted from the arrival of the prompts, on an absolute clock: how fast the machine happens to
 * be, and who else uses it, hardly shows. STALL=n: every n-th batch at two thirds of the speed. HOG=n: holds n MiB. LATE_US:
 * the first step comes that much later, and the others with it. WRONG=n: from the n-th batch on one token is another.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_protocol.h"

#include <string.h>
#include <time.h>

#ifndef STALL
#define STALL 0
#endif
#ifndef HOG
#define HOG 0
#endif
#ifndef LATE_US
#define LATE_US 0
#endif
#ifndef WRONG
#define WRONG 0
#endif

static struct timespec moment;
static int asked, steps;

static int next_(struct engine_request *q)
{
	if (!asked && HOG) {
		char *p = malloc((size_t)HOG << 20);
		if (!p)
			_exit(5);
		memset(p, 1, (size_t)HOG << 20);
	}
	if (!engine_next(q))
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &moment);
	moment.tv_nsec += LATE_US * 1000L;
	asked++;
	steps = 0;
	return 1;
}

static void step_(const struct engine_request *q, const int32_t *ids)
{
	int32_t other[ENGINE_BATCH_MOST];
	moment.tv_nsec += PACE_US * (STALL && asked % (STALL ? STALL : 1) == 0 ? 1500L : 1000L);
	moment.tv_sec += moment.tv_nsec / 1000000000;
	moment.tv_nsec %= 1000000000;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, NULL))
		;
	memcpy(other, ids, (size_t)q->batch * sizeof *ids);
	if (WRONG && asked >= WRONG && steps == 1)
		other[0] ^= 1;
	steps++;
	engine_step(q, other);
}

#define engine_next next_
#define engine_step step_
#include "../../specs/qwen3-tiny/baseline/engine.c"
