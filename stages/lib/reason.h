/*
 * reason.h - the closed list of reason codes.
 *
 * Every verdict carries one code of this list; rejection statistics, prompts and pages are built
 * from them. A code is `ok` or `area.word`; the table is sorted and each row has one line for
 * people. A test asserts order and spelling; verdict.h refuses a code that is not here.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_REASON_H
#define TS_REASON_H

#include <stddef.h>

struct reason {
	const char *code;
	const char *text; /* for people: lower case, no full stop */
};

const struct reason *reason_find(const char *code); /* NULL if not in the list */
const char *reason_text(const char *code);          /* "unknown reason" if not in the list */

/* The search was over: nothing was proposed (the space is done, a plateau, no reply left). */
int reason_search_over(const char *code);
/* A reply came from which no candidate could be taken: a parse failure of its model. */
int reason_unusable_reply(const char *code);
/* Does a candidate with this code go back to its proposer (repair.h)? reason.c says which and why. */
int reason_repairable(const char *code);

const struct reason *reason_list(size_t *count);     /* the whole table, sorted */

#endif
