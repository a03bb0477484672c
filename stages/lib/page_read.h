/*
 * page_read.h - what a page shows of a GPU, from the records: sizes of the champion, the machine, the libraries,
 * and which trial was start/ itself.
 *
 * All of it may be absent; a file that cannot be read is absent. `base` is the tree with trials/, "" or with a
 * slash at its end. What is returned points into `keep`, which the caller frees when the page is written.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_PAGE_READ_H
#define TS_PAGE_READ_H

#include "page.h"

#include <cjson/cJSON.h>

enum { PAGE_SIZES = 16 };

struct page_keep {
	cJSON *verdict, *device;
	struct page_size size[PAGE_SIZES];
	struct page_work work[PAGE_SIZES];
	struct page_machine machine;
};

/* Is it the proposal of start/ as it is shipped? */
int page_is_start(const char *base, const struct page_row *r);
/* Lines of tests/gpu/compare.py below `dir`, compare*.jsonl, as one array. Never NULL. */
cJSON *page_rivals(const char *dir);
/* Fill g->size, g->sizes and g->machine from the champion's record and `rivals`. */
void page_read_gpu(const char *base, const struct page_row *champion, const cJSON *rivals, struct page_keep *keep,
		   struct page_group *g);
/* Fill g->work and g->ceilings likewise, of an engine problem's champion on any device. */
void page_read_engine(const char *base, const struct page_row *champion, struct page_keep *keep, struct page_group *g);
void page_keep_free(struct page_keep *keep);

#endif
