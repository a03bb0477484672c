/*
 * judge_engine.c - see judge_engine.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "judge_engine.h"

#include "buf.h"
#include "engine_setup.h"
#include "facts.h"
#include "reason.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A keyed fraction of synthetic candidates fails, so that every path of a run is walked. */
static void simulate(struct stage *s)
{
	uint8_t h[32];
	const char *candidate = "";
	for (size_t i = 0; i < s->v.ninputs; i++)
		if (!strcmp(s->v.inputs[i].name, "candidate"))
			candidate = s->v.inputs[i].sha;
	char *text = xasprintf("sim-judge:%s", candidate);
	hash_bytes(text, strlen(text), h);
	free(text);
	jw_bool(&s->v.data, "deterministic", 1);
	verdict_set(&s->v, h[0] < 8 ? V_REJECT : V_PASS, h[0] < 8 ? "judge.margin" : "ok", "simulated: nothing was run");
}

static void decide(struct stage *s, const struct engine_report *r)
{
	char code[64];
	const struct engine_row *row = r->at < 0 ? NULL : &r->row[r->at];
	if (!strcmp(r->word, "ok")) {
		verdict_set(&s->v, V_PASS, "ok", "%zu ids at %d workloads are the model's: %.2f %% its very best, worst regret %.3g of %.3g"
			    " allowed%s", r->all.tokens, r->n, 100 * r->all.argmax_rate, r->all.worst, r->honest.gates.margin,
			    r->repeats ? "" : ", not the same each time");
		return;
	}
	engine_code(code, "judge", r->word);
	verdict_set(&s->v, V_REJECT, code, "wrong at %s%s%s: %s", row ? "workload '" : "all workloads together",
		    row ? row->w.name : "", row ? "'" : "", reason_text(code));
}

static int run(struct stage *s, struct engine_setup *u, struct engine_report *r, struct err *e)
{
	struct engine_rig_work *w = engine_setup_work(u->spec->public, u->spec->npublic);
	int rc = u->spec->cuda ? 0 : lane_share(&u->lane, s->trial.device, e);
	if (rc == 0)
		rc = engine_rig_run(&u->rig, w, u->spec->npublic, r, e);
	lane_drop(&u->lane);
	if (rc == 0) {
		decide(s, r);
		jw_bool(&s->v.data, "deterministic", r->repeats);
		engine_rig_write(r, &s->v.data);
		lane_write(&u->lane, &s->v.data, "lane");
		if (!r->repeats && !strcmp(r->word, "ok"))
			relies_add(&s->v.relies, "order", "the same prompts did not give the same ids each time, as where sums are made "
				   "in another order: every id was within the margin. An order that is fixed would be clean");
	}
	free(w);
	return rc;
}

int judge_engine(struct stage *s, const char *text, size_t len, struct checker **c, struct err *e)
{
	static struct engine_setup u;
	static struct engine_report r;
	static char layers[CONFINE_LIST];
	const int sim = device_class_of(s->trial.device) == DEVICE_SIM;
	int rc = engine_setup(s, text, len, sim ? NULL : "engine", &u, e);
	if (rc == 0)
		rc = engine_setup_key(s, "judge", c, &u, e);
	if (rc == 0 && sim)
		simulate(s);
	else if (rc == 0)
		rc = run(s, &u, &r, e);
	if (rc == 0) {
		snprintf(layers, sizeof layers, "%s", r.isolation);
		verdict_isolation_list(&s->v, layers);
		jw_str(&s->v.data, "stage_key", u.key);
		s->v.mac = checker_mac_fn;
		s->v.mac_ctx = *c;
	}
	engine_report_free(&r);
	engine_setup_free(&u);
	return rc;
}
