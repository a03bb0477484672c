/*
 * unittest.c - the cheap tier: tiny shapes under sanitizers, with messages a person can use.
 *
 * Reads the attempt's candidate and its emulated artefacts by the hashes on record, and the
 * pinned spec. Writes aK/unittest.json and aK/unittest.log. The shapes are public, so unlike the
 * judge it may say what was wrong in full.
 *
 * SPDX-License-Identifier: MIT
 */
#include "buf.h"
#include "checker_call.h"
#include "defence.h"
#include "engine_problem.h"
#include "gpu.h"
#include "lane.h"
#include "plan.h"
#include "proof.h"
#include "reason.h"
#include "sanitizer.h"
#include "stage.h"
#include "unittest_engine.h"
#include "worker_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
	"unittest - tiny shapes, sanitizers, thread orders\n"
	"\n"
	"usage: unittest trials/NNNN/aK/unittest.json\n"
	"\n"
	"Runs the sanitizer build (and the race build, where guard made one) of this attempt at the\n"
	"spec's tiny shapes: threads forward, backward and shuffled, memory poisoned in two ways.\n"
	"Both poisons must give the same bits unless two equal runs already differ.\n"
	"\n"
	"For a GPU the emulated builds are used where guard could make them. Where it could not (inline\n"
	"assembly, tensor cores), or the emulator cannot run the plan, the tiny shapes run on the GPU\n"
	"itself, under other contents of shared and local memory: coverage is then `none`, since no\n"
	"sanitizer looked.\n"
	"\n"
	"An engine problem: its tiny workloads, a fresh child each, answered and replayed as in judge;\n"
	"one in C also built with ASan and UBSan and asked again (coverage sanitized).\n\n"
	"reads   aK/candidate/, aK/artefact/ (engine; emu-sanitize, emu-race; cuda-0...), the run's spec\n"
	"writes  aK/unittest.json, aK/unittest.log\n"
	"exit    0 verdict written, whatever it is; 3 malformed input; 4 environment; 70 our fault\n"
	"\n"
	"run settings: unittest_device emu never uses the GPU here, none leaves the tests out; sanitizer 1 has\n"
	"compute-sanitizer, where it is installed, look at the tiny shapes on the GPU: an access out of bounds is a\n"
	"reject, what else it says is noted\n";

#define TINY_NS 10000000000 /* milliseconds are honest, also under sanitizers on a busy machine */
#define TINY_GPU_NS 2000000000

struct unit {
	struct stage *s;
	struct spec *spec;
	struct plan *plan;
	struct checker *checker;
	struct proof proof;
	struct proof_arm arm;
	char path[TRIAL_PATH], sha[HASH_HEX], name[40];
	char shape[200];       /* "N=19 M=3" */
	struct buf log;
	int runs, failed, deterministic;
	int plain, no_race;    /* without sanitizers; without the race check */
	/* a GPU's candidate: */
	int gpu_run;           /* the tests run on the GPU itself */
	int not_emulable;      /* the emulator cannot: no verdict on the candidate */
	struct gpu gpu;
	struct facts facts;
	struct image_set set;
	struct lane lane;
	struct buf spec_text, plan_text;
	char sanitizer[SANITIZER_TEXT * 2]; /* what it said, or why it is not there; "" not asked */
	int sanitized;         /* tools that looked */
};

static struct unit unit;

static void name_shape(struct unit *u, const struct axes *a)
{
	size_t at = 0;
	u->shape[0] = 0;
	for (int i = 0; i < u->spec->naxes && at + 80 < sizeof u->shape; i++) {
		int n = snprintf(u->shape + at, sizeof u->shape - at, "%s%.40s=%lld", i ? " " : "",
				 u->spec->axis[i].name, (long long)a->v[i]);
		at += n > 0 ? (size_t)n : 0;
	}
}

/* Words of proof.h -> the codes of this stage. Wrong values are one code here. */
static const char *code_of(const char *word)
{
	static const char *const SAME[] = {"fault", "deadlock", "barrier", "timeout", "protocol",
					   "sanitizer", "race", "guard_write", "input_write", NULL};
	static char code[64];

	if (!strcmp(word, "refused"))
		return "unittest.not_emulable";
	for (int i = 0; SAME[i]; i++)
		if (!strcmp(word, SAME[i])) {
			snprintf(code, sizeof code, "unittest.%s", word);
			return code;
		}
	return "unittest.wrong";
}

static void explain_wrong(const struct proof_out *o, char *out, size_t n)
{
	const struct compare_result *c = &o->cmp;

	if (c->poison > 0)
		snprintf(out, n, "output '%s': %.4g %% of its elements were never written", c->output,
			 100 * c->poison);
	else if (c->wrong > 0)
		snprintf(out, n, "output '%s': %.4g %% of its elements are wrong, the worst by %.3g times "
			 "the bound (%s)", c->output, 100 * c->wrong, c->worst, reason_text(c->code));
	else
		snprintf(out, n, "output '%s': %s (relative L2 %.3g, row %.3g)", c->output,
			 reason_text(c->code), c->rel_l2, c->row_l2);
}

static void fail(struct unit *u, const struct proof_out *o, const char *order)
{
	char what[512], how[40] = "";
	const char *code = o->no_launch ? "unittest.fault" : code_of(o->word);
	size_t line = strcspn(o->text, "\n");

	if (!u->gpu_run)
		snprintf(how, sizeof how, ", threads %s", order);

	u->failed = 1;
	if (!strcmp(code, "unittest.wrong"))
		explain_wrong(o, what, sizeof what);
	else if (o->text[0])
		snprintf(what, sizeof what, "%.*s", (int)(line > 400 ? 400 : line), o->text);
	else
		snprintf(what, sizeof what, "%s%s%s", reason_text(code), o->cmp.output[0] ? ": next to " : "",
			 o->cmp.output);
	verdict_set(&u->s->v, V_REJECT, code, "%s%s: %s", u->shape, how, what);
	buf_addf(&u->log, "FAIL %s\n%s%s, build %s\n%s\n", code, u->shape, how, u->name, what);
	if (o->text[0])
		buf_addf(&u->log, "\n%s\n", o->text);
}

static const char *const ORDER[] = {"forward", "backward", "shuffled"};

static int for_gpu(const struct unit *u)
{
	return device_class_of(u->s->trial.device) == DEVICE_CUDA;
}

static int rep(struct unit *u, struct proof_work *w, struct checker_prep *p, int order, uint64_t seed,
	       struct proof_out *o, struct err *e)
{
	if (proof_rep(w, p, (enum arm_order)order, seed, o, e) < 0)
		return -1;
	u->runs++;
	if (o->pass || (!DEFENCE("unittest.wrong") && !strcmp(code_of(o->word), "unittest.wrong")))
		return 0;
	/* What the emulator refuses may still run on the GPU the candidate is for. */
	if (for_gpu(u) && !u->gpu_run && o->status == ARM_REFUSED) {
		u->failed = u->not_emulable = 1;
		buf_addf(&u->log, "note %s: the emulator cannot run this: %.200s\n", u->shape, o->text);
		return 0;
	}
	fail(u, o, ORDER[order]);
	return 0;
}

/* Same inputs, same order of threads, fill `k` (0, 1) of all that is neither input nor written. */
static int fill(struct unit *u, struct proof_work *w, struct checker_prep *p, int order, int k,
		struct proof_out *o, struct err *e)
{
	p->poison = (uint32_t)k + 2;
	return rep(u, w, p, order, (uint64_t)k << 32 | 1, o, e); /* as proof_rep says: the low half orders */
}

/* Two fills gave different bits. 1 when that is the fills' doing: each gives its own, time and again. Sums in an
 * order of the moment differ, too, and two of three such runs agree often. */
static int fills_matter(struct unit *u, struct proof_work *w, struct checker_prep *p, int order,
			struct proof_out o[3], struct err *e)
{
	for (int i = 0; i < 2 * PROOF_AGAIN; i++) {
		if (fill(u, w, p, order, i % 2, &o[2], e) < 0)
			return -1;
		if (u->failed || memcmp(o[2].cmp.hash, o[i % 2].cmp.hash, 32))
			return 0;
	}
	return 1;
}

/* Same inputs, same order, other fill: must agree bit for bit unless equal runs differ. */
static int two_fills(struct unit *u, struct proof_work *w, struct checker_prep *p, int order,
		     struct proof_out o[3], struct err *e)
{
	if (fill(u, w, p, order, 0, &o[0], e) < 0)
		return -1;
	if (!u->failed && fill(u, w, p, order, 1, &o[1], e) < 0)
		return -1;
	if (u->failed || !memcmp(o[0].cmp.hash, o[1].cmp.hash, 32))
		return 0;
	int matter = fills_matter(u, w, p, order, o, e);
	if (matter < 0 || u->failed)
		return matter < 0 ? -1 : 0;
	if (!matter) {
		u->deterministic = 0; /* allowed: recorded, and the judge looks at every run */
		return 0;
	}
	u->failed = 1;
	verdict_set(&u->s->v, V_REJECT, "unittest.nondeterministic",
		    "%s: the output depends on memory that was never written (shared memory, "
		    "workspace) or lies outside the buffers", u->shape);
	buf_addf(&u->log, "FAIL unittest.nondeterministic\n%s: equal inputs, other contents of "
		 "uninitialised memory, other output\n", u->shape);
	return 0;
}

static int shape(struct unit *u, uint32_t index, int orders, struct err *e)
{
	struct proof_work w;
	struct checker_open q = {.mode = CHECKER_TINY, .index = index};
	struct proof_out *o = xcalloc(3, sizeof *o);
	int rc = proof_open(&u->proof, &u->arm, &q, &w, e);

	name_shape(u, u->gpu_run ? &u->spec->tiny[index].gpu : &u->spec->tiny[index].emu);
	for (int k = 0; k < orders && rc == 0 && !u->failed; k++) {
		struct checker_prep p = {.rep = index * 16 + (uint32_t)k, .set = (uint32_t)k,
					 .perturb = 1};
		/* The race build looks at one shuffled order: more orders find nothing else. */
		rc = two_fills(u, &w, &p, orders == 1 ? 2 : k, o, e);
	}
	if (rc == 0 && !u->failed)
		buf_addf(&u->log, "ok   %s (%s)\n", u->shape, u->name);
	proof_close(&w);
	free(o);
	return rc;
}

static int shapes(struct unit *u, int orders, struct err *e)
{
	for (int i = 0; i < u->spec->ntiny && !u->failed; i++)
		if (shape(u, (uint32_t)i, orders, e) < 0)
			return -1;
	return 0;
}

/* All tiny shapes with one build. Absent builds count as nothing. */
static int build(struct unit *u, const char *name, int orders, struct err *e)
{
	char file[TRIAL_PATH];
	struct err why;

	if ((!strcmp(name, "emu-race") && !DEFENCE("unittest.race")) ||
	    (!strcmp(name, "emu-sanitize") && !DEFENCE("unittest.sanitizer")))
		return 1;
	snprintf(file, sizeof file, "%s/artefact/%s", stage_candidate_dir(u->s), name);
	if (stage_recorded(u->s, file, u->sha, &why) < 0)
		return 1;
	snprintf(u->name, sizeof u->name, "%s", name);
	trial_path(u->path, u->s->id, file);
	verdict_input(&u->s->v, name, u->sha);
	u->arm = (struct proof_arm){.plan = u->plan, .artefact = u->path, .artefact_sha = u->sha,
				    .sanitize = strcmp(name, "emu-fast") != 0};
	return shapes(u, orders, e);
}

static int load(struct unit *u, struct err *e)
{
	struct buf kernel = BUF_INIT;

	int rc = stage_spec(u->s, NULL, "spec.json", 1 << 20, &u->spec_text, e);
	if (rc == 0)
		rc = spec_parse(buf_str(&u->spec_text), u->spec_text.len, "spec.json", &u->spec, e);
	if (rc == 0)
		rc = stage_candidate(u->s, &kernel, &u->plan_text, e);
	if (rc == 0)
		rc = plan_parse(buf_str(&u->plan_text), u->plan_text.len, "plan.json", &u->plan, e);
	buf_free(&kernel);
	return rc;
}

static int start_checker(struct unit *u, const char *device, const char *gpu, struct err *e)
{
	char run[TRIAL_PATH], stage[32];

	run_path(run, u->s->trial.run, "");
	snprintf(stage, sizeof stage, "unittest-a%d", u->s->attempt);
	struct checker_opts o = {.device = device, .gpu = gpu, .run_dir = run, .trial = u->s->id,
				 .stage = stage};
	return checker_start(&u->checker, &o, e);
}

/* 1: guard made no emulated build. */
static int run_emu(struct unit *u, struct err *e)
{
	if (start_checker(u, "emu", NULL, e) < 0 || lane_share(&u->lane, "emu", e) < 0)
		return -1;
	u->proof = (struct proof){.checker = u->checker, .spec = u->spec, .device = "emu",
				  .timeout_ns = TINY_NS};
	int rc = build(u, "emu-sanitize", 3, e), race = 0;
	u->plain = rc == 1;
	if (u->plain)
		rc = build(u, "emu-fast", 3, e);
	if (rc == 0 && !u->failed && (race = build(u, "emu-race", 1, e)) < 0)
		rc = -1;
	u->no_race = race == 1;
	lane_drop(&u->lane);
	return rc;
}

/* The same shapes on the GPU: nothing but outputs, guards and faults is looked at. */
static int run_gpu(struct unit *u, struct err *e)
{
	struct stage *s = u->s;

	checker_stop(u->checker);
	u->checker = NULL;
	u->gpu_run = 1;
	u->failed = u->runs = 0;
	snprintf(u->name, sizeof u->name, "cuda");
	if (proof_set(s, u->plan, stage_candidate_dir(s), &u->set, e) < 0 ||
	    facts_of_run(&s->run, s->trial.device, &u->facts, e) < 0 ||
	    gpu_take(&s->run, &u->lane, &u->gpu, e) < 0 ||
	    start_checker(u, s->trial.device, u->gpu.uuid, e) < 0 || worker_pool_check(u->gpu.uuid, e) < 0)
		return -1;
	stage_on_gpu(s, &u->gpu);
	u->arm = (struct proof_arm){.plan = u->plan, .set = &u->set};
	u->proof = (struct proof){.checker = u->checker, .spec = u->spec, .device = s->trial.device,
				  .gpu = u->gpu.uuid, .facts = &u->facts, .timeout_ns = TINY_GPU_NS};
	int rc = shapes(u, 1, e);
	if (rc < 0)
		s->child_died = u->proof.unhealthy;
	worker_pool_stop();
	lane_drop(&u->lane);
	return rc;
}

/* One tool's word. Only accesses out of bounds are the candidate's beyond doubt. */
static void heard(struct unit *u, const char *tool, const struct sanitizer_report *r)
{
	if (r->accesses > 0 && !strcmp(tool, "memcheck") && DEFENCE("unittest.sanitizer")) {
		u->failed = 1;
		verdict_set(&u->s->v, V_REJECT, "unittest.sanitizer", "compute-sanitizer, at the tiny shapes: %s", r->first);
	}
	if (r->findings > 0)
		snprintf(u->sanitizer, sizeof u->sanitizer, "%s: %ld findings, the first: %s", tool, r->findings, r->first);
	buf_addf(&u->log, "compute-sanitizer %s: %ld findings%s%s\n", tool, r->findings, r->first[0] ? ": " : "", r->first);
}

/* Tools by what there is to look at: memory always, the rest where a launch has shared memory or workspaces. */
static int tools(struct unit *u, const char *program, struct err *e)
{
	static const char *const tool[] = {"memcheck", "racecheck", "synccheck", "initcheck"};
	char why[SANITIZER_TEXT] = "";
	struct sanitizer_job j = {.program = program, .spec = buf_str(&u->spec_text), .spec_len = u->spec_text.len,
				  .plan = buf_str(&u->plan_text), .plan_len = u->plan_text.len, .set = &u->set,
				  .gpu = u->gpu.uuid};
	for (int i = 0; i < 4 && !u->failed; i++) {
		struct sanitizer_report r;
		j.tool = tool[i];
		int rc = i == 3 && u->plan->nworkspaces == 0 ? 1 : sanitizer_run(&j, &r, why, e);
		if (rc < 0)
			return -1;
		if (rc > 0 && why[0]) {
			buf_addf(&u->log, "note compute-sanitizer: %s\n", why);
			if (!u->sanitizer[0])
				snprintf(u->sanitizer, sizeof u->sanitizer, "unavailable: %s", why);
			return 0;
		}
		if (rc == 0) {
			u->sanitized++;
			heard(u, tool[i], &r);
		}
	}
	return 0;
}

/* Setting sanitizer: an extra, so that a machine without it goes on. */
static int sanitize(struct unit *u, struct err *e)
{
	struct stage *s = u->s;
	char program[4096];

	if (u->failed || !for_gpu(u) || strcmp(run_str(&s->run, "sanitizer", ""), "1"))
		return 0;
	if (!sanitizer_find(program)) {
		snprintf(u->sanitizer, sizeof u->sanitizer, "unavailable: compute-sanitizer is not installed");
		buf_addf(&u->log, "note compute-sanitizer is not installed\n");
		return 0;
	}
	if (!u->gpu_run && proof_set(s, u->plan, stage_candidate_dir(s), &u->set, e) < 0)
		return -1;
	if (gpu_take(&s->run, &u->lane, &u->gpu, e) < 0)
		return -1;
	stage_on_gpu(s, &u->gpu);
	int rc = tools(u, program, e);
	lane_drop(&u->lane);
	return rc;
}

static int run_tests(struct unit *u, struct err *e)
{
	const char *where = run_str(&u->s->run, "unittest_device", "");
	int rc = run_emu(u, e);

	if (!for_gpu(u))
		return rc == 1 ? err_set(e, EX_BADINPUT, "guard recorded no artefact of this attempt") : rc;
	if (rc < 0 || (rc == 0 && !u->not_emulable))
		return rc;
	if (!strcmp(where, "emu")) {
		u->failed = 0;
		u->not_emulable = 1;
		return 0;
	}
	return run_gpu(u, e);
}

static void decide(struct unit *u)
{
	struct verdict *v = &u->s->v;

	if (u->failed)
		return;
	if (u->gpu_run)
		verdict_set(v, V_PASS, "ok", "right in %d runs at %d tiny shapes on the GPU; no sanitizers",
			    u->runs, u->spec->ntiny);
	else if (u->not_emulable)
		verdict_set(v, V_PASS, "ok", "not tested: the emulator cannot run this candidate");
	else
		verdict_set(v, V_PASS, "ok", "right in %d runs at %d tiny shapes%s%s", u->runs,
			    u->spec->ntiny, u->plain ? "; lower coverage: no sanitizers" : "",
			    !u->no_race ? "" : u->plain ? ", no race check" : "; lower coverage: no race check");
}

static void record(struct unit *u)
{
	struct jsonw *w = &u->s->v.data;
	int none = u->gpu_run || u->not_emulable;

	jw_str(w, "coverage", none ? "none" : u->plain || u->no_race ? "reduced" : "emulated");
	if (!u->failed) {
		jw_bool(w, "sanitizers", !none && !u->plain);
		jw_bool(w, "race_check", !none && !u->no_race);
	}
	jw_int(w, "runs", u->runs);
	jw_bool(w, "deterministic", u->deterministic);
	if (u->sanitizer[0] || u->sanitized)
		jw_str(w, "compute_sanitizer", u->sanitizer[0] ? u->sanitizer : "no findings");
	if (u->gpu_run || u->sanitized) {
		gpu_write(&u->gpu, w, "gpu");
		lane_write(&u->lane, w, "lane");
	}
}

static int work(struct stage *s, struct err *e)
{
	struct unit *u = &unit;
	char log[TRIAL_PATH];

	u->s = s;
	u->deterministic = 1;
	u->lane = (struct lane)LANE_INIT;
	int engine = engine_problem(s, &u->spec_text, e);
	if (engine)
		return engine < 0 ? -1 : unittest_engine(s, buf_str(&u->spec_text), u->spec_text.len, &u->checker, e);
	if (load(u, e) < 0)
		return -1;
	if (!strcmp(s->trial.device, "sim")) {
		verdict_set(&s->v, V_PASS, "ok", "simulated: nothing was run");
		return 0;
	}
	if (for_gpu(u) && !strcmp(run_str(&s->run, "unittest_device", ""), "none")) {
		verdict_set(&s->v, V_PASS, "ok", "not tested: the run's setting unittest_device is none");
		jw_str(&s->v.data, "coverage", "none");
		return 0;
	}
	if (run_tests(u, e) < 0 || sanitize(u, e) < 0)
		return -1;
	decide(u);
	proof_isolation(&u->proof, &s->v);
	record(u);
	snprintf(log, sizeof log, "%s/unittest.log", stage_candidate_dir(s));
	buf_add(&u->log, "", 0);
	return stage_side(s, log, buf_str(&u->log), u->log.len, e);
}

int main(int argc, char **argv)
{
	static const struct stage_about about = {.stage = "unittest", .help = HELP, .work = work};
	int rc = stage_main(argc, argv, &about);

	checker_stop(unit.checker);
	plan_free(unit.plan);
	spec_free(unit.spec);
	buf_free(&unit.spec_text);
	buf_free(&unit.plan_text);
	buf_free(&unit.log);
	return rc;
}
