/*
 * session_write.c - constants and sessions as JSON. See session.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "session.h"

#include <math.h>

void session_class_write(const struct session_class *c, struct jsonw *w, const char *key)
{
	jw_obj(w, key);
	jw_str(w, "name", c->name);
	jw_int(w, "block_quads", c->block_quads);
	jw_int(w, "blocks_min", c->blocks_min);
	jw_int(w, "blocks_max", c->blocks_max);
	jw_num(w, "se_target", c->se_target);
	jw_num(w, "decisive", c->decisive);
	if (c->lost_blocks > 0) {
		jw_int(w, "lost_blocks", c->lost_blocks);
		jw_num(w, "lost", c->lost);
	}
	jw_num(w, "trim", c->trim);
	jw_int(w, "warm_pairs", c->warm_pairs);
	jw_int(w, "solo_reps", c->solo_reps);
	jw_num(w, "solo_slack", c->solo_slack);
	jw_int(w, "anchor_quads", c->anchor_quads);
	jw_int(w, "ring", c->ring);
	jw_int(w, "k_max", c->k_max);
	jw_num(w, "time_s", c->time_s);
	jw_num(w, "hopeless", c->hopeless);
	jw_num(w, "behind_s", c->behind_s);
	jw_num(w, "s0_floor", c->s0_floor);
	if (c->lasting)
		jw_bool(w, "lasting", 1);
	if (c->drain_quads || c->sustained_quads) {
		jw_int(w, "drain_quads", c->drain_quads);
		jw_int(w, "sustained_quads", c->sustained_quads);
	}
	jw_end(w);
}

static void workload_write(const struct session_workload *k, const char *name, struct jsonw *w)
{
	jw_obj(w, NULL);
	jw_str(w, "name", name);
	jw_num(w, "theta", k->theta);
	jw_num(w, "se", k->se);
	jw_num(w, "solo", k->solo);
	jw_num(w, "anchor", k->anchor);
	jw_num(w, "champion_total", k->total[RAW_CHAMPION]);
	jw_num(w, "candidate_total", k->total[RAW_CANDIDATE]);
	jw_num(w, "champion_tail", k->tail[RAW_CHAMPION]);
	jw_num(w, "candidate_tail", k->tail[RAW_CANDIDATE]);
	if (!isnan(k->drain)) {
		jw_num(w, "drain", k->drain);
		jw_num(w, "drain_se", k->drain_se);
	}
	if (!isnan(k->sustained)) {
		jw_num(w, "sustained", k->sustained);
		jw_num(w, "sustained_se", k->sustained_se);
	}
	jw_num(w, "champion_mean", k->mean[RAW_CHAMPION]);
	jw_num(w, "champion_min", k->min[RAW_CHAMPION]);
	jw_num(w, "candidate_mean", k->mean[RAW_CANDIDATE]);
	jw_num(w, "candidate_min", k->min[RAW_CANDIDATE]);
	jw_arr(w, "blocks");
	for (int i = 0; i < k->blocks; i++)
		jw_num(w, NULL, k->block[i]);
	jw_end(w);
	jw_end(w);
}

void session_write(const struct session_result *r, int workloads, const char *const *names,
		   struct jsonw *w)
{
	jw_obj(w, NULL);
	jw_int(w, "session", r->index);
	jw_num(w, "theta", r->theta);
	jw_num(w, "solo", r->solo);
	jw_arr(w, "workloads");
	for (int i = 0; i < workloads; i++)
		workload_write(&r->w[i], names[i], w);
	jw_end(w);
	jw_end(w);
}
