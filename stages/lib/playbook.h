/*
 * playbook.h - ordered advice for a kind of problem: prompts/playbook/NAME.md, and how far a search got with it.
 *
 * A playbook is strict Markdown, at most 64 KiB of printable ASCII:
 *
 *	# Title
 *
 *	## id: What to do
 *	- when: ...
 *	- how: ...
 *	- measure: ...
 *	- needs: id, id
 *
 * The members of an item stand in this order; `needs` may be left out and names earlier items of the
 * same file, so that no two wait for each other. A line that begins with two spaces goes on with the one
 * before it. Empty lines are free; any other line is an error, named by its number.
 *
 * Standing of an item, by the record: tried, kept, failed (charged and not kept). PLAYBOOK_FAILS failures
 * close it, kept or not. It waits while something it needs is neither kept nor closed.
 *
 * Life cycle: zero it, playbook_parse once a file, use, playbook_free. Errors are EX_BADINPUT.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_PLAYBOOK_H
#define TS_PLAYBOOK_H

#include "buf.h"
#include "err.h"

#include <cjson/cJSON.h>
#include <stddef.h>

#define PLAYBOOK_ITEMS 64 /* of all files together */
#define PLAYBOOK_NEEDS 4
#define PLAYBOOK_ID 40    /* with the NUL: a-z, 0-9 and '-', beginning with a letter */
#define PLAYBOOK_FAILS 5

enum { PLAYBOOK_WHEN, PLAYBOOK_HOW, PLAYBOOK_MEASURE, PLAYBOOK_PARTS };

struct playbook_item {
	char id[PLAYBOOK_ID];
	struct buf title, part[PLAYBOOK_PARTS];
	int nneeds, need[PLAYBOOK_NEEDS]; /* indices of earlier items */
	int tried, kept, failed;
};

struct playbook {
	int n;
	struct playbook_item item[PLAYBOOK_ITEMS];
};

/* Add the items of one file; `file` is for messages. */
int playbook_parse(struct playbook *b, const char *text, size_t len, const char *file, struct err *e);
void playbook_free(struct playbook *b);

int playbook_id_ok(const char *s);

/* Names of the playbooks for an op_type, up to two; NULL where there are fewer. */
void playbook_for(const char *op_type, const char *name[2]);

/* Take the counts of `items` of an after block (promote.c); NULL: nothing was tried. */
void playbook_count(struct playbook *b, const cJSON *items);
int playbook_closed(const struct playbook_item *i);
/* The item it waits for, -1 none. */
int playbook_waits(const struct playbook *b, const struct playbook_item *i);

/* The item that a proposal's words begin with ("mem-wide", "mem-wide: ..."); NULL none. */
const struct playbook_item *playbook_named(const struct playbook *b, const char *words);

/* All items for a prompt: open ones whole, closed and waiting ones in a line. Nothing when empty. */
void playbook_tell(const struct playbook *b, struct buf *out);

#endif
