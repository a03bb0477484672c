/*
 * tool.h - the hash of a program, remembered.
 *
 * Every step records the hash of its own program, and hashing some megabytes at each of fourteen
 * starts would cost more than the steps. So a hash is kept in DIR/.sha/NAME with inode, size,
 * mtime and ctime of the file it is of; when any of these differs it is computed again. A file that
 * changed less than two seconds ago is hashed but not remembered: the clock of the file system is
 * coarse.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_TOOL_H
#define TS_TOOL_H

#include "err.h"
#include "hash.h"

int tool_hash(const char *path, char sha[HASH_HEX], struct err *e);
/* The same of any large file, `path` absolute, without a trace beside it: kept in DIR/.sha, by the hash of the path. */
int tool_hash_in(const char *dir, const char *path, char sha[HASH_HEX], struct err *e);
int tool_hash_self(char sha[HASH_HEX], struct err *e); /* the running program */

#endif
