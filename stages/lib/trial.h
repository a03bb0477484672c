/*
 * trial.h - where a trial's files are, which steps it has, and what trial.json claims.
 *
 * All paths are relative to the root of the repository, which is the working directory of every
 * stage. Names inside verdicts ("outputs") are relative to the trial's folder: "a0/guard.log",
 * "bench.raw".
 *
 * A step is one target of the Makefile. Steps have a fixed order; the step before is the
 * upstream of a step, and its verdict file is hashed into the next one ("inputs.upstream").
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_TRIAL_H
#define TS_TRIAL_H

#include "err.h"
#include "hash.h"

#include <cjson/cJSON.h>

#define TRIAL_ID 16      /* "0042" and the NUL, with room */
#define TRIAL_NAME 65    /* names of specs and devices: [a-z0-9_-]{1,64} */
#define TRIAL_PATH 256
#define TRIAL_ATTEMPTS 3 /* a0, a1, a2: one proposal and two repairs */

/* In pipeline order. Attempt steps: 3 * attempt + {0 propose, 1 guard, 2 unittest}. */
enum step {
	STEP_A0_PROPOSE, STEP_A0_GUARD, STEP_A0_UNITTEST,
	STEP_A1_PROPOSE, STEP_A1_GUARD, STEP_A1_UNITTEST,
	STEP_A2_PROPOSE, STEP_A2_GUARD, STEP_A2_UNITTEST,
	STEP_TUNE, STEP_JUDGE, STEP_BENCH, STEP_CONFIRM, STEP_PROMOTE,
	STEP_COUNT
};

struct step_info {
	const char *name;    /* "a0/guard", "tune": the target without trials/NNNN/ and .json */
	const char *stage;   /* "guard", "tune": what the envelope's "stage" says */
	const char *program; /* .build/bin/PROGRAM */
	const char *arg;     /* first argument before the target ("--confirm"), or NULL */
	int attempt;         /* 0..2, or -1 */
};

const struct step_info *step_info(enum step s);

/* "trials/0042/a0/guard.json" -> id "0042", step. EX_BADUSE when it is no such target. */
int trial_target(const char *target, char id[TRIAL_ID], enum step *step, struct err *e);
void trial_step_path(char out[TRIAL_PATH], const char *id, enum step step);

/* "trials/ID/FILE"; aborts if it does not fit (ids and file names are ours and short). */
void trial_path(char out[TRIAL_PATH], const char *id, const char *file);

int trial_name_ok(const char *s); /* [a-z0-9_-]{1,64} */
int trial_id_ok(const char *s);   /* four digits or more, no other zero padding */
long trial_number(const char *id); /* "0042" -> 42; -1 when not an id */
void trial_id(char out[TRIAL_ID], long number);

/* The claim. Empty string where trial.json says null. */
struct trial {
	char id[TRIAL_ID];
	char run[TRIAL_ID];
	char spec[TRIAL_NAME];
	char device[TRIAL_NAME];
	int index;                /* 0-based position in its run */
	char sees[TRIAL_ID];      /* newest record its prompt may use; "" = state at run start */
	char timed_after[TRIAL_ID]; /* trial closed before tune starts (lane); "" = run start */
	char previous[TRIAL_ID];  /* trial promoted just before it; "" = state at run start */
	char sha[HASH_HEX];       /* of trial.json */
	cJSON *json;              /* whole claim, "origin" included; trial_free */
};

int trial_read(const char *id, struct trial *t, struct err *e);
void trial_free(struct trial *t);

/* Identity of a candidate: hash over the hashes of its two files (contract: see verdict.h). */
void trial_candidate_sha(const char kernel_sha[HASH_HEX], const char plan_sha[HASH_HEX],
			 char out[HASH_HEX]);

#endif
