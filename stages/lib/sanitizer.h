/*
 * sanitizer.h - what compute-sanitizer says of a candidate at its tiny shapes.
 *
 * The tool injects itself into a process, forks, and writes files: nothing that a worker may do. So it gets a process of its
 * own (`bare --tiny`), with copies of three files in a folder of its own, confined as tightly as its driver starts in:
 * first with a file view and no network, else without. Nothing secret is there, nothing is timed.
 *
 * The tool is another program, about hostile code: its text is read strictly (sanitizer_parse, pure). Of findings only
 * memcheck's accesses that a kernel made count against a candidate, since nothing but its kernels runs there; those of
 * racecheck, synccheck and initcheck, and failed calls, are told.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_SANITIZER_H
#define TS_SANITIZER_H

#include "buf.h"
#include "err.h"
#include "image.h"

#include <stddef.h>

enum { SANITIZER_TEXT = 200 };

struct sanitizer_report {
	int done;                   /* its closing line is there: it looked to the end */
	long findings;              /* that line's figure */
	int accesses;               /* by kernels, outside of what they may touch */
	char first[SANITIZER_TEXT]; /* the first of those, else the first finding; cleaned */
};

void sanitizer_parse(const char *text, size_t len, struct sanitizer_report *r);

/* The program: COMPUTE_SANITIZER, PATH, the toolkit. 0 when there is none. */
int sanitizer_find(char out[4096]);

struct sanitizer_job {
	const char *tool;  /* "memcheck", "racecheck", "synccheck", "initcheck" */
	const char *program, *spec, *plan; /* where found; texts */
	size_t spec_len, plan_len;
	const struct image_set *set;
	const char *gpu;   /* uuid */
};

/* All tiny shapes under one tool. 1: it cannot be had here, `why` says so (one line). */
int sanitizer_run(const struct sanitizer_job *j, struct sanitizer_report *r, char why[SANITIZER_TEXT], struct err *e);

#endif
