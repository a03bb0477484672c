/*
 * engine_freeze.c - see engine_freeze.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_freeze.h"

#include "buf.h"
#include "stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const ARM[] = {"champion", "native"};

/* ---- plan ---- */

static void add_rows(struct engine_freeze *z, const char *list, const struct engine_workload *w, int n)
{
	for (int i = 0; i < n && z->n < FREEZE_ROWS; i++)
		z->row[z->n++] = (struct freeze_row){.w = w[i], .list = list};
}

static struct engine_asked asked(const struct engine_freeze *z, const struct engine_workload *w, const char *list, int sample)
{
	struct engine_asked a = {.batch = w->batch, .prompt = w->prompt, .steps = w->steps};
	char label[128];
	a.ids = xcalloc((size_t)a.batch * (size_t)a.prompt, sizeof *a.ids);
	a.out = xcalloc((size_t)a.batch * (size_t)a.steps, sizeof *a.out);
	snprintf(label, sizeof label, "freeze/%s/%.64s/%d", list, w->name, sample);
	engine_replay_prompts(z->key, label, z->model->model.c.vocab, &a);
	return a;
}

/* ---- the judge ---- */

static int judge(struct engine_freeze *z, struct err *e)
{
	const struct engine_spec *p = z->spec;
	struct engine_rig g = {.program = z->program[FREEZE_OWN], .model = z->model, .gpu = z->gpu, .load_s = p->load_s,
			       .step_s = p->step_s, .memory = (uint64_t)p->memory_bytes};
	struct engine_rig_work work[FREEZE_ROWS];
	struct buf why = BUF_INIT;
	memcpy(g.key, z->key, sizeof g.key);
	for (int i = 0; i < z->n; i++)
		work[i] = (struct engine_rig_work){z->row[i].w.name, z->row[i].w.batch, z->row[i].w.prompt, z->row[i].w.steps};
	if (engine_rig_run(&g, work, z->n, &z->report, e))
		return -1;
	z->word = z->report.word;
	int rc = strcmp(z->word, "ok") ? engine_rig_explain(&g, &z->report, 1, &why, e) : 0;
	snprintf(z->why, sizeof z->why, "%s", buf_str(&why));
	buf_free(&why);
	return rc;
}

/* ---- times ---- */

/* Sample -1 warms up. */
static int ask(struct engine *child, const struct engine_freeze *z, const struct engine_asked *a, int sample,
	       struct freeze_times *t, enum engine_outcome *o, struct err *e)
{
	int64_t *stamp = xcalloc((size_t)a->steps, sizeof *stamp);
	struct engine_batch b = {.batch = a->batch, .prompt = a->prompt, .steps = a->steps, .ids = a->ids, .out = a->out,
				 .stamp = stamp, .watch = sample < 0, .limit_s = z->spec->step_s * (a->steps + 1)};
	int rc = engine_ask(child, &b, o, e);
	if (rc == 0 && *o == ENGINE_OK && sample >= 0) {
		const int64_t last = stamp[a->steps - 1];
		t->total[sample] = (double)last * 1e-9;
		t->ttft[sample] = (double)stamp[0] * 1e-9;
		t->tpot[sample] = a->steps > 1 ? (double)(last - stamp[0]) * 1e-9 / (a->steps - 1) : 0;
	}
	free(stamp);
	return rc;
}

/* a[0] warms up, the others are timed. */
static int time_arm(const struct engine_freeze *z, int arm, const struct engine_asked *a, struct freeze_times *t,
		    enum engine_outcome *o, struct err *e)
{
	const struct engine_start q = {.program = z->program[arm], .model_dir = z->model->dir, .load_s = z->spec->load_s,
				       .memory = (uint64_t)z->spec->memory_bytes, .vocab = z->model->model.c.vocab, .gpu = z->gpu};
	struct engine child;
	struct engine_end end;
	struct err other;
	if (engine_open(&q, &child, o, e))
		return -1;
	int rc = 0;
	for (int i = -1; i < FREEZE_SAMPLES && rc == 0 && *o == ENGINE_OK; i++)
		rc = ask(&child, z, &a[i + 1], i, t, o, e);
	if (engine_close(&child, o, &end, rc ? &other : e))
		return -1;
	t->max_rss = end.max_rss;
	t->gpu_bytes = end.gpu_bytes;
	engine_end_free(&end);
	return rc;
}

static int time_row(struct engine_freeze *z, int at, struct engine_regrets *all, struct err *e)
{
	struct freeze_row *row = &z->row[at];
	struct engine_asked a[FREEZE_SAMPLES + 1], native[FREEZE_SAMPLES + 1];
	struct engine_regrets own = {0};
	int rc = 0;
	for (int i = 0; i <= FREEZE_SAMPLES; i++) {
		a[i] = asked(z, &row->w, row->list, i);
		native[i] = asked(z, &row->w, row->list, i);
	}
	for (int k = 0; k < 2 && rc == 0 && !strcmp(z->word, "ok"); k++) {
		const int arm = (at + k) % 2;
		enum engine_outcome o = ENGINE_OK;
		rc = time_arm(z, arm, arm == FREEZE_OWN ? a : native, &row->arm[arm], &o, e);
		if (rc == 0 && o != ENGINE_OK && arm == FREEZE_NATIVE)
			rc = err_set(e, EX_BADINPUT, "the native baseline fails at workload '%s': %s", row->w.name, engine_outcome_name(o));
		else if (rc == 0 && o != ENGINE_OK) {
			z->word = engine_outcome_name(o);
			snprintf(z->why, sizeof z->why, "while it was timed at workload '%s'", row->w.name);
		}
	}
	if (rc == 0 && !strcmp(z->word, "ok"))
		rc = engine_replay(z->model, a + 1, FREEZE_SAMPLES, &own, e);
	if (rc == 0)
		rc = engine_regrets_merge(all, &own, e);
	engine_figures(&own, &row->figures);
	engine_regrets_free(&own);
	for (int i = 0; i <= FREEZE_SAMPLES; i++) {
		free(a[i].ids);
		free(a[i].out);
		free(native[i].ids);
		free(native[i].out);
	}
	return rc;
}

int engine_freeze_run(struct engine_freeze *z, struct err *e)
{
	const struct engine_spec *p = z->spec;
	struct engine_regrets all = {0};
	add_rows(z, "public", p->public, p->npublic);
	add_rows(z, "proxy", p->proxy, p->nproxy);
	add_rows(z, "odd", p->odd, p->nodd);
	int rc = judge(z, e);
	for (int i = 0; i < z->n && rc == 0 && !strcmp(z->word, "ok"); i++)
		rc = time_row(z, i, &all, e);
	engine_figures(&all, &z->timed);
	engine_regrets_free(&all);
	if (rc == 0 && !strcmp(z->word, "ok")) {
		z->word = engine_judge(&z->timed, &z->report.honest.gates);
		snprintf(z->why, sizeof z->why, "%s", strcmp(z->word, "ok") ? "the ids that were timed" : "");
	}
	return rc;
}

void engine_freeze_free(struct engine_freeze *z)
{
	engine_report_free(&z->report);
}

/* ---- figures ---- */

double engine_freeze_score(const struct engine_freeze *z, int arm)
{
	double sum = 0;
	int n = 0;
	for (int i = 0; i < z->n; i++) {
		const struct freeze_row *r = &z->row[i];
		if (!strcmp(r->list, "odd"))
			continue;
		sum += log((double)r->w.batch * r->w.steps / stats_median(r->arm[arm].total, FREEZE_SAMPLES));
		n++;
	}
	return n ? exp(sum / n) : NAN;
}

static void put_samples(struct jsonw *w, const char *key, const double x[FREEZE_SAMPLES])
{
	jw_obj(w, key);
	jw_num(w, "median", stats_median(x, FREEZE_SAMPLES));
	jw_arr(w, "samples");
	for (int i = 0; i < FREEZE_SAMPLES; i++)
		jw_num(w, NULL, x[i]);
	jw_end(w);
	jw_end(w);
}

static void put_row(const struct freeze_row *r, struct jsonw *w)
{
	jw_obj(w, NULL);
	jw_str(w, "name", r->w.name);
	jw_str(w, "list", r->list);
	jw_int(w, "batch", r->w.batch);
	jw_int(w, "prompt", r->w.prompt);
	jw_int(w, "steps", r->w.steps);
	for (int k = 0; k < 2; k++) {
		const struct freeze_times *t = &r->arm[k];
		jw_obj(w, ARM[k]);
		put_samples(w, "total_s", t->total);
		put_samples(w, "ttft_s", t->ttft);
		put_samples(w, "tpot_s", t->tpot);
		jw_num(w, "tokens_s", (double)r->w.batch * r->w.steps / stats_median(t->total, FREEZE_SAMPLES));
		jw_int(w, "max_rss", (int64_t)t->max_rss);
		if (t->gpu_bytes >= 0)
			jw_int(w, "gpu_bytes", t->gpu_bytes);
		jw_end(w);
	}
	jw_num(w, "ratio", stats_median(r->arm[FREEZE_NATIVE].total, FREEZE_SAMPLES) /
				   stats_median(r->arm[FREEZE_OWN].total, FREEZE_SAMPLES));
	jw_num(w, "worst_regret", r->figures.worst);
	jw_num(w, "mean_regret", r->figures.mean);
	jw_end(w);
}

void engine_freeze_write(const struct engine_freeze *z, struct jsonw *w)
{
	char key[HASH_HEX];
	hash_to_hex(z->key, key);
	jw_str(w, "prompts_key", key);
	jw_obj(w, "judge");
	engine_rig_write(&z->report, w);
	jw_end(w);
	jw_obj(w, "times");
	jw_int(w, "samples", FREEZE_SAMPLES);
	jw_obj(w, "score_tokens_s");
	jw_num(w, "champion", engine_freeze_score(z, FREEZE_OWN));
	jw_num(w, "native", engine_freeze_score(z, FREEZE_NATIVE));
	jw_num(w, "ratio", engine_freeze_score(z, FREEZE_OWN) / engine_freeze_score(z, FREEZE_NATIVE));
	jw_end(w);
	jw_int(w, "tokens_replayed", (int64_t)z->timed.tokens);
	jw_arr(w, "workloads");
	for (int i = 0; i < z->n; i++)
		put_row(&z->row[i], w);
	jw_end(w);
	jw_end(w);
}
