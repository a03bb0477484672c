/*
 * confine_part.h - what confine.c, confine_fs.c and confine_calls.c share; nobody else includes it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_CONFINE_PART_H
#define TS_CONFINE_PART_H

#include "confine.h"

#include <linux/filter.h>

struct confine_filter {
	struct sock_filter code[4096]; /* the kernel's own maximum */
	unsigned short count;
};

/* All return 1 when the layer holds, 0 when this machine lacks it, -1 on error. */
int confine_view(const struct confine *c, unsigned got, uid_t uid, struct err *e);
int confine_landlock(const struct confine *c, int view, int *abi, struct err *e);
int confine_landlock_abi(void); /* below 1: none */
int confine_filter_possible(void);
int confine_filter_make(const struct confine *c, unsigned got, struct confine_filter *out,
			struct err *e);

#endif
