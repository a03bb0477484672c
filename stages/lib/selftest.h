/*
 * selftest.h - the judge is tried before it judges: every rule of it on something that breaks that rule.
 *
 * Runs on the device of a run, by the very programs of this build: box, checker, child or worker, and the
 * code that judge, unittest, tune and check share (proof.h). The problem is stages/selftest/. A kernel of
 * it gives honest outputs, which must pass whole; then they are spoilt in one way at a time, written where
 * a candidate's outputs lie, and each must be refused for its own reason. What no kernel can do (write an
 * input, write when it is over) is played through the checker, which lends its hand with a key that is
 * thrown away only (checker_touch). Takes below a second where the kernels are compiled already.
 *
 * Rules are called as DEFENCE calls them (defence.h); tests/selftest/t03-mutation.sh switches each off and
 * sees this fail.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_SELFTEST_H
#define TS_SELFTEST_H

#include "err.h"
#include "gpu.h"
#include "jsonw.h"

enum { SELFTEST_RULES = 48 };

struct selftest_rule {
	char name[40];
	int tried, failed;
};

struct selftest {
	const char *device;      /* "emu", or the slug of a GPU's model */
	const struct gpu *gpu;   /* NULL on emu */
	int talk;                /* a line for each specimen, else only for those that fail; on a GPU faults too */
	int tried, failed;
	double seconds;
	char isolation[CONFINE_LIST]; /* layers of the process that ran kernels */
	int n;
	struct selftest_rule rule[SELFTEST_RULES];
	char words[200];         /* the first that failed: rule and what happened */
};

/* 0: tried, see `failed`; -1: could not be. `device`, `gpu` and `talk` are set before. */
int selftest_run(struct selftest *t, struct err *e);
/* {"touchstone/selftest/1"}: device, verdict, rules, and the programs of BIN, by hash. One line. */
int selftest_write(const struct selftest *t, const char *bin, struct jsonw *w, struct err *e);

#endif
