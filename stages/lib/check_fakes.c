/*
 * check_fakes.c - what the checker must refuse, and whether every input matters. See check_part.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "check_part.h"

#include "buf.h"
#include "defence.h"
#include "fakes.h"
#include "hostref.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

	if (check_again(c, p, e) < 0)
		return -1;
	for (int i = 0; i < c->spec->noutputs; i++)
		write(f, check_out(c, i));
	if (check_put(c, e) < 0 || checker_verify(c->checker, &c->w.w, &r, e) < 0)
		return -1;
	if (!r.pass && isfinite(r.worst) && r.worst < *least)
		*least = r.worst;
	check_say(c, !r.pass || !DEFENCE("check.fakes"), "%s: %s%s", name, r.pass ? "ACCEPTED" : "refused, ", r.pass ? "" : r.code);
	return 0;
}

/* Are the outputs in `now` (as c->out lies) those in `then`? */
static int same_outputs(const struct check *c, const uint8_t *then, const uint8_t *now)
{
	for (int i = 0; i < c->spec->noutputs; i++) {
		const struct mem_buf *b = mem_find(&c->w.w.layout, MEM_OUTPUT, i);
		if (memcmp(then + b->offset, now + b->offset, b->bytes))
			return 0;
	}
	return 1;
}

int check_fakes(struct check *c, double *least, struct err *e)
{
	enum { TRIES = 16 };
	struct checker_prep p = {.set = 0, .perturb = 1, .poison = 4}, old = p;
	uint8_t *stale = xmalloc(c->w.w.layout.rw_bytes);
	struct fake f = fake_of(c, stale);
	char name[160];
	int rc = check_honest(c, &p, e);
	uint8_t *right = xmalloc(c->w.w.layout.rw_bytes);

	memcpy(right, c->out, c->w.w.layout.rw_bytes);
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
		/* A few changed inputs may leave an order or a maximum as it is: then the old output is right. */
		for (int i = 0; i < (k ? TRIES : 1) && rc == 0; i++) {
			rc = check_honest(c, &old, e);
			memcpy(stale, c->out, c->w.w.layout.rw_bytes);
			if (!same_outputs(c, right, stale))
				break;
		}
		if (rc == 0 && k && same_outputs(c, right, stale))
			check_say(c, 1, "stale output: a few changed inputs never moved it, nothing to refuse");
		else if (rc == 0)
			rc = try_fake(c, k ? "stale output, inputs differ in a few elements"
					   : "stale output of another input set",
				      &p, &f, fake_stale, least, e);
	}
	free(stale);
	free(right);
	return rc;
}

/* ---- second opinion ---- */

int check_reference(struct check *c, struct err *e)
{
	static const enum fill_regime REGIMES[] = {REGIME_SPEC, REGIME_MIXED};
	const void *in[SPEC_MAX_TENSORS] = {0};

	for (int k = 0; k < 2; k++) {
		struct checker_prep p = {.rep = ++c->rep, .perturb = 1, .ratio = 1, .regime = REGIMES[k]};
		struct compare_result r;
		if (!(c->w.w.regimes & 1u << REGIMES[k]))
			continue;
		if (check_again(c, &p, e) < 0)
			return -1;
		for (int i = 0; i < c->spec->ninputs; i++) {
			const struct mem_buf *b = mem_find(&c->w.w.layout, MEM_INPUT, i);
			in[i] = b ? c->in + b->offset : NULL;
		}
		double *out = xmalloc(count(check_out(c, 0)) * sizeof *out + 8);
		int known = hostref_run(c->spec, &c->w.w.axes, in, c->scalars, out);
		struct fake f = fake_of(c, (const uint8_t *)out);
		if (known)
			fake_double(&f, check_out(c, 0));
		free(out);
		if (check_put(c, e) < 0)
			return -1;
		if (!known) {
			check_say(c, 1, "reference: no second implementation of '%s' here, not compared",
			    c->spec->op_type);
			return 0;
		}
		if (checker_verify(c->checker, &c->w.w, &r, e) < 0)
			return -1;
		check_say(c, r.pass, "reference against float64 on the host, regime %s: worst %.2g of the bound",
		    fill_regime_name(REGIMES[k]), r.worst);
	}
	return 0;
}

/* ---- every input matters ---- */

/* Run the baseline on memory of our own, whose inputs are those in c->in; outputs into c->rw. */
static int run_emu(struct check *c, struct mem *own, enum arm_status *status, struct err *e)
{
	struct arm_opts o = {.device = "emu", .artefact = c->arm.artefact,
			     .artefact_sha = c->arm.artefact_sha, .spec = c->spec, .plan = c->arm.plan,
			     .axes = &c->w.w.axes, .layout = &own->l, .in_fd = own->in_fd,
			     .rw_fd = own->rw_fd};
	struct arm_run_opts q = {.scalars = c->scalars, .scrub_seed = 1};
	struct arm_result res;
	struct arm *arm;

	memset(own->rw, 0, own->l.rw_bytes);
	if (arm_open(&arm, &o, e) < 0)
		return -1;
	int rc = arm_run(arm, &q, &res, e);
	arm_close(arm);
	*status = res.status;
	for (int i = 0; i < c->spec->noutputs; i++) {
		const struct mem_buf *w = check_out(c, i);
		memcpy(c->rw + w->offset, own->rw + w->offset, w->bytes);
	}
	return rc;
}

/* On a GPU there is one memory: put the other input there, run, and put the right one back. */
static int run_gpu(struct check *c, const struct mem_buf *b, uint8_t *other, enum arm_status *status,
		   struct err *e)
{
	struct arm_run_opts q = {.scalars = c->scalars, .scrub_seed = 1};
	struct arm_result res;
	uint8_t *right = b ? xmalloc(b->bytes + 1) : NULL;
	int rc = 0;

	if (b) {
		memcpy(right, c->in + b->offset, b->bytes);
		memcpy(c->in + b->offset, other, b->bytes);
		rc = check_put(c, e);
	}
	if (rc == 0)
		rc = arm_run(c->w.arm, &q, &res, e);
	if (rc == 0)
		rc = check_get(c, e);
	if (rc == 0 && b) {
		memcpy(c->in + b->offset, right, b->bytes);
		rc = check_put(c, e);
	}
	free(right);
	*status = res.status;
	return rc;
}

/* The baseline on inputs of which `which` comes from another set: is that another output? */
static int swapped(struct check *c, struct mem *own, int which, enum fill_regime regime, int *moved,
		   struct err *e)
{
	struct checker_prep alt = {.rep = ++c->rep, .set = 1, .perturb = 1, .regime = regime};
	struct checker_prep p = {.rep = ++c->rep, .set = 0, .perturb = 1, .regime = regime};
	const struct mem_buf *b = mem_find(&c->w.w.layout, MEM_INPUT, which);
	struct compare_result r;
	enum arm_status status = ARM_OK;

	if (check_again(c, &alt, e) < 0)
		return -1;
	double value = c->scalars[which];
	uint8_t *other = xmalloc(b ? b->bytes + 1 : 1);
	if (b)
		memcpy(other, c->in + b->offset, b->bytes);
	int rc = check_again(c, &p, e);
	if (rc == 0 && !b)
		c->scalars[which] = value;
	if (rc == 0 && c->on_gpu) {
		rc = run_gpu(c, b, other, &status, e);
	} else if (rc == 0) {
		memcpy(own->in, c->in, own->l.in_bytes);
		if (b)
			memcpy(own->in + b->offset, other, b->bytes);
		rc = run_emu(c, own, &status, e);
	}
	free(other);
	if (rc < 0 || checker_verify(c->checker, &c->w.w, &r, e) < 0)
		return -1;
	*moved = status != ARM_OK || !r.pass;
	return 0;
}

int check_inputs(struct check *c, struct err *e)
{
	struct mem own = {0};

	if (!c->on_gpu && mem_create(&own, &c->w.w.layout, e) < 0)
		return -1;
	for (int i = 0; i < c->spec->ninputs; i++) {
		const struct spec_tensor *t = &c->spec->input[i];
		int moved = 0, rc = 0;
		const char *where = "spec";
		if (t->fill.kind == FILL_CONSTANT || t->fill.kind == FILL_ZEROS) {
			check_say(c, 1, "input '%s' is constant by the spec: cannot be shown to matter", t->name);
			continue;
		}
		rc = swapped(c, &own, i, REGIME_SPEC, &moved, e);
		for (int k = 0; k < 4 && rc == 0 && !moved && c->w.w.regimes & 1u << REGIME_MIXED; k++) {
			where = "mixed";
			rc = swapped(c, &own, i, REGIME_MIXED, &moved, e);
		}
		if (rc < 0) {
			if (!c->on_gpu)
				mem_destroy(&own);
			return -1;
		}
		check_say(c, moved || !DEFENCE("check.inputs"), "input '%s' %s (regime %s)", t->name,
		    moved ? "moves the output" : "does not matter: a kernel may ignore it", where);
	}
	if (!c->on_gpu)
		mem_destroy(&own);
	return 0;
}
