/*
 * bench_engine.c - see bench_engine.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench_engine.h"

#include "engine_bench.h"
#include "engine_files.h"
#include "engine_setup.h"
#include "facts.h"
#include "file.h"
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct engine_bench bench;
static struct engine_setup setup;
static char names[SESSION_WORKLOADS][SPEC_NAME];

/* ---- champion and baseline ---- */

static int build(struct engine_files *f, const char *what, struct engine_arm *a, struct err *e)
{
	struct engine_built made;
	if (engine_files_cuda(f) != setup.spec->cuda)
		return err_set(e, EX_BADINPUT, "%s is in another language than the problem's", what);
	int rc = engine_build(f->file, f->n, engine_files_cuda(f) ? setup.gpu.arch : NULL, &made, e);
	if (rc == 0 && !made.ok)
		rc = err_set(e, EX_HARNESS, "%s does not compile: %s", what, made.message);
	if (rc == 0) {
		a->present = 1;
		memcpy(a->sha, made.sha, sizeof a->sha);
		memcpy(a->program, made.path, sizeof a->program);
		engine_built_free(&made);
	}
	return rc;
}

static int add_baseline(struct stage *s, struct engine_arm *a, struct err *e)
{
	struct engine_files f;
	int rc = engine_files_spec(s, "baseline", &f, e);
	if (rc == 0) {
		memcpy(a->candidate, f.sha, sizeof a->candidate);
		rc = build(&f, "the baseline", a, e);
	}
	engine_files_free(&f);
	return rc;
}

static int add_champion(struct stage *s, struct engine_arm *a, struct err *e)
{
	struct engine_files f;
	char want[HASH_HEX], dir[TRIAL_PATH];
	if (stage_champion(s, a->trial, want, e) != 0)
		return -1;
	if (!a->trial[0])
		return add_baseline(s, a, e);
	trial_path(dir, a->trial, "candidate");
	int rc = engine_files_folder(dir, &f, e);
	if (rc == 0) {
		memcpy(a->candidate, f.sha, sizeof a->candidate);
		rc = strcmp(a->candidate, want) == 0 ? build(&f, "the champion", a, e)
			: err_set(e, EX_BADINPUT, "trials/%s/candidate is not the champion recorded", a->trial);
	}
	engine_files_free(&f);
	return rc;
}

static const char *input_of(const struct stage *s, const char *name)
{
	for (size_t i = 0; i < s->v.ninputs; i++)
		if (strcmp(s->v.inputs[i].name, name) == 0)
			return s->v.inputs[i].sha;
	return NULL;
}

static int add_arms(struct stage *s, struct engine_bench *b, struct err *e)
{
	struct engine_arm *own = &b->arm[RAW_CANDIDATE], *champion = &b->arm[RAW_CHAMPION];
	const char *candidate = input_of(s, "candidate");
	if (!candidate)
		return err_set(e, EX_HARNESS, "the candidate has no hash");
	own->present = 1;
	snprintf(own->trial, sizeof own->trial, "%s", s->id);
	snprintf(own->candidate, sizeof own->candidate, "%s", candidate);
	memcpy(own->sha, setup.artefact, HASH_HEX);
	memcpy(own->program, setup.program, sizeof own->program);
	if (add_champion(s, champion, e) != 0)
		return -1;
	verdict_input(&s->v, "champion", champion->candidate);
	if (champion->trial[0] && add_baseline(s, &b->arm[RAW_BASELINE], e) != 0)
		return -1;
	if (!s->confirm)
		return 0;
	const struct verdict_in *was = stage_verdict(s, STEP_BENCH, e);
	const char *then = was ? verdict_in_input(was, "champion") : NULL;
	b->again = !then || strcmp(then, champion->candidate) != 0;
	return was ? 0 : -1;
}

/* ---- plan ---- */

/* What is not shown to a proposer has no name either. */
static void add_tasks(struct engine_bench *b, const struct engine_workload *w, int n, const char *hidden, double weight)
{
	for (int i = 0; i < n && b->ntasks < SESSION_WORKLOADS; i++, b->ntasks++) {
		char *name = names[b->ntasks];
		if (hidden)
			snprintf(name, SPEC_NAME, "%s_%d", hidden, i);
		else
			snprintf(name, SPEC_NAME, "%s", w[i].name);
		b->task[b->ntasks] = (struct engine_task){w[i].batch, w[i].prompt, w[i].steps, weight, name};
	}
}

static int preregister(void *ctx, const char *text, size_t len, struct err *e)
{
	struct stage *s = ctx;
	return stage_side(s, s->confirm ? "confirm.prereg.json" : "bench.prereg.json", text, len, e);
}

static void plan(struct stage *s, struct engine_bench *b)
{
	const struct engine_spec *p = setup.spec;
	add_tasks(b, p->public, p->npublic, NULL, 1);
	b->npublic = b->ntasks;
	add_tasks(b, p->proxy, p->nproxy, "proxy", 1);
	b->nshown = b->ntasks;
	if (s->confirm)
		add_tasks(b, p->odd, p->nodd, "held_out", 0);
	b->trial = s->id;
	b->model = &setup.model;
	b->margin = p->margin;
	b->guard = p->guard;
	const double memory = p->cuda ? (double)setup.gpu.memory_bytes : (double)p->memory_bytes;
	b->limits = (struct engine_limits){p->gate_native, 1 + p->gate_champion, p->gate_spread, (uint64_t)(p->gate_memory * memory),
					   p->cuda, NULL, NULL};
	b->load_s = p->load_s;
	b->step_s = p->step_s;
	b->memory = (uint64_t)p->memory_bytes;
	b->gpu = p->cuda ? &setup.gpu : NULL;
	memcpy(b->key, setup.key, sizeof b->key);
	b->confirming = s->confirm;
	b->preregister = preregister;
	b->ctx = s;
}

/* ---- the stage ---- */

static void decide(struct stage *s, const struct engine_bench *b)
{
	const struct contest *t = engine_bench_last(b);
	double lo, hi;
	const double ratio = contest_ratio(t, &lo, &hi);
	const int other = b->again && t == &b->first && t->kind != V_INVALID;
	verdict_set(&s->v, t->kind, other ? "confirm.champion_changed" : t->code, "%s", t->message);
	if (t->k > 1)
		verdict_headline(&s->v, "%.3fx (%.3f to %.3f)", ratio, lo, hi);
	else if (t->k == 1)
		verdict_headline(&s->v, "%.3fx", ratio);
}

static int report(struct stage *s, struct engine_bench *b, struct err *e)
{
	const char *raw = s->confirm ? "confirm.raw" : "bench.raw";
	const char *lines = s->confirm ? "confirm.engine.jsonl" : "bench.engine.jsonl";
	size_t len;
	const void *bytes = raw_bytes(&b->raw, &len);
	if (stage_side(s, raw, bytes, len, e) != 0 ||
	    stage_side(s, lines, buf_str(&b->ses.lines), b->ses.lines.len, e) != 0)
		return -1;
	decide(s, b);
	verdict_isolation_list(&s->v, b->live.isolation);
	lane_write(&setup.lane, &s->v.data, "lane");
	engine_bench_write(b, raw, lines, &s->v.data);
	return 0;
}

static int run(struct stage *s, struct err *e)
{
	if (strcmp(bench.arm[RAW_CANDIDATE].candidate, bench.arm[RAW_CHAMPION].candidate) == 0) {
		verdict_set(&s->v, V_REJECT, s->confirm ? "confirm.below_margin" : "bench.below_margin",
			    "this candidate is the champion itself");
		return 0;
	}
	plan(s, &bench);
	if (!setup.spec->cuda && lane_exclusive(&setup.lane, s->trial.device, e) != 0)
		return -1;
	int rc = engine_bench_measure(&bench, e);
	lane_drop(&setup.lane);
	return rc ? rc : report(s, &bench, e);
}

int bench_engine(struct stage *s, const char *text, size_t len, struct checker **c, struct err *e)
{
	if (device_class_of(s->trial.device) == DEVICE_SIM)
		return err_set(e, EX_NOENV, "engines are timed on a processor or a GPU, not on sim");
	int rc = engine_setup(s, text, len, "engine", &setup, e);
	if (rc == 0)
		rc = add_arms(s, &bench, e);
	if (rc == 0)
		rc = engine_setup_key(s, s->confirm ? "confirm" : "bench", c, &setup, e);
	if (rc == 0) {
		s->v.mac = checker_mac_fn;
		s->v.mac_ctx = *c;
		rc = run(s, e);
	}
	engine_bench_free(&bench);
	engine_setup_free(&setup);
	return rc;
}
