/*
 * attack.h - what the two halves of the attack program share.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ATTACK_H
#define TS_ATTACK_H

#include "spawn.h"

#include <limits.h>

extern const char *hostile, *scratch, *driver;
extern char me[16], secret[PATH_MAX], planted[PATH_MAX], verdict[PATH_MAX];

/* One line of TAP; `how` says what happened. */
void say(int good, const char *where, const char *attack, const char *arg, const char *how);
/* Processes of the hostile program that are alive, waiting a second for them to go. */
int left_over_soon(void);
void image_attack(const char *attack, const char *arg);
void attack_one(const char *where, enum confine_calls calls, const char *attack, const char *arg);

/* The real checker with a key, and the real client with a key in its environment, waiting for a reply. */
enum { VICTIM_CHECKER, VICTIM_CLIENT, VICTIMS };
struct victims {
	struct spawn_proc proc[VICTIMS];
	char pid[VICTIMS][16];
	int listening, pair[2];
};
void victims_start(struct victims *v);
void victims_stop(struct victims *v);

/* The real worker in each of its cages, with hostile.c as its driver. */
void worker_all(const struct victims *v);

#endif
