/*
 * recheck_say.h - the samples that recheck looks at, and how it says what differs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_RECHECK_SAY_H
#define TS_RECHECK_SAY_H

#include "json.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct sample {
	uint64_t ticks;
	unsigned session, workload, block, slot, set, arm, phase, drop, check;
};

static int bad, checks;
static struct sample *all;
static size_t count;

__attribute__((format(printf, 2, 3))) static void expect(int ok, const char *fmt, ...)
{
	checks++;
	if (ok)
		return;
	va_list ap;
	va_start(ap, fmt);
	fputs("  differs: ", stdout);
	vprintf(fmt, ap);
	putchar('\n');
	va_end(ap);
	bad++;
}

static int same(double a, double b)
{
	return isnan(a) ? isnan(b) : a == b || fabs(a - b) <= 1e-9 * (1 + fabs(a));
}

/* null stands for a number that does not exist or is infinite. */
static void expect_num(const cJSON *o, const char *key, double want, const char *where)
{
	const cJSON *i = json_get(o, key);
	double got = i && cJSON_IsNumber(i) ? i->valuedouble : NAN;
	if (!isfinite(want))
		want = NAN;
	expect(same(got, want), "%s: %s is %.12g, recomputed %.12g", where, key, got, want);
}

#endif
