/*
 * rig_profile.c - see rig_profile.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rig_profile.h"

#include "defence.h"
#include "roofline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Dense operations of one multiprocessor in one clock, at the most (Hopper's tensor cores; others are given
 * twice that: a floor must only be certain). */
static double per_clock(const struct spec *s, const struct gpu *g)
{
	double ops = s->operand == DT_F64 ? 256 : s->operand == DT_F32 ? 2048 : dtype_size(s->operand) >= 2 ? 4096 : 8192;
	return strcmp(g->arch, "sm_90a") == 0 || strcmp(g->arch, "sm_90") == 0 ? ops : 2 * ops;
}

static double written(const struct spec *s, const struct axes *a)
{
	double sum = 0;
	for (int i = 0; i < s->noutputs; i++) {
		int64_t bytes = 0;
		struct err e;
		if (spec_bytes(s, &s->output[i], a, &bytes, &e) == 0)
			sum += (double)bytes;
	}
	return sum;
}

double rig_floor_s(const struct spec *s, const struct axes *a, const struct gpu *g)
{
	int64_t bytes = 0, flops = 0;
	struct err e;
	if (spec_cost(s, a, &bytes, &flops, &e) != 0)
		return 0;
	const struct worker_ceilings *c = &g->ceilings;
	double gbs = fmax(c->copy_gbs, fmax(c->read_gbs, c->write_gbs)), t = 0;
	double kept = fmin(written(s, a), (double)g->facts.l2_bytes);
	if (gbs > 0)
		t = fmax(0, (double)bytes - kept) / (gbs * 1e9);
	if (g->sm_mhz_max > 0)
		t = fmax(t, (double)flops / ((double)g->facts.sm_count * g->sm_mhz_max * 1e6 * per_clock(s, g)));
	return t;
}

/* Mean window of an arm over the sessions that have one; NAN. */
static double mean_ns(const struct contest *t, int workload, enum raw_arm arm)
{
	double sum = 0;
	int n = 0;
	for (int i = 0; i < t->n; i++) {
		double x = t->session[i].w[workload].mean[arm];
		if (x > 0)
			sum += x, n++;
	}
	return n ? sum / n : NAN;
}

int rig_floor_broken(const struct rig *r, const struct contest *t, char text[200])
{
	for (int i = 0; i < t->workloads && r->size; i++) {
		double floor = rig_floor_s(r->spec, &r->workload[i].axes, &r->gpu);
		double one = mean_ns(t, i, RAW_CANDIDATE) * 1e-9 / r->size[i].windows;
		if (!(one < RIG_FLOOR * floor) || !DEFENCE("bench.roofline"))
			continue;
		snprintf(text, 200, "%s%s: %.3g us on average, the device needs %.3g us at least",
			 r->workload[i].weight > 0 ? "workload " : "a held-out workload",
			 r->workload[i].weight > 0 ? r->workload[i].name : "", 1e6 * one, 1e6 * floor);
		return 1;
	}
	return 0;
}

static void launches_write(const struct rig *r, const struct axes *axes, struct jsonw *w)
{
	struct cubin *c = xcalloc(1, sizeof *c);
	struct buf image = BUF_INIT;
	struct launches l;
	struct err e;
	char text[256];
	jw_arr(w, "launches");
	if (rig_resolve(r, RAW_CANDIDATE, axes, &image, c, &l, text, &e) == 0) {
		struct facts f = r->facts;
		cubin_facts(c, &f);
		for (int i = 0; i < l.n && i < 16; i++) {
			const struct launch *p = &l.launch[i];
			const struct cubin_entry *k = cubin_find(c, p->entry);
			int64_t threads = (int64_t)p->block[0] * p->block[1] * p->block[2], blocks = 0;
			if (!k || facts_occupancy(&f, p->entry, threads, p->shared, &blocks, &e) != 0)
				continue;
			jw_obj(w, NULL);
			jw_str(w, "entry", p->entry);
			jw_int(w, "blocks", (int64_t)p->grid[0] * p->grid[1] * p->grid[2]);
			jw_int(w, "threads", threads);
			jw_int(w, "registers", k->regs);
			jw_int(w, "shared_bytes", k->shared + p->shared);
			jw_int(w, "local_bytes", k->local);
			jw_int(w, "spill_bytes", k->spill_bytes);
			jw_int(w, "blocks_per_sm", blocks);
			jw_num(w, "occupancy", (double)(blocks * threads) / (double)f.max_threads_sm);
			jw_end(w);
		}
		launches_free(&l);
	}
	jw_end(w);
	buf_free(&image);
	free(c);
}

static void one_write(const struct rig *r, const struct contest *t, int i, struct jsonw *w)
{
	const struct axes *a = &r->workload[i].axes;
	const struct session_size *z = &r->size[i];
	double window = mean_ns(t, i, RAW_CANDIDATE), one = window / z->windows * 1e-9;
	int64_t bytes = 0, flops = 0;
	struct err e;
	int known = spec_cost(r->spec, a, &bytes, &flops, &e) == 0;
	jw_obj(w, NULL);
	jw_str(w, "name", r->workload[i].name);
	jw_int(w, "windows", z->windows);
	jw_num(w, "window_ns", window);
	jw_num(w, "champion_window_ns", mean_ns(t, i, RAW_CHAMPION));
	jw_num(w, "own_share", (window - r->figures.null_ns) / window); /* (T - T_null) / T */
	jw_num(w, "time_us", one * 1e6);
	jw_num(w, "gbs", known && bytes > 0 ? (double)bytes / one * 1e-9 : NAN);
	jw_num(w, "tflops", known && flops > 0 ? (double)flops / one * 1e-12 : NAN);
	struct roofline roof;
	roofline_of(r->spec, a, &r->gpu.ceilings, ROOFLINE_FAIR, &roof);
	jw_num(w, "roofline_percent", roof.floor_ns > 0 ? 100e-9 * roof.floor_ns / one : NAN);
	jw_str(w, "bound", roofline_bound_name(roof.bound));
	jw_num(w, "floor_us", 1e6 * rig_floor_s(r->spec, a, &r->gpu));
	launches_write(r, a, w);
	jw_end(w);
}

/* Public workloads only: the others' sizes are secret. */
void rig_profile_write(const struct rig *r, const struct contest *t, struct jsonw *w, const char *key)
{
	jw_arr(w, key);
	for (int i = 0; i < t->workloads && r->size; i++)
		if (r->workload[i].weight > 0 && !isnan(mean_ns(t, i, RAW_CANDIDATE)))
			one_write(r, t, i, w);
	jw_end(w);
}
