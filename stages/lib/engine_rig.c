/*
 * engine_rig.c - see engine_rig.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_rig.h"

#include "buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ENGINE_FEW = 256 };

/* ---- prompts and gates ---- */

static void make_rows(struct engine_report *r, const struct engine_rig_work *w, int n)
{
	*r = (struct engine_report){.n = n, .row = xcalloc((size_t)n, sizeof *r->row), .word = "ok", .at = -1};
	for (int i = 0; i < n; i++) {
		struct engine_row *row = &r->row[i];
		row->w = w[i];
		for (int k = 0; k < ENGINE_ASKS; k++) {
			struct engine_asked *a = &row->a[k];
			*a = (struct engine_asked){.batch = w[i].batch, .prompt = w[i].prompt, .steps = w[i].steps};
			a->ids = k < 2 ? xcalloc((size_t)a->batch * (size_t)a->prompt, sizeof *a->ids) : row->a[0].ids;
			a->out = xcalloc((size_t)a->batch * (size_t)a->steps, sizeof *a->out);
		}
	}
}

void engine_report_free(struct engine_report *r)
{
	for (int i = 0; i < r->n; i++) {
		for (int k = 0; k < ENGINE_ASKS; k++)
			free(r->row[i].a[k].out);
		free(r->row[i].a[0].ids);
		free(r->row[i].a[1].ids);
		buf_free(&r->row[i].log);
	}
	free(r->row);
	*r = (struct engine_report){0};
}

static void draw(const struct engine_rig *g, struct engine_report *r)
{
	char label[128];
	for (int i = 0; i < r->n; i++)
		for (int k = 0; k < 2; k++) {
			snprintf(label, sizeof label, "%.80s/%d/%d", r->row[i].w.name, k, r->draws);
			engine_replay_prompts(g->key, label, g->model->model.c.vocab, &r->row[i].a[k]);
		}
	r->draws++;
}

/* Gates on the first set of prompts of every workload; on both where that would be few ids. */
static int set_gates(const struct engine_rig *g, struct engine_report *r, struct err *e)
{
	struct engine_asked *a = xcalloc(2 * (size_t)r->n, sizeof *a);
	int rc = -1, n = 0, ids = 0;
	for (int i = 0; i < r->n; i++)
		ids += r->row[i].w.batch * r->row[i].w.steps;
	const int sets = ids < ENGINE_FEW ? 2 : 1;
	while (rc && r->draws < ENGINE_DRAWS) {
		draw(g, r);
		n = 0;
		for (int i = 0; i < r->n; i++)
			for (int k = 0; k < sets; k++)
				a[n++] = r->row[i].a[k];
		rc = engine_honest(g->model, a, n, &r->honest, e);
		if (rc && e->code != EX_BADINPUT)
			break;
	}
	free(a);
	return rc;
}

/* ---- the engine ---- */

/* All asks of a workload to one child. `stamp` has room for its steps. */
static int ask_all(const struct engine_rig *g, struct engine *child, struct engine_row *row, int64_t *stamp, struct err *e)
{
	/* Who has something to say before it is asked gets the time to say it. */
	static const struct timespec gap = {.tv_nsec = 5000000};
	for (int k = 0; k < ENGINE_ASKS && row->outcome == ENGINE_OK; k++) {
		nanosleep(&gap, NULL);
		const struct engine_asked *a = &row->a[k];
		struct engine_batch b = {.watch = 1, .batch = a->batch, .prompt = a->prompt, .steps = a->steps, .ids = a->ids,
					 .out = a->out, .stamp = stamp,
					 .limit_s = (g->step_s > 0 ? g->step_s : 10) * (a->steps + 1)};
		if (engine_ask(child, &b, &row->outcome, e))
			return -1;
		row->answered += row->outcome == ENGINE_OK;
		if (k == 0) {
			row->first_ns = stamp[0];
			row->total_ns = stamp[a->steps - 1];
		}
	}
	return 0;
}

static int run_row(const struct engine_rig *g, struct engine_report *r, struct engine_row *row, struct err *e)
{
	const struct engine_start q = {.program = g->program, .model_dir = g->model->dir, .load_s = g->load_s,
				       .memory = g->memory, .gpu = g->gpu, .vocab = g->model->model.c.vocab};
	struct engine child;
	struct engine_end end;
	struct err other;
	if (engine_open(&q, &child, &row->outcome, e))
		return -1;
	row->ready = row->outcome == ENGINE_OK;
	int64_t *stamp = xcalloc((size_t)row->w.steps, sizeof *stamp);
	int rc = ask_all(g, &child, row, stamp, e);
	free(stamp);
	row->ready_ns = child.ready_ns;
	snprintf(r->isolation, sizeof r->isolation, "%s", child.isolation);
	if (engine_close(&child, &row->outcome, &end, rc ? &other : e))
		return -1;
	row->max_rss = end.max_rss;
	row->gpu_bytes = end.gpu_bytes;
	snprintf(row->end, sizeof row->end, "%s", end.words);
	row->log = end.log;
	end.log = (struct buf)BUF_INIT;
	engine_end_free(&end);
	row->repeats = row->answered == ENGINE_ASKS &&
		       !memcmp(row->a[0].out, row->a[2].out,
			       (size_t)row->w.batch * (size_t)row->w.steps * sizeof *row->a[0].out);
	return rc;
}

/* ---- the judgement ---- */

static void find_worst(struct engine_row *row, const struct engine_regrets *r)
{
	size_t at = 0;
	for (size_t i = 1; i < r->n; i++)
		if (r->regret[i] > r->regret[at])
			at = i;
	const size_t steps = (size_t)row->w.steps, each = (size_t)row->w.batch * steps;
	row->ask = (int)(at / each);
	row->sequence = (int)(at % each / steps);
	row->step = (int)(at % steps);
}

static int judge(const struct engine_rig *g, struct engine_report *r, struct err *e)
{
	struct engine_regrets all = {0};
	int rc = 0;
	r->repeats = 1;
	for (int i = 0; i < r->n && rc == 0; i++) {
		struct engine_row *row = &r->row[i];
		struct engine_regrets own = {0};
		rc = engine_replay(g->model, row->a, row->repeats ? 2 : 3, &own, e);
		if (rc == 0)
			rc = engine_regrets_merge(&all, &own, e);
		engine_figures(&own, &row->figures);
		if (rc == 0)
			find_worst(row, &own);
		engine_regrets_free(&own);
		r->repeats &= row->repeats;
		if (rc == 0 && r->at < 0 && !(row->figures.worst <= r->honest.gates.margin)) {
			r->word = "margin";
			r->at = i;
		}
	}
	engine_figures(&all, &r->all);
	engine_regrets_free(&all);
	if (rc == 0 && r->at < 0)
		r->word = engine_judge(&r->all, &r->honest.gates);
	return rc;
}

int engine_rig_run(const struct engine_rig *g, const struct engine_rig_work *w, int n, struct engine_report *r,
		   struct err *e)
{
	make_rows(r, w, n);
	if (set_gates(g, r, e))
		return -1;
	for (int i = 0; i < n; i++) {
		if (run_row(g, r, &r->row[i], e))
			return -1;
		if (r->row[i].outcome == ENGINE_OK)
			continue;
		r->word = engine_outcome_name(r->row[i].outcome);
		r->at = i;
		return 0;
	}
	return judge(g, r, e);
}

void engine_code(char out[64], const char *stage, const char *word)
{
	const int gate = !strcmp(word, "margin") || !strcmp(word, "mean_regret") || !strcmp(word, "p99_regret") ||
			 !strcmp(word, "argmax_rate");
	snprintf(out, 64, "%s.%s%s", stage, gate ? "" : "engine_", word);
}

/* ---- words and figures ---- */

static void put_figures(struct jsonw *w, const char *key, const struct engine_figures *f)
{
	jw_obj(w, key);
	jw_int(w, "tokens", (int64_t)f->tokens);
	jw_num(w, "worst", f->worst);
	jw_num(w, "mean", f->mean);
	jw_num(w, "p99", f->p99);
	jw_num(w, "argmax_rate", f->argmax_rate);
	jw_end(w);
}

static void put_row(const struct engine_row *row, struct jsonw *w)
{
	jw_obj(w, NULL);
	jw_str(w, "name", row->w.name);
	jw_int(w, "batch", row->w.batch);
	jw_int(w, "prompt", row->w.prompt);
	jw_int(w, "steps", row->w.steps);
	jw_str(w, "outcome", row->end[0] ? engine_outcome_name(row->outcome) : "not_run");
	jw_int(w, "answered", row->answered);
	jw_bool(w, "repeats", row->repeats);
	put_figures(w, "regret", &row->figures);
	jw_num(w, "ready_ms", (double)row->ready_ns * 1e-6);
	jw_num(w, "first_ms", (double)row->first_ns * 1e-6);
	jw_num(w, "total_ms", (double)row->total_ns * 1e-6);
	jw_int(w, "max_rss", (int64_t)row->max_rss);
	if (row->gpu_bytes >= 0)
		jw_int(w, "gpu_bytes", row->gpu_bytes);
	jw_str(w, "end", row->end);
	jw_end(w);
}

void engine_rig_write(const struct engine_report *r, struct jsonw *w)
{
	const struct engine_gates *g = &r->honest.gates;
	jw_obj(w, "gates");
	jw_num(w, "margin", g->margin);
	jw_num(w, "mean", g->mean);
	jw_num(w, "p99", g->p99);
	jw_num(w, "argmax_rate", g->argmax_rate);
	jw_end(w);
	jw_obj(w, "honest");
	put_figures(w, "float32", &r->honest.own);
	put_figures(w, "bfloat16", &r->honest.rounded);
	jw_int(w, "draws", r->draws);
	jw_end(w);
	put_figures(w, "regret", &r->all);
	jw_bool(w, "repeats", r->repeats);
	jw_arr(w, "workloads");
	for (int i = 0; i < r->n; i++)
		put_row(&r->row[i], w);
	jw_end(w);
}

/* The last line of its stderr that says something, printable ASCII, 200 bytes at most. */
static void add_last_words(struct buf *out, const struct buf *log)
{
	size_t end = log->len;
	while (end > 0 && (log->data[end - 1] == '\n' || log->data[end - 1] == ' '))
		end--;
	size_t at = end;
	while (at > 0 && log->data[at - 1] != '\n' && end - at < 200)
		at--;
	if (at == end)
		return;
	buf_addf(out, "; its last words: ");
	for (; at < end; at++)
		buf_addc(out, log->data[at] >= ' ' && log->data[at] <= '~' ? log->data[at] : '?');
}

static void explain_outcome(const struct engine_row *row, struct buf *out)
{
	static const char *const WORDS[] = {
		"", "it ended before it had answered, or not with exit code 0",
		"it did not answer in time", "it wrote before it had the whole request",
		"it wrote more than batch x steps ids", "the first word it wrote is not that of engine_ready()",
		"an id outside the vocabulary"};
	static const char *const WHERE[] = {"at the first batch", "at the second batch", "at the third batch (the first again)",
					    "after the last batch"};
	buf_addf(out, "%s: %s", row->ready ? WHERE[row->answered] : "before it was ready", WORDS[row->outcome]);
	if (row->outcome == ENGINE_DIED) /* else we ended it */
		buf_addf(out, " (%s)", row->end);
	add_last_words(out, &row->log);
}

static int explain_margin(const struct engine_rig *g, const struct engine_report *r, const struct engine_row *row,
			  struct buf *out, struct err *e)
{
	const struct engine_asked *a = &row->a[row->ask];
	int32_t best;
	if (engine_best(g->model, a, row->sequence, row->step, &best, e))
		return -1;
	buf_addf(out, "batch %d of 3, sequence %d, step %d: it said %d where the model says %d, %.3g logits worse (%.3g allowed); "
		 "%.1f %% of %zu ids are the model's own", row->ask + 1, row->sequence, row->step,
		 (int)a->out[(size_t)row->sequence * (size_t)a->steps + (size_t)row->step], (int)best, row->figures.worst,
		 r->honest.gates.margin, 100 * row->figures.argmax_rate, row->figures.tokens);
	return 0;
}

int engine_rig_explain(const struct engine_rig *g, const struct engine_report *r, int own, struct buf *out, struct err *e)
{
	const struct engine_figures *f = &r->all;
	const struct engine_row *row = r->at < 0 ? NULL : &r->row[r->at];
	if (row)
		buf_addf(out, "workload '%s' (batch %d, prompt %d, steps %d): ", row->w.name, row->w.batch, row->w.prompt,
			 row->w.steps);
	if (row && row->outcome != ENGINE_OK)
		explain_outcome(row, out);
	else if (row && own)
		return explain_margin(g, r, row, out, e);
	else if (row)
		buf_addf(out, "ids that are not the model's, up to %.3g logits worse than its own (%.3g allowed)",
			 row->figures.worst, r->honest.gates.margin);
	else
		buf_addf(out, "all %zu ids together: mean regret %.3g (%.3g allowed), 99th percentile %.3g (%.3g), argmax %.1f %% "
			 "(%.1f %%): less exact than honest rounding", f->tokens, f->mean, r->honest.gates.mean, f->p99,
			 r->honest.gates.p99, 100 * f->argmax_rate, 100 * r->honest.gates.argmax_rate);
	return 0;
}
