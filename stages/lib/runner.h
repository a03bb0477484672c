/*
 * runner.h - a step of a trial is done on another machine: what travels there, what is taken back.
 *
 * A runner is a command: an archive (tar.h) on its standard input, an archive on its standard output,
 * exit codes as everywhere. It brings the bytes to `far` (tools/far.c) on some machine and back, and
 * nothing else. RUN_GPU names it: a program of tools/runners/ ("loopback", "ssh HOST"), or any other
 * command, words apart by blanks. Empty: this machine. What is in the archives: tools/runners/README.md.
 *
 *   runner_of      who does this step of this run; "" here
 *   runner_hello   once per process and command: which programs and which device are there
 *   runner_admit   before a run goes on: same device facts, and its programs pinned
 *   runner_selftest   before the first trial: the judge there is tried (selftest.h)
 *   runner_step    send one step, check what comes back, put it into the record. Verdict last
 *
 * Nothing that comes back is believed before it is checked: names, sizes, that the verdict is of this
 * step and follows from what was sent, that it was made by a pinned program, every hash. What is refused
 * leaves no trace. Whether judge, bench and confirm were signed is checked by promote, as always.
 *
 * Errors: EX_AGAIN for what a connection may do (a broken archive, an exit code of no program of ours),
 * EX_BADINPUT for an answer that is refused, else the code of the step there.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_RUNNER_H
#define TS_RUNNER_H

#include "buf.h"
#include "err.h"
#include "run.h"
#include "tar.h"
#include "trial.h"

#include <cjson/cJSON.h>

#define RUNNER_SCHEMA "touchstone/runner/1"
#define RUNNER_REQUEST "request.json"
#define RUNNER_HELLO "hello.json"
#define RUNNER_DEVICE "device.json"
#define RUNNER_FAILURE "failure.json"
#define RUNNER_SELFTEST "selftest.json"
#define RUNNER_FAR "trials/.far" /* folder of the far side */

enum { RUNNER_MOST = 1 << 30, RUNNER_COMMAND = 512 }; /* bytes of an archive, of a command */

struct runner_hello {
	cJSON *tools;              /* object: program name -> hash */
	char device[TRIAL_NAME];   /* emu, sim or a GPU model's slug */
	char why[360];             /* why that one */
	int gpus;                  /* lanes there */
	struct buf device_json;    /* of a GPU */
};

/* trials/runs/R/runner.json: {"schema", "gpu", "unittest"}, the commands. Not part of run.json: a machine
 * may have another name tomorrow, and its name is nobody's business who reads the record. */
int runner_save(const char *run_dir, const char *gpu, const char *unittest, struct err *e);
int runner_read(const struct run *r, char gpu[RUNNER_COMMAND], char unittest[RUNNER_COMMAND], struct err *e);
int runner_of(const struct run *r, enum step step, char command[RUNNER_COMMAND], struct err *e);
/* Its first word without folders: what the record says of it. */
void runner_name(const char *command, char out[TRIAL_NAME]);

/* `device` as a user gives it, NULL for the best. The answer is ours to read, not to free. */
int runner_hello(const char *command, const char *device, const struct runner_hello **h, struct err *e);
int runner_admit(const struct run *r, struct err *e);

/* The record of a self-test made there, whatever it says. */
int runner_selftest(const char *command, const char *device, struct buf *record, struct err *e);

/* How a step failed there: e is filled; `who` and `text` as failure.h wants them. */
struct runner_failure {
	const char *who; /* "ours", "child", "world" */
	char text[400];
};
int runner_step(const char *command, const struct trial *t, const struct run *r, enum step step,
		struct runner_failure *f, struct err *e);

/* Parts of these, apart for tests and for tools/far.c. */
int runner_pack(const struct trial *t, const struct run *r, enum step step, struct buf *tar, struct err *e);
int runner_take(const struct trial *t, const struct run *r, enum step step, const struct tar *in,
		struct err *e);
/* Send `in`, get the archive into `out`. *code: its exit code, one of ours. */
int runner_call(const char *command, const struct buf *in, double wall_s, struct buf *out, int *code,
		struct err *e);
/* Of the far side: gpus.json of an earlier step for this one, and back; at hello none is believed. */
void runner_gpus_bring(const struct tar *tar, const char *run, const char *scratch);
void runner_gpus_keep(const struct tar *tar, const char *run, const char *scratch);
void runner_gpus_forget(void);
int runner_is_aa(const char *file); /* "aa-01234567.json" or .raw: an A/A measurement of a run */

#endif
