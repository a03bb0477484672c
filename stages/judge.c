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
#include "lane.h"
#include "plan.h"
#include "proof.h"
#include "reason.h"
#include "stage.h"

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
	"reads   candidate/kernel.cu, candidate/plan.json, artefact/emu-fast, the run's spec\n"
	"writes  judge.json; data: worst figures per workload, the stage's key for reproduction\n"
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

static int judge_emu(struct judge *j, struct err *e)
{
	char path[TRIAL_PATH];
	static struct proof_arm a;

	if (stage_recorded(j->s, "artefact/emu-fast", j->sha, e) < 0)
		return -1;
	verdict_input(&j->s->v, "artefact", j->sha);
	trial_path(path, j->s->id, "artefact/emu-fast");
	a = (struct proof_arm){.plan = j->plan, .artefact = path, .artefact_sha = j->sha};
	j->proof = (struct proof){.checker = j->checker, .spec = j->spec, .device = "emu"};
	if (lane_share(&j->lane, "emu", e) < 0)
		return -1;
	int rc = proof_judge(&j->proof, &a, &PROOF_JUDGE_EMU, &j->report, e);
	/* A process that died without a word gets one more chance: that may be the machine. */
	if (rc == 0 && !strcmp(j->report.word, "protocol"))
		rc = proof_judge(&j->proof, &a, &PROOF_JUDGE_EMU, &j->report, e);
	lane_drop(&j->lane);
	if (rc < 0)
		return -1;
	proof_isolation(&j->proof, &j->s->v);
	decide(j);
	lane_write(&j->lane, &j->s->v.data, "lane");
	return 0;
}

static int work(struct stage *s, struct err *e)
{
	struct judge *j = &judge;
	char run[TRIAL_PATH], subkey[HASH_HEX];
	int sim = !strcmp(s->trial.device, "sim");

	j->s = s;
	j->lane = (struct lane)LANE_INIT;
	if (load(j, e) < 0)
		return -1;
	run_path(run, s->trial.run, "");
	struct checker_opts o = {.device = "emu", .run_dir = run, .trial = s->id, .stage = "judge"};
	if (checker_start(&j->checker, &o, e) < 0)
		return -1;
	if (sim) {
		char candidate[HASH_HEX] = "";
		for (size_t i = 0; i < s->v.ninputs; i++)
			if (!strcmp(s->v.inputs[i].name, "candidate"))
				memcpy(candidate, s->v.inputs[i].sha, HASH_HEX);
		judge_sim(j, candidate);
	} else if (judge_emu(j, e) < 0) {
		return -1;
	}
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
