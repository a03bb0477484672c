/*
 * lane.h - the timing lane of a device, with a record of who held it when.
 *
 * lock.h does the locking (trials/.lock/, gate and lane, dies with its holder). This adds the two
 * rules and the times that show how busy the lane was:
 *   - lane_exclusive: whatever times (bench, confirm, tune's timing), and on a GPU whatever runs
 *     there. One holder per lane: emu and sim have one each, every GPU has its own, named by its
 *     UUID (gpu.h: gpu_take).
 *   - lane_share: whatever would disturb timing. On emu the lane is the CPU, so compilers,
 *     emulated tests and judge share it and bench excludes them. On other devices compiles do
 *     not disturb: lane_share does nothing there. Nobody holds it while waiting for a network.
 *
 * A lane is taken once per process and not upgraded: drop, then take. lane_write puts
 * {"mode","waited_s","from_us","to_us"} (CLOCK_REALTIME) into a verdict; call it after lane_drop.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_LANE_H
#define TS_LANE_H

#include "err.h"
#include "jsonw.h"
#include "lock.h"

#include <stdint.h>

struct lane {
	struct lock lock;
	const char *mode;  /* "exclusive", "shared", "none" */
	int64_t asked_ns, from_ns, to_ns; /* CLOCK_REALTIME */
};

#define LANE_INIT {.lock = LOCK_INIT, .mode = "none"}

/* Both wait for ever; the lane's holders are mortal and time-limited. */
int lane_share(struct lane *l, const char *device, struct err *e);
int lane_exclusive(struct lane *l, const char *device, struct err *e);
/* lane_exclusive without waiting: 1 taken, 0 somebody else has it, -1. */
int lane_try(struct lane *l, const char *device, struct err *e);
void lane_drop(struct lane *l); /* not held: nothing */
void lane_write(const struct lane *l, struct jsonw *w, const char *key);

#endif
