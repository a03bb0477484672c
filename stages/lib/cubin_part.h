/*
 * cubin_part.h - what cubin.c, cubin_note.c, cubin_gate.c, cubin_ptx.c and cubin_state.c share.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_CUBIN_PART_H
#define TS_CUBIN_PART_H

#include "cubin.h"

/* ---- cubin_note.c: what the box wrote behind the ELF ---- */

struct cubin_note;

/* *elf_len: without the note. *n stays NULL where there is none; -1 when it is broken. */
int cubin_note_read(const void *data, size_t len, size_t *elf_len, struct cubin_note **n, struct err *e);
int cubin_note_live(const struct cubin_note *n, const char *global);
void cubin_note_apply(const struct cubin_note *n, struct cubin *c);
void cubin_note_free(struct cubin_note *n);

/* ---- cubin_ptx.c: PTX as words ---- */

struct ptx_word {
	const char *s; /* not NUL-terminated */
	size_t n;
	int line;
};

struct ptx_reader {
	const char *at, *end;
	int line;
};

/* Next name, directive, register, number, string or mark, comments skipped; 0 at the end. */
int ptx_next(struct ptx_reader *r, struct ptx_word *w);
int ptx_is(const struct ptx_word *w, const char *text);

/* Names of `.global` variables that stand more than once in the module: code or data can reach them.
 * As a JSON array, sorted. */
cJSON *ptx_live_globals(const char *ptx, size_t len);

/* ---- cubin_state.c ---- */

/* 0 fine; 1: the address of a variable, a constant or a parameter is used for more than to read there, and code and
 * text say where. A part of ptx_gate. */
int ptx_state(const char *ptx, size_t len, char code[48], char text[256]);

#endif
