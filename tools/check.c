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
#include "checker_call.h"
#include "device.h"
#include "fakes.h"
#include "file.h"
#include "hostref.h"
#include "image.h"
#include "proof.h"
#include "stats.h"
#include "trial.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static const char HELP[] =
	"check - prove a spec before it is used\n"
	"\n"
	"usage: check --SPEC=NAME [--DEVICE=emu]      (make check SPEC=NAME)\n"
	"\n"
	"The baseline must pass the judge; the reference must agree with a second float64\n"
	"implementation where there is one; zeros, constants, copies of an input, stale output,\n"
	"half the rows, one NaN and lower precision must fail; every input must matter. Prints the\n"
	"honest error band, the noise floor of this machine and the least effect it can detect.\n"
	"\n"
	"exit    0 all holds; 3 something does not; 2 usage; 4 compiler missing; 70 our fault\n";

struct check {
	const char *dir;
	struct spec *spec;
	struct image fast, sanitize;
	struct checker *checker;
	struct proof proof;
	struct proof_arm arm;
	int failures;
	/* The workload in use. */
	struct proof_work w;
	uint8_t *in, *rw;
	double scalars[CHECKER_SCALARS];
	uint8_t *out;          /* honest outputs of this rep, as the rw memfd held them */
	uint64_t rep;
};

static void __attribute__((format(printf, 3, 4)))
say(struct check *c, int ok, const char *fmt, ...)
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

/* ---- one workload, mapped here ---- */

static int use(struct check *c, enum checker_mode mode, uint32_t index, struct err *e)
{
	struct checker_open q = {.mode = mode, .index = index, .emu = 1, .baseline = 1};

	if (proof_open(&c->proof, &c->arm, &q, &c->w, e) < 0)
		return -1;
	if (c->w.refused[0])
		return err_set(e, EX_BADINPUT, "baseline: %.200s", c->w.refused);
	const struct mem_layout *l = &c->w.w.layout;
	c->in = mmap(NULL, l->in_bytes, PROT_READ, MAP_SHARED, c->w.w.in_fd, 0);
	c->rw = mmap(NULL, l->rw_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, c->w.w.rw_fd, 0);
	if (c->in == MAP_FAILED || c->rw == MAP_FAILED)
		return err_sys(e, "cannot map the workload");
	c->out = xmalloc(l->rw_bytes);
	return 0;
}

static void unuse(struct check *c)
{
	if (c->out) {
		munmap(c->in, c->w.w.layout.in_bytes);
		munmap(c->rw, c->w.w.layout.rw_bytes);
	}
	free(c->out);
	c->out = NULL;
	proof_close(&c->w);
}

static const struct mem_buf *out_buf(const struct check *c, int i)
{
	return mem_find(&c->w.w.layout, MEM_OUTPUT, i);
}

/* New inputs; runs the baseline; keeps its honest outputs in c->out. */
static int honest(struct check *c, struct checker_prep *p, struct err *e)
{
	struct proof_out *o = xcalloc(1, sizeof *o);

	p->ratio = 1;
	p->rep = ++c->rep;
	int rc = proof_rep(&c->w, p, ARM_FORWARD, 3, o, e);
	if (rc == 0 && !o->pass)
		rc = err_set(e, EX_BADINPUT, "the baseline is wrong in regime %s: %s %s",
			     fill_regime_name(p->regime), o->word, o->cmp.output);
	memcpy(c->out, c->rw, c->w.w.layout.rw_bytes);
	free(o);
	return rc;
}

/* The same inputs again, memory poisoned afresh, nothing run. */
static int again(struct check *c, struct checker_prep *p, struct err *e)
{
	p->n_ws = 0;
	for (uint32_t i = 0; i < c->w.w.layout.n; i++)
		if (c->w.w.layout.buf[i].kind == MEM_WORKSPACE)
			p->ws[p->n_ws++] = c->w.w.layout.buf[i].bytes;
	return checker_prepare(c->checker, &c->w.w, p, c->scalars, e);
}

/* ---- fakes ---- */

static struct fake fake_of(struct check *c, const uint8_t *stale)
{
	return (struct fake){.layout = &c->w.w.layout, .rw = c->rw, .in = c->in, .honest = c->out,
			     .stale = stale};
}

static size_t count(const struct mem_buf *b)
{
	return b->bytes / dtype_size((enum dtype)b->dtype);
}

static int has_floats(const struct check *c)
{
	for (int i = 0; i < c->spec->noutputs; i++)
		if (dtype_is_float(c->spec->output[i].dtype))
			return 1;
	return 0;
}

/* Write a fake into fresh memory of the same rep; the checker must refuse it. */
static int try_fake(struct check *c, const char *name, struct checker_prep *p, const struct fake *f,
		    fake_fn *write, double *least,
		    struct err *e)
{
	struct compare_result r;

	if (again(c, p, e) < 0)
		return -1;
	for (int i = 0; i < c->spec->noutputs; i++)
		write(f, out_buf(c, i));
	if (checker_verify(c->checker, &c->w.w, &r, e) < 0)
		return -1;
	if (!r.pass && isfinite(r.worst) && r.worst < *least)
		*least = r.worst;
	say(c, !r.pass, "%s: %s%s", name, r.pass ? "ACCEPTED" : "refused, ", r.pass ? "" : r.code);
	return 0;
}

static int check_fakes(struct check *c, double *least, struct err *e)
{
	struct checker_prep p = {.set = 0, .perturb = 1, .poison = 4}, old = p;
	uint8_t *stale = xmalloc(c->w.w.layout.rw_bytes);
	struct fake f = fake_of(c, stale);
	char name[160];
	int rc = honest(c, &p, e);

	for (int i = 0; FAKES[i].name && rc == 0; i++)
		if (!FAKES[i].floats || has_floats(c))
			rc = try_fake(c, FAKES[i].name, &p, &f, FAKES[i].write, least, e);
	for (f.input = 0; f.input < c->spec->ninputs && rc == 0; f.input++) {
		if (c->spec->input[f.input].scalar)
			continue;
		snprintf(name, sizeof name, "copy of input '%s'", c->spec->input[f.input].name);
		rc = try_fake(c, name, &p, &f, fake_copy, least, e);
	}
	/* Stale: the output of another set, and of the same set with other changed elements. */
	for (uint32_t k = 0; k < 2 && rc == 0; k++) {
		old.set = k ? 0 : 1;
		rc = honest(c, &old, e);
		memcpy(stale, c->out, c->w.w.layout.rw_bytes);
		if (rc == 0)
			rc = try_fake(c, k ? "stale output, inputs differ in a few elements"
					   : "stale output of another input set",
				      &p, &f, fake_stale, least, e);
	}
	free(stale);
	return rc;
}

/* ---- second opinion ---- */

static int check_reference(struct check *c, struct err *e)
{
	static const enum fill_regime REGIMES[] = {REGIME_SPEC, REGIME_MIXED};
	const void *in[SPEC_MAX_TENSORS] = {0};

	for (int k = 0; k < 2; k++) {
		struct checker_prep p = {.rep = ++c->rep, .perturb = 1, .ratio = 1, .regime = REGIMES[k]};
		struct compare_result r;
		if (!(c->w.w.regimes & 1u << REGIMES[k]))
			continue;
		if (again(c, &p, e) < 0)
			return -1;
		for (int i = 0; i < c->spec->ninputs; i++) {
			const struct mem_buf *b = mem_find(&c->w.w.layout, MEM_INPUT, i);
			in[i] = b ? c->in + b->offset : NULL;
		}
		double *out = xmalloc(count(out_buf(c, 0)) * sizeof *out + 8);
		int known = hostref_run(c->spec, &c->w.w.axes, in, c->scalars, out);
		struct fake f = fake_of(c, (const uint8_t *)out);
		if (known)
			fake_double(&f, out_buf(c, 0));
		free(out);
		if (!known) {
			say(c, 1, "reference: no second implementation of '%s' here, not compared",
			    c->spec->op_type);
			return 0;
		}
		if (checker_verify(c->checker, &c->w.w, &r, e) < 0)
			return -1;
		say(c, r.pass, "reference against float64 on the host, regime %s: worst %.2g of the bound",
		    fill_regime_name(REGIMES[k]), r.worst);
	}
	return 0;
}

/* ---- every input matters ---- */

/* Run the baseline on memory of our own whose input `which` comes from another set. */
static int swapped(struct check *c, struct mem *own, int which, enum fill_regime regime, int *moved,
		   struct err *e)
{
	struct checker_prep alt = {.rep = ++c->rep, .set = 1, .perturb = 1, .regime = regime};
	struct checker_prep p = {.rep = ++c->rep, .set = 0, .perturb = 1, .regime = regime};
	const struct mem_buf *b = mem_find(&c->w.w.layout, MEM_INPUT, which);
	struct arm_result res;
	struct compare_result r;
	struct arm *arm;

	if (again(c, &alt, e) < 0)
		return -1;
	double value = c->scalars[which];
	uint8_t *other = xmalloc(b ? b->bytes + 1 : 1);
	if (b)
		memcpy(other, c->in + b->offset, b->bytes);
	if (again(c, &p, e) < 0) {
		free(other);
		return -1;
	}
	memcpy(own->in, c->in, own->l.in_bytes);
	memset(own->rw, 0, own->l.rw_bytes);
	if (b)
		memcpy(own->in + b->offset, other, b->bytes);
	else
		c->scalars[which] = value;
	free(other);
	struct arm_opts o = {.device = "emu", .artefact = c->arm.artefact,
			     .artefact_sha = c->arm.artefact_sha, .spec = c->spec, .plan = c->arm.plan,
			     .axes = &c->w.w.axes, .layout = &own->l, .in_fd = own->in_fd,
			     .rw_fd = own->rw_fd};
	struct arm_run_opts q = {.scalars = c->scalars, .scrub_seed = 1};
	if (arm_open(&arm, &o, e) < 0)
		return -1;
	int rc = arm_run(arm, &q, &res, e);
	arm_close(arm);
	if (rc < 0)
		return -1;
	for (int i = 0; i < c->spec->noutputs; i++) {
		const struct mem_buf *w = out_buf(c, i);
		memcpy(c->rw + w->offset, own->rw + w->offset, w->bytes);
	}
	if (checker_verify(c->checker, &c->w.w, &r, e) < 0)
		return -1;
	*moved = res.status != ARM_OK || !r.pass;
	return 0;
}

static int check_inputs(struct check *c, struct err *e)
{
	struct mem own;

	if (mem_create(&own, &c->w.w.layout, e) < 0)
		return -1;
	for (int i = 0; i < c->spec->ninputs; i++) {
		const struct spec_tensor *t = &c->spec->input[i];
		int moved = 0, rc = 0;
		const char *where = "spec";
		if (t->fill.kind == FILL_CONSTANT || t->fill.kind == FILL_ZEROS) {
			say(c, 1, "input '%s' is constant by the spec: cannot be shown to matter", t->name);
			continue;
		}
		rc = swapped(c, &own, i, REGIME_SPEC, &moved, e);
		for (int k = 0; k < 4 && rc == 0 && !moved && c->w.w.regimes & 1u << REGIME_MIXED; k++) {
			where = "mixed";
			rc = swapped(c, &own, i, REGIME_MIXED, &moved, e);
		}
		if (rc < 0) {
			mem_destroy(&own);
			return -1;
		}
		say(c, moved, "input '%s' %s (regime %s)", t->name,
		    moved ? "moves the output" : "does not matter: a kernel may ignore it", where);
	}
	mem_destroy(&own);
	return 0;
}

/* ---- the baseline, and noise ---- */

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
	struct proof_arm san = {.plan = c->sanitize.plan, .artefact = c->sanitize.box.path,
				.artefact_sha = c->sanitize.box.sha256, .sanitize = 1};
	double t0;
	int rc = 0;

	for (int i = 0; i < c->spec->ntiny && rc == 0; i++) {
		struct checker_open q = {.mode = CHECKER_TINY, .index = (uint32_t)i, .emu = 1};
		struct checker_prep p = {.rep = ++c->rep, .perturb = 1};
		struct proof_work w;
		rc = proof_open(&c->proof, &san, &q, &w, e);
		if (rc == 0)
			rc = proof_rep(&w, &p, ARM_SHUFFLED, 9, o, e);
		proof_close(&w);
		if (rc == 0)
			say(c, o->pass, "baseline under sanitizers, tiny shape %d: %s %.200s", i, o->word,
			    o->pass ? "" : o->text);
	}
	t0 = now_s();
	if (rc == 0)
		rc = proof_judge(&c->proof, &c->arm, &PROOF_JUDGE_EMU, r, e);
	if (rc == 0)
		say(c, r->pass, "baseline passes its own judge: %s%s%s (%.1f s)", r->word,
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

static int timed(struct check *c, struct proof_work *w, uint32_t set, double *ns, struct err *e)
{
	struct checker_prep p = {.rep = set, .set = set, .poison = set};
	struct proof_out *o = xcalloc(1, sizeof *o);
	int rc = proof_rep(w, &p, ARM_FORWARD, 1, o, e);

	(void)c;
	*ns = (double)(o->elapsed_ns > 0 ? o->elapsed_ns : 1);
	free(o);
	return rc;
}

/* A/A: the baseline against itself, ABBA quads, new processes per session. */
static int noise(struct check *c, struct err *e)
{
	enum { SESSIONS = 6, QUADS = 10 };
	double theta[SESSIONS], block[QUADS], ms = 0;
	struct checker_open q = {.mode = CHECKER_PUBLIC, .index = 0, .emu = 1};

	for (int s = 0; s < SESSIONS; s++) {
		struct proof_work a;
		int rc = proof_open(&c->proof, &c->arm, &q, &a, e);
		struct proof_work b = a; /* the same memory, a process of its own */
		for (int k = -1; k < QUADS && rc == 0; k++) {
			double t[4] = {1, 1, 1, 1};
			for (int i = 0; i < 4 && rc == 0; i++)
				rc = timed(c, i == 0 || i == 3 ? &a : &b, (uint32_t)i, &t[i], e);
			if (k >= 0)
				block[k] = log((t[0] + t[3]) / (t[1] + t[2]));
			ms = t[0] * 1e-6;
		}
		arm_close(b.arm);
		proof_close(&a);
		if (rc < 0)
			return -1;
		theta[s] = stats_trimmed(block, QUADS, 0.2);
	}
	double s0 = stats_sd(theta, SESSIONS), t = 2;
	while (stats_log_bf(t, 12, 10) < log(50) && t < 50)
		t += 0.05;
	printf("  noise   %.3g ms a run; A/A standard deviation of a session %.2g %%\n", ms, 100 * s0);
	printf("  effect  least gain that 12 sessions can tell from the margin of %.2g %%: %.2g %%\n",
	       100 * c->spec->margin, 100 * (c->spec->margin + t * s0 / sqrt(12.0)));
	return 0;
}

static int build(struct check *c, struct err *e)
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
		say(c, 1, "baseline compiles, plain and with sanitizers");
	c->arm = (struct proof_arm){.plan = c->fast.plan, .artefact = c->fast.box.path,
				    .artefact_sha = c->fast.box.sha256};
	return rc;
}

/* The baseline's plan must handle every size that may be drawn; so must every candidate's. */
static void check_sizes(struct check *c)
{
	struct plan_sizes sizes;
	struct facts f;
	struct err why = {0};
	int bad = facts_find("emu", &f, &why) || plan_sizes(c->fast.plan, c->spec, &f, 0, &sizes, &why);

	if (bad)
		say(c, 0, "the baseline's plan: %.300s", why.text);
	else
		say(c, 1, "the baseline's plan holds at all %d public and tiny sizes and %d edges of the others",
		    sizes.n, sizes.edges);
}

static int run(struct check *c, struct err *e)
{
	double least = INFINITY;
	struct checker_opts o = {.device = "emu", .spec_dir = c->dir, .trial = "check", .stage = "check"};

	if (spec_load(c->dir, &c->spec, e) < 0 || device_takes("emu", c->spec, e) < 0)
		return -1;
	printf("spec '%s' (%s) on emu\n", c->spec->name, c->spec->op_type);
	say(c, 1, "spec.json is sound: %d inputs, %d outputs, %d public, %d held-out, %d tiny workloads",
	    c->spec->ninputs, c->spec->noutputs, c->spec->npublic, c->spec->held_out_count,
	    c->spec->ntiny);
	if (build(c, e) < 0)
		return -1;
	check_sizes(c);
	if (checker_start(&c->checker, &o, e) < 0)
		return -1;
	c->proof = (struct proof){.checker = c->checker, .spec = c->spec, .device = "emu"};
	if (check_baseline(c, e) < 0)
		return -1;
	int rc = use(c, CHECKER_PUBLIC, 0, e);
	if (rc == 0)
		rc = check_reference(c, e);
	if (rc == 0)
		rc = check_fakes(c, &least, e);
	if (rc == 0)
		rc = check_inputs(c, e);
	unuse(c);
	if (rc == 0)
		rc = noise(c, e);
	if (rc == 0 && isfinite(least))
		printf("  band    the cheapest fake is at %.3g times the bound\n", least);
	return rc;
}

int main(int argc, char **argv)
{
	static struct check c;
	const char *spec = NULL, *device = "emu";
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
		else
			die(EX_BADUSE, "unknown option '%s'; -h for help", argv[i]);
	}
	if (!spec || !trial_name_ok(spec))
		die(EX_BADUSE, "wants --SPEC=NAME of a folder in specs/");
	if (strcmp(device, "emu"))
		die(EX_NOENV, "specs are proved on emu only so far, not on '%s'", device);
	char *dir = xasprintf("specs/%s", spec);
	if (!file_exists(dir))
		die(EX_BADUSE, "no problem 'specs/%s'", spec);
	c.dir = dir;
	int rc = run(&c, &e);
	checker_stop(c.checker);
	image_free(&c.fast);
	image_free(&c.sanitize);
	spec_free(c.spec);
	free(dir);
	if (rc < 0)
		die_err(&e);
	printf("%s\n", c.failures ? "the spec does NOT hold" : "the spec holds");
	return c.failures ? EX_BADINPUT : EX_DONE;
}
