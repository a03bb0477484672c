/*
 * tune.c - fix the tunables of a candidate: try a few configurations, keep the best that is right.
 *
 * Reads the final attempt's candidate and artefacts by the hashes on record, and the pinned spec.
 * Writes trials/NNNN/candidate/ and artefact/ (what every later step works on) and tune.json. Never
 * changes the source, never sees a reference or a key; its timings choose, they prove nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#include "buf.h"
#include "checker_call.h"
#include "engine_files.h"
#include "engine_problem.h"
#include "file.h"
#include "image.h"
#include "json.h"
#include "lane.h"
#include "plan.h"
#include "proof.h"
#include "stage.h"
#include "tune_part.h"
#include "worker_pool.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char HELP[] =
	"tune - fix the tunables of a candidate\n"
	"\n"
	"usage: tune trials/NNNN/tune.json\n"
	"\n"
	"For a candidate with tunables that is no sweep proposal: compiles up to TUNE configurations\n"
	"(run setting `tune`, 8 by default; its own first), drops those that are wrong at a public\n"
	"workload, times each five times a workload, and puts the best three forward, in order, to\n"
	"the sanitizers and a short form of the judge. The first that passes is the candidate.\n"
	"Otherwise the candidate goes on as it is (verdict na).\n"
	"\n"
	"On a GPU the configurations run in turns in one process, nine times a workload, and the tiny\n"
	"shapes of those put forward run on the GPU too. Where one configuration is clearly faster on\n"
	"one side of a size (\"M <= 64\"), a plan that chooses by it is put forward first.\n"
	"\n"
	"reads   aK/candidate/, aK/artefact/, the run's spec\n"
	"writes  tune.json, candidate/kernel.cu, candidate/plan.json, artefact/\n"
	"exit    0 verdict written, whatever it is; 3 malformed input; 4 environment; 70 our fault\n";

enum { TIMINGS = 5, FORWARD = 3 };

static struct tune tune;

/* ---- trying them ---- */

static int build_all(struct tune *t, struct err *e)
{
	for (int i = 0; i < t->n; i++) {
		struct tune_entry *x = &t->entry[i];
		if (image_text(&x->image, t->spec, &t->kernel, &x->plan, "plan.json", e) < 0)
			return -1;
		if (!t->sim && image_build(&x->image, t->spec, "emu-fast", NULL, NULL, e) < 0)
			return -1;
		x->built = t->sim || x->image.ok;
		if (!x->built)
			snprintf(x->word, sizeof x->word, "%s", x->image.box.code);
	}
	return 0;
}

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* One workload on emu: the public reference, then five timings. */
static int try_emu(struct tune *t, struct tune_entry *x, int workload, double *median, struct err *e)
{
	struct proof_arm a = {.plan = x->image.plan, .artefact = x->image.box.path,
			      .artefact_sha = x->image.box.sha256};
	struct checker_open q = {.mode = CHECKER_PUBLIC, .index = (uint32_t)workload, .emu = 1};
	struct proof_work w;
	struct proof_out *o = xcalloc(1, sizeof *o);
	double ns[TIMINGS];
	int rc = proof_open(&t->proof, &a, &q, &w, e);

	for (int i = -1; i < TIMINGS && rc == 0 && x->right; i++) {
		struct checker_prep p = {.rep = (uint64_t)(i + 1), .set = (uint32_t)(i & 1),
					 .perturb = i < 0, .poison = (uint32_t)(i + 1)};
		rc = proof_rep(&w, &p, ARM_FORWARD, (uint64_t)(i + 7), o, e);
		if (rc == 0 && !o->pass) {
			x->right = 0;
			snprintf(x->word, sizeof x->word, "%s", o->word);
		}
		if (i >= 0)
			ns[i] = (double)o->elapsed_ns;
	}
	if (rc == 0 && x->right) {
		qsort(ns, TIMINGS, sizeof *ns, cmp_double);
		*median = ns[TIMINGS / 2];
	}
	proof_close(&w);
	free(o);
	return rc;
}

static int try_sim(struct tune *t, struct tune_entry *x, int workload, double *median, struct err *e)
{
	char key[HASH_HEX + 32], plan_sha[HASH_HEX], sha[HASH_HEX];
	struct arm *arm;
	struct arm_result r;
	struct arm_run_opts q = {0};

	hash_hex(buf_str(&x->plan), x->plan.len, plan_sha);
	trial_candidate_sha(x->image.source_sha, plan_sha, sha);
	snprintf(key, sizeof key, "%lld:%s", (long long)t->s->run.seed, sha);
	struct arm_opts o = {.device = "sim", .spec = t->spec, .plan = x->image.plan,
			     .axes = &t->spec->public[workload].emu, .sim_key = key};
	if (arm_open(&arm, &o, e) < 0)
		return -1;
	int rc = arm_run(arm, &q, &r, e);
	*median = (double)r.elapsed_ns;
	arm_close(arm);
	return rc;
}

static int try_all(struct tune *t, struct err *e)
{
	for (int i = 0; i < t->n; i++) {
		struct tune_entry *x = &t->entry[i];
		double sum = 0, weight = 0;
		x->right = x->built;
		for (int k = 0; k < t->spec->npublic && x->right; k++) {
			double ns = 1, w = t->spec->public[k].weight;
			if ((t->sim ? try_sim : try_emu)(t, x, k, &ns, e) < 0)
				return -1;
			sum += w * log(ns > 0 ? ns : 1);
			weight += w;
		}
		x->score = sum / weight;
	}
	return 0;
}

/* One of the builds of `x`, as an arm. 0: it does not compile. */
static int arm_of(struct tune *t, struct tune_entry *x, const char *mode, struct proof_arm *a, struct err *e)
{
	if (image_build(&x->image, t->spec, mode, NULL, NULL, e) < 0)
		return -1;
	*a = (struct proof_arm){.plan = x->image.plan, .artefact = x->image.box.path,
				.artefact_sha = x->image.box.sha256, .sanitize = strcmp(mode, "emu-sanitize") == 0};
	return x->image.ok;
}

/* Sanitizers at tiny shapes and a short judge, as the later steps would. */
static int examine(struct tune *t, struct tune_entry *x, struct err *e)
{
	struct proof_arm a;
	int rc = arm_of(t, x, "emu-sanitize", &a, e);

	if (rc == 1)
		rc = tune_tiny(t, x, &a, 1, e);
	if (rc == 1)
		rc = arm_of(t, x, "emu-fast", &a, e);
	return rc == 1 ? tune_judge(t, x, &a, 1, e) : rc;
}

static struct tune_entry *best_left(struct tune *t)
{
	struct tune_entry *best = NULL;

	for (int i = 0; i < t->n; i++) {
		struct tune_entry *x = &t->entry[i];
		if (x->right && (!best || x->score < best->score))
			best = x;
	}
	return best;
}

/* ---- the search ---- */

static void record(struct tune *t, const struct tune_entry *chosen)
{
	struct jsonw *w = &t->s->v.data;

	jw_arr(w, "configurations");
	for (int i = 0; i < t->n; i++) {
		const struct tune_entry *x = &t->entry[i];
		jw_obj(w, NULL);
		jw_obj(w, "values");
		for (int k = 0; k < t->plan->ntunables; k++)
			jw_int(w, t->plan->tunable[k].name, x->config.v[k]);
		jw_end(w);
		jw_bool(w, "proposed", i == t->own);
		jw_bool(w, "chosen", x == chosen);
		jw_str(w, "dropped", x->word[0] ? x->word : NULL);
		if (x->score > 0)
			jw_num(w, "geomean_ns", exp(x->score));
		jw_end(w);
	}
	jw_end(w);
}

static int reject(struct tune *t, const char *code, const char *text, struct err *e)
{
	record(t, NULL);
	verdict_set(&t->s->v, V_REJECT, code, "%s", text);
	return tune_files(t, NULL, e);
}

static int search(struct tune *t, struct err *e)
{
	struct lane lane = LANE_INIT;
	int built = 0;

	if (tune_choose(t, e) < 0)
		return -1;
	if (t->n == 0)
		return reject(t, "tune.none_legal", "no configuration satisfies the constraints", e);
	if (lane_share(&lane, t->s->trial.device, e) < 0 || build_all(t, e) < 0)
		return -1;
	lane_drop(&lane);
	for (int i = 0; i < t->n; i++)
		built += t->entry[i].built;
	if (!built)
		return reject(t, "tune.compile", "no configuration compiles", e);
	if (lane_exclusive(&lane, t->s->trial.device, e) < 0 || try_all(t, e) < 0)
		return -1;
	lane_drop(&lane);
	struct tune_entry *x = best_left(t);
	struct lane shared = LANE_INIT; /* dropped at the latest when this process ends */
	if (!x)
		return reject(t, "tune.none_correct", "no configuration gives correct outputs", e);
	if (lane_share(&shared, t->s->trial.device, e) < 0)
		return -1;
	for (int i = 0; i < FORWARD && x; i++) {
		int ok = t->sim ? 1 : examine(t, x, e);
		if (ok < 0)
			return -1;
		if (ok) {
			record(t, x);
			lane_write(&lane, &t->s->v.data, "lane");
			verdict_set(&t->s->v, V_PASS, "ok", "best of %d configurations", t->n);
			return tune_files(t, x, e);
		}
		x->right = 0;
		x = best_left(t);
	}
	return reject(t, "tune.refused", "the best configurations do not pass the judge", e);
}

/* ---- on a GPU ---- */

static int passed(struct tune *t, struct lane *lane, struct tune_entry *x, struct err *e)
{
	struct jsonw *w = &t->s->v.data;

	lane_drop(lane);
	record(t, x);
	jw_bool(w, "by_size", x == t->mixed);
	gpu_write(&t->gpu, w, "gpu");
	lane_write(lane, w, "lane");
	verdict_set(&t->s->v, V_PASS, "ok", "best of %d configurations%s", t->n,
		    x == t->mixed ? ", chosen by size" : "");
	return tune_files(t, x, e);
}

static int forward_gpu(struct tune *t, struct lane *lane, struct err *e)
{
	struct tune_entry *x = t->mixed && t->mixed->right ? t->mixed : best_left(t);

	if (!x)
		return reject(t, "tune.none_correct", "no configuration gives correct outputs", e);
	for (int i = 0; i < FORWARD && x; i++) {
		int ok = tune_examine(t, x, e);
		if (ok < 0)
			return -1;
		if (ok)
			return passed(t, lane, x, e);
		x->right = 0;
		x = best_left(t);
	}
	return reject(t, "tune.refused", "the best configurations do not pass the judge", e);
}

/* Compiled without the lane: compilers do not disturb a GPU. */
static int search_gpu(struct tune *t, struct err *e)
{
	static struct lane lane = LANE_INIT; /* dropped at the latest when this process ends */
	char run[TRIAL_PATH];
	int built = 0;

	if (tune_choose(t, e) < 0)
		return -1;
	if (t->n == 0)
		return reject(t, "tune.none_legal", "no configuration satisfies the constraints", e);
	for (int i = 0; i < t->n; i++) {
		if (tune_build(t, &t->entry[i], e) < 0)
			return -1;
		built += t->entry[i].built;
	}
	if (!built)
		return reject(t, "tune.compile", "no configuration compiles", e);
	run_path(run, t->s->trial.run, "");
	struct checker_opts o = {.device = t->s->trial.device, .gpu = t->gpu.uuid, .run_dir = run,
				 .trial = t->s->id, .stage = "tune"};
	if (gpu_take(&t->s->run, &lane, &t->gpu, e) < 0 || checker_start(&t->checker, &o, e) < 0 ||
	    worker_pool_check(t->gpu.uuid, e) < 0)
		return -1;
	stage_on_gpu(t->s, &t->gpu);
	t->proof = (struct proof){.checker = t->checker, .spec = t->spec, .device = t->s->trial.device,
				  .gpu = t->gpu.uuid, .facts = &t->facts};
	int rc = tune_time(t, e) < 0 ? -1 : forward_gpu(t, &lane, e);
	t->s->child_died |= rc < 0 && t->proof.unhealthy;
	worker_pool_stop();
	return rc;
}

/* ---- the step ---- */

static int search_emu(struct tune *t, struct err *e)
{
	char run[TRIAL_PATH];

	run_path(run, t->s->trial.run, "");
	struct checker_opts o = {.device = "emu", .run_dir = run, .trial = t->s->id, .stage = "tune"};
	if (!t->sim && checker_start(&t->checker, &o, e) < 0)
		return -1;
	t->proof = (struct proof){.checker = t->checker, .spec = t->spec, .device = "emu"};
	return search(t, e);
}

static int not_needed(struct tune *t, const char *code, const char *text, struct err *e)
{
	verdict_set(&t->s->v, V_NA, code, "%s", text);
	return tune_files(t, NULL, e);
}

/* Engines are tuned by proposals alone: files and program go on as they are. */
static int pass_engine(struct stage *s, struct err *e)
{
	struct engine_files f;
	struct buf program = BUF_INIT;
	char from[64], path[TRIAL_PATH];
	const char *name = device_class_of(s->trial.device) == DEVICE_SIM ? "sim" : "engine";
	char *to = xasprintf("artefact/%s", name);

	engine_on_host(s);
	snprintf(from, sizeof from, "%s/artefact/%s", stage_candidate_dir(s), name);
	trial_path(path, s->id, "artefact");
	int rc = engine_files_stage(s, &f, e);
	if (rc == 0 && (engine_files_side(s, "candidate", &f, e) || dir_make(path, e) ||
			stage_use_recorded(s, NULL, from, (size_t)64 << 20, &program, e) ||
			stage_side(s, to, buf_str(&program), program.len, e)))
		rc = -1;
	trial_path(path, s->id, to);
	if (rc == 0 && chmod(path, 0755))
		rc = err_sys(e, "cannot make '%s' a program", path);
	if (rc == 0)
		verdict_set(&s->v, V_NA, "tune.no_tunables", "an engine has no plan to tune");
	engine_files_free(&f);
	buf_free(&program);
	free(to);
	return rc;
}

static int work(struct stage *s, struct err *e)
{
	struct tune *t = &tune;
	struct buf text = BUF_INIT;
	const int engine = engine_problem(s, &text, e);

	buf_free(&text);
	if (engine)
		return engine < 0 ? -1 : pass_engine(s, e);
	t->s = s;
	t->own = -1;
	t->sim = device_class_of(s->trial.device) == DEVICE_SIM;
	t->on_gpu = device_class_of(s->trial.device) == DEVICE_CUDA;
	run_path(t->spec_dir, s->trial.run, "spec");
	int bad = stage_spec(s, NULL, "spec.json", 1 << 20, &text, e) < 0 ||
		  spec_parse(buf_str(&text), text.len, "spec.json", &t->spec, e) < 0;
	buf_free(&text);
	if (bad || stage_candidate(s, &t->kernel, &t->plan_text, e) < 0 ||
	    plan_parse(buf_str(&t->plan_text), t->plan_text.len, "plan.json", &t->plan, e) < 0 ||
	    facts_of_run(&s->run, s->trial.device, &t->facts, e) < 0 ||
	    (t->on_gpu && gpu_of_run(&s->run, &t->gpu, e) < 0))
		return -1;
	const char *kind = s->v.proposer ? json_get_str(s->v.proposer, "kind", "") : "";
	if (!strcmp(kind, "sweep"))
		return not_needed(t, "tune.sweep", "a sweep proposal is one configuration already", e);
	if (!strcmp(kind, "adopt")) /* somebody's record, or a trial again: judged as it is */
		return not_needed(t, "tune.adopted", "an adopted candidate is judged as it is", e);
	if (t->plan->ntunables == 0)
		return not_needed(t, "tune.no_tunables", "the plan has no tunables", e);
	int rc = t->on_gpu ? search_gpu(t, e) : search_emu(t, e);
	proof_isolation(&t->proof, &s->v);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct stage_about about = {.stage = "tune", .help = HELP, .work = work};
	int rc = stage_main(argc, argv, &about);

	checker_stop(tune.checker);
	for (int i = 0; i < tune.n + !!tune.mixed; i++) {
		buf_free(&tune.entry[i].plan);
		image_free(&tune.entry[i].image);
	}
	free(tune.entry);
	buf_free(&tune.kernel);
	buf_free(&tune.plan_text);
	plan_free(tune.plan);
	spec_free(tune.spec);
	return rc;
}
