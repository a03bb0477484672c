/*
 * tune_gpu.h - time several configurations of one kernel on a GPU, and see where each is best.
 *
 * tune_gpu_time runs them in turns in one worker, so that a clock that drifts drifts for all; every
 * output is verified, and what fails is dropped with a reason word of proof.h. The figures choose; they
 * prove nothing. tune_rules looks for conditions on one axis ("M <= 64") under which another
 * configuration than the best one is clearly faster; tune_rules_apply writes them into a plan.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_TUNE_GPU_H
#define TS_TUNE_GPU_H

#include "image.h"
#include "plan.h"
#include "proof.h"
#include "spec.h"

struct tune_timing {
	const struct plan *plan;
	const struct image_set *set;
	int right;                       /* in and out */
	char word[48];                   /* why it is not */
	double ns[SPEC_MAX_WORKLOADS];   /* median at each public workload, where it is right */
};

enum { TUNE_RULES = PLAN_MAX_CONFIGS - 1 };

struct tune_rule {
	int axis, below;                 /* axis <= at, or > at */
	int64_t at;
	int config;
};

/* p: device, gpu, facts and checker are used; layers of isolation go into it. */
int tune_gpu_time(struct proof *p, struct tune_timing *t, int n, struct err *e);

/* Where others than `best` win by more than a twentieth at every workload concerned. Returns how many
 * rules; the first that holds counts. */
int tune_rules(const struct spec *s, const struct tune_timing *t, int n, int best,
	       struct tune_rule out[TUNE_RULES]);
/* Into p, whose current configuration is the best one's; config[i] belongs to t[i]. */
int tune_rules_apply(struct plan *p, const struct spec *s, const struct tune_rule *rule, int nrules,
		     const struct plan_config *const *config, struct err *e);

#endif
