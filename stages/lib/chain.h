/*
 * chain.h - the chain of evidence of one trial, recomputed from the files.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_CHAIN_H
#define TS_CHAIN_H

#include "err.h"
#include "stage.h"

/*
 * Recompute every hash that the verdicts before s->step name. 0: all hold. 1: one does not, and
 * the text of `e` names the file (code EX_BADINPUT), or a signature is missing or wrong (code
 * EX_HARNESS). -1: it could not be found out.
 */
int chain_check(struct stage *s, struct err *e);

#endif
