/*
 * engine_files.h - the files of an engine candidate: engine.c, and kernels/NAME.c or .h beside it.
 *
 * Names are those alone (NAME of a-z 0-9 _), each at most once, in the order of their names. A folder with anything else
 * in it, a link or something that is no plain file is refused.
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

/* engine.c, or one name of lower-case letters, digits and _ below kernels/. */
int engine_file_name_ok(const char *name);

/* A folder as it lies on disk. EX_BADINPUT names what does not belong there. */
int engine_files_folder(const char *dir, struct engine_files *f, struct err *e);
/* The candidate of this step, each file against the newest verdict that names it; records inputs.candidate. */
int engine_files_stage(struct stage *s, struct engine_files *f, struct err *e);
/* FOLDER (relative to the run's spec: "baseline") of the pinned spec. */
int engine_files_spec(struct stage *s, const char *folder, struct engine_files *f, struct err *e);
void engine_files_free(struct engine_files *f);

/* The text of a file, or NULL. */
struct buf *engine_files_find(struct engine_files *f, const char *name);

/* As side files below PREFIX ("a0/candidate", "candidate") of this trial. */
int engine_files_side(struct stage *s, const char *prefix, const struct engine_files *f, struct err *e);
/* As plain files below DIR, which is made. */
int engine_files_write(const char *dir, const struct engine_files *f, struct err *e);

#endif
