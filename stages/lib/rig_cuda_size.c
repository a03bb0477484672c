/*
 * rig_cuda_size.c - before any sample counts: how long the champion takes, and what the machine's clock is like.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rig_cuda_part.h"
#include "stats.h"

#include <stdio.h>
#include <stdlib.h>

enum { SIZE_WARM = 2, SIZE_REPS = 7 };
/* Content of these reps is drawn where no session draws (aa.c takes 1 << 40). */
#define SIZE_REP_BASE (1ull << 41)

/* Each copy of a workload has workspaces of its own. A candidate whose share is the whole limit would leave no
 * memory for them, and that is not the machine's fault. */
int rig_cuda_fits(const struct rig *r, const struct launches *l, int copies, char text[256])
{
	int64_t sum = 0, most = r->spec->limits.workspace_bytes / copies;
	for (int j = 0; j < l->nworkspaces; j++)
		sum += l->workspace[j].bytes;
	if (copies == 1 || sum <= most)
		return 1;
	snprintf(text, 256, "%d launches are timed together here, so workspaces have %lld bytes at most: it takes %lld",
		 copies, (long long)most, (long long)sum);
	return 0;
}

static int time_champion(struct rig *r, int workload, struct session_size *size, enum shot_outcome *o,
			 char text[256], struct err *e)
{
	double window[SIZE_REPS], cost[SIZE_REPS], prepare[SIZE_REPS];
	int rc = rig_cuda_start(r, RAW_CHAMPION, o, text, e);
	for (int i = -SIZE_WARM; i < SIZE_REPS && rc == 0 && *o == SHOT_OK; i++) {
		struct shot s = {.session = -1, .workload = workload, .phase = RAW_WARM,
				 .set = (uint32_t)(i + SIZE_WARM), .rep = (uint64_t)(i + SIZE_WARM)};
		int64_t from = rig_cuda_now();
		rc = RIG_CUDA_OPS.shoot(r, &s, e);
		*o = s.outcome;
		snprintf(text, 256, "%s", s.text);
		if (i < 0)
			continue;
		cost[i] = (double)(rig_cuda_now() - from);
		window[i] = (double)(s.stop - s.start);
		prepare[i] = (double)r->cuda->prepare_ns;
	}
	if (rc == 0 && *o == SHOT_OK)
		session_size_for(stats_median(window, SIZE_REPS), r->figures.null_ns,
				 stats_median(cost, SIZE_REPS), stats_median(prepare, SIZE_REPS), size);
	return rc;
}

int rig_calibrate(struct rig *r, enum shot_outcome *o, char text[256], struct err *e)
{
	struct session_size *size = xcalloc(SESSION_WORKLOADS, sizeof *size);
	*o = SHOT_OK;
	r->rep_base = SIZE_REP_BASE;
	struct gpu_question q;
	if (gpu_state_ask(&q, r->gpu.uuid, e) != 0)
		return free(size), -1;
	struct err why = {0};
	int rc = rig_cuda_worker(r, e); /* and the checker, since bench began: three starts at once */
	if (rig_cuda_state(r, -1, &q, rc ? &why : e) != 0)
		rc = -1;
	if (rc == 0)
		rc = worker_figures(rig_cuda_of(r)->worker[0], &r->figures, e);
	/* The first look was while ours began, which are then in no list yet: others unknown. Another, meanwhile. */
	struct rig_cuda *c = rig_cuda_of(r);
	int again = rc == 0 && c->states > 0 && c->state[c->states - 1].gpu.foreign < 0;
	if (again && gpu_state_ask(&q, r->gpu.uuid, e) != 0)
		rc = -1, again = 0;
	for (int i = 0; i < r->nworkloads && rc == 0 && *o == SHOT_OK; i++) {
		rc = rig_cuda_open(r, i, 1, e);
		if (rc == 0)
			rc = time_champion(r, i, &size[i], o, text, e);
		RIG_CUDA_OPS.close(r);
	}
	if (again) {
		c->states--; /* in its place */
		if (rig_cuda_state(r, -1, &q, rc ? &why : e) != 0)
			rc = -1;
	}
	r->size = size;
	r->rep_base = 0;
	r->t0 = 0;
	return rc;
}

static void figures_write(const struct worker_figures *f, struct jsonw *w)
{
	jw_obj(w, "figures");
	jw_num(w, "tick_ns", f->tick_ns);
	jw_num(w, "empty_ns", f->empty_ns);
	jw_num(w, "null_ns", f->null_ns);
	jw_int(w, "flush_bytes", (int64_t)f->flush_bytes);
	jw_num(w, "flush_check", f->flush_check);
	jw_end(w);
}

void rig_cuda_write(const struct rig *r, struct jsonw *w)
{
	gpu_write(&r->gpu, w, "gpu");
	figures_write(&r->figures, w);
	jw_arr(w, "states");
	for (int i = 0; r->cuda && i < r->cuda->states; i++) {
		const struct rig_state *s = &r->cuda->state[i];
		jw_obj(w, NULL);
		jw_int(w, "after_session", s->session);
		jw_bool(w, "aa", s->self);
		jw_bool(w, "confirm", s->apart);
		gpu_state_write(&s->gpu, w, "gpu");
		jw_end(w);
	}
	jw_end(w);
}
