/*
 * spawn_part.h - what spawn.c and spawn_wait.c share; nobody else includes it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_SPAWN_PART_H
#define TS_SPAWN_PART_H

#include "spawn.h"

double spawn_now(void);                  /* monotonic seconds */
long spawn_oom_kills(void);              /* by the kernel so far; -1: it does not say */
void spawn_close(struct spawn_proc *s);  /* descriptors and buffers */

#endif
