/*
 * aa.h - the champion against itself: how much this host's sessions differ when nothing does.
 *
 * Gives s0, the standard deviation of theta between A/A sessions, which the rule needs to give up
 * on a loser early, and which says what effect can be seen at all here. Measured once per boot
 * and problem (on a GPU: per card and driver too; two modules of the same image, loaded apart), by the first bench that needs it, under the lane it already holds; kept with its raw
 * samples in trials/runs/R/aa-XXXXXXXX.{json,raw}. A gate on it refuses a host that favours a
 * label; a refused measurement is not kept, so the next trial tries again.
 *
 * sim has a known noise: nothing is measured there.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_AA_H
#define TS_AA_H

#include "contest.h"
#include "rig.h"

#define AA_BACK 20     /* how many runs back an equal measurement is looked for */
#define AA_SIGMA 4     /* the mean of A/A sessions may be this many standard errors ... */
#define AA_SLACK 0.005 /* ... and half a percent from zero */
#define AA_SLACK_GPU 0.001 /* means of 131 processes were 0 within 0.02 % */

struct aa {
	double s0;
	double mean;           /* of theta; 0 is the truth */
	int sessions;
	int ok;                /* the gate */
	char why[160];         /* when not */
	char file[TRIAL_PATH]; /* "" on sim */
	char sha[HASH_HEX];    /* of that file */
	double floor, slack;   /* private: of the class */
};

int aa_get(struct rig *r, struct aa *out, struct err *e);
void aa_write(const struct aa *a, struct jsonw *w, const char *key);

#endif
