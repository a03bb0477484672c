/*
 * box_part.h - what box_call.c, box_kit.c, box_cache.c and stages/roles/box.c share.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_BOX_PART_H
#define TS_BOX_PART_H

#include "box_call.h"
#include "json.h"

/* The box's descriptors, besides its request on stdin: source in, result and artefact out. */
enum { BOX_FD_SOURCE = 3, BOX_FD_RESULT = 4, BOX_FD_ARTEFACT = 5 };

#define BOX_SOURCE_MAX (1u << 20)
#define BOX_ARTEFACT_MAX (64u << 20)
#define BOX_RESULT_MAX (1u << 20)
#define BOX_WALL_S 120.0
#define BOX_MEMORY (4ull << 30)
#define BOX_TMP_BYTES (512ull << 20)

/* The kit: everything of ours that a compile uses (emulation headers and run time, elfscan),
 * read once into memory; these bytes are hashed into the cache key and written where the box
 * sees them, so the repository itself stays out of its view. */
struct box_kit {
	struct box_kit_file {
		char *name; /* "include/emu_prefix.h" */
		struct buf data;
		int run; /* executable */
	} *file;
	size_t count;
	char sha[HASH_HEX];
};

#define BOX_RUNTIME "runtime-" /* mode of a request for the run time of a mode; made here only */
#define BOX_RUNTIME_FILE "runtime.a"

int box_kit_read(const char *box, struct box_kit *k, struct err *e); /* `box`: path of the program */
int box_kit_write(const struct box_kit *k, const char *dir, struct err *e);
void box_kit_add(struct box_kit *k, const char *name, const struct buf *data); /* not hashed */
void box_kit_free(struct box_kit *k);

/* The cache entry of a request, in the build folder that `box` lies in. */
struct box_entry {
	char key[HASH_HEX];
	char dir[4096]; /* .../cache/emu */
};

int box_entry_key(const struct box_request *q, const struct box_kit *k, const char *box,
		  struct box_entry *c, struct err *e);
/* 1: found, whole and right: *r and the artefact filled; 0: not there. */
int box_entry_get(const struct box_entry *c, struct box_result *r, struct buf *artefact);
int box_entry_put(const struct box_entry *c, const struct box_result *r, const struct buf *artefact,
		  struct err *e);

/* One JSON for the box's answer and the cache entry. */
void box_result_json(const struct box_result *r, struct buf *out);
int box_result_parse(const char *text, size_t len, const char *what, struct box_result *r,
		     struct err *e);

/* Keep printable ASCII, hide paths (all but the last name of each), cut at BOX_LOG_MAX. */
void box_log_scrub(const char *text, size_t len, char log[BOX_LOG_MAX + 1]);

#endif
