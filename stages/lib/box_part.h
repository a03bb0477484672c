/*
 * box_part.h - what box_call.c, box_gate.c, box_kit.c, box_cache.c and stages/roles/box.c share.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_BOX_PART_H
#define TS_BOX_PART_H

#include "box_call.h"
#include "json.h"
#include "jsonw.h"

/* The box's descriptors, besides its request on stdin: source in, result and artefact out. */
enum { BOX_FD_SOURCE = 3, BOX_FD_RESULT = 4, BOX_FD_ARTEFACT = 5, BOX_FD_PTX = 6 };

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

int box_is_cuda(const struct box_request *q); /* mode "cuda" */

/* ---- box_cuda.c: what a compile for a GPU adds ---- */

struct toolkit;

/* The compiler's options and what the box may read, into the request. */
void box_cuda_request(const struct box_request *q, const struct toolkit *t, struct jsonw *w);
/* Everything of it that goes into the cache key: library, options, contents of the header trees. */
int box_cuda_key(const struct box_request *q, const struct toolkit *t, struct buf *b, struct err *e);
/* In the box: the module's facts into r, gated unless `trusted`, and the note behind it. `out` is what
 * the compile printed, `log` its notes, `lines` the PTX with line information (len 0: not made). */
int box_cuda_finish(struct buf *cubin, const struct buf *ptx, const struct buf *lines, const struct buf *out,
		    const struct buf *log, const char *const *entries, size_t n, int trusted, struct box_result *r,
		    struct err *e);
/* A mark, the macros and the options under `key` into argv from `at` on: the next free place, or -1. */
int box_cuda_options(const cJSON *request, const char *key, char *const *macros, size_t n, const char **argv,
		     int at, struct err *e);
/* Does it read a clock? Then finish wants `lines`. */
int box_cuda_clocks(const struct buf *ptx);
/* Is it likely to? Then `lines` is better made at the same time. */
int box_cuda_may_wait(const struct buf *source);
/* Compiler's notes without the figures that facts tell better, scrubbed. */
void box_cuda_log(const struct buf *log, char out[BOX_LOG_MAX + 1]);

#define BOX_RUNTIME "runtime-" /* mode of a request for the run time of a mode; made here only */
#define BOX_RUNTIME_FILE "runtime.a"

int box_kit_read(const char *box, struct box_kit *k, struct err *e); /* `box`: path of the program */
int box_kit_cuda(const char *box, struct box_kit *k, struct err *e); /* for mode "cuda": the program itself */
int box_kit_write(const struct box_kit *k, const char *dir, struct err *e);
void box_kit_add(struct box_kit *k, const char *name, const struct buf *data); /* not hashed */
void box_kit_free(struct box_kit *k);

/* The cache entry of a request, in the build folder that `box` lies in. */
struct box_entry {
	char key[HASH_HEX];
	char dir[4096]; /* .../cache/emu, .../cache/cuda */
};

/* What a compile makes: the image or module, and in mode "cuda" its PTX. */
struct box_made {
	struct buf artefact, ptx;
};

int box_entry_key(const struct box_request *q, const struct box_kit *k, const struct toolkit *t, const char *box,
		  struct box_entry *c, struct err *e);
/* 1: found, whole and right: *r and what was made filled; 0: not there. */
int box_entry_get(const struct box_entry *c, struct box_result *r, struct box_made *m);
int box_entry_put(const struct box_entry *c, const struct box_result *r, const struct box_made *m,
		  struct err *e);

/* In the box: at most `max` bytes of a descriptor, of a file it made; all bytes into a descriptor. */
int box_plain(const char *s, const char *extra); /* a name or definition without quotes and paths */
int box_fd_read(int fd, size_t max, struct buf *out, struct err *e);
int box_fd_give(int fd, const void *data, size_t len, struct err *e);
int box_file_read(const char *name, struct buf *data, struct err *e);

/* 1: r->facts, of elfscan, hold something that no image may contain; r says so. */
int box_gate(struct box_result *r);

void box_entry_paths(const struct box_entry *c, struct box_result *r);

/* One JSON for the box's answer and the cache entry. */
void box_result_json(const struct box_result *r, struct buf *out);
int box_result_parse(const char *text, size_t len, const char *what, struct box_result *r,
		     struct err *e);

/* Keep printable ASCII, hide paths (all but the last name of each), cut at BOX_LOG_MAX. */
void box_log_scrub(const char *text, size_t len, char log[BOX_LOG_MAX + 1]);

#endif
