/*
 * aa.c - the champion against itself, and against known doses, on a real GPU: what make bench-aa runs.
 *
 * Cells are kernels: shipped ones against themselves (two modules of one image), and the kernels of
 * tests/bench/kernels/ with DOSE per cent more work against without. A round is one fresh worker that serves all
 * cells of its list in drawn order, each with new memory and new inputs, by the very code of bench (rig_cuda.c,
 * session.c), every rep verified. Per cell and round one line is appended to the file:
 *
 *   {"cell","dose","round","at","gpu","driver","windows","T_ns","theta","se","blocks":[L_b...],
 *    "blocked":{"a":{...},"b":{...}},  40 reps of A in a row, then 40 of B: mean median sd min q1 q3, ns
 *    "first":{"a","b"},                means of the first 96 interleaved reps of each
 *    "ticks":[[a...],[b...]]}          every tenth round: the first block's reps, ns
 *
 * A line {"void_round": N} says that others were on the GPU: that round counts for nothing.
 * Give it the same file again and it goes on: cells with fewest sessions first.
 *
 *   aa FILE [SECONDS [A/A-SESSIONS DOSE-SESSIONS [SPEC-DIR CODE WORKLOAD]]]     default 360 60 25, all kernels
 *
 * SPDX-License-Identifier: MIT
 */
#include "file.h"
#include "gpu.h"
#include "image.h"
#include "json.h"
#include "lane.h"
#include "rig.h"
#include "stats.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKED = 40, FIRST = 96, BLOCKS = 40, CELLS = 40 };

static struct kernel {
	const char *spec, *code, *workload;
	int dosed;
} KERNEL[] = {
	{"specs/vector_add", "start", "large", 0},
	{"specs/vector_add", "start", "odd", 0},
	{"specs/rmsnorm", "start", "prefill", 0},
	{"specs/rmsnorm", "start", "decode", 0},
	{"specs/silu_mul", "start", "odd", 0},
	{"specs/softmax", "start", "long", 0},
	{"specs/transpose", "start", "tall", 0},
	{"specs/matmul", "start", "skinny", 0},
	{"specs/matmul_bf16", "baseline", "skinny", 0},
	{"tests/bench/kernels/stream", "baseline", "large", 1},
	{"tests/bench/kernels/stream", "baseline", "small", 1},
	{"tests/bench/kernels/settle", "baseline", "large", 1},
	{"tests/bench/kernels/rows", "baseline", "large", 1},
};
static size_t kernels = sizeof KERNEL / sizeof *KERNEL;
static const int DOSES[] = {0, 1, 2, 3, 5};

struct cell {
	char name[96];
	int dose, want, have, kernel;
	struct rig rig;
};
static struct cell cell[CELLS];
static int ncells;

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void must(int rc, const struct err *e)
{
	if (rc != 0)
		die_err(e);
}

/* ---- cells ---- */

static void build(struct cell *c, struct rig_arm *a, int dose)
{
	struct err e;
	struct image *m = xcalloc(1, sizeof *m);
	char *dir = xasprintf("%s%s%s", KERNEL[c->kernel].spec, *KERNEL[c->kernel].code ? "/" : "", KERNEL[c->kernel].code);
	must(image_load(m, c->rig.spec, dir, "kernel.cu", "plan.json", &e), &e);
	if (KERNEL[c->kernel].dosed) {
		struct plan_config k = {.n = 1, .v = {dose}};
		must(plan_config_set(m->plan, &k, &e), &e);
	}
	must(image_build_gpu(m, c->rig.spec, KERNEL[c->kernel].spec, c->rig.gpu.arch, NULL, &e), &e);
	if (!m->ok)
		die(EX_HARNESS, "%s does not compile: %s", c->name, m->box.message);
	a->set = xcalloc(1, sizeof *a->set);
	*a->set = m->set;
	a->plan = m->plan;
	a->present = 1;
	free(dir); /* m stays: the plan is borrowed */
}

static void begin(struct cell *c, const struct gpu *g, const struct cell *same)
{
	struct err e;
	struct rig *r = &c->rig;
	const char *dir = KERNEL[c->kernel].spec;
	r->class = DEVICE_CUDA;
	r->gpu = *g;
	r->facts = g->facts;
	r->limits = SESSION_CUDA;
	r->limits.blocks_max = BLOCKS;
	must(spec_load(dir, &r->spec, &e), &e);
	struct checker_opts o = {.device = g->facts.slug, .gpu = g->uuid, .spec_dir = dir, .trial = "0001",
				 .stage = "bench"};
	if (same)
		r->checker = same->rig.checker; /* one for all cells of a spec */
	else
		must(checker_start(&r->checker, &o, &e), &e);
	for (int i = 0; i < r->spec->npublic; i++) {
		const struct spec_workload *p = &r->spec->public[i];
		if (strcmp(p->name, KERNEL[c->kernel].workload) != 0)
			continue;
		r->workload[0] = (struct rig_workload){.mode = CHECKER_PUBLIC, .index = (uint32_t)i, .axes = p->gpu,
						       .weight = 1};
		snprintf(r->workload[0].name, sizeof r->workload[0].name, "%s", p->name);
		r->nworkloads = 1;
	}
	if (!r->nworkloads)
		die(EX_BADINPUT, "%s has no workload %s", dir, KERNEL[c->kernel].workload);
	/* A, the slower, is the champion; without a dose B is a second module of the same image. */
	build(c, &r->arm[RAW_CHAMPION], c->dose);
	if (c->dose)
		build(c, &r->arm[RAW_CANDIDATE], 0);
	else
		r->arm[RAW_CANDIDATE] = r->arm[RAW_CHAMPION];
}

static void list_cells(int aa, int doses)
{
	for (size_t k = 0; k < kernels; k++)
		for (size_t d = 0; d < (KERNEL[k].dosed ? sizeof DOSES / sizeof *DOSES : 1); d++) {
			struct cell *c = &cell[ncells++];
			const char *base = strrchr(KERNEL[k].spec, '/') + 1;
			c->kernel = (int)k;
			c->dose = KERNEL[k].dosed ? DOSES[d] : 0;
			c->want = c->dose ? doses : aa;
			snprintf(c->name, sizeof c->name, "%s/%s", base, KERNEL[k].workload);
		}
}

/* What the file has already. Returns the number of its last round. */
static int count_lines(const char *file)
{
	FILE *f = fopen(file, "re");
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	int last = -1;
	while (f && (n = getline(&line, &room, f)) > 0) {
		struct err e;
		cJSON *j = json_parse(line, (size_t)n, &JSON_OURS, file, &e);
		const char *name = j ? json_get_str(j, "cell", "") : "";
		int dose = j ? (int)json_get_num(j, "dose", -1) : -1, round = j ? (int)json_get_num(j, "round", -1) : -1;
		for (int i = 0; i < ncells; i++)
			cell[i].have += cell[i].dose == dose && strcmp(cell[i].name, name) == 0;
		last = round > last ? round : last;
		cJSON_Delete(j);
	}
	free(line);
	if (f)
		fclose(f);
	return last;
}

/* ---- one session ---- */

static void row_write(double *x, int n, struct jsonw *w, const char *key)
{
	double sorted[BLOCKED];
	memcpy(sorted, x, (size_t)n * sizeof *x);
	for (int i = 1; i < n; i++)
		for (int j = i; j > 0 && sorted[j] < sorted[j - 1]; j--) {
			double t = sorted[j];
			sorted[j] = sorted[j - 1];
			sorted[j - 1] = t;
		}
	jw_obj(w, key);
	jw_int(w, "n", n);
	jw_num(w, "mean", stats_mean(x, (size_t)n));
	jw_num(w, "median", stats_median(x, (size_t)n));
	jw_num(w, "sd", stats_sd(x, (size_t)n));
	jw_num(w, "min", sorted[0]);
	jw_num(w, "q1", sorted[n / 4]);
	jw_num(w, "q3", sorted[3 * n / 4]);
	jw_end(w);
}

/* A kernel that does not work here is told and left out. */
static int drop(struct cell *c, const char *text)
{
	printf("%s dose %d is left out: %s\n", c->name, c->dose, text);
	c->want = 0;
	return -1;
}

/* As a plain benchmark does it: one arm, then the other. */
static int blocked(struct cell *c, int round, struct jsonw *w)
{
	struct err e;
	struct rig *r = &c->rig;
	double x[2][BLOCKED];
	enum shot_outcome o = SHOT_OK;
	char text[256] = "";
	must(RIG_CUDA_OPS.open(r, round, 0, &e), &e);
	for (int a = 0; a < 2; a++) {
		must(RIG_CUDA_OPS.start(r, (enum raw_arm)a, &o, text, &e), &e);
		for (int i = -3; i < BLOCKED && o == SHOT_OK; i++) {
			struct shot s = {.session = round, .arm = (enum raw_arm)a, .phase = RAW_WARM,
					 .set = (uint32_t)(round * 4096 + a * 1024 + i + 3),
					 .rep = (uint64_t)(1000000 + a * 1000 + i + 3)};
			must(RIG_CUDA_OPS.shoot(r, &s, &e), &e);
			o = s.outcome;
			memcpy(text, s.text, sizeof text);
			if (i >= 0)
				x[a][i] = (double)(s.stop - s.start);
		}
	}
	RIG_CUDA_OPS.close(r);
	if (o != SHOT_OK)
		return drop(c, text);
	jw_obj(w, "blocked");
	row_write(x[0], BLOCKED, w, "a");
	row_write(x[1], BLOCKED, w, "b");
	jw_end(w);
	return 0;
}

static void raw_write(const struct raw *raw, int round, struct jsonw *w)
{
	double sum[2] = {0}, tick[2][FIRST];
	int n[2] = {0};
	for (uint64_t i = 0; i < raw->count; i++) {
		struct raw_rep p;
		raw_get(raw, i, &p);
		if (p.phase != RAW_MEASURE || p.arm > 1 || n[p.arm] >= FIRST)
			continue;
		tick[p.arm][n[p.arm]++] = (double)(p.stop - p.start);
		sum[p.arm] += (double)(p.stop - p.start);
	}
	jw_obj(w, "first");
	jw_num(w, "a", sum[0] / n[0]);
	jw_num(w, "b", sum[1] / n[1]);
	jw_end(w);
	if (round % 10 != 0)
		return;
	jw_arr(w, "ticks");
	for (int a = 0; a < 2; a++) {
		jw_arr(w, NULL);
		for (int i = 0; i < 16 && i < n[a]; i++)
			jw_int(w, NULL, (int64_t)tick[a][i]);
		jw_end(w);
	}
	jw_end(w);
}

static int session(struct cell *c, int round, const char *seed, struct jsonw *w)
{
	static const double weight[] = {1};
	static struct session_result s;
	struct session_ops ops = RIG_CUDA_OPS;
	struct rig *r = &c->rig;
	struct raw raw;
	struct err e;
	raw_begin(&raw, 1000000000);
	ops.end = NULL; /* the worker goes on to the next cell */
	r->t0 = 0;
	struct session_job job = {.index = round, .workloads = 1, .weight = weight, .size = r->size,
				  .order_seed = seed, .c = &r->limits, .delta = NAN, .ops = &ops, .ctx = r,
				  .raw = &raw};
	must(session_run(&job, &s, &e), &e);
	if (s.outcome != SHOT_OK) {
		raw_free(&raw);
		return drop(c, s.text);
	}
	jw_num(w, "T_ns", s.w[0].mean[RAW_CHAMPION]);
	jw_num(w, "theta", s.theta);
	jw_num(w, "se", s.w[0].se);
	jw_arr(w, "blocks");
	for (int i = 0; i < s.w[0].blocks; i++)
		jw_num(w, NULL, s.w[0].block[i]);
	jw_end(w);
	raw_write(&raw, round, w);
	raw_free(&raw);
	return 0;
}

static void append(const char *file, struct jsonw *w)
{
	buf_addc(&w->out, '\n');
	int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, w->out.data, w->out.len) != (ssize_t)w->out.len)
		die(EX_SYS, "cannot append to '%s'", file);
	close(fd);
	jw_free(w);
}

static void one(struct cell *c, int round, const char *file)
{
	struct jsonw w = {0};
	struct rig *r = &c->rig;
	char seed[SESSION_SEED];
	snprintf(seed, sizeof seed, "%d:%d:%s", round, c->dose, c->name);
	jw_obj(&w, NULL);
	jw_str(&w, "cell", c->name);
	jw_int(&w, "dose", c->dose);
	jw_int(&w, "round", round);
	jw_int(&w, "at", (int64_t)time(NULL));
	jw_str(&w, "gpu", r->gpu.uuid);
	jw_str(&w, "driver", r->gpu.driver_version);
	jw_int(&w, "windows", r->size[0].windows);
	if (session(c, round, seed, &w) != 0 || blocked(c, round, &w) != 0) {
		jw_free(&w);
		return;
	}
	jw_end(&w);
	append(file, &w);
	c->have++;
}

/* ---- rounds ---- */

/* All cells of a round in drawn order, those that are furthest behind only. */
static int choose(int round, int list[CELLS])
{
	int n = 0;
	for (int i = 0; i < ncells; i++)
		if (cell[i].have < cell[i].want)
			list[n++] = i;
	for (int i = n - 1; i > 0; i--) {
		int j = (int)(session_word("round", "cells", round, i, 0, 0) % (uint64_t)(i + 1)), t = list[i];
		list[i] = list[j];
		list[j] = t;
	}
	return n;
}

static int calibrate(struct cell *c, struct cell *from)
{
	enum shot_outcome o = SHOT_OK;
	char text[256] = "";
	struct err e;
	if (from)
		rig_cuda_pass(&from->rig, &c->rig);
	must(rig_calibrate(&c->rig, &o, text, &e), &e);
	if (o != SHOT_OK)
		return drop(c, text);
	printf("%-24s dose %d: %.1f us, windows %d, %.2f ms a rep\n", c->name, c->dose, c->rig.size[0].rep_ns * 1e-3,
	       c->rig.size[0].windows, c->rig.size[0].cost_ns * 1e-6);
	fflush(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	static struct gpu g;
	struct gpu_state state;
	struct lane lane = LANE_INIT;
	struct err e;
	prog_name(argv[0]);
	if (argc < 2 || (argc > 5 && argc != 8) || argv[1][0] == '-')
		die(EX_BADUSE, "usage: aa FILE [SECONDS [SESSIONS DOSE-SESSIONS [SPEC-DIR CODE WORKLOAD]]]");
	double until = now_s() + (argc > 2 ? atof(argv[2]) : 360);
	if (argc == 8) {
		KERNEL[0] = (struct kernel){argv[5], argv[6], argv[7], 0};
		kernels = 1;
	}
	list_cells(argc > 3 ? atoi(argv[3]) : 60, argc > 4 ? atoi(argv[4]) : 25);
	must(gpu_find("cuda", &g, &e), &e);
	must(lane_exclusive(&lane, g.uuid, &e), &e);
	int round = count_lines(argv[1]), list[CELLS], n;
	struct cell *holder = NULL;
	while ((n = choose(++round, list)) > 0 && now_s() < until) {
		double from = now_s();
		for (int i = 0; i < n && now_s() < until; i++) {
			struct cell *c = &cell[list[i]], *same = NULL;
			for (int j = 0; j < ncells && !same; j++)
				if (cell[j].rig.checker && strcmp(KERNEL[cell[j].kernel].spec, KERNEL[c->kernel].spec) == 0)
					same = &cell[j];
			if (!c->rig.checker)
				begin(c, &g, same);
			int ok = c->rig.size ? 0 : calibrate(c, holder);
			if (c->rig.size && holder)
				rig_cuda_pass(&holder->rig, &c->rig);
			holder = c;
			if (ok == 0)
				one(c, round, argv[1]);
		}
		/* The next round's worker is a new one. */
		if (holder)
			RIG_CUDA_OPS.end(&holder->rig, &(struct shot){.session = round}, &e);
		must(gpu_state(g.uuid, &state, &e), &e);
		if (state.foreign > 0) {
			struct jsonw w = {0};
			jw_obj(&w, NULL);
			jw_int(&w, "void_round", round);
			jw_end(&w);
			append(argv[1], &w);
			die(EX_AGAIN, "other compute processes on the GPU: the last round does not count");
		}
		holder = NULL;
		printf("round %d: %d cells, %.1f s\n", round, n, now_s() - from);
		fflush(stdout);
	}
	for (int i = 0; i < ncells; i++)
		printf("%-24s dose %d: %d of %d\n", cell[i].name, cell[i].dose, cell[i].have, cell[i].want);
	lane_drop(&lane);
	/* The checkers end with us: their sockets close. */
	return 0;
}
