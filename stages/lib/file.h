/*
 * file.h - read a file whole, write a file whole or not at all.
 *
 * Reading: a regular file, no symbolic link at the end of the path, at most `max` bytes. The
 * buffer read is the buffer used: callers hash it, parse it and never open the file again.
 *
 * Writing (file_write): the bytes go to "PATH.tmp.PID" in the same directory, are synced, and
 * the name is moved into place; then the directory is synced. A reader sees the old file or
 * the new one; kill -9 at any instant leaves at most a *.tmp.* file, which iterate removes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_FILE_H
#define TS_FILE_H

#include "buf.h"
#include "err.h"

#include <sys/types.h>

int file_read(const char *path, size_t max, struct buf *out, struct err *e);
int file_write(const char *path, const void *data, size_t len, mode_t mode, struct err *e);

/* Append `line` plus '\n' in one write and sync. Not atomic against a torn last line: readers
 * skip a last line without '\n' and file_append starts a fresh line after one. */
int file_append(const char *path, const char *line, struct err *e);

int file_exists(const char *path);                     /* 1, 0 (errors count as no) */
int file_copy(const char *from, const char *to, struct err *e); /* file_read + file_write, mode kept */
int file_sync_dir(const char *dir, struct err *e);     /* fsync a directory */
int file_sync(const char *path, struct err *e);        /* fsync one file */
int dir_make(const char *path, struct err *e);         /* mkdir -p, 0777 & umask */
int dir_remove(const char *path, struct err *e);       /* rm -r, no symlink followed; absent is fine */
int link_swap(const char *target, const char *path, struct err *e); /* atomically point symlink PATH at TARGET */

#endif
