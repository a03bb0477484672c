/*
 * repair.h - repair turns: a candidate that fails its compile or its unit tests goes back to the
 * proposer that made it, with its own files and the error.
 *
 * Attempt k (1, 2) of a trial is made when attempt k-1 was made and rejected for a reason that is
 * repaired (reason_repairable), by a proposer that answers (openai, command; replay where a further
 * reply is recorded, of a kernel), and the run's setting `repairs` allows that many turns. All of that is a
 * function of the record, so that the wrapper, the stage and a resumed run decide the same.
 *
 * A repair is a proposal of its own: prompt, reply, reservation and usage are in aK/. Its prompt is
 * prompts/repair.md (engine_repair.md). A file that its reply leaves out is that of the attempt before, not the
 * champion's. Where the budget or the model's window has no room for the turn, it is not made
 * (skip.repair_budget), and the trial ends with the reason it had.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_REPAIR_H
#define TS_REPAIR_H

#include "proposal.h"

#define REPAIR_MOST (TRIAL_ATTEMPTS - 1)

/* Turns where the setting `repairs` is not given: 2 for openai, command and replay, 0 for the rest. */
int repair_default(const char *proposer);

/* The last verdict before attempt `attempt` is `verdict` of `step` ("a0/guard") with `code`. 1: the
 * attempt is to be made; 0, and *skip is the code of the skip verdict. */
int repair_wanted(const struct run *r, const struct trial *t, int attempt, const char *step, const char *verdict,
		  const char *code, const char **skip);

/* For replay: where the recorded reply of an attempt is, "DIR/0001.txt" and "DIR/0001.a1.txt". 0, or -1
 * when it does not fit. */
int repair_reply_path(const char *dir, int index, int attempt, char *out, size_t size);

/* The parts of a repair prompt: own files and error, fenced with `salt`; "1 of 2". */
int repair_prompt(struct stage *s, const struct proposal *p, const char *salt, struct buf *own, struct buf *error,
		  struct buf *turn, struct err *e);

/* After the reply: missing files and words from the attempt before. Rejects what changes nothing. */
int repair_complete(struct stage *s, struct proposal *p, struct err *e);

/* Instead of the turn: there is no room for it (`why`). Sets the skip verdict. */
void repair_no_room(struct stage *s, struct proposal *p, const char *why);

/* For promote: members `repairs` (turns taken) and `first_error` (code that rejected a0, or null). */
void repair_told(struct stage *s, struct jsonw *w);
/* The proposal that the trial is told by: of the newest attempt that gave files, else of a0. */
const struct verdict_in *repair_proposal(struct stage *s, struct err *e);

/* ---- for tests ---- */

/* A log of guard or unittest for a prompt: no comments of quoted source, no paths, no passed checks,
 * plain text, `max` bytes at most. */
void repair_scrub(const char *log, size_t len, size_t max, struct buf *out);

#endif
