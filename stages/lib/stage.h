/*
 * stage.h - the skeleton of a stage program.
 *
 * A stage is one C file: a help text, a function that decides, and
 *
 *	int main(int argc, char **argv)
 *	{
 *		static const struct stage_about about = {
 *			.stage = "guard", .help = HELP, .work = guard_work,
 *		};
 *		return stage_main(argc, argv, &about);
 *	}
 *
 * stage_main is the program's body, so unlike the rest of the library it prints errors. It
 *   - answers -h with the help text; refuses to run under make -n, -q or -t;
 *   - opens /dev/null on standard input;
 *   - takes the lock of the trial for this very process (75 when a living process has it);
 *   - returns 0 at once when the target is already a good verdict (a finished orphan wrote it);
 *   - reads trial.json, run.json and the upstream verdict, checks its own binary against the
 *     pins of the run;
 *   - writes a `skip` verdict (skip.upstream; for a1/propose and a2/propose skip.passed,
 *     skip.repair_off or skip.not_repairable) when there is nothing to do, without calling work;
 *   - otherwise calls work, which either decides (verdict_set on s->v) and returns 0, or fills
 *     the error and returns -1: then no verdict is written and the exit code is the error's;
 *   - fills started, elapsed, tool, inputs trial/spec/key/upstream, device, proposer (copied
 *     from upstream), simulated/emulated, and writes the verdict last;
 *   - calls .after, if any, once the verdict is durable.
 *
 * A candidate that fails is a verdict and return 0. Return -1 only for trouble of ours or the
 * machine's. When a confined child or worker died in a way that leaves no verdict, set
 * s->child_died = 1 before returning -1: two such failures end the trial as a reject; two of
 * any other kind end it as invalid, uncharged.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_STAGE_H
#define TS_STAGE_H

#include "buf.h"
#include "err.h"
#include "run.h"
#include "trial.h"
#include "verdict.h"

struct stage;

struct stage_about {
	const char *stage;   /* "guard": must match the target's step */
	const char *help;    /* printed by -h, grouped usage, ends in a newline */
	int (*work)(struct stage *s, struct err *e);
	int (*after)(struct stage *s, struct err *e); /* NULL, or derived state (promote) */
	int (*option)(struct stage *s, const char *arg); /* NULL, or 0 for an accepted leading option */
	int always;          /* 1: called even when the trial is closed upstream (promote) */
	int repairs;         /* 1: propose, called for a1 and a2 when repair_wanted (repair.h) */
};

struct stage {
	const struct stage_about *about;
	enum step step;
	int attempt;                  /* 0..2; for steps after the attempts: the final attempt */
	char id[TRIAL_ID];
	char dir[TRIAL_PATH];         /* "trials/0042/a0" for attempt steps, else "trials/0042" */
	char trial_dir[TRIAL_PATH];   /* "trials/0042" */
	struct trial trial;
	struct run run;
	struct verdict_in up;         /* upstream verdict; json NULL for a0/propose */
	struct verdict v;             /* the verdict being made */
	int confirm;                  /* the step is `confirm` */
	int child_died;
	cJSON *after;                 /* private: cache of stage_after and of verdicts read */
	struct verdict_in after_in;
	struct verdict_in seen[STEP_COUNT];
	double started_s;
	void *user;                   /* for the stage's own use */
};

int stage_main(int argc, char **argv, const struct stage_about *about);

/* Started under make -n, -q or -t, which must change nothing? Looks at MAKEFLAGS. */
int stage_dry_make(void);

/* For the recipe wrapper only: write the skip verdict of a step that is closed upstream, which
 * saves starting the stage. 1 written, 0 the stage must run, -1 error. */
int stage_skip(const char *id, enum step step, struct err *e);

/* For the recipe wrapper only: end a trial whose step cannot be brought to a verdict of its own.
 * The caller holds no lock; the failed stage is dead. */
int stage_close(const char *id, enum step step, enum verdict_kind kind, const char *code,
		const char *message, struct err *e);

/*
 * Read a file of the trial once ("a0/candidate/kernel.cu", relative to the trial folder), hash
 * the bytes, record inputs[name] = hash, and hand the bytes over. `expect` is the hash that an
 * earlier verdict recorded (stage_recorded); NULL only for files no verdict names. A mismatch
 * is EX_BADINPUT and names the file.
 */
int stage_use(struct stage *s, const char *name, const char *file, const char *expect, size_t max,
	      struct buf *out, struct err *e);

/*
 * The hash under which any earlier step of this trial recorded output `file`, newest first,
 * into `sha`. EX_BADINPUT when none did.
 */
int stage_recorded(struct stage *s, const char *file, char sha[HASH_HEX], struct err *e);

/* stage_recorded + stage_use. */
int stage_use_recorded(struct stage *s, const char *name, const char *file, size_t max,
		       struct buf *out, struct err *e);

/*
 * Folder (relative to the trial's) that holds the candidate of this step: "a0", "a1", "a2"
 * before and in tune; "" in judge and later, where tune has written candidate/ and artefact/.
 */
const char *stage_candidate_dir(const struct stage *s);

/* Kernel and plan, checked against the record; records inputs kernel, plan and candidate. */
int stage_candidate(struct stage *s, struct buf *kernel, struct buf *plan, struct err *e);

/*
 * What the newest step that made candidate files says of them: its outputs, those below `prefix` ("candidate/",
 * "a0/candidate/") among them. NULL, EX_BADINPUT: none did.
 */
const cJSON *stage_candidate_outputs(struct stage *s, const char *prefix, struct err *e);

/*
 * Identity of the candidate in DIR ("", "a0", ...) by what is recorded: of a kernel trial_candidate_sha, of an engine
 * engine_files_sha. EX_BADINPUT when no verdict names one.
 */
int stage_candidate_sha(struct stage *s, const char *dir, char out[HASH_HEX], struct err *e);

/* A file of the pinned spec, checked; records inputs[name] when name is not NULL. */
int stage_spec(struct stage *s, const char *name, const char *file, size_t max, struct buf *out,
	       struct err *e);

/* Write a side file of this trial whole and name it in the verdict's outputs. */
int stage_side(struct stage *s, const char *file, const void *data, size_t len, struct err *e);

/*
 * The `after` block ("data.after" of a promote verdict) that this step may know: that of the
 * trial it `sees` for propose, of `timed_after` for tune, judge and bench, of `previous` for
 * confirm and promote; the run's `state_from` where those are null. Sets *after, NULL when there
 * is no earlier record; it belongs to s. Records inputs.state. promote.c says what is in it.
 */
int stage_after(struct stage *s, const cJSON **after, struct err *e);

/* Champion in that block: trial id and candidate hash, "" when there is none. */
int stage_champion(struct stage *s, char id[TRIAL_ID], char candidate[HASH_HEX], struct err *e);

/* Name the GPU that this step took (gpu_take) in its verdict's device block. */
struct gpu;
void stage_on_gpu(struct stage *s, const struct gpu *g);

/* An earlier step's verdict of this trial, read once; NULL and the error when missing or bad. */
const struct verdict_in *stage_verdict(struct stage *s, enum step step, struct err *e);

#endif
