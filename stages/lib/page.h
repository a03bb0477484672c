/*
 * page.h - the report page: one self-contained HTML file from closed trials.
 *
 * Pure formatting: rows in, text out; reads no files. Everything that comes from a record is
 * escaped here, and the page carries a policy that forbids loading anything, so candidate text
 * can neither run nor fetch (threats.md J01).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_PAGE_H
#define TS_PAGE_H

#include "buf.h"

#include <stddef.h>

/* A speed-up with its interval; est 0 means not measured, lo and hi 0 mean no interval. */
struct page_ratio {
	double est, lo, hi;
};

/* One closed trial, as trials/log.jsonl tells it. Strings are owned by the caller. */
struct page_row {
	const char *trial, *run, *spec, *device, *verdict, *code, *message, *item, *hypothesis;
	const char *proposer; /* "sweep", "openai nebius/model" */
	const char *started, *candidate, *parent, *closed_by;
	struct page_ratio vs_champion, vs_baseline;
	int kept, emulated, simulated;
};

/* Sources of a trial for its fold-out; NULL where not embedded. */
struct page_source {
	const char *kernel, *plan, *patch, *dir; /* dir: folder of the record, relative to reports/ */
};

/* One problem on one device: rows in trial order. */
struct page_group {
	const struct page_row **row;
	struct page_source *source; /* parallel to row */
	size_t n;
};

struct page_state {
	const char *title;
	const char *now;     /* when this page was made */
	const char *running; /* "r0003: 7 of 10 trials" while a run is on, else NULL */
};

void page_begin(struct buf *out, const struct page_state *s);
void page_group(struct buf *out, const struct page_group *g);
void page_end(struct buf *out, const struct page_state *s);

void page_escape(struct buf *out, const char *text);
/* Best-so-far staircase over trials, as inline SVG. */
void page_staircase(struct buf *out, const struct page_group *g);

#endif
