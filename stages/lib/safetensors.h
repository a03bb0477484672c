/*
 * safetensors.h - read a checkpoint in the safetensors format, single or sharded.
 *
 * A file is: header length N as little-endian u64; N bytes of JSON, name -> {dtype, shape,
 * data_offsets [begin, end) after the header}; then the data (github.com/huggingface/safetensors). A
 * folder holds model.safetensors, or model.safetensors.index.json whose weight_map names the file of
 * each tensor. Everything is checked before a byte of data is used: offsets in order, without hole or
 * overlap, to the end of the file; shape times element size; no name twice, also across shards; the index
 * and the files agree.
 *
 * Files are mapped, not read: tensors point into them, 8-byte aligned at least where the writer kept to
 * the format. Files must not be cut while they are open (SIGBUS).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_SAFETENSORS_H
#define TS_SAFETENSORS_H

#include "dtype.h"
#include "err.h"

#include <stddef.h>
#include <stdint.h>

enum { SAFETENSORS_RANK = 8, SAFETENSORS_HEADER = 32 << 20 }; /* longest header we read, bytes */

struct safetensor {
	char *name;
	enum dtype dtype;
	int rank;
	int64_t shape[SAFETENSORS_RANK];
	uint64_t begin, bytes; /* within the data of its file */
	const void *data;      /* NULL from safetensors_parse */
	int file;
};

struct safetensors {
	struct safetensor *t; /* sorted by name */
	size_t n;
	struct safetensors_map {
		void *at;
		size_t len;
	} *map;
	int nmaps;
};

/* The header of one file: `text` is its JSON, `data_bytes` what follows it. Adds to *s, as of file number
 * `file`; on error what was added before the fault stays and is freed by safetensors_close. EX_BADINPUT. */
int safetensors_parse(struct safetensors *s, const char *text, size_t len, uint64_t data_bytes, int file,
		      const char *what, struct err *e);

/* All tensors of a folder. On error nothing stays open. EX_BADINPUT, EX_SYS. */
int safetensors_open(struct safetensors *s, const char *dir, struct err *e);
const struct safetensor *safetensors_find(const struct safetensors *s, const char *name);
void safetensors_close(struct safetensors *s);

#endif
