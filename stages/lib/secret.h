/*
 * secret.h - read a key from a file that is nobody else's.
 *
 * The file must be regular, readable by its owner alone (the message says chmod 600), and lie
 * outside the working directory, which is the repository: in it a key is one `git add` away from
 * the world. `~/` is the home folder. Only the client role calls this.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_SECRET_H
#define TS_SECRET_H

#include "buf.h"
#include "err.h"

/* 0 and up to 4096 bytes appended; 1 when there is no such file; -1 with EX_NOENV. */
int secret_read(const char *name, struct buf *out, struct err *e);

#endif
