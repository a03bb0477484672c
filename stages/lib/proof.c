/*
 * proof.c - one rep: prepare, run, verify. See proof.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "proof.h"

#include "arm_impl.h"
#include "cubin.h"
#include "defence.h"
#include "file.h"
#include "worker_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An idle child was measured to use below 0.1 ms between reps. */
#define LATE_NS 5000000

void proof_layers(struct proof *p, const char *layers)
{
	if (p->ran++)
		confine_common(p->isolation, layers, p->isolation);
	else
		snprintf(p->isolation, sizeof p->isolation, "%s", layers);
}

static int on_gpu(const struct proof *p)
{
	return device_class_of(p->device) == DEVICE_CUDA;
}

int64_t proof_limit(const struct spec *s, int64_t reference_ns)
{
	int64_t most = s->limits.run_s * 1000000000, ns = 200000000 + 20 * reference_ns;

	ns = ns < 1000000000 ? 1000000000 : ns;
	return ns < most ? ns : most;
}

/* What the checker measured of the reference counts, or the shortest preparation so far, which holds
 * such a run. */
static int64_t deadline(const struct proof_work *w)
{
	const struct proof *p = w->p;

	if (p->timeout_ns || !on_gpu(p))
		return p->timeout_ns ? p->timeout_ns : p->spec->limits.run_s * 1000000000;
	return proof_limit(p->spec, w->w.ref_ns ? w->w.ref_ns : w->prepare_ns);
}

static int arm_start(struct proof_work *w, struct err *e)
{
	struct proof *p = w->p;
	int gpu = on_gpu(p);
	struct arm_opts o = {
		.device = p->device, .artefact = gpu ? w->a->set->path[w->image] : w->a->artefact,
		.artefact_sha = gpu ? w->a->set->sha[w->image] : w->a->artefact_sha,
		.facts = &w->facts, .gpu = p->gpu, .sanitize = w->a->sanitize, .spec = p->spec,
		.plan = w->a->plan, .axes = &w->w.axes, .layout = &w->w.layout, .in_fd = w->w.in_fd,
		.rw_fd = w->w.rw_fd, .fd = w->w.fd, .timeout_ns = deadline(w),
	};

	if (arm_open(&w->arm, &o, e) < 0) {
		w->arm = NULL;
		return -1;
	}
	proof_layers(p, arm_isolation(w->arm));
	return 0;
}

/* The image for these axes, and what it makes of occupancy(entry). 1: none serves them. */
static int pick(struct proof_work *w, const struct axes *axes, struct err *e)
{
	const struct image_set *set = w->a->set;
	struct buf bytes = BUF_INIT;
	char sha[HASH_HEX];
	struct err why = {0};

	if (!on_gpu(w->p))
		return 0;
	w->image = image_pick(set, w->a->plan, w->p->spec, axes, &w->facts, &why);
	if (w->image < 0) {
		snprintf(w->refused, sizeof w->refused, "%.299s", why.text);
		return 1;
	}
	if (file_read(set->path[w->image], 64u << 20, &bytes, e) < 0)
		return -1;
	hash_hex(bytes.data, bytes.len, sha);
	w->cubin = xcalloc(1, sizeof *w->cubin);
	int rc = strcmp(sha, set->sha[w->image])
			 ? err_set(e, EX_BADINPUT, "'%s' is not the file that was recorded", set->path[w->image])
			 : cubin_parse(bytes.data, bytes.len, w->cubin, e);
	buf_free(&bytes);
	if (rc == 0)
		cubin_facts(w->cubin, &w->facts);
	return rc;
}

int proof_open(struct proof *p, const struct proof_arm *a, const struct checker_open *q,
	       struct proof_work *w, struct err *e)
{
	struct checker_open o = *q;
	struct launches l;
	struct axes axes;

	memset(w, 0, sizeof *w);
	w->p = p;
	w->a = a;
	w->w.in_fd = w->w.rw_fd = -1;
	o.emu = !on_gpu(p);
	if (p->facts)
		w->facts = *p->facts;
	else if (facts_find(p->device, &w->facts, e) < 0)
		return -1;
	if (checker_draw(p->checker, o.mode, o.index, o.emu, &axes, e) < 0)
		return -1;
	int none = pick(w, &axes, e);
	if (none)
		return none < 0 ? -1 : 0;
	struct err why = {0};
	if (plan_resolve(a->plan, p->spec, &axes, &w->facts, 0, &l, &why) < 0) {
		snprintf(w->refused, sizeof w->refused, "%.299s", why.text);
		return 0;
	}
	w->n_ws = o.n_ws = (uint32_t)l.nworkspaces;
	for (int i = 0; i < l.nworkspaces; i++)
		w->ws[i] = o.ws[i] = (uint64_t)l.workspace[i].bytes;
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

static int arm_ready(struct proof_work *w, struct err *e)
{
	return w->arm ? 0 : arm_start(w, e);
}

static int prepare(struct proof_work *w, const struct checker_prep *q, double *scalars, struct err *e)
{
	int64_t from = arm_now_ns();
	int rc = checker_prepare(w->p->checker, &w->w, q, scalars, e);
	int64_t ns = arm_now_ns() - from;

	/* Without changed elements the reference may be a remembered one. */
	if ((q->perturb || q->ratio) && (!w->prepare_ns || ns < w->prepare_ns))
		w->prepare_ns = ns;
	return rc;
}

/* The arm is dead. On a GPU its failure counts against the candidate only if the GPU works: the
 * start of the next worker shows that. */
static int arm_failed(struct proof_work *w, enum arm_status status, struct err *e)
{
	arm_close(w->arm);
	w->arm = NULL;
	if (!on_gpu(w->p) || status == ARM_REFUSED)
		return 0;
	if (worker_pool_check(w->p->gpu, e) == 0)
		return 0;
	w->p->unhealthy = 1;
	return -1;
}

static int rep_run(struct proof_work *w, enum arm_order order, uint64_t seed, const double *scalars,
		   struct proof_out *out, struct err *e)
{
	struct arm_result r;
	struct arm_run_opts q = {.order = DEFENCE("thread.orders") ? order : ARM_FORWARD,
				 .order_seed = (uint32_t)seed, .scrub_seed = seed * 2 + 1, .scalars = scalars};

	if (arm_run(w->arm, &q, &r, e) < 0) {
		w->p->unhealthy |= on_gpu(w->p) && r.killed; /* counted as the child's death, as on emu */
		return -1;
	}
	out->status = r.status;
	out->elapsed_ns = r.elapsed_ns;
	out->late_ns = r.late_ns;
	snprintf(out->text, sizeof out->text, "%s", r.text);
	if (r.status != ARM_OK && !DEFENCE("launch.status")) {
		out->status = ARM_OK; /* as where nobody asks how a launch ended */
		return arm_failed(w, r.status, e);
	}
	if (r.status != ARM_OK) {
		fail(out, status_word(r.status));
		return arm_failed(w, r.status, e);
	}
	if (r.late_ns > LATE_NS && DEFENCE("judge.late_write"))
		fail(out, "late_write");
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
	q.n_ws = w->n_ws;
	memcpy(q.ws, w->ws, sizeof q.ws);
	if ((!on_gpu(w->p) && arm_ready(w, e) < 0) || prepare(w, &q, scalars, e) < 0 ||
	    arm_ready(w, e) < 0 || rep_run(w, order, seed, scalars, out, e) < 0)
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
	if (!same && DEFENCE("judge.late_write"))
		fail(out, "late_write");
	if (!w->arm)
		return 0;
	arm_wipe(w->arm, &r);
	if (r.status != ARM_OK) {
		out->status = r.status;
		snprintf(out->text, sizeof out->text, "%s", r.text);
		fail(out, status_word(r.status));
		return arm_failed(w, r.status, e);
	}
	return 0;
}

void proof_close(struct proof_work *w)
{
	arm_close(w->arm);
	w->arm = NULL;
	free(w->cubin);
	w->cubin = NULL;
	if (w->p)
		checker_close(w->p->checker, &w->w);
}

void proof_isolation(struct proof *p, struct verdict *v)
{
	char *rest = NULL;

	for (char *l = strtok_r(p->isolation, ", ", &rest); l; l = strtok_r(NULL, ", ", &rest))
		verdict_isolation(v, l);
}
