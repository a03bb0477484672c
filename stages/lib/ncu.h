/*
 * ncu.h - a dozen named metrics of each launch, from the CSV that Nsight Compute writes.
 *
 * What is read is `ncu --csv --page raw --print-units base --print-fp` in the C locale, from a log file: other
 * lines (==PROF==, ==ERROR==) stand between the rows, columns come and go with versions and are found by name,
 * the row after the header holds units, numbers may have thousands separators. The text is another program's, about a
 * candidate's kernels: read strictly, names cleaned. What is missing is NAN.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_NCU_H
#define TS_NCU_H

#include "err.h"
#include "jsonw.h"

#include <cjson/cJSON.h>
#include <stddef.h>

enum { NCU_METRICS = 12, NCU_LAUNCHES = 32, NCU_NAME = 64, NCU_WHY = 160 };

struct ncu_metric {
	const char *ask;  /* ncu's name */
	const char *key;  /* ours, in profile.json */
	const char *text; /* for a prompt: what stands before the number; and behind it */
	const char *unit;
};
extern const struct ncu_metric NCU_METRIC[NCU_METRICS];

struct ncu_report {
	int n;
	struct ncu_launch {
		char kernel[NCU_NAME];
		double value[NCU_METRICS];
	} launch[NCU_LAUNCHES];
};

/* EX_BADINPUT, saying why, when there is no table in it: then err is what ncu said, if it said something. More
 * launches than there is room for are left out. */
int ncu_parse(const char *text, size_t len, struct ncu_report *r, struct err *e);

/* An array of launches, and back. */
void ncu_write(const struct ncu_report *r, struct jsonw *w, const char *key);
/* One line a launch: "name: time 182.8 us, ...". `launches` is such an array, read again. */
void ncu_tell(const cJSON *launches, struct buf *out);

#endif
