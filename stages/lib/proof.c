/*
 * proof.c - one rep: prepare, run, verify. See proof.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "proof.h"

#include <stdio.h>
#include <string.h>

/* An idle child was measured to use below 0.1 ms between reps. */
#define LATE_NS 5000000

static int arm_start(struct proof_work *w, struct err *e)
{
	struct proof *p = w->p;
	struct arm_opts o = {
		.device = p->device, .artefact = w->a->artefact, .artefact_sha = w->a->artefact_sha,
		.sanitize = w->a->sanitize, .spec = p->spec, .plan = w->a->plan, .axes = &w->w.axes,
		.layout = &w->w.layout, .in_fd = w->w.in_fd, .rw_fd = w->w.rw_fd,
		.timeout_ns = p->timeout_ns ? p->timeout_ns : p->spec->limits.run_s * 1000000000,
	};

	if (arm_open(&w->arm, &o, e) < 0) {
		w->arm = NULL;
		return -1;
	}
	const char *layers = arm_isolation(w->arm);
	if (p->ran++)
		confine_common(p->isolation, layers, p->isolation);
	else
		snprintf(p->isolation, sizeof p->isolation, "%s", layers);
	return 0;
}

int proof_open(struct proof *p, const struct proof_arm *a, const struct checker_open *q,
	       struct proof_work *w, struct err *e)
{
	struct checker_open o = *q;
	struct facts f;
	struct launches l;
	struct axes axes;

	memset(w, 0, sizeof *w);
	w->p = p;
	w->a = a;
	w->w.in_fd = w->w.rw_fd = -1;
	if (facts_find(p->device, &f, e) < 0 ||
	    checker_draw(p->checker, q->mode, q->index, q->emu, &axes, e) < 0)
		return -1;
	struct err why = {0};
	if (plan_resolve(a->plan, p->spec, &axes, &f, 0, &l, &why) < 0) {
		snprintf(w->refused, sizeof w->refused, "%.299s", why.text);
		return 0;
	}
	o.n_ws = (uint32_t)l.nworkspaces;
	for (int i = 0; i < l.nworkspaces; i++)
		o.ws[i] = (uint64_t)l.workspace[i].bytes;
	launches_free(&l);
	return checker_open(p->checker, &o, &w->w, e);
}

static const char *status_word(enum arm_status s)
{
	switch (s) {
	case ARM_OK: return "ok";
	case ARM_FAULT: return "fault";
	case ARM_SANITIZER: return "sanitizer";
	case ARM_DEADLOCK: return "deadlock";
	case ARM_TIMEOUT: return "timeout";
	case ARM_REFUSED: return "refused";
	case ARM_BARRIER: return "barrier";
	case ARM_RACE: return "race";
	default: return "protocol";
	}
}

static void fail(struct proof_out *out, const char *word)
{
	if (!out->pass)
		return;
	out->pass = 0;
	snprintf(out->word, sizeof out->word, "%s", word);
}

static int rep_run(struct proof_work *w, enum arm_order order, uint64_t seed, const double *scalars,
		   struct proof_out *out, struct err *e)
{
	struct arm_result r;
	struct arm_run_opts q = {.order = order, .order_seed = seed, .scrub_seed = seed * 2 + 1,
				 .scalars = scalars};

	if (arm_run(w->arm, &q, &r, e) < 0)
		return -1;
	out->status = r.status;
	out->elapsed_ns = r.elapsed_ns;
	out->late_ns = r.late_ns;
	snprintf(out->text, sizeof out->text, "%s", r.text);
	if (r.status != ARM_OK) {
		fail(out, status_word(r.status));
		arm_close(w->arm);
		w->arm = NULL;
	} else if (r.late_ns > LATE_NS) {
		fail(out, "late_write");
	}
	return 0;
}

int proof_rep(struct proof_work *w, const struct checker_prep *prep, enum arm_order order,
	      uint64_t seed, struct proof_out *out, struct err *e)
{
	struct checker_prep q = *prep;
	double scalars[CHECKER_SCALARS];
	struct arm_result r;
	int same = 1;

	memset(out, 0, sizeof *out);
	out->pass = 1;
	strcpy(out->word, "ok");
	if (w->refused[0]) {
		out->status = ARM_REFUSED;
		out->no_launch = 1;
		snprintf(out->text, sizeof out->text, "%s", w->refused);
		fail(out, "refused");
		return 0;
	}
	if (!w->arm && arm_start(w, e) < 0)
		return -1;
	q.n_ws = arm_workspaces(w->arm, q.ws, CHECKER_WS);
	if (checker_prepare(w->p->checker, &w->w, &q, scalars, e) < 0 ||
	    rep_run(w, order, seed, scalars, out, e) < 0)
		return -1;
	if (out->status != ARM_OK)
		return 0;
	if (checker_verify(w->p->checker, &w->w, &out->cmp, e) < 0)
		return -1;
	if (!out->cmp.pass) {
		const char *dot = strchr(out->cmp.code, '.');
		fail(out, dot ? dot + 1 : out->cmp.code);
	}
	if (checker_again(w->p->checker, &w->w, &same, e) < 0)
		return -1;
	if (!same)
		fail(out, "late_write");
	arm_wipe(w->arm, &r);
	if (r.status != ARM_OK) {
		out->status = r.status;
		snprintf(out->text, sizeof out->text, "%s", r.text);
		fail(out, status_word(r.status));
		arm_close(w->arm);
		w->arm = NULL;
	}
	return 0;
}

void proof_close(struct proof_work *w)
{
	arm_close(w->arm);
	w->arm = NULL;
	if (w->p)
		checker_close(w->p->checker, &w->w);
}

void proof_isolation(struct proof *p, struct verdict *v)
{
	char *rest = NULL;

	for (char *l = strtok_r(p->isolation, ", ", &rest); l; l = strtok_r(NULL, ", ", &rest))
		verdict_isolation(v, l);
}
