/*
 * duplicate.h - was this very candidate tried before, as far as this trial may know?
 *
 * Looks into trials/index.tsv up to the trial that this one sees; only trials of the same spec and
 * device say anything. redo and allow_duplicate ask for the same again on purpose.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_DUPLICATE_H
#define TS_DUPLICATE_H

#include "buf.h"
#include "err.h"
#include "stage.h"

/* By the candidate's identity. 0: no; 1: yes, with a reason code (guard.duplicate, guard.hang) and words; -1 error. */
int duplicate_find_sha(struct stage *s, const char *candidate, const char **code, char text[160], struct err *e);
/* 0: no; 1: yes, with a reason code (guard.duplicate, guard.hang) and words; -1 error. */
int duplicate_find(struct stage *s, const struct buf *kernel_cu, const struct buf *plan_json, const char **code,
		   char text[160], struct err *e);

/* All candidates that closed trials up to number `upto` were, by the same rules, for whoever has many to ask about. */
struct duplicates {
	char (*sha)[HASH_HEX]; /* sorted */
	size_t n;
};
int duplicates_before(struct stage *s, long upto, struct duplicates *d, struct err *e);
int duplicates_has(const struct duplicates *d, const char *candidate);
void duplicates_free(struct duplicates *d);

#endif
