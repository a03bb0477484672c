/*
 * gitstore.h - write objects and refs of a bare git repository, without starting git.
 *
 * For the history (record_git.c): a git process costs more than all else that closing a trial
 * does, and grows with the number of refs. Objects are loose and stored, not compressed: `git gc`
 * packs them whenever somebody likes. Every file appears by rename, synced, its folder too; an
 * object that exists is not written again. Temporary names are git's own (tmp_obj_*, *.lock), so
 * git ignores what a killed program left and iterate sweeps the locks.
 *
 * Object format: git's Documentation/gitformat-loose (zlib stream of "TYPE SIZE\0" and the bytes,
 * named by its SHA-1); stored blocks: RFC 1951 3.2.4, RFC 1950.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_GITSTORE_H
#define TS_GITSTORE_H

#include "buf.h"
#include "err.h"

#define GIT_HEX 41 /* 40 digits and the NUL */

/* `type`: "blob", "tree" or "commit". Its name goes to id. */
int gitstore_object(const char *dir, const char *type, const void *data, size_t len,
		    char id[GIT_HEX], struct err *e);

/* "100644 NAME" and the object, as an entry of a tree; names must be added in byte order. */
void gitstore_entry(struct buf *tree, const char *name, const char id[GIT_HEX]);

/* refs/NAME, loose or packed: 1 and its id, or 0 when there is none (id is then ""). */
int gitstore_ref(const char *dir, const char *name, char id[GIT_HEX]);
int gitstore_set_ref(const char *dir, const char *name, const char id[GIT_HEX], struct err *e);

#endif
