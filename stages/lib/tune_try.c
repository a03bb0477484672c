/*
 * tune_try.c - configurations on a GPU: compile, time in turns, mix, examine. See tune_part.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tune_part.h"

#include "sweep.h"
#include "tune_gpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tune_build(struct tune *t, struct tune_entry *x, struct err *e)
{
	if (image_text(&x->image, t->spec, &t->kernel, &x->plan, "plan.json", e) < 0 ||
	    image_build_gpu(&x->image, t->spec, t->spec_dir, t->gpu.arch, NULL, e) < 0)
		return -1;
	char code[48], text[256];
	int rc = x->image.ok ? image_fits(&x->image, t->spec, &t->facts, code, text, e) : 1;

	if (rc < 0)
		return -1;
	x->built = rc == 0;
	if (!x->built)
		snprintf(x->word, sizeof x->word, "%s", x->image.ok ? code : x->image.box.code);
	return 0;
}

static double score(const struct tune *t, const struct tune_timing *m)
{
	double sum = 0, weight = 0;

	for (int k = 0; k < t->spec->npublic; k++) {
		double w = t->spec->public[k].weight, ns = m->ns[k];
		sum += w * log(ns > 1 ? ns : 1);
		weight += w;
	}
	return sum / weight;
}

/* Another configuration at some sizes, as a plan of its own. 0 also when there is nothing to mix. */
static int mix(struct tune *t, const struct tune_timing *m, int best, struct err *e)
{
	struct tune_entry *x = &t->entry[t->n];
	const struct plan_config *config[TUNE_CONFIGS + 1];
	struct tune_rule rule[TUNE_RULES];
	struct plan_sizes sizes;
	struct err why = {0};
	struct plan *p;
	int rules = tune_rules(t->spec, m, t->n, best, rule);

	if (!rules)
		return 0;
	if (plan_parse(buf_str(&t->plan_text), t->plan_text.len, "plan.json", &p, e) < 0)
		return -1;
	for (int i = 0; i < t->n; i++)
		config[i] = &t->entry[i].config;
	int ok = plan_config_set(p, config[best], &why) == 0 &&
		 tune_rules_apply(p, t->spec, rule, rules, config, &why) == 0 &&
		 plan_sizes(p, t->spec, &t->facts, 0, &sizes, &why) == 0;
	if (ok)
		sweep_plan_text(p, &x->plan);
	plan_free(p);
	if (!ok)
		return 0;
	x->config = *config[best];
	t->mixed = x;
	if (tune_build(t, x, e) < 0)
		return -1;
	x->right = x->built;
	return 0;
}

int tune_time(struct tune *t, struct err *e)
{
	struct tune_timing *m = xcalloc((size_t)t->n + 1, sizeof *m);
	int best = -1;

	for (int i = 0; i < t->n; i++)
		m[i] = (struct tune_timing){.plan = t->entry[i].image.plan, .set = &t->entry[i].image.set,
					    .right = t->entry[i].built};
	int rc = tune_gpu_time(&t->proof, m, t->n, e);
	for (int i = 0; i < t->n && rc == 0; i++) {
		struct tune_entry *x = &t->entry[i];
		x->right = m[i].right;
		if (m[i].word[0])
			snprintf(x->word, sizeof x->word, "%s", m[i].word);
		if (!x->right)
			continue;
		x->score = score(t, &m[i]);
		if (best < 0 || x->score < t->entry[best].score)
			best = i;
	}
	if (rc == 0 && best >= 0)
		rc = mix(t, m, best, e);
	free(m);
	return rc;
}

int tune_tiny(struct tune *t, struct tune_entry *x, const struct proof_arm *a, int emu, struct err *e)
{
	struct proof_out *o = xcalloc(1, sizeof *o);
	int rc = 0, pass = 1;

	for (int i = 0; i < t->spec->ntiny && rc == 0 && pass; i++) {
		struct checker_open q = {.mode = CHECKER_TINY, .index = (uint32_t)i, .emu = emu};
		struct checker_prep p = {.rep = 1000 + (uint64_t)i, .perturb = 1};
		struct proof_work w;
		rc = proof_open(&t->proof, a, &q, &w, e);
		if (rc == 0)
			rc = proof_rep(&w, &p, emu ? ARM_SHUFFLED : ARM_FORWARD, 5, o, e);
		pass = rc == 0 && o->pass;
		if (rc == 0 && !pass)
			snprintf(x->word, sizeof x->word, "%s", o->word);
		proof_close(&w);
	}
	free(o);
	return rc < 0 ? -1 : pass;
}

int tune_judge(struct tune *t, struct tune_entry *x, const struct proof_arm *a, int emu, struct err *e)
{
	struct proof_report *r = xcalloc(1, sizeof *r);
	int rc = proof_judge(&t->proof, a, emu ? &PROOF_TUNE_EMU : &PROOF_TUNE_CUDA, r, e), pass = rc == 0 && r->pass;

	if (rc == 0 && !pass)
		snprintf(x->word, sizeof x->word, "%s", r->word);
	free(r);
	return rc < 0 ? -1 : pass;
}

int tune_examine(struct tune *t, struct tune_entry *x, struct err *e)
{
	struct proof_arm a = {.plan = x->image.plan, .set = &x->image.set};
	int rc = tune_tiny(t, x, &a, 0, e);

	return rc == 1 ? tune_judge(t, x, &a, 0, e) : rc;
}
