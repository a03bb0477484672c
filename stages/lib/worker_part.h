/*
 * worker_part.h - what worker_call.c and worker_start.c share; nobody else includes it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_WORKER_PART_H
#define TS_WORKER_PART_H

#include "spawn.h"
#include "worker_wire.h"

struct worker {
	struct spawn_proc proc;
	int fd, dead;
	int64_t timeout_ns;
	int windows[WORKER_SLOTS];
	char isolation[CONFINE_LIST], end[96];
	struct worker_request q;
	struct worker_reply r;
};

enum worker_got { WORKER_REPLIED, WORKER_SILENT, WORKER_GONE };

enum worker_got worker_receive(struct worker *w, int64_t timeout_ns);
int worker_ask_plain(struct worker *w, enum worker_op op, const int *fd, int nfds, struct err *e);
int worker_memfd(const char *name, const void *data, size_t len, struct err *e);

#endif
