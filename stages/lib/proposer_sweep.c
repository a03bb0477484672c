/*
 * proposer_sweep.c - the proposer without a model: one untried configuration of the tunables.
 *
 * Reads the source at the run's start, the champion of the moment, trials/index.tsv. Keeps
 * trials/runs/R/sweep.json (sweep.h). Never changes the kernel.
 *
 * SPDX-License-Identifier: MIT
 */
#include "proposal.h"

#include "gpu.h"
#include "json.h"
#include "sweep.h"

#include <stdio.h>
#include <string.h>

struct sweeping {
	struct parent start;
	struct plan *base, *champion;
	struct plan_config from; /* what the words compare with */
	struct facts facts;
	int in_space;            /* the champion of the moment belongs to the space */
};

static int open_space(struct stage *s, struct proposal *p, struct sweeping *w, struct err *e)
{
	if (parent_at_start(s, p->spec, &w->start, e) ||
	    plan_parse(buf_str(&w->start.plan), w->start.plan.len, "plan.json of the start", &w->base, e))
		return -1;
	if (facts_of_run(&s->run, s->trial.device, &w->facts, e))
		return -1;
	plan_config_current(w->base, &w->from);
	if (strcmp(p->parent.kernel_sha, w->start.kernel_sha))
		return 0;
	if (plan_parse(buf_str(&p->parent.plan), p->parent.plan.len, "plan.json of the champion",
		       &w->champion, NULL))
		return 0;
	if (w->champion->ntunables == w->base->ntunables) {
		plan_config_current(w->champion, &w->from);
		w->in_space = plan_config_index(w->base, &w->from) >= 0;
	}
	if (!w->in_space)
		plan_config_current(w->base, &w->from);
	return 0;
}

static void say(struct proposal *p, const struct sweeping *w, const struct sweep_pick *pick)
{
	struct reply_words *r = &p->reply.words;

	buf_adds(&r->item, "tunables: ");
	sweep_words(w->base, &w->from, &pick->config, &r->item);
	if (r->item.len > 120) {
		r->item.len = 117;
		r->item.data[117] = '\0';
		buf_adds(&r->item, "...");
	}
	buf_adds(&r->hypothesis, "one of these configurations suits the device better than the champion's: ");
	for (int i = 0; i < w->base->ntunables && i < pick->config.n; i++)
		buf_addf(&r->hypothesis, "%s%s=%lld", i ? " " : "", w->base->tunable[i].name,
			 (long long)pick->config.v[i]);
	buf_addf(&r->hypothesis, "; %s", pick->how);
	buf_adds(&r->expected_effect, "unknown: measured, not predicted");
	buf_adds(&r->risk, "none beyond the configuration itself: the kernel is unchanged");
}

static int pick_one(struct stage *s, struct proposal *p, struct sweeping *w, struct sweep_pick *pick,
		    struct err *e)
{
	char cache[TRIAL_PATH];
	const char *first = json_get_str(s->run.json, "first_trial", s->id);
	struct sweep q = {
		.base = w->base, .spec = p->spec, .facts = &w->facts, .device = s->trial.device,
		.kernel_sha = w->start.kernel_sha, .base_tried = strcmp(w->start.from, "start") != 0,
		.champion = w->in_space ? &w->from : NULL, .seed = s->run.seed,
		.index = s->trial.index, .width = (long)s->run.width, .first = trial_number(first),
		.sees = *s->trial.sees ? trial_number(s->trial.sees) : trial_number(first) - 1,
		.cache = cache, .tried = "trials/index.tsv",
	};

	run_path(cache, s->run.name, "sweep.json");
	return sweep_next(&q, pick, e);
}

int propose_sweep(struct stage *s, struct proposal *p, struct err *e)
{
	struct sweeping w = {0};
	struct sweep_pick pick = {0};
	int rc = open_space(s, p, &w, e);

	p->same_ok = 1; /* the first of a space may be start/ itself */
	if (!rc)
		rc = pick_one(s, p, &w, &pick, e);
	if (!rc && pick.done) {
		proposal_reject(s, p, "propose.space_done", "%s",
				w.base->ntunables ? pick.how : "the source declares no tunables");
	} else if (!rc) {
		say(p, &w, &pick);
		buf_add(&p->reply.file[REPLY_KERNEL], buf_str(&w.start.kernel), w.start.kernel.len);
		buf_add(&p->reply.file[REPLY_PLAN], buf_str(&pick.plan), pick.plan.len);
		p->reply.has[REPLY_KERNEL] = p->reply.has[REPLY_PLAN] = 1;
	}
	buf_free(&pick.plan);
	parent_free(&w.start);
	plan_free(w.base);
	plan_free(w.champion);
	return rc;
}
