/*
 * duel.c - one contest between two kernels on the GPU of this machine, without a trial about it.
 *
 * The code of bench from rig_cuda.c up: calibration, sessions, rule, guards. Nothing is recorded; the checker has a
 * throw-away key. For tests on the fake driver and for a look by hand.
 *
 *   duel SPEC-DIR A B [confirm|look]     A, B: folders with kernel.cu and plan.json; look: one session. Prints
 *   WORKLOAD: A us, B us, B faster by P % (s.e.), windows    of the first session, times of one copy, an empty
 *                                                            window's and launch's beside them
 *   VERDICT CODE sessions=N ratio=R drain=D sustained=S seconds=T: MESSAGE
 *
 * SPDX-License-Identifier: MIT
 */
#include "contest.h"
#include "gpu.h"
#include "image.h"
#include "lane.h"
#include "rig.h"
#include "rig_profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void must(int rc, const struct err *e)
{
	if (rc != 0)
		die_err(e);
}

static void build(struct rig *r, enum raw_arm arm, const char *spec_dir, const char *dir)
{
	struct err e;
	struct image *m = xcalloc(1, sizeof *m);
	struct rig_arm *a = &r->arm[arm];
	must(image_load(m, r->spec, dir, "kernel.cu", "plan.json", &e), &e);
	must(image_build_gpu(m, r->spec, spec_dir, r->gpu.arch, NULL, &e), &e);
	if (!m->ok)
		die(EX_BADINPUT, "%s does not compile: %s", dir, m->box.message);
	a->set = xcalloc(1, sizeof *a->set);
	*a->set = m->set;
	a->plan = m->plan; /* m stays: it is borrowed */
	a->present = 1;
}

static void set_up(struct rig *r, const char *spec_dir, const char *a, const char *b, int confirm)
{
	struct err e;
	r->class = DEVICE_CUDA;
	r->limits = SESSION_CUDA;
	must(gpu_find("cuda", &r->gpu, &e), &e);
	r->facts = r->gpu.facts;
	must(spec_load(spec_dir, &r->spec, &e), &e);
	build(r, RAW_CHAMPION, spec_dir, a);
	build(r, RAW_CANDIDATE, spec_dir, b);
	if (confirm) {
		r->arm[RAW_BASELINE] = r->arm[RAW_CHAMPION];
		r->apart = 1;
	}
	struct checker_opts o = {.device = r->gpu.facts.slug, .gpu = r->gpu.uuid, .spec_dir = spec_dir,
				 .trial = "0001", .stage = confirm ? "confirm" : "bench"};
	must(checker_start(&r->checker, &o, &e), &e);
	for (int i = 0; i < r->spec->npublic; i++) {
		const struct spec_workload *p = &r->spec->public[i];
		struct rig_workload *w = &r->workload[r->nworkloads++];
		*w = (struct rig_workload){.mode = CHECKER_PUBLIC, .index = (uint32_t)i, .axes = p->gpu,
					   .weight = p->weight};
		snprintf(w->name, sizeof w->name, "%s", p->name);
	}
}

/* Times of one copy: the window is divided, what every window costs is in it. */
static void tell(const struct rig *r, const struct contest *t)
{
	for (int i = 0; t->n && i < r->nworkloads; i++) {
		const struct session_workload *w = &t->session[0].w[i];
		double n = r->size[i].windows;
		printf("%s: A %.2f us, B %.2f us, B faster by %+.2f %% (s.e. %.2f), windows %d, an empty one %.2f us, an empty "
		       "launch %.2f us\n", r->workload[i].name, w->mean[RAW_CHAMPION] * 1e-3 / n,
		       w->mean[RAW_CANDIDATE] * 1e-3 / n, 100 * expm1(w->theta), 100 * w->se, r->size[i].windows,
		       r->figures.empty_ns * 1e-3, r->figures.null_ns * 1e-3);
	}
}

static void plan(struct contest *t, struct rig *r, struct raw *raw, int confirm)
{
	contest_init(t);
	raw_begin(raw, 1000000000);
	t->c = &r->limits;
	t->size = r->size;
	t->rule.s0 = 0.002;
	t->rule.k_max = r->limits.k_max;
	t->workloads = r->nworkloads;
	for (int i = 0; i < r->nworkloads; i++) {
		t->name[i] = r->workload[i].name;
		t->weight[i] = r->workload[i].weight;
	}
	snprintf(r->order_seed, sizeof r->order_seed, "%d", (int)time(NULL));
	memcpy(t->order_seed, r->order_seed, sizeof t->order_seed);
	t->confirming = t->guards = t->anchor = confirm;
	t->ops = rig_ops(r);
	t->ctx = r;
	t->raw = raw;
}

int main(int argc, char **argv)
{
	static struct rig r;
	static struct contest t;
	struct raw raw;
	struct lane lane = LANE_INIT;
	struct err e;
	enum shot_outcome o;
	char text[256] = "";
	prog_name(argv[0]);
	int confirm = argc == 5 && strcmp(argv[4], "confirm") == 0;
	int look = argc == 5 && strcmp(argv[4], "look") == 0;
	if (argc != 4 + confirm + look)
		die(EX_BADUSE, "usage: duel SPEC-DIR A B [confirm|look]");
	time_t from = time(NULL);
	set_up(&r, argv[1], argv[2], argv[3], confirm);
	must(lane_exclusive(&lane, r.gpu.uuid, &e), &e);
	must(rig_calibrate(&r, &o, text, &e), &e);
	if (o != SHOT_OK)
		die(EX_HARNESS, "A failed before anything was measured: %s", text);
	plan(&t, &r, &raw, confirm);
	if (look)
		t.rule.k_max = 1;
	must(confirm ? contest_fixed(&t, CONTEST_CONFIRM, &e) : contest_decide(&t, &e), &e);
	if (confirm && t.kind == V_PASS)
		contest_confirm(&t);
	if (t.n && rig_floor_broken(&r, &t, text))
		printf("below the floor: %s\n", text);
	tell(&r, &t);
	const struct session_workload *w = t.n ? &t.session[0].w[0] : NULL;
	printf("%s %s sessions=%d ratio=%.4f drain=%.4f sustained=%.4f windows=%d seconds=%ld: %s\n",
	       verdict_kind_name(t.kind), t.code ? t.code : "-", t.n, t.k ? exp(stats_mean(t.theta, (size_t)t.k)) : 0,
	       w ? exp(w->drain) : NAN, w ? exp(w->sustained) : NAN, r.size[0].windows, (long)(time(NULL) - from),
	       t.message);
	lane_drop(&lane);
	raw_free(&raw);
	contest_free(&t);
	checker_stop(r.checker);
	rig_cuda_free(&r);
	return 0;
}
