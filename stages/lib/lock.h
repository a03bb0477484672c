/*
 * lock.h - advisory locks that die with the process that took them.
 *
 * POSIX record locks on a small file under trials/.lock/: never inherited by a fork, dropped by
 * the kernel when the holder dies in whatever way, and the holder's pid can be asked for. The
 * price is one trap: closing *any* descriptor of the file in this process drops the lock, so
 * lock files are opened here and nowhere else, and one process takes a lock once.
 *
 * The lane (timing) is a pair of files: a gate passed in turn, and the lane itself taken shared
 * (compilers, emulated tests) or exclusive (timing). The gate keeps a stream of sharers from
 * starving the one who must time alone.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_LOCK_H
#define TS_LOCK_H

#include "err.h"

struct lock {
	int fd; /* -1: not held */
};

#define LOCK_INIT {-1}

enum lock_mode { LOCK_SHARED, LOCK_ALONE };

/*
 * Take trials/.lock/NAME. wait_ms 0 = do not wait, < 0 = wait for ever. When somebody else has
 * it: EX_AGAIN and a text that names the holder's pid and command.
 */
int lock_take(struct lock *l, const char *name, enum lock_mode mode, int wait_ms, struct err *e);
void lock_drop(struct lock *l);

/* Pid of the process that holds trials/.lock/NAME alone, 0 when nobody does. For reports; a
 * process asks this only about locks it does not hold itself. */
long lock_holder(const char *name);

/* The lane of a device ("emu", "sim", a GPU's UUID). Same waiting rules; hold it only around the
 * work that must not be disturbed, or that disturbs. */
int lock_lane(struct lock *l, const char *device, enum lock_mode mode, int wait_ms, struct err *e);

#endif
