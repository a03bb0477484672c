/*
 * recheck_plan.h - the pre-registered plan of a contest, as tools/recheck.c reads it. For that file alone.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_RECHECK_PLAN_H
#define TS_RECHECK_PLAN_H

#include "json.h"
#include "recheck_math.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAXW = 64, MAXS = 24 }; /* workloads, sessions */

struct plan {
	const char *seed;
	double margin, alpha, g, gap, z1, z, floor, s0, guard, level, confirm_floor;
	double trim, se_target, decisive, lost, slack, time_s, hopeless, behind_s, weight[MAXW];
	double drain, sustained;
	int wring[MAXW], wquads[MAXW], wmax[MAXW];
	int lost_blocks, rule, kmin, kmax, nw, bmin, bmax, quads, ring, solo, anchor, confirm_n, confirm_most;
	int simulated, guard_quads[2];
};

static double number(const cJSON *o, const char *key)
{
	double v = json_get_num(o, key, NAN);
	return isnan(v) ? (die(EX_BADINPUT, "the pre-registration has no number '%s'", key), 0) : v;
}

static void load_plan(const cJSON *j, struct plan *p)
{
	struct err e;
	const cJSON *c = json_obj(j, "class", "prereg", &e), *list = json_arr(j, "workloads", "prereg", &e), *i;
	memset(p, 0, sizeof *p);
	p->seed = json_str(j, "order_seed", "prereg", &e);
	if (!c || !list || !p->seed)
		die_err(&e);
	const char *rule = json_get_str(j, "rule", "none"), *const stem = "touchstone-bench-rule-";
	p->rule = strncmp(rule, stem, strlen(stem)) == 0 ? atoi(rule + strlen(stem)) : 0;
	if (p->rule != 1 && p->rule != 2)
		die(EX_BADINPUT, "the pre-registered rule is '%.60s'; this program knows %s1 and 2", rule, stem);
	p->margin = number(j, "margin"), p->alpha = number(j, "alpha"), p->g = number(j, "g");
	p->gap = number(j, "futile_gap"), p->z1 = number(j, "futile_z1"), p->z = number(j, "futile_z");
	p->floor = number(j, "futile_floor"), p->s0 = number(j, "s0"), p->guard = number(j, "guard");
	p->level = number(j, "guard_level"), p->confirm_floor = number(j, "confirm_floor");
	p->kmin = (int)number(j, "k_min"), p->kmax = (int)number(j, "k_max");
	p->confirm_n = (int)number(j, "confirm_sessions");
	/* Rule 1 had one look at a confirmation at first, and gave up nobody. */
	p->confirm_most = (int)(p->rule > 1 ? number(j, "confirm_most")
					    : json_get_num(j, "confirm_most", p->confirm_n)), p->time_s = number(c, "time_s");
	p->solo = cJSON_IsTrue(json_get(j, "solo")), p->anchor = cJSON_IsTrue(json_get(j, "anchor"));
	p->trim = number(c, "trim"), p->se_target = number(c, "se_target"), p->lost = json_get_num(c, "lost", 0);
	p->lost_blocks = (int)json_get_num(c, "lost_blocks", 0), p->decisive = number(c, "decisive"), p->slack = number(c, "solo_slack");
	p->quads = (int)number(c, "block_quads"), p->ring = (int)number(c, "ring");
	p->drain = json_get_num(j, "drain_limit", 0), p->sustained = json_get_num(j, "sustained_limit", 0);
	p->simulated = strcmp(json_get_str(c, "name", ""), "sim") == 0;
	p->guard_quads[0] = p->drain > 0 ? (int)json_get_num(c, "drain_quads", 0) : 0;
	p->guard_quads[1] = p->sustained > 0 ? (int)json_get_num(c, "sustained_quads", 0) : 0;
	p->hopeless = p->rule > 1 ? number(c, "hopeless") : 0;
	p->behind_s = p->rule > 1 ? number(c, "behind_s") : 0;
	p->bmin = (int)number(c, "blocks_min"), p->bmax = (int)number(c, "blocks_max");
	cJSON_ArrayForEach(i, list) {
		if (p->nw == MAXW || p->ring < 1 || p->bmax > MAXB)
			die(EX_BADINPUT, "the plan is out of range");
		p->wring[p->nw] = (int)json_get_num(i, "ring", p->ring);
		p->wquads[p->nw] = (int)json_get_num(i, "block_quads", p->quads);
		p->wmax[p->nw] = (int)json_get_num(i, "blocks_max", p->bmax);
		if (p->wring[p->nw] < 1 || p->wmax[p->nw] > MAXB)
			die(EX_BADINPUT, "the plan is out of range");
		p->weight[p->nw++] = number(i, "weight");
	}
}

#endif
