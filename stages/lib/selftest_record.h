/*
 * selftest_record.h - what a run knows of its judge's self-test: trials/runs/R/selftest.jsonl.
 *
 * One line a self-test (selftest.h), newest last. iterate has one made before the first trial and after each
 * change of the programs; promote keeps nothing of which judge and confirmation were not made by programs
 * that passed. Nothing is judged on sim, so nothing is asked for there.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_SELFTEST_RECORD_H
#define TS_SELFTEST_RECORD_H

#include "buf.h"
#include "err.h"
#include "hash.h"
#include "run.h"

#include <cjson/cJSON.h>

/* The line that passed with these programs, hashes by name: all that both know must be the same. 1: there is one, `sha` is its hash, `words` (or NULL) says it in short; 0: none, `words` why. */
int selftest_passed(const struct run *r, const cJSON *tools, char sha[HASH_HEX], char words[160], struct err *e);

/* Append a record: one JSON object in `text`, of this run's device. It is written anew, as one line. */
int selftest_append(const struct run *r, const char *text, size_t len, struct err *e);

/* Start it, here, in folder `cwd` (NULL: ours); the record goes to `file`. *code: how it ended. */
int selftest_call(const char *program, const char *device, const char *cwd, const char *file, int *code,
		  struct err *e);

/* For iterate: the programs of BIN (there: `tools`, of a runner) have passed in this run, or pass now. 0, and
 * `words` for the banner; -1 with EX_HARNESS when they do not. */
struct selftest_where {
	const char *bin;
	const char *command;  /* runner, NULL: here */
	const cJSON *tools;   /* of the runner */
};
int selftest_admit(const struct run *r, const struct selftest_where *w, char words[160], struct err *e);

#endif
