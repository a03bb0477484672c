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
#include "lane.h"
#include "plan.h"
#include "proof.h"
#include "reason.h"
#include "stage.h"

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
	"reads   aK/candidate/, aK/artefact/emu-sanitize, aK/artefact/emu-race, the run's spec\n"
	"writes  aK/unittest.json, aK/unittest.log\n"
	"exit    0 verdict written, whatever it is; 3 malformed input; 4 environment; 70 our fault\n";

/* Milliseconds are honest at a tiny shape, also under sanitizers on a busy machine. */
#define TINY_NS 10000000000

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
	char what[512];
	const char *code = o->no_launch ? "unittest.fault" : code_of(o->word);
	size_t line = strcspn(o->text, "\n");

	u->failed = 1;
	if (!strcmp(code, "unittest.wrong"))
		explain_wrong(o, what, sizeof what);
	else if (o->text[0])
		snprintf(what, sizeof what, "%.*s", (int)(line > 400 ? 400 : line), o->text);
	else
		snprintf(what, sizeof what, "%s%s%s", reason_text(code), o->cmp.output[0] ? ": next to " : "",
			 o->cmp.output);
	verdict_set(&u->s->v, V_REJECT, code, "%s, threads %s: %s", u->shape, order, what);
	buf_addf(&u->log, "FAIL %s\n%s, threads %s, build %s\n%s\n", code, u->shape, order, u->name, what);
	if (o->text[0])
		buf_addf(&u->log, "\n%s\n", o->text);
}

static const char *const ORDER[] = {"forward", "backward", "shuffled"};

static int rep(struct unit *u, struct proof_work *w, struct checker_prep *p, int order, uint64_t seed,
	       struct proof_out *o, struct err *e)
{
	if (proof_rep(w, p, (enum arm_order)order, seed, o, e) < 0)
		return -1;
	u->runs++;
	if (!o->pass)
		fail(u, o, ORDER[order]);
	return 0;
}

/* Same inputs, same order, other poison: must agree bit for bit unless equal runs differ. */
static int two_poisons(struct unit *u, struct proof_work *w, struct checker_prep *p, int order,
		       struct proof_out o[3], struct err *e)
{
	p->poison = 2;
	if (rep(u, w, p, order, 1, &o[0], e) < 0)
		return -1;
	p->poison = 3;
	if (!u->failed && rep(u, w, p, order, 2, &o[1], e) < 0)
		return -1;
	if (u->failed || !memcmp(o[0].cmp.hash, o[1].cmp.hash, 32))
		return 0;
	p->poison = 2;
	if (rep(u, w, p, order, 1, &o[2], e) < 0 || u->failed)
		return u->failed ? 0 : -1;
	if (memcmp(o[0].cmp.hash, o[2].cmp.hash, 32)) {
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
	struct checker_open q = {.mode = CHECKER_TINY, .index = index, .emu = 1};
	struct proof_out *o = xcalloc(3, sizeof *o);
	int rc = proof_open(&u->proof, &u->arm, &q, &w, e);

	name_shape(u, w.refused[0] ? &u->spec->tiny[index].emu : &w.w.axes);
	for (int k = 0; k < orders && rc == 0 && !u->failed; k++) {
		struct checker_prep p = {.rep = index * 16 + (uint32_t)k, .set = (uint32_t)k,
					 .perturb = 1};
		/* The race build looks at one shuffled order: more orders find nothing else. */
		rc = two_poisons(u, &w, &p, orders == 1 ? 2 : k, o, e);
	}
	if (rc == 0 && !u->failed)
		buf_addf(&u->log, "ok   %s (%s)\n", u->shape, u->name);
	proof_close(&w);
	free(o);
	return rc;
}

/* All tiny shapes with one build. Absent builds count as nothing. */
static int build(struct unit *u, const char *name, int orders, struct err *e)
{
	char file[TRIAL_PATH];
	struct err why;

	snprintf(file, sizeof file, "%s/artefact/%s", stage_candidate_dir(u->s), name);
	if (stage_recorded(u->s, file, u->sha, &why) < 0)
		return 1;
	snprintf(u->name, sizeof u->name, "%s", name);
	trial_path(u->path, u->s->id, file);
	verdict_input(&u->s->v, name, u->sha);
	u->arm = (struct proof_arm){.plan = u->plan, .artefact = u->path, .artefact_sha = u->sha,
				    .sanitize = strcmp(name, "emu-fast") != 0};
	for (int i = 0; i < u->spec->ntiny && !u->failed; i++)
		if (shape(u, (uint32_t)i, orders, e) < 0)
			return -1;
	return 0;
}

static int load(struct unit *u, struct err *e)
{
	struct buf kernel = BUF_INIT, plan = BUF_INIT, text = BUF_INIT;

	int rc = stage_spec(u->s, NULL, "spec.json", 1 << 20, &text, e);
	if (rc == 0)
		rc = spec_parse(buf_str(&text), text.len, "spec.json", &u->spec, e);
	if (rc == 0)
		rc = stage_candidate(u->s, &kernel, &plan, e);
	if (rc == 0)
		rc = plan_parse(buf_str(&plan), plan.len, "plan.json", &u->plan, e);
	buf_free(&kernel);
	buf_free(&plan);
	buf_free(&text);
	return rc;
}

static int run_emu(struct unit *u, struct err *e)
{
	char run[TRIAL_PATH], stage[32];
	struct lane lane;

	run_path(run, u->s->trial.run, "");
	snprintf(stage, sizeof stage, "unittest-a%d", u->s->attempt);
	struct checker_opts o = {.device = "emu", .run_dir = run, .trial = u->s->id, .stage = stage};
	if (checker_start(&u->checker, &o, e) < 0 || lane_share(&lane, "emu", e) < 0)
		return -1;
	u->proof = (struct proof){.checker = u->checker, .spec = u->spec, .device = "emu",
				  .timeout_ns = TINY_NS};
	int rc = build(u, "emu-sanitize", 3, e), race = 0;
	u->plain = rc == 1;
	if (u->plain)
		rc = build(u, "emu-fast", 3, e);
	if (rc == 1)
		rc = err_set(e, EX_BADINPUT, "guard recorded no artefact of this attempt");
	if (rc == 0 && !u->failed && (race = build(u, "emu-race", 1, e)) < 0)
		rc = -1;
	u->no_race = race == 1;
	lane_drop(&lane);
	return rc;
}

static int work(struct stage *s, struct err *e)
{
	struct unit *u = &unit;
	char log[TRIAL_PATH];

	u->s = s;
	u->deterministic = 1;
	if (load(u, e) < 0)
		return -1;
	if (!strcmp(s->trial.device, "sim")) {
		verdict_set(&s->v, V_PASS, "ok", "simulated: nothing was run");
		return 0;
	}
	if (run_emu(u, e) < 0)
		return -1;
	if (!u->failed)
		verdict_set(&s->v, V_PASS, "ok", "right in %d runs at %d tiny shapes%s%s", u->runs,
			    u->spec->ntiny, u->plain ? "; lower coverage: no sanitizers" : "",
			    !u->no_race ? "" : u->plain ? ", no race check" : "; lower coverage: no race check");
	proof_isolation(&u->proof, &s->v);
	jw_str(&s->v.data, "coverage", u->plain || u->no_race ? "reduced" : "emulated");
	if (!u->failed) {
		jw_bool(&s->v.data, "sanitizers", !u->plain);
		jw_bool(&s->v.data, "race_check", !u->no_race);
	}
	jw_int(&s->v.data, "runs", u->runs);
	jw_bool(&s->v.data, "deterministic", u->deterministic);
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
	buf_free(&unit.log);
	return rc;
}
