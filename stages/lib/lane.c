/*
 * lane.c - see lane.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lane.h"

#include <string.h>
#include <time.h>

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int take(struct lane *l, const char *device, enum lock_mode mode, int wait_ms, struct err *e)
{
	*l = (struct lane)LANE_INIT;
	l->asked_ns = now_ns();
	if (lock_lane(&l->lock, device, mode, wait_ms, e) != 0)
		return -1;
	l->mode = mode == LOCK_ALONE ? "exclusive" : "shared";
	l->from_ns = l->to_ns = now_ns();
	return 0;
}

int lane_share(struct lane *l, const char *device, struct err *e)
{
	if (strcmp(device, "emu") != 0) {
		*l = (struct lane)LANE_INIT;
		return 0;
	}
	return take(l, device, LOCK_SHARED, -1, e);
}

int lane_exclusive(struct lane *l, const char *device, struct err *e)
{
	return take(l, device, LOCK_ALONE, -1, e);
}

int lane_try(struct lane *l, const char *device, struct err *e)
{
	struct err why = {0};
	if (take(l, device, LOCK_ALONE, 0, &why) == 0)
		return 1;
	if (why.code == EX_AGAIN)
		return 0;
	if (e)
		*e = why;
	return -1;
}

void lane_drop(struct lane *l)
{
	if (l->lock.fd < 0)
		return;
	l->to_ns = now_ns();
	lock_drop(&l->lock);
}

void lane_write(const struct lane *l, struct jsonw *w, const char *key)
{
	jw_obj(w, key);
	jw_str(w, "mode", l->mode);
	jw_num(w, "waited_s", (double)(l->from_ns - l->asked_ns) / 1e9);
	jw_int(w, "from_us", l->from_ns / 1000); /* nanoseconds would not fit 2^53 */
	jw_int(w, "to_us", l->to_ns / 1000);
	jw_end(w);
}
