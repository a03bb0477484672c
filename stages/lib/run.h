/*
 * run.h - one `make iterate`: trials/runs/R/, its settings and its pinned hashes.
 *
 * run.json is written once, by iterate, and never changes. A resume after a rebuild appends the
 * new tool hashes to pins.jsonl; a stage whose own binary is in neither refuses to work, so
 * that one run is never judged by two versions of a judge without a trace.
 *
 * The run key (trials/runs/R/key) is opened by iterate (creation) and by checker, by nothing
 * here.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_RUN_H
#define TS_RUN_H

#include "buf.h"
#include "err.h"
#include "hash.h"
#include "trial.h"

#include <cjson/cJSON.h>
#include <stdint.h>

struct run {
	char name[TRIAL_ID]; /* "r0001" */
	char sha[HASH_HEX];  /* of run.json */
	cJSON *json;         /* whole; run_free */
	cJSON *settings;     /* inside json */
	const char *spec;    /* these point into json */
	const char *device;
	const char *proposer;
	const char *key_sha256;
	const char *spec_sha256; /* of spec/spec.json as pinned */
	long first;              /* number of its first trial; the ids go on without a gap */
	int64_t n;
	int64_t width;
	int64_t lanes;           /* trials that may be timed at once: GPUs at its start, at most width; else 1 */
	int64_t seed;
	int allow_weak;
};

int run_name_ok(const char *s); /* 'r' and four digits or more */
void run_path(char out[TRIAL_PATH], const char *run, const char *file); /* trials/runs/RUN/FILE */
int run_read(const char *name, struct run *r, struct err *e);
void run_free(struct run *r);

/* The scratch run of tools/replay.c: only there may a stage key be given, and nothing of it promoted. */
int run_is_replay(const struct run *r);

/* Id of the i-th trial, from 0; 0 and out when there is one, else -1. Not a list in run.json: each
 * process of each step reads that file, and must not pay for the length of the run. */
int run_trial(const struct run *r, int64_t i, char out[TRIAL_ID]);

/* Settings by name, as given to iterate ("model", "profile", "max_tokens", ...). */
const char *run_str(const struct run *r, const char *key, const char *fallback);
int64_t run_int(const struct run *r, const char *key, int64_t fallback);
double run_num(const struct run *r, const char *key, double fallback);

/* Pinned hash of a file of the spec folder ("spec.json", "baseline/kernel.cu"); NULL if none. */
const char *run_pin_spec(const struct run *r, const char *file);
/* Pinned hash of the run's device.json; NULL on emu and sim. */
const char *run_pin_device(const struct run *r);
/* Read a file of the pinned spec whole and check it against its pin. sha may be NULL. */
int run_spec_read(const struct run *r, const char *file, size_t max, struct buf *out,
		  char sha[HASH_HEX], struct err *e);
/* Is `sha` an accepted hash of tool `name`? 1 yes, 0 no, -1 error. */
int run_tool_ok(const struct run *r, const char *name, const char sha[HASH_HEX], struct err *e);

/* Champion at the start of the run: trial id or NULL. Later: see the `after` block. */
const char *run_champion(const struct run *r);

#endif
