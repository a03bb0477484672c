/*
 * tar.h - the few files that travel to a runner and back: POSIX ustar, and of that the plainest part.
 *
 * Only regular files with names that cannot lead anywhere else: no links, no devices, no folders of
 * their own, no extended headers, no name twice. What a far machine sends is untrusted; a reader that
 * knows nothing but this has little to go wrong. `tar tvf` reads what we write.
 *
 * Life cycle: tar_add ..., tar_end, the buffer is the archive. tar_parse points into the bytes it is
 * given, which must outlive it; tar_free.
 *
 * Errors: EX_AGAIN when the archive ends too early (a connection broke), EX_BADINPUT for the rest.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_TAR_H
#define TS_TAR_H

#include "buf.h"
#include "err.h"

#include <stddef.h>

enum { TAR_NAME = 256, TAR_FILES = 4096 };

struct tar_file {
	char name[TAR_NAME];
	const char *data;
	size_t len;
	unsigned mode; /* permission bits */
};

struct tar {
	struct tar_file *file;
	size_t n;
};

/* Relative, at most 200 bytes of A-Z a-z 0-9 _ . + , = @ - / and blank; no part empty or beginning
 * with a dot. */
int tar_name_ok(const char *name);

int tar_add(struct buf *out, const char *name, const void *data, size_t len, unsigned mode, struct err *e);
void tar_end(struct buf *out);

int tar_parse(const void *data, size_t len, struct tar *t, struct err *e);
const struct tar_file *tar_find(const struct tar *t, const char *name); /* or NULL */
void tar_free(struct tar *t);

#endif
