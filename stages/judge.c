/*
 * judge.c - is the candidate right? Untimed, on inputs nobody could foresee.
 *
 * Reads the trial's final candidate (candidate/, artefact/) by the hashes on record and the
 * pinned spec. Writes trials/NNNN/judge.json, signed by the checker. Never sees a reference or
 * the run key, never tells the proposer where or by how much an output was wrong at a secret shape.
 *
 * SPDX-License-Identifier: MIT
 */
#include "buf.h"
#include "checker_call.h"
#include "engine_problem.h"
#include "gpu.h"
#include "judge_engine.h"
#include "lane.h"
#include "plan.h"
#include "proof.h"
#include "reason.h"
#include "relies.h"
#include "stage.h"
#include "worker_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
	"judge - is the candidate right?\n"
	"\n"
	"usage: judge trials/NNNN/judge.json\n"
	"\n"
	"Runs the trial's final artefact at the public workloads and at secret shapes drawn from\n"
	"the run key, with fresh keyed inputs every time: the spec's own distribution, mixed\n"
	"magnitudes, nearly equal rows and, where sums are exact, wide integers. Outputs, workspaces\n"
	"and guards are poisoned before and compared in full afterwards; an unmapped page follows\n"
	"every buffer in one pass; other guard contents must not change a bit. A dozen more secret\n"
	"shapes, beside powers of two, tile multiples and the ends of the range, get one run each.\n"
	"\n"
	"On a GPU it holds the GPU's lane, takes the spec's own sizes and the image the plan chooses at\n"
	"each, changes what shared and local memory hold instead of the order of threads, and stops a\n"
	"run after the time of 20 references (1 s at least). A failed run counts against the candidate\n"
	"only if a new process then finds the GPU healthy.\n"
	"\n"
	"An engine problem: a fresh child for each public workload answers two batches of prompts drawn from the\n"
	"stage's key and the first again; once all children are gone every id is replayed in float32. The margin of an\n"
	"id, and the mean, 99th percentile and share of argmaxes of all, are what honest rounding costs on those prompts.\n"
	"\n"
	"reads   candidate/, artefact/ (emu-fast, or cuda-0...; engine), the run's spec\n"
	"writes  judge.json; data: worst figures per workload, the stage's key for reproduction, the GPU\n"
	"exit    0 verdict written, whatever it is; 3 malformed input; 4 environment; 70 our fault\n";

struct judge {
	struct stage *s;
	struct spec *spec;
	struct plan *plan;
	struct checker *checker;
	struct proof_report report;
	struct proof proof;
	char sha[HASH_HEX];
	struct lane lane;
	struct gpu gpu;
	struct facts facts;
	struct image_set set;
};

static struct judge judge; /* lives until the verdict is signed and written */

static int load(struct judge *j, struct err *e)
{
	struct buf kernel = BUF_INIT, plan = BUF_INIT, text = BUF_INIT;
	char name[TRIAL_PATH + 32];

	snprintf(name, sizeof name, "%s/candidate/plan.json", j->s->trial_dir);
	int rc = stage_spec(j->s, NULL, "spec.json", 1 << 20, &text, e);
	if (rc == 0)
		rc = spec_parse(buf_str(&text), text.len, "spec.json", &j->spec, e);
	if (rc == 0)
		rc = stage_candidate(j->s, &kernel, &plan, e);
	if (rc == 0)
		rc = plan_parse(buf_str(&plan), plan.len, name, &j->plan, e);
	if (rc == 0)
		rc = facts_of_run(&j->s->run, j->s->trial.device, &j->facts, e);
	if (rc == 0)
		relies_candidate(&j->s->v.relies, buf_str(&kernel), kernel.len, j->plan, j->spec, &j->facts);
	buf_free(&kernel);
	buf_free(&plan);
	buf_free(&text);
	return rc;
}

/* A keyed fraction of synthetic candidates fails, so that every path of a run is walked. */
static void judge_sim(struct judge *j, const char *candidate)
{
	uint8_t h[32];
	char text[HASH_HEX + 16];

	snprintf(text, sizeof text, "sim-judge:%s", candidate);
	hash_bytes(text, strlen(text), h);
	jw_bool(&j->s->v.data, "sampled", 0);
	jw_bool(&j->s->v.data, "deterministic", 1);
	if (h[0] < 8)
		verdict_set(&j->s->v, V_REJECT, "judge.rel_l2", "simulated: nothing was run");
	else
		verdict_set(&j->s->v, V_PASS, "ok", "simulated: nothing was run");
}

/* What a kernel that is right relies on; source and plan were looked at when they were read. */
static int find_relies(struct judge *j, struct err *e)
{
	struct relies *r = &j->s->v.relies;
	char file[64];

	for (int i = 0; i < j->set.n; i++) {
		struct buf ptx = BUF_INIT;
		snprintf(file, sizeof file, "artefact/cuda-%d.ptx", i);
		if (stage_use_recorded(j->s, NULL, file, 64u << 20, &ptx, e) < 0)
			return -1;
		relies_ptx(r, buf_str(&ptx), ptx.len);
		buf_free(&ptx);
	}
	if (j->report.pass && (!j->report.deterministic || (j->report.orders && j->report.order_dependent)))
		relies_add(r, "order", "equal inputs did not give equal bits each time, as where sums are made in another "
			   "order: every run was within the bounds. An order that is fixed would be clean");
	return 0;
}

static void decide(struct judge *j)
{
	const struct proof_report *r = &j->report;
	struct verdict *v = &j->s->v;
	char code[64];

	proof_report_write(r, &v->data);
	if (r->pass) {
		int runs = 0;
		for (int i = 0; i < r->n; i++)
			runs += r->row[i].runs;
		verdict_set(v, V_PASS, "ok", "right in %d runs at %d shapes%s", runs, r->n,
			    r->deterministic ? "" : ", not bit for bit the same each time");
		return;
	}
	snprintf(code, sizeof code, "judge.%s", r->held_out ? "held_out" : r->word);
	verdict_set(v, V_REJECT, code, "wrong at %s%s%s: %s", r->held_out ? "" : "workload '", r->where,
		    r->held_out ? "" : "'", reason_text(code));
}

static int start_checker(struct judge *j, const char *device, const char *gpu, struct err *e)
{
	char run[TRIAL_PATH];

	run_path(run, j->s->trial.run, "");
	struct checker_opts o = {.device = device, .gpu = gpu, .run_dir = run, .trial = j->s->id,
				 .stage = "judge"};
	return checker_start(&j->checker, &o, e);
}

static int examine(struct judge *j, const struct proof_arm *a, const struct proof_budget *b, struct err *e)
{
	int rc = proof_judge(&j->proof, a, b, &j->report, e);

	/* A process that died without a word gets one more chance: that may be the machine. */
	if (rc == 0 && !strcmp(j->report.word, "protocol"))
		rc = proof_judge(&j->proof, a, b, &j->report, e);
	if (rc < 0)
		j->s->child_died = j->proof.unhealthy;
	return rc;
}

static int judge_emu(struct judge *j, struct err *e)
{
	char path[TRIAL_PATH];
	static struct proof_arm a;

	if (stage_recorded(j->s, "artefact/emu-fast", j->sha, e) < 0)
		return -1;
	verdict_input(&j->s->v, "artefact", j->sha);
	trial_path(path, j->s->id, "artefact/emu-fast");
	a = (struct proof_arm){.plan = j->plan, .artefact = path, .artefact_sha = j->sha};
	if (start_checker(j, "emu", NULL, e) < 0)
		return -1;
	j->proof = (struct proof){.checker = j->checker, .spec = j->spec, .device = "emu"};
	if (lane_share(&j->lane, "emu", e) < 0)
		return -1;
	return examine(j, &a, &PROOF_JUDGE_EMU, e);
}

/* The lane is held by one process at a time, and every deadline starts when a run is asked for. */
static int judge_gpu(struct judge *j, struct err *e)
{
	struct stage *s = j->s;
	static struct proof_arm a;

	if (proof_set(s, j->plan, "", &j->set, e) < 0 ||
	    gpu_take(&s->run, &j->lane, &j->gpu, e) < 0 ||
	    start_checker(j, s->trial.device, j->gpu.uuid, e) < 0 ||
	    worker_pool_check(j->gpu.uuid, e) < 0) /* both start at once; is the GPU well before it? */
		return -1;
	stage_on_gpu(s, &j->gpu);
	a = (struct proof_arm){.plan = j->plan, .set = &j->set};
	j->proof = (struct proof){.checker = j->checker, .spec = j->spec, .device = s->trial.device,
				  .gpu = j->gpu.uuid, .facts = &j->facts};
	int rc = examine(j, &a, &PROOF_JUDGE_CUDA, e);
	worker_pool_stop();
	return rc;
}

static int judge_run(struct judge *j, enum device_class class, struct err *e)
{
	int gpu = class == DEVICE_CUDA;

	if ((gpu ? judge_gpu : judge_emu)(j, e) < 0)
		return -1;
	lane_drop(&j->lane);
	proof_isolation(&j->proof, &j->s->v);
	decide(j);
	if (gpu)
		gpu_write(&j->gpu, &j->s->v.data, "gpu");
	lane_write(&j->lane, &j->s->v.data, "lane");
	return 0;
}

static int work(struct stage *s, struct err *e)
{
	struct judge *j = &judge;
	char subkey[HASH_HEX];
	enum device_class class = device_class_of(s->trial.device);

	j->s = s;
	j->lane = (struct lane)LANE_INIT;
	struct buf text = BUF_INIT;
	int engine = engine_problem(s, &text, e);
	if (engine) {
		int rc = engine < 0 ? -1 : judge_engine(s, buf_str(&text), text.len, &j->checker, e);
		buf_free(&text);
		return rc;
	}
	if (load(j, e) < 0)
		return -1;
	if (class == DEVICE_SIM) {
		char candidate[HASH_HEX] = "";
		for (size_t i = 0; i < s->v.ninputs; i++)
			if (!strcmp(s->v.inputs[i].name, "candidate"))
				memcpy(candidate, s->v.inputs[i].sha, HASH_HEX);
		if (start_checker(j, "emu", NULL, e) < 0)
			return -1;
		judge_sim(j, candidate);
	} else if (judge_run(j, class, e) < 0) {
		return -1;
	}
	if (find_relies(j, e) < 0)
		return -1;
	/* Last: the checker serves no more inputs once this key is out. */
	if (checker_subkey(j->checker, subkey, e) < 0)
		return -1;
	jw_str(&s->v.data, "stage_key", subkey);
	s->v.mac = checker_mac_fn;
	s->v.mac_ctx = j->checker;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct stage_about about = {.stage = "judge", .help = HELP, .work = work};
	int rc = stage_main(argc, argv, &about);

	checker_stop(judge.checker);
	plan_free(judge.plan);
	spec_free(judge.spec);
	return rc;
}
