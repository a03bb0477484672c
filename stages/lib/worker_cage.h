/*
 * worker_cage.h - how a worker confines itself.
 *
 * Drivers differ in what they bear, so there are several, the tightest first; a worker is started in
 * the first in which its driver starts. All have rlimits, no_new_privs, no capabilities, the system call
 * filter for a GPU process and, as root, another uid.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_WORKER_CAGE_H
#define TS_WORKER_CAGE_H

#include "confine.h"

enum worker_cage {
	WORKER_CAGE_VIEW,    /* all namespaces; a view of devices, libraries and its own /proc; Landlock over it */
	WORKER_CAGE_NET,     /* no network; Landlock over the same files by their real names */
	WORKER_CAGE_DEVICES, /* Landlock: read files, write only devices and its own /proc */
	WORKER_CAGE_PLAIN,   /* nothing more: another uid must do */
	WORKER_CAGES
};

unsigned worker_cage_namespaces(int cage); /* to start it in */

/* The same cage for a program that is started in it (spawn.h) and may use a GPU: of VIEW and NET, with `more` beside what a
 * driver needs. *c borrows until the next call. */
void worker_cage_around(int cage, const struct confine_path *more, size_t n, struct confine *c);
/* EX_NOENV when what holds is less than confine_minimum, but for the last cage. `got`: the namespaces that this process is in.
 * The driver's library is to be open already. */
int worker_cage_enter(int cage, unsigned got, struct confine_report *r, struct err *e);

#endif
