/*
 * check_engine.c - see check_engine.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "check_engine.h"

#include "buf.h"
#include "engine_build.h"
#include "engine_files.h"
#include "engine_power.h"
#include "engine_rig.h"
#include "engine_setup.h"
#include "gpu.h"
#include "lane.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct proofs {
	const struct engine_spec *spec;
	struct engine_model model;
	struct engine_built built;
	uint8_t key[32];
	int failures;
	struct gpu gpu;   /* of a problem in CUDA, */
	struct lane lane; /* and its lane */
};

static void say(struct proofs *c, int ok, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void say(struct proofs *c, int ok, const char *fmt, ...)
{
	va_list ap;
	c->failures += !ok;
	printf("  %-5s ", ok ? "ok" : "FAIL");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

/* ---- the baseline ---- */

static int build(struct proofs *c, const char *dir, struct err *e)
{
	struct engine_files f;
	char *from = xasprintf("%s/baseline", dir);
	int rc = engine_files_folder(from, &f, e);
	free(from);
	if (rc)
		return -1;
	if (engine_files_cuda(&f) != c->spec->cuda)
		rc = err_set(e, EX_BADINPUT, "the baseline is in another language than the problem's");
	if (rc == 0)
		rc = engine_build(f.file, f.n, c->spec->cuda ? c->gpu.arch : NULL, &c->built, e);
	engine_files_free(&f);
	if (rc == 0 && !c->built.ok)
		rc = err_set(e, EX_BADINPUT, "the baseline does not compile: %.200s\n%.200s", c->built.message, buf_str(&c->built.log));
	if (rc == 0)
		say(c, 1, "baseline compiles");
	return rc;
}

static int baseline(struct proofs *c, const struct engine_workload *w, int n, const char *what, struct err *e)
{
	const struct engine_spec *p = c->spec;
	struct engine_rig g = {.program = c->built.path, .model = &c->model, .load_s = p->load_s, .step_s = p->step_s,
			       .memory = (uint64_t)p->memory_bytes, .gpu = p->cuda ? c->gpu.uuid : NULL};
	struct engine_report r = {0};
	struct buf why = BUF_INIT;
	struct engine_rig_work *list = engine_setup_work(w, n);
	memcpy(g.key, c->key, sizeof g.key);
	int rc = engine_rig_run(&g, list, n, &r, e);
	const int ok = rc == 0 && !strcmp(r.word, "ok");
	if (rc == 0 && !ok)
		rc = engine_rig_explain(&g, &r, 1, &why, e);
	if (rc == 0 && ok)
		say(c, 1, "baseline passes its own judge at %s workloads: %zu ids, %.1f %% the model's very best, worst regret %.3g of %.3g "
		    "allowed%s", what, r.all.tokens, 100 * r.all.argmax_rate, r.all.worst, r.honest.gates.margin,
		    r.repeats ? "" : ", not the same each time");
	else if (rc == 0)
		say(c, 0, "baseline at %s workloads: %s: %s", what, r.word, buf_str(&why));
	engine_report_free(&r);
	free(list);
	buf_free(&why);
	return rc;
}

/* ---- the judge ---- */

static void tell_count(struct proofs *c, const struct engine_power *p, const struct engine_power_row *row)
{
	char needed[96];
	const double gate = p->gates.mean;
	if (row->needed)
		snprintf(needed, sizeof needed, "about %zu ids tell it", row->needed);
	else
		snprintf(needed, sizeof needed, "no number of ids tells it");
	say(c, row->ok, "%-12s %s: mean regret %.4f (sd %.3f) of %zu ids, honest %.4f (sd %.3f): %s, %d are allowed%s",
	    row->x->name, row->x->words, row->spread.mean, row->spread.sd, row->spread.tokens, p->honest.mean, p->honest.sd, needed,
	    ENGINE_AUDIT, row->ok ? "" : ", so this checkpoint may not score");
	printf("        at the public workloads' %zu ids it is %s (mean %.4f, gate %.4f)\n", row->f.tokens,
	       strcmp(row->word, "ok") ? "refused" : "not told apart", row->f.mean, gate);
}

static void tell(void *ctx, const struct engine_power *p, const struct engine_power_row *row)
{
	struct proofs *c = ctx;
	if (row == p->row) {
		printf("  gates margin %.3f, mean regret %.4f, 99th percentile %.3f, argmax %.3f\n", p->gates.margin, p->gates.mean,
		       p->gates.p99, p->gates.argmax_rate);
		printf("  %-5s %-12s %-12s %8s %8s %8s %8s\n", "", "engine", "judge", "worst", "mean", "p99", "argmax");
	}
	if (!row->word) {
		printf("  %-5s %-12s not tried: it changes nothing at these shapes\n", "-", row->x->name);
		return;
	}
	if (row->x->due == DUE_COUNT) {
		tell_count(c, p, row);
		return;
	}
	say(c, row->ok, "%-12s %-12s %8.3f %8.4f %8.3f %8.3f  %s", row->x->name, row->word, row->f.worst, row->f.mean, row->f.p99,
	    row->f.argmax_rate, row->x->words);
}

static int prove(struct proofs *c, const char *dir, struct err *e)
{
	static struct engine_power power;
	const struct engine_spec *p = c->spec;
	const struct qwen3_config *q = &c->model.model.c;
	say(c, 1, "checkpoint: %d layers of %d, %d ids, %.3g M parameters, %.12s", q->layers, q->hidden, q->vocab,
	    (double)qwen3_parameters(q) * 1e-6, c->model.sha);
	if (build(c, dir, e) || baseline(c, p->tiny, p->ntiny, "tiny", e) || baseline(c, p->public, p->npublic, "public", e))
		return -1;
	if (c->failures) {
		printf("  %-5s the judge was not tried: the baseline has to pass first\n", "-");
		return 0;
	}
	return engine_power(&c->model, p->public, p->npublic, c->key, ENGINE_SAMPLE, tell, c, &power, e);
}

int check_engine(const char *dir, const char *text, size_t len, const char *model_dir, int *failures, struct err *e)
{
	static struct proofs c;
	struct engine_spec *spec;
	char *path = xasprintf("%s/spec.json", dir);
	int rc = engine_spec_parse(text, len, path, &spec, e);
	free(path);
	if (rc)
		return -1;
	c = (struct proofs){.spec = spec, .lane = LANE_INIT};
	printf("spec '%s' (an engine in %s)\n", spec->name, spec->cuda ? "CUDA" : "C, on this processor");
	say(&c, 1, "spec.json is sound: %d public, %d proxy, %d odd, %d tiny workloads", spec->npublic, spec->nproxy, spec->nodd,
	    spec->ntiny);
	if (spec->cuda)
		rc = gpu_find("cuda", &c.gpu, e) || lane_exclusive(&c.lane, c.gpu.uuid, e) ? -1 : 0;
	/* Nothing here is secret, and the table should be the same tomorrow. */
	hash_bytes(spec->name, strlen(spec->name), c.key);
	if (rc == 0)
		rc = engine_model_open(&c.model, model_dir, spec->shape, spec->seed, NULL, e);
	if (rc == 0) {
		rc = spec->cuda ? engine_model_gpu(&c.model, c.gpu.uuid, e) : 0;
		if (rc == 0)
			rc = prove(&c, dir, e);
		engine_model_close(&c.model);
	}
	lane_drop(&c.lane);
	engine_built_free(&c.built);
	engine_spec_free(spec);
	*failures = c.failures;
	return rc;
}
