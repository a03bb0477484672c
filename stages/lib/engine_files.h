/*
 * engine_files.h - the files of an engine candidate: engine.c, and kernels/NAME.c or .h beside it; in CUDA engine.cu, and
 * kernels/NAME.cu, .cuh or .h.
 *
 * Names are those alone (NAME of a-z 0-9 _), each at most once, in the order of their names, all of one language. A folder
 * with anything else in it, a link or something that is no plain file is refused.
 *
 * Life cycle: zero the struct, one of the readers, engine_files_free; a reader that fails leaves it empty.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_FILES_H
#define TS_ENGINE_FILES_H

#include "engine_build.h"
#include "stage.h"

struct engine_files {
	int n;
	struct engine_file file[ENGINE_FILES];
	char sha[HASH_HEX]; /* identity of the candidate (engine_files_sha) */
};

const char *engine_main(int cuda); /* "engine.c", "engine.cu" */
/* That, or one name of lower-case letters, digits and _ below kernels/ with an ending of the language. */
int engine_file_of(const char *name, int cuda);
/* In either language. */
int engine_file_name_ok(const char *name);

/* A folder as it lies on disk. EX_BADINPUT names what does not belong there. */
int engine_files_folder(const char *dir, struct engine_files *f, struct err *e);
/* The candidate of this step, each file against the newest verdict that names it; records inputs.candidate. */
int engine_files_stage(struct stage *s, struct engine_files *f, struct err *e);
/* Those in DIR ("a0", "" ...) of this trial, in the same way; no input is recorded. */
int engine_files_recorded(struct stage *s, const char *dir, struct engine_files *f, struct err *e);
/* FOLDER (relative to the run's spec: "baseline") of the pinned spec. */
int engine_files_spec(struct stage *s, const char *folder, struct engine_files *f, struct err *e);
void engine_files_free(struct engine_files *f);

int engine_files_cuda(const struct engine_files *f); /* engine.cu is among them */

/* The text of a file, or NULL. */
struct buf *engine_files_find(struct engine_files *f, const char *name);
/* Changes; `sha` stays as it was. put: -1 when there are ENGINE_FILES others. */
int engine_files_put(struct engine_files *f, const char *name, const struct buf *text);
void engine_files_drop(struct engine_files *f, const char *name);
void engine_files_copy(const struct engine_files *from, struct engine_files *to);

/* As side files below PREFIX ("a0/candidate", "candidate") of this trial. */
int engine_files_side(struct stage *s, const char *prefix, const struct engine_files *f, struct err *e);
/* As plain files below DIR, which is made. */
int engine_files_write(const char *dir, const struct engine_files *f, struct err *e);

#endif
