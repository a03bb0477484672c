/*
 * check.c - prove a spec before any money is spent on it (make check SPEC=name).
 *
 * Reads specs/NAME. Writes nothing; prints a table. Plays candidates itself: the baseline, which
 * must pass, and fakes that write their own output into the candidate's memory, all of which the
 * checker must refuse. Never sees a reference: like every stage it only asks the checker.
 *
 * SPDX-License-Identifier: MIT
 */
#include "buf.h"
#include "check_engine.h"
#include "check_part.h"
#include "device.h"
#include "engine_spec.h"
#include "file.h"
#include "lane.h"
#include "trial.h"
#include "worker_pool.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char HELP[] =
	"check - prove a spec before it is used\n"
	"\n"
	"usage: check --SPEC=NAME [--DEVICE=emu] [--MODEL_DIR=folder]      (make check SPEC=NAME DEVICE=cuda)\n"
	"\n"
	"The baseline must pass the judge; the reference must agree with a second float64\n"
	"implementation where there is one; zeros, constants, copies of an input, stale output,\n"
	"half the rows, one NaN and lower precision must fail; every input must matter. Prints the\n"
	"honest error band, the noise floor of this machine and the least effect it can detect.\n"
	"On a GPU (cuda, or its model's name) the proofs are the same at the spec's own sizes, the second\n"
	"float64 opinion at its tiny ones; its lane is held and its timer and flush are shown.\n"
	"An engine problem: its baseline must pass, and the judge must refuse engines that are wrong in a known\n"
	"way (table: the gate that refused, regrets in logits) and pass honest ones; printed is the number of ids that\n"
	"tells weights of 8 bits. MODEL_DIR: a checkpoint of your own in place of the problem's.\n"
	"\n"
	"exit    0 all holds; 3 something does not; 2 usage; 4 compiler missing; 70 our fault\n";

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int check_baseline(struct check *c, struct err *e)
{
	struct proof_report *r = xcalloc(1, sizeof *r);
	struct proof_out *o = xcalloc(1, sizeof *o);
	struct proof_arm san = c->on_gpu ? c->arm :
		(struct proof_arm){.plan = c->sanitize.plan, .artefact = c->sanitize.box.path,
				   .artefact_sha = c->sanitize.box.sha256, .sanitize = 1};
	double t0;
	int rc = 0;

	for (int i = 0; i < c->spec->ntiny && rc == 0; i++) {
		struct checker_open q = {.mode = CHECKER_TINY, .index = (uint32_t)i};
		struct checker_prep p = {.rep = ++c->rep, .perturb = 1};
		struct proof_work w;
		rc = proof_open(&c->proof, &san, &q, &w, e);
		if (rc == 0)
			rc = proof_rep(&w, &p, ARM_SHUFFLED, 9, o, e);
		proof_close(&w);
		if (rc == 0)
			check_say(c, o->pass, "baseline%s, tiny shape %d: %s %.200s",
				  c->on_gpu ? "" : " under sanitizers", i, o->word,
			    o->pass ? "" : o->text);
	}
	t0 = now_s();
	if (rc == 0)
		rc = proof_judge(&c->proof, &c->arm,
				 c->on_gpu ? &PROOF_JUDGE_CUDA : &PROOF_JUDGE_EMU, r, e);
	if (rc == 0)
		check_say(c, r->pass, "baseline passes its own judge: %s%s%s (%.1f s)", r->word,
		    r->pass ? "" : " at ", r->where, now_s() - t0);
	for (int i = 0; i < r->n && rc == 0; i++)
		printf("        %-20s honest error %.2g of the bound, relative L2 %.1e, %d regimes, %s\n",
		       r->row[i].name, r->row[i].worst, r->row[i].rel_l2,
		       1 + !!r->row[i].regimes[REGIME_MIXED] + !!r->row[i].regimes[REGIME_NEAR_EQUAL] +
			       !!r->row[i].regimes[REGIME_EXACT_A] + !!r->row[i].regimes[REGIME_EXACT_B],
		       r->row[i].exact_done ? "exact sums checked" : "no exact sums");
	free(r);
	free(o);
	return rc;
}

static int build_emu(struct check *c, struct err *e)
{
	char *dir = xasprintf("%s/baseline", c->dir);
	int rc = image_load(&c->fast, c->spec, dir, "kernel.cu", "plan.json", e);

	if (rc == 0)
		rc = image_load(&c->sanitize, c->spec, dir, "kernel.cu", "plan.json", e);
	if (rc == 0)
		rc = image_build(&c->fast, c->spec, "emu-fast", NULL, NULL, e);
	if (rc == 0)
		rc = image_build(&c->sanitize, c->spec, "emu-sanitize", NULL, NULL, e);
	if (rc == 0 && (!c->fast.ok || !c->sanitize.ok))
		rc = err_set(e, EX_BADINPUT, "the baseline does not compile: %.200s\n%.200s",
			     c->fast.ok ? c->sanitize.box.message : c->fast.box.message,
			     c->fast.ok ? c->sanitize.box.log : c->fast.box.log);
	free(dir);
	if (rc == 0)
		check_say(c, 1, "baseline compiles, plain and with sanitizers");
	c->arm = (struct proof_arm){.plan = c->fast.plan, .artefact = c->fast.box.path,
				    .artefact_sha = c->fast.box.sha256};
	return rc;
}

static int build_gpu(struct check *c, struct err *e)
{
	char *dir = xasprintf("%s/baseline", c->dir);
	int rc = image_load(&c->fast, c->spec, dir, "kernel.cu", "plan.json", e);

	free(dir);
	if (rc == 0)
		rc = image_build_gpu(&c->fast, c->spec, c->dir, c->gpu.arch, NULL, e);
	if (rc < 0)
		return -1;
	if (!c->fast.ok)
		return err_set(e, EX_BADINPUT, "the baseline does not compile: %.200s\n%.200s",
			       c->fast.box.message, c->fast.box.log);
	check_say(c, 1, "baseline compiles for %s", c->gpu.arch);
	c->arm = (struct proof_arm){.plan = c->fast.plan, .set = &c->fast.set};
	return 0;
}

/* The baseline's plan must handle every size that may be drawn; so must every candidate's. */
static void check_sizes(struct check *c)
{
	struct plan_sizes sizes;
	struct facts f = c->gpu.facts;
	struct err why = {0};
	int bad = (!c->on_gpu && facts_find("emu", &f, &why)) || plan_sizes(c->fast.plan, c->spec, &f, 0, &sizes, &why);

	if (bad)
		check_say(c, 0, "the baseline's plan: %.300s", why.text);
	else
		check_say(c, 1, "the baseline's plan holds at all %d public and tiny sizes and %d edges of the others",
		    sizes.n, sizes.edges);
}

/* Where fakes and swapped inputs are tried: copies of a large workload would take long. */
static uint32_t smallest(const struct check *c)
{
	double least = INFINITY;
	uint32_t at = 0;

	for (int i = 0; i < c->spec->npublic && c->on_gpu; i++) {
		double n = 0;
		int64_t bytes;
		for (int k = 0; k < c->spec->ninputs + c->spec->noutputs; k++) {
			const struct spec_tensor *t = k < c->spec->ninputs ? &c->spec->input[k]
									   : &c->spec->output[k - c->spec->ninputs];
			if (spec_bytes(c->spec, t, &c->spec->public[i].gpu, &bytes, NULL) == 0)
				n += (double)bytes;
		}
		if (n < least) {
			least = n;
			at = (uint32_t)i;
		}
	}
	return at;
}

/* Float64 on the host is slow: on a GPU at the tiny sizes only. */
static int check_opinions(struct check *c, struct err *e)
{
	int rc = 0;

	for (int i = 0; i < c->spec->ntiny && rc == 0 && c->on_gpu; i++) {
		rc = check_use(c, CHECKER_TINY, (uint32_t)i, e);
		if (rc == 0)
			rc = check_reference(c, e);
		check_unuse(c);
	}
	return rc;
}

static int prove(struct check *c, struct err *e)
{
	double least = INFINITY;
	uint32_t at = smallest(c);

	if (check_baseline(c, e) < 0 || check_opinions(c, e) < 0)
		return -1;
	int rc = check_use(c, CHECKER_PUBLIC, at, e);
	if (rc == 0 && !c->on_gpu)
		rc = check_reference(c, e);
	if (rc == 0)
		rc = check_fakes(c, &least, e);
	if (rc == 0)
		rc = check_inputs(c, e);
	check_unuse(c);
	if (rc == 0)
		rc = check_noise(c, at, e);
	if (rc == 0 && isfinite(least))
		printf("  band    the cheapest fake is at %.3g times the bound\n", least);
	return rc;
}

static int find_device(struct check *c, struct err *e)
{
	static struct lane lane = LANE_INIT; /* held to the end */

	c->on_gpu = device_class_of(c->device) == DEVICE_CUDA;
	if (!c->on_gpu)
		return 0;
	if (gpu_find(c->device, &c->gpu, e) < 0)
		return -1;
	c->device = c->gpu.facts.slug;
	return lane_exclusive(&lane, c->device, e);
}

static int run(struct check *c, struct err *e)
{
	if (spec_load(c->dir, &c->spec, e) < 0 || find_device(c, e) < 0 || device_takes(c->device, c->spec, e) < 0)
		return -1;
	printf("spec '%s' (%s) on %s\n", c->spec->name, c->spec->op_type, c->device);
	check_say(c, 1, "spec.json is sound: %d inputs, %d outputs, %d public, %d held-out, %d tiny workloads",
		  c->spec->ninputs, c->spec->noutputs, c->spec->npublic, c->spec->held_out_count,
		  c->spec->ntiny);
	if ((c->on_gpu ? build_gpu : build_emu)(c, e) < 0)
		return -1;
	check_sizes(c);
	struct checker_opts o = {.device = c->device, .gpu = c->on_gpu ? c->gpu.uuid : NULL,
				 .spec_dir = c->dir, .trial = "check", .stage = "check"};
	if (checker_start(&c->checker, &o, e) < 0)
		return -1;
	c->proof = (struct proof){.checker = c->checker, .spec = c->spec, .device = c->device,
				  .gpu = o.gpu, .facts = c->on_gpu ? &c->gpu.facts : NULL};
	return prove(c, e);
}

/* 1: it was one, and *failures tells; 0: a kernel problem. */
static int engine(const char *dir, const char *device, const char *model_dir, int *failures, struct err *e)
{
	struct buf text = BUF_INIT;
	enum spec_kind kind = SPEC_KERNEL;
	char *path = xasprintf("%s/spec.json", dir);
	int rc = file_read(path, 1 << 20, &text, e) || spec_kind(buf_str(&text), text.len, &kind, e) ? -1 : 0;

	if (rc == 0 && kind == SPEC_KERNEL && model_dir)
		rc = err_set(e, EX_BADUSE, "MODEL_DIR is for engine problems, and '%s' is none", dir);
	if (rc == 0 && kind == SPEC_ENGINE && strcmp(device, "emu") != 0)
		rc = err_set(e, EX_BADUSE, "an engine in C runs on this processor: DEVICE=emu, not %s", device);
	if (rc == 0 && kind == SPEC_ENGINE)
		rc = check_engine(dir, buf_str(&text), text.len, model_dir, failures, e) ? -1 : 1;
	buf_free(&text);
	free(path);
	return rc;
}

static int conclude(int failures)
{
	printf("%s\n", failures ? "the spec does NOT hold" : "the spec holds");
	return failures ? EX_BADINPUT : EX_DONE;
}

int main(int argc, char **argv)
{
	static struct check c;
	const char *spec = NULL, *device = "emu", *model_dir = NULL;
	struct err e = {0};

	prog_name(argv[0]);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help")) {
			fputs(HELP, stdout);
			return EX_DONE;
		}
		if (!strncmp(argv[i], "--SPEC=", 7))
			spec = argv[i] + 7;
		else if (!strncmp(argv[i], "--DEVICE=", 9))
			device = argv[i] + 9;
		else if (!strncmp(argv[i], "--MODEL_DIR=", 12))
			model_dir = argv[i] + 12;
		else
			die(EX_BADUSE, "unknown option '%s'; -h for help", argv[i]);
	}
	if (!spec || !trial_name_ok(spec))
		die(EX_BADUSE, "wants --SPEC=NAME of a folder in specs/");
	if (device_class_of(device) == DEVICE_SIM)
		die(EX_BADUSE, "nothing runs on '%s', so nothing is proved there", device);
	char *dir = xasprintf("specs/%s", spec);
	if (!file_exists(dir))
		die(EX_BADUSE, "no problem 'specs/%s'", spec);
	c.dir = dir;
	c.device = device;
	int rc = engine(dir, device, model_dir, &c.failures, &e);
	if (rc < 0)
		die_err(&e);
	if (rc)
		return conclude(c.failures);
	rc = run(&c, &e);
	worker_pool_stop();
	checker_stop(c.checker);
	image_free(&c.fast);
	image_free(&c.sanitize);
	spec_free(c.spec);
	free(dir);
	if (rc < 0)
		die_err(&e);
	return conclude(c.failures);
}
