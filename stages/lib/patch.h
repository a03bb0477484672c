/*
 * patch.h - the difference of two texts, in the unified format that patch and git apply read.
 *
 * Shortest edit script by lines (Myers, "An O(ND) difference algorithm and its variations",
 * Algorithmica 1986), three lines of context. Texts that differ in more than PATCH_EDITS lines
 * are shown as one large replacement: right, if not the shortest.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_PATCH_H
#define TS_PATCH_H

#include "buf.h"

enum { PATCH_CONTEXT = 3, PATCH_EDITS = 1500 };

/* Appends the patch from a/OLD to b/NEW; nothing when the texts are equal. */
void patch_add(struct buf *out, const char *old, const char *new, const struct buf *a,
	       const struct buf *b);

#endif
