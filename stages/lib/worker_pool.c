/*
 * worker_pool.c - see worker_pool.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "worker_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	struct worker *w;
	char gpu[64];
	int registered;
} pool;

void worker_pool_stop(void)
{
	if (pool.w)
		worker_stop(pool.w);
	pool.w = NULL;
}

int worker_pool_take(struct worker **w, const struct worker_opts *o, struct err *e)
{
	struct worker *kept = pool.w;

	if (kept && !strcmp(pool.gpu, o->gpu) && worker_alive(kept)) {
		pool.w = NULL;
		*w = kept;
		return 0;
	}
	worker_pool_stop();
	return worker_start(w, o, e);
}

void worker_pool_give(struct worker *w, const char *gpu)
{
	if (!w)
		return;
	if (pool.w || !worker_alive(w) || strlen(gpu) >= sizeof pool.gpu) {
		worker_stop(w);
		return;
	}
	if (!pool.registered)
		pool.registered = atexit(worker_pool_stop) == 0;
	pool.w = w;
	snprintf(pool.gpu, sizeof pool.gpu, "%s", gpu);
}

int worker_pool_check(const char *gpu, struct err *e)
{
	struct worker_opts o = {.gpu = gpu};
	struct worker *w;

	if (worker_pool_take(&w, &o, e) < 0)
		return -1;
	worker_pool_give(w, gpu);
	return 0;
}
