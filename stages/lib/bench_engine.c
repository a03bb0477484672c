/*
 * bench_engine.c - see bench_engine.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "bench_engine.h"

#include "engine_bench.h"
#include "engine_build.h"
#include "engine_setup.h"
#include "facts.h"
#include "file.h"
#include "json.h"
#include "lane.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sources {
	struct engine_file file[ENGINE_FILES];
	int n;
};

static struct engine_bench bench;
static struct engine_setup setup;
static char names[SESSION_WORKLOADS][SPEC_NAME];

/* ---- champion and baseline ---- */

static void sources_free(struct sources *f)
{
	for (int i = 0; i < f->n; i++)
		buf_free(&f->file[i].text);
	f->n = 0;
}

static struct engine_file *sources_add(struct sources *f, const char *name, struct err *e)
{
	if (f->n == ENGINE_FILES || strlen(name) >= ENGINE_FILE_NAME) {
		err_set(e, EX_BADINPUT, "an engine with too many files, or too long a name: '%.80s'", name);
		return NULL;
	}
	struct engine_file *x = &f->file[f->n++];
	*x = (struct engine_file){.text = BUF_INIT};
	snprintf(x->name, sizeof x->name, "%s", name);
	return x;
}

/* The files of FOLDER/ and FOLDER/kernels/ of a champion's trial: their hash is compared with the state's. */
static int read_folder(const char *trial, const char *below, struct sources *f, struct err *e)
{
	char dir[TRIAL_PATH], name[ENGINE_FILE_NAME + 256], path[2 * TRIAL_PATH];
	snprintf(name, sizeof name, "candidate%s%s", *below ? "/" : "", below);
	trial_path(dir, trial, name);
	DIR *d = opendir(dir);
	if (!d)
		return *below && errno == ENOENT ? 0 : err_sys(e, "cannot read '%s'", dir);
	int rc = 0;
	for (struct dirent *x; rc == 0 && (x = readdir(d));) {
		if (x->d_name[0] == '.' || strcmp(x->d_name, "kernels") == 0)
			continue;
		snprintf(name, sizeof name, "%s%s%s", below, *below ? "/" : "", x->d_name);
		snprintf(path, sizeof path, "%s/%s", dir, x->d_name);
		struct engine_file *one = sources_add(f, name, e);
		rc = one ? file_read(path, (size_t)setup.spec->source_bytes, &one->text, e) : -1;
	}
	closedir(d);
	return rc;
}

/* The files of the pinned spec below baseline/. */
static int read_baseline(struct stage *s, struct sources *f, struct err *e)
{
	const cJSON *pins = json_get(json_get(s->run.json, "pins"), "spec"), *x;
	cJSON_ArrayForEach(x, pins) {
		if (!x->string || strncmp(x->string, "baseline/", 9) != 0)
			continue;
		struct engine_file *one = sources_add(f, x->string + 9, e);
		if (!one || stage_spec(s, NULL, x->string, (size_t)setup.spec->source_bytes, &one->text, e) != 0)
			return -1;
	}
	return f->n ? 0 : err_set(e, EX_BADINPUT, "the spec has no baseline engine");
}

static int build(struct sources *f, const char *what, struct engine_arm *a, struct err *e)
{
	struct engine_built made;
	int rc = engine_build(f->file, f->n, &made, e);
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
	struct sources f = {.n = 0};
	int rc = read_baseline(s, &f, e);
	if (rc == 0) {
		engine_files_sha(f.file, f.n, a->candidate);
		rc = build(&f, "the baseline", a, e);
	}
	sources_free(&f);
	return rc;
}

static int add_champion(struct stage *s, struct engine_arm *a, struct err *e)
{
	struct sources f = {.n = 0};
	char want[HASH_HEX];
	if (stage_champion(s, a->trial, want, e) != 0)
		return -1;
	if (!a->trial[0])
		return add_baseline(s, a, e);
	int rc = read_folder(a->trial, "", &f, e) || read_folder(a->trial, "kernels", &f, e) ? -1 : 0;
	if (rc == 0) {
		engine_files_sha(f.file, f.n, a->candidate);
		rc = strcmp(a->candidate, want) == 0 ? build(&f, "the champion", a, e)
			: err_set(e, EX_BADINPUT, "trials/%s/candidate is not the champion recorded", a->trial);
	}
	sources_free(&f);
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
	b->limits = (struct engine_limits){p->gate_native, 1 + p->gate_champion, p->gate_spread,
					   (uint64_t)(p->gate_memory * (double)p->memory_bytes)};
	b->load_s = p->load_s;
	b->step_s = p->step_s;
	b->memory = (uint64_t)p->memory_bytes;
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

static int report(struct stage *s, struct engine_bench *b, const struct lane *lane, struct err *e)
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
	lane_write(lane, &s->v.data, "lane");
	engine_bench_write(b, raw, lines, &s->v.data);
	return 0;
}

static int run(struct stage *s, struct err *e)
{
	struct lane lane = LANE_INIT;
	if (strcmp(bench.arm[RAW_CANDIDATE].candidate, bench.arm[RAW_CHAMPION].candidate) == 0) {
		verdict_set(&s->v, V_REJECT, s->confirm ? "confirm.below_margin" : "bench.below_margin",
			    "this candidate is the champion itself");
		return 0;
	}
	plan(s, &bench);
	if (lane_exclusive(&lane, s->trial.device, e) != 0)
		return -1;
	int rc = engine_bench_measure(&bench, e);
	lane_drop(&lane);
	return rc ? rc : report(s, &bench, &lane, e);
}

int bench_engine(struct stage *s, const char *text, size_t len, struct checker **c, struct err *e)
{
	if (device_class_of(s->trial.device) != DEVICE_EMU)
		return err_set(e, EX_NOENV, "engines are timed on this machine's processor alone (DEVICE=emu)");
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
