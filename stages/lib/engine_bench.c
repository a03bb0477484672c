/*
 * engine_bench.c - see engine_bench.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* ---- plan ---- */

static int draw_order(struct engine_bench *b, struct err *e)
{
	uint8_t seed[16];
	if (getrandom(seed, sizeof seed, 0) != (ssize_t)sizeof seed)
		return err_sys(e, "cannot read the system's entropy");
	for (int i = 0; i < 16; i++)
		snprintf(b->order_seed + 2 * i, 3, "%02x", seed[i]);
	return 0;
}

static void plan_contest(struct engine_bench *b, struct contest *t, int workloads)
{
	t->c = b->gpu ? &SESSION_ENGINE_GPU : &SESSION_ENGINE;
	t->rule.margin = b->margin;
	t->rule.guard = b->guard;
	t->rule.s0 = t->c->s0_floor;
	t->rule.k_max = t->c->k_max;
	t->workloads = workloads;
	for (int i = 0; i < workloads; i++) {
		t->name[i] = b->task[i].name;
		t->weight[i] = b->task[i].weight;
	}
	memcpy(t->order_seed, b->order_seed, sizeof t->order_seed);
	t->confirming = b->confirming;
	t->anchor = b->arm[RAW_BASELINE].present;
	t->ops = &ENGINE_OPS;
	t->ctx = &b->ses;
	t->raw = &b->raw;
}

static void limits_write(const struct engine_bench *b, struct jsonw *w)
{
	jw_obj(w, "engine_gates");
	jw_num(w, "native", b->limits.native);
	jw_num(w, "champion", b->limits.champion);
	jw_num(w, "spread", b->limits.spread);
	jw_int(w, "memory_bytes", (int64_t)b->limits.memory);
	jw_num(w, "margin", b->live.honest.gates.margin);
	jw_num(w, "mean_regret", b->live.honest.gates.mean);
	jw_num(w, "p99_regret", b->live.honest.gates.p99);
	jw_num(w, "argmax_rate", b->live.honest.gates.argmax_rate);
	jw_int(w, "calibrated_on_pair", b->live.pair);
	jw_arr(w, "floor_s"); /* of a batch; null: nothing is gated by it */
	for (int i = 0; i < b->ntasks; i++)
		jw_num(w, NULL, b->floor[i].binds ? b->floor[i].total_s : NAN);
	jw_end(w);
	jw_end(w);
}

static void prereg_write(const struct engine_bench *b, struct jsonw *w, const char *key)
{
	jw_obj(w, key);
	jw_str(w, "schema", "touchstone/prereg/1");
	jw_str(w, "trial", b->trial);
	jw_str(w, "candidate", b->arm[RAW_CANDIDATE].candidate);
	jw_str(w, "champion", b->arm[RAW_CHAMPION].candidate);
	jw_str(w, "model", b->model->sha);
	limits_write(b, w);
	if (!b->confirming || b->again) {
		jw_obj(w, "decide");
		contest_plan_write(&b->first, w);
		jw_end(w);
	}
	if (b->confirming) {
		jw_obj(w, "confirm");
		contest_plan_write(&b->fresh, w);
		jw_end(w);
	}
	jw_end(w);
}

/* ---- measuring ---- */

static void set_session(struct engine_bench *b)
{
	b->live = (struct engine_live){.model = b->model, .load_s = b->load_s, .memory = b->memory,
				      .gpu = b->gpu ? b->gpu->uuid : NULL};
	for (int a = 0; a < RAW_ARMS; a++)
		b->live.program[a] = b->arm[a].present ? b->arm[a].program : NULL;
	b->ses = (struct engine_session){.tasks = b->ntasks, .task = b->task, .vocab = b->model->model.c.vocab,
					 .limit_s = b->step_s, .step_s = b->step_s, .io = &ENGINE_LIVE_IO,
					 .judge = &ENGINE_LIVE_JUDGING, .raw = &b->raw};
	b->ses.lasting = (b->gpu ? &SESSION_ENGINE_GPU : &SESSION_ENGINE)->lasting;
	b->ses.io_ctx = b->ses.judge_ctx = &b->live;
	memcpy(b->ses.seed, b->key, sizeof b->ses.seed);
}

static void set_floor(struct engine_bench *b)
{
	const struct engine_ceilings k = engine_ceilings_of(b->gpu);
	for (int i = 0; i < b->ntasks; i++)
		b->floor[i] = engine_floor_of(&b->model->model.c, &k, b->gpu ? b->gpu->facts.l2_bytes : 0, b->task[i].batch,
					      b->task[i].prompt, b->task[i].steps);
	b->limits.ceilings = k.from;
	b->limits.floor = k.bytes_s > 0 ? b->floor : NULL;
}

static int preregister(const struct engine_bench *b, struct err *e)
{
	struct jsonw w = {.pretty = 1};
	prereg_write(b, &w, NULL);
	buf_addc(&w.out, '\n');
	const int rc = b->preregister(b->ctx, w.out.data, w.out.len, e);
	jw_free(&w);
	return rc;
}

static struct engine_range range_of(const struct engine_bench *b, const struct contest *t)
{
	return (struct engine_range){&b->ses, t->first, t->n, b->arm[RAW_BASELINE].present};
}

static void gate(struct engine_bench *b, struct contest *t)
{
	const struct engine_range g = range_of(b, t);
	engine_gates(&g, &b->limits, t);
}

static int contests(struct engine_bench *b, struct err *e)
{
	if (!b->confirming || b->again) {
		if (contest_decide(&b->first, e) != 0)
			return -1;
		gate(b, &b->first);
		if (!b->confirming || b->first.kind != V_PASS)
			return 0;
	}
	b->fresh.first = b->first.n;
	for (int n = CONTEST_CONFIRM; b->fresh.kind == V_NONE; n *= 2) {
		if (contest_fixed(&b->fresh, n, e) != 0)
			return -1;
		if (b->fresh.kind == V_PASS)
			contest_confirm(&b->fresh);
	}
	gate(b, &b->fresh);
	return 0;
}

int engine_bench_measure(struct engine_bench *b, struct err *e)
{
	raw_begin(&b->raw, 1000000000);
	contest_init(&b->first);
	contest_init(&b->fresh);
	set_session(b);
	set_floor(b);
	if (draw_order(b, e) != 0 || engine_live_calibrate(&b->live, &b->ses, b->npublic, e) != 0)
		return -1;
	plan_contest(b, &b->first, b->nshown);
	plan_contest(b, &b->fresh, b->ntasks);
	return preregister(b, e) != 0 ? -1 : contests(b, e);
}

void engine_bench_free(struct engine_bench *b)
{
	raw_free(&b->raw);
	contest_free(&b->first);
	contest_free(&b->fresh);
	engine_session_free(&b->ses);
	engine_live_free(&b->live);
}

/* ---- what is written ---- */

const struct contest *engine_bench_last(const struct engine_bench *b)
{
	return b->fresh.kind != V_NONE ? &b->fresh : &b->first;
}

static void summary_write(const struct engine_bench *b, struct jsonw *w)
{
	const struct contest *t = engine_bench_last(b);
	double lo = NAN, hi = NAN, alo = NAN, ahi = NAN;
	const double ratio = contest_ratio(t, &lo, &hi);
	double anchor = contest_anchor(t, &alo, &ahi);
	if (!b->arm[RAW_BASELINE].present) {
		anchor = ratio;
		alo = lo;
		ahi = hi;
	}
	jw_num(w, "ratio", t->k ? ratio : NAN);
	jw_num(w, "ratio_lo95", t->k > 1 ? lo : NAN);
	jw_num(w, "ratio_hi95", t->k > 1 ? hi : NAN);
	jw_num(w, "ratio_baseline", b->confirming && anchor > 0 ? anchor : NAN);
	jw_num(w, "ratio_baseline_lo95", b->confirming ? alo : NAN);
	jw_num(w, "ratio_baseline_hi95", b->confirming ? ahi : NAN);
}

static void arms_write(const struct engine_bench *b, struct jsonw *w)
{
	static const char *const role[RAW_ARMS] = {"champion", "candidate", "baseline"};
	jw_obj(w, "arms");
	for (int i = 0; i < RAW_ARMS; i++) {
		const struct engine_arm *a = &b->arm[i];
		if (!a->present)
			continue;
		jw_obj(w, role[i]);
		jw_str(w, "trial", a->trial[0] ? a->trial : NULL);
		jw_str(w, "candidate_sha256", a->candidate);
		jw_str(w, "artefact_sha256", a->sha);
		jw_end(w);
	}
	jw_end(w);
}

static void states_write(const struct engine_bench *b, struct jsonw *w)
{
	gpu_write(b->gpu, w, "gpu");
	jw_arr(w, "states");
	for (int i = 0; i < b->live.states; i++)
		gpu_state_write(&b->live.state[i], w, NULL);
	jw_end(w);
}

void engine_bench_write(const struct engine_bench *b, const char *raw, const char *lines, struct jsonw *w)
{
	const struct engine_range g = range_of(b, engine_bench_last(b));
	summary_write(b, w);
	arms_write(b, w);
	jw_bool(w, "bench_again", b->again);
	if (b->gpu)
		states_write(b, w);
	prereg_write(b, w, "prereg");
	if (b->first.n)
		contest_write(&b->first, w, "decide");
	if (b->fresh.n)
		contest_write(&b->fresh, w, "confirm");
	engine_gates_write(&g, &b->limits, w, "engine");
	jw_int(w, "tokens_replayed", (int64_t)b->ses.judged);
	jw_obj(w, "raw");
	jw_str(w, "file", raw);
	jw_str(w, "format", "TSRAW1");
	jw_int(w, "records", (int64_t)b->raw.count);
	jw_str(w, "batches", lines);
	jw_end(w);
	jw_str(w, "stage_key", b->key);
}
