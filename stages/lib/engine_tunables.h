/*
 * engine_tunables.h - literal tunables of an engine: declared in one place of engine.c, changed there and nowhere else.
 *
 *   // tunables:begin
 *   #define TILE 8 // tune: 1 2 4 8 16
 *   // tunables:end
 *
 * Between the two marks, each alone on its line and each there once, stand only such lines and blank ones: a name of
 * A-Z 0-9 _, the value that is used, and the integers that may be tried, the value among them. Changing a value gives the
 * same text with another number in it.
 *
 *   struct engine_tunables t;
 *   engine_tunables_parse -> engine_tunables_pick / engine_tunables_text
 *
 * A text without the marks has no tunables, which is no error.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_TUNABLES_H
#define TS_ENGINE_TUNABLES_H

#include "buf.h"
#include "err.h"

#include <stddef.h>
#include <stdint.h>

enum { TUNABLES_MOST = 16, TUNABLE_VALUES = 32, TUNABLE_NAME = 32, TUNABLES_SPACE = 4096 };

struct engine_tunable {
	char name[TUNABLE_NAME];
	int n, current;                    /* values; index of the one in the text */
	int64_t value[TUNABLE_VALUES];
	size_t at, len;                    /* where the value stands in the text */
};

struct engine_tunables {
	int n;
	int space;                         /* configurations, 1 when there is nothing to choose */
	struct engine_tunable t[TUNABLES_MOST];
};

/* EX_BADINPUT: file, line and reason. More than TUNABLES_SPACE configurations are refused. */
int engine_tunables_parse(const char *text, size_t len, struct engine_tunables *t, struct err *e);

/* Configuration `at` (0 .. space-1, mixed radix, the first tunable slowest) as indices of values. */
void engine_tunables_at(const struct engine_tunables *t, int at, int choice[TUNABLES_MOST]);
int engine_tunables_current(const struct engine_tunables *t); /* the configuration of the text */

/* The text that t was parsed from, with another choice. */
void engine_tunables_text(const char *text, size_t len, const struct engine_tunables *t, const int choice[TUNABLES_MOST],
			  struct buf *out);

/* "TILE 8 -> 16, UNROLL 1 -> 4", or "no change". */
void engine_tunables_words(const struct engine_tunables *t, const int choice[TUNABLES_MOST], struct buf *out);

/* All configurations but the current one in the order that `seed` gives, into out[space]; returns how many. */
int engine_tunables_order(const struct engine_tunables *t, int64_t seed, int *out);
/* The i-th configuration in the order that `seed` gives, the current one left out; -1 when there are no more. */
int engine_tunables_pick(const struct engine_tunables *t, int64_t seed, long i);

#endif
