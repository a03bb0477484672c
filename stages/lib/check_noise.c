/*
 * check_noise.c - what this machine can tell apart. See check_part.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "check_part.h"

#include "buf.h"
#include "file.h"
#include "stats.h"
#include "worker_call.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

enum { SESSIONS = 6, QUADS = 10 };

/* One session: ABBA quads of the baseline against itself. */
static double theta_of(const double t[QUADS][4])
{
	double block[QUADS];

	for (int k = 0; k < QUADS; k++)
		block[k] = log((t[k][0] + t[k][3]) / (t[k][1] + t[k][2]));
	return stats_trimmed(block, QUADS, 0.2);
}

static int session_emu(struct check *c, double t[QUADS][4], struct err *e)
{
	struct checker_open q = {.mode = CHECKER_PUBLIC, .index = 0};
	struct proof_work a;
	int rc = proof_open(&c->proof, &c->arm, &q, &a, e);
	struct proof_work b = a; /* the same memory, a process of its own */

	for (int k = -1; k < QUADS && rc == 0; k++)
		for (int i = 0; i < 4 && rc == 0; i++)
			rc = timed(c, i == 0 || i == 3 ? &a : &b, (uint32_t)i, &t[k < 0 ? 0 : k][i], e);
	arm_close(b.arm);
	proof_close(&a);
	return rc;
}

static int run_gpu(struct worker *w, int slot, const double *scalars, double *ns, struct err *e)
{
	struct worker_run q = {.scrub_seed = 1, .scalars = (const double (*)[CHECKER_SCALARS])scalars};
	struct worker_result r;

	if (worker_run(w, slot, &q, &r, e) < 0)
		return -1;
	if (r.outcome != WORKER_OK)
		return err_set(e, EX_BADINPUT, "the baseline %s: %s", worker_outcome_name(r.outcome), r.text);
	*ns = (double)(r.elapsed_ns > 0 ? r.elapsed_ns : 1);
	return 0;
}

/* Two slots of one new worker, on the memory of the workload in use. */
static int quads_gpu(struct check *c, struct worker *w, const struct launches *l, const struct buf *cubin,
		     double t[QUADS][4], struct err *e)
{
	static const int mem[1] = {0};
	struct worker_result r;

	if (worker_map(w, 0, &c->w.w.layout, c->w.w.fd, e) < 0)
		return -1;
	for (int i = 0; i < 2; i++) {
		if (worker_load(w, i, cubin->data, cubin->len, l, c->spec, 1, mem, &r, e) < 0)
			return -1;
		if (r.outcome != WORKER_OK)
			return err_set(e, EX_BADINPUT, "the baseline cannot be loaded: %s", r.text);
	}
	for (int k = -1; k < QUADS; k++)
		for (int i = 0; i < 4; i++)
			if (run_gpu(w, i == 1 || i == 2, c->scalars, &t[k < 0 ? 0 : k][i], e) < 0)
				return -1;
	return 0;
}

static int session_gpu(struct check *c, double t[QUADS][4], struct worker_figures *f, struct err *e)
{
	struct worker_opts o = {.gpu = c->gpu.uuid};
	struct checker_prep p = {.rep = ++c->rep, .perturb = 1};
	struct buf cubin = BUF_INIT;
	struct launches l;
	struct worker *w;

	if (check_again(c, &p, e) < 0 || plan_resolve(c->fast.plan, c->spec, &c->w.w.axes, &c->w.facts, 0, &l, e) < 0)
		return -1;
	int rc = file_read(c->arm.set->path[c->w.image], 64u << 20, &cubin, e);
	if (rc == 0 && worker_start(&w, &o, e) < 0)
		rc = -1;
	else if (rc == 0) {
		rc = quads_gpu(c, w, &l, &cubin, t, e);
		if (rc == 0 && f)
			rc = worker_figures(w, f, e);
		worker_stop(w);
	}
	buf_free(&cubin);
	launches_free(&l);
	return rc;
}

static void say_figures(const struct worker_figures *f)
{
	printf("  timer   tick %.3g ns, empty window %.3g us, one empty kernel %.3g us\n", f->tick_ns,
	       f->empty_ns * 1e-3, f->null_ns * 1e-3);
	printf("  flush   reads %.0f MiB; a read after it takes %.3g of the time after 16 x L2\n",
	       (double)f->flush_bytes / 1048576, f->flush_check);
}

int check_noise(struct check *c, uint32_t workload, struct err *e)
{
	double theta[SESSIONS], times[QUADS][4] = {{1}};
	struct worker_figures figures = {0};
	int rc = c->on_gpu ? check_use(c, CHECKER_PUBLIC, workload, e) : 0;

	for (int s = 0; s < SESSIONS && rc == 0; s++) {
		rc = c->on_gpu ? session_gpu(c, times, s ? NULL : &figures, e) : session_emu(c, times, e);
		theta[s] = theta_of((const double (*)[4])times);
	}
	if (c->on_gpu)
		check_unuse(c);
	if (rc < 0)
		return -1;
	double s0 = stats_sd(theta, SESSIONS), t = 2;
	while (stats_log_bf(t, 12, 10) < log(50) && t < 50)
		t += 0.05;
	printf("  noise   %.3g ms a run; A/A standard deviation of a session %.2g %%\n",
	       times[QUADS - 1][0] * 1e-6, 100 * s0);
	printf("  effect  least gain that 12 sessions can tell from the margin of %.2g %%: %.2g %%\n",
	       100 * c->spec->margin, 100 * (c->spec->margin + t * s0 / sqrt(12.0)));
	if (c->on_gpu)
		say_figures(&figures);
	return 0;
}
