/*
 * clusters.h - why candidates are not kept: reasons grouped by code, then by normalised message.
 *
 * Two messages are the same when they differ only in numbers, in what stands in quotes and in the
 * name of the step ("a0/guard: "). A cluster shows the message of the one that was added first.
 *
 * Life cycle: zero it, add in the order of importance (newest first), sort, read; nothing to free.
 * At most CLUSTERS_MAX groups; what comes after that is counted in `other`. Messages hold what
 * candidates and tools wrote: fence or escape them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_CLUSTERS_H
#define TS_CLUSTERS_H

#include "buf.h"

#define CLUSTERS_MAX 32
#define CLUSTER_TEXT 200 /* bytes of a message that are compared and shown, with the NUL */

struct cluster {
	int n;
	char code[64];
	char key[CLUSTER_TEXT];     /* normalised */
	char message[CLUSTER_TEXT]; /* one line of UTF-8 */
};

struct clusters {
	int n, total, other; /* groups; reasons added; those of them without a group */
	struct cluster c[CLUSTERS_MAX];
};

void clusters_add(struct clusters *k, const char *code, const char *message);

/* Largest first; of equals the one added first. */
void clusters_sort(struct clusters *k);

/* The message without what differs from case to case. */
void clusters_key(const char *message, char out[CLUSTER_TEXT]);

/* "- 7 of the last 20: compile.error: message", one line each: groups of at least `least`, `most` of them. */
void clusters_tell(const struct clusters *k, int of, int least, int most, struct buf *out);

#endif
