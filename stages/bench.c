/*
 * bench.c - is the candidate faster than the champion by more than the margin?
 *
 * Reads the candidate and its artefact, the champion of the state that this trial may know (bench:
 * `timed_after`; confirm: `previous`), the pinned spec. Writes bench.prereg.json before the
 * first sample, bench.raw (every tick), bench.json. As `bench --confirm` it writes confirm.*:
 * new sessions under new keys, held-out workloads, the direct anchor to the baseline, and the
 * whole bench again first when the champion changed since.
 *
 * Never compares with a stored time, never sees a key or a reference, never decides by a mean.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lib/aa.h"
#include "lib/bench_engine.h"
#include "lib/contest.h"
#include "lib/engine_problem.h"
#include "lib/lane.h"
#include "lib/rig.h"
#include "lib/rig_profile.h"
#include "lib/stage.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static const char HELP[] =
	"bench - time the candidate against the champion, session by session\n"
	"\n"
	"usage: bench trials/NNNN/bench.json\n"
	"       bench --confirm trials/NNNN/confirm.json\n"
	"\n"
	"Sessions are fresh processes; both arms are interleaved in each. After every session an\n"
	"anytime-valid test decides: pass (certified faster than the margin), reject,\n"
	"inconclusive, or go on. Every timed output is verified in full.\n"
	"\n"
	"A confirmation is four new sessions, held-out sizes included: their mean must reach half the\n"
	"margin and no workload be slower than the guard. Where that is missed but not surely so, four\n"
	"more are added, once. They give the published ratio; after a second look it is slightly biased\n"
	"upwards, and data.confirm.look says which look it was.\n"
	"After the first look that promotes, workload guards and the champion alone are tested again at\n"
	"every look until they hold, fail, or the cap is reached.\n"
	"\n"
	"A candidate more than 20 times slower than the champion in two warm reps of a workload, or 20 s\n"
	"(on a GPU 2 s) behind it in all, is rejected at once (data.*.given_up): it does not hold the lane.\n"
	"On a GPU, a workload whose first two blocks are 10 % behind is not timed further in that session.\n"
	"\n"
	"An engine problem: whole batches instead of reps, the native baseline in the same sessions, every token\n"
	"replayed afterwards; a winner must also keep the gates on time to the first token and per token\n"
	"(bench.ttft, bench.tpot), spread and memory. bench.engine.jsonl has a line for each batch.\n"
	"\n"
	"Also written: bench.prereg.json (rule, before the first sample) and bench.raw (ticks).\n"
	"tools/recheck recomputes the verdict from them.\n"
	"\n"
	"Environment:\n"
	"  SIM_SECONDS   DEVICE=sim only: hold the lane this long in bench (scheduling tests);\n"
	"                the run setting sim_seconds has precedence\n";

struct bench {
	struct stage *s;
	struct rig rig;
	struct aa aa;
	struct lane lane;
	struct raw raw;
	struct contest first; /* bench, or bench again inside confirm */
	struct contest fresh; /* confirm: new sessions, held-out workloads, anchor */
	int again;            /* the first contest runs inside confirm */
	char champion_at_bench[HASH_HEX];
	enum shot_outcome sick; /* GPU: the champion failed before anything was measured */
	char sick_text[256];
};

/* Order of arms and sets: from the system's entropy, recorded; sim repeats itself on purpose. */
static int draw_order(struct bench *b, struct err *e)
{
	uint8_t seed[16];
	char hex[HASH_HEX];
	if (b->rig.class != DEVICE_SIM) {
		if (getrandom(seed, sizeof seed, 0) != (ssize_t)sizeof seed)
			return err_sys(e, "cannot read the system's entropy");
		for (int i = 0; i < 16; i++)
			snprintf(b->rig.order_seed + 2 * i, 3, "%02x", seed[i]);
		return 0;
	}
	struct buf text = BUF_INIT;
	buf_addf(&text, "order:%lld:%s:%s:%s", (long long)b->s->run.seed, b->s->id,
		 b->rig.arm[RAW_CANDIDATE].candidate, b->s->confirm ? "confirm" : "bench");
	hash_hex(text.data, text.len, hex);
	buf_free(&text);
	snprintf(b->rig.order_seed, sizeof b->rig.order_seed, "%.32s", hex);
	return 0;
}

static void plan_contest(struct bench *b, struct contest *t, int workloads)
{
	const struct rig *r = &b->rig;
	t->c = rig_class(r);
	t->size = r->size;
	t->rule.margin = r->spec->margin;
	t->rule.guard = r->spec->guard;
	t->rule.s0 = b->aa.s0;
	t->rule.k_max = t->c->k_max;
	t->workloads = workloads;
	for (int i = 0; i < workloads; i++) {
		t->name[i] = r->workload[i].name;
		t->weight[i] = r->workload[i].weight;
	}
	memcpy(t->order_seed, r->order_seed, sizeof t->order_seed);
	t->order_derived = r->class == DEVICE_SIM;
	t->confirming = b->s->confirm;
	t->ops = rig_ops(r);
	t->ctx = &b->rig;
	t->raw = &b->raw;
}

static int64_t flush_bytes(const struct bench *b)
{
	const struct rig *r = &b->rig;
	return r->class == DEVICE_EMU ? (int64_t)rig_flush_bytes()
				      : r->class == DEVICE_CUDA ? (int64_t)r->figures.flush_bytes : 0;
}

static void prereg_write(const struct bench *b, struct jsonw *w, const char *key)
{
	jw_obj(w, key);
	jw_str(w, "schema", "touchstone/prereg/1");
	jw_str(w, "trial", b->s->id);
	jw_str(w, "candidate", b->rig.arm[RAW_CANDIDATE].candidate);
	jw_str(w, "champion", b->rig.arm[RAW_CHAMPION].candidate);
	jw_int(w, "flush_bytes", flush_bytes(b));
	if (!b->s->confirm || b->again) {
		jw_obj(w, "decide");
		contest_plan_write(&b->first, w);
		jw_end(w);
	}
	if (b->s->confirm) {
		jw_obj(w, "confirm");
		contest_plan_write(&b->fresh, w);
		jw_end(w);
	}
	jw_end(w);
}

/* On disk, synced, before any sample exists. */
static int preregister(struct bench *b, struct err *e)
{
	struct jsonw w = {.pretty = 1};
	prereg_write(b, &w, NULL);
	buf_addc(&w.out, '\n');
	int rc = stage_side(b->s, b->s->confirm ? "confirm.prereg.json" : "bench.prereg.json",
			    w.out.data, w.out.len, e);
	jw_free(&w);
	return rc;
}

static void hold_lane(const struct bench *b)
{
	const char *env = getenv("SIM_SECONDS");
	double s = run_num(&b->s->run, "sim_seconds", env ? strtod(env, NULL) : 0);
	if (b->rig.class != DEVICE_SIM || b->s->confirm || !(s > 0) || s > 3600)
		return;
	struct timespec t = {.tv_sec = (time_t)s, .tv_nsec = (long)((s - floor(s)) * 1e9)};
	while (nanosleep(&t, &t) != 0 && errno == EINTR)
		;
}

/* Everything that happens under the lane. */
static int measure(struct bench *b, struct err *e)
{
	if (b->rig.class == DEVICE_CUDA) {
		if (rig_calibrate(&b->rig, &b->sick, b->sick_text, e) != 0)
			return -1;
		if (b->sick != SHOT_OK)
			return 0;
	}
	if (aa_get(&b->rig, &b->aa, e) != 0)
		return -1;
	plan_contest(b, &b->first, b->rig.spec->npublic);
	plan_contest(b, &b->fresh, b->rig.nworkloads);
	b->fresh.anchor = !rig_champion_is_baseline(&b->rig);
	b->fresh.guards = b->rig.class == DEVICE_CUDA;
	if (preregister(b, e) != 0 || !b->aa.ok)
		return b->aa.ok ? -1 : 0;
	hold_lane(b);
	if (!b->s->confirm || b->again) {
		if (contest_decide(&b->first, e) != 0)
			return -1;
		if (!b->s->confirm || b->first.kind != V_PASS)
			return 0;
	}
	b->fresh.first = b->first.n;
	b->rig.apart = b->rig.class == DEVICE_CUDA;
	for (int n = CONTEST_CONFIRM; b->fresh.kind == V_NONE; n *= 2) {
		if (contest_fixed(&b->fresh, n, e) != 0)
			return -1;
		if (b->fresh.kind == V_PASS)
			contest_confirm(&b->fresh);
	}
	return 0;
}

static const struct contest *last(const struct bench *b)
{
	return b->fresh.kind != V_NONE ? &b->fresh : &b->first;
}

static void decide(struct bench *b)
{
	const struct stage *s = b->s;
	struct verdict *v = &b->s->v;
	const struct contest *t = last(b);
	double lo, hi, ratio;
	if (b->sick != SHOT_OK) {
		verdict_set(v, V_INVALID, b->sick == SHOT_ENV ? s->confirm ? "confirm.invalid_env" : "bench.invalid_env"
					  : s->confirm ? "confirm.rival" : "bench.rival",
			    "the champion failed before anything was measured: %.200s", b->sick_text);
		return;
	}
	if (!b->aa.ok) {
		verdict_set(v, V_INVALID, b->s->confirm ? "confirm.invalid_env" : "bench.invalid_env",
			    "%s", b->aa.why);
		return;
	}
	const char *code = t->code;
	if (b->again && t == &b->first && t->kind != V_INVALID)
		code = "confirm.champion_changed";
	verdict_set(v, t->kind, code, "%s", t->message);
	ratio = contest_ratio(t, &lo, &hi);
	if (t->k > 1)
		verdict_headline(v, "%.3fx (%.3f to %.3f)", ratio, lo, hi);
	else if (t->k == 1)
		verdict_headline(v, "%.3fx", ratio);
}

/* Faster than the device can be: then something was not measured, whatever it is. */
static void check_floor(struct bench *b)
{
	struct verdict *v = &b->s->v;
	const struct contest *t = last(b);
	char text[200];
	if (v->kind == V_REJECT || b->sick != SHOT_OK) /* its fault already */
		return;
	if (b->rig.class == DEVICE_CUDA && rig_floor_broken(&b->rig, t, text))
		verdict_set(v, V_INVALID, b->s->confirm ? "confirm.roofline" : "bench.roofline", "%s", text);
}

static void arms_write(const struct bench *b, struct jsonw *w)
{
	static const char *const role[RAW_ARMS] = {"champion", "candidate", "baseline"};
	jw_obj(w, "arms");
	for (int i = 0; i < RAW_ARMS; i++) {
		const struct rig_arm *a = &b->rig.arm[i];
		if (!a->present)
			continue;
		jw_obj(w, role[i]);
		jw_str(w, "trial", a->trial[0] ? a->trial : NULL);
		jw_str(w, "candidate_sha256", a->candidate);
		jw_str(w, "artefact_sha256", a->image_sha[0] ? a->image_sha : NULL);
		jw_end(w);
	}
	jw_end(w);
}

/* What the pages and promote read first; the rest is evidence. */
static void summary_write(const struct bench *b, struct jsonw *w)
{
	const struct contest *t = last(b);
	double lo = NAN, hi = NAN, alo = NAN, ahi = NAN;
	double ratio = contest_ratio(t, &lo, &hi), anchor = contest_anchor(t, &alo, &ahi);
	if (rig_champion_is_baseline(&b->rig)) {
		anchor = ratio;
		alo = lo;
		ahi = hi;
	}
	jw_num(w, "ratio", t->k ? ratio : NAN);
	jw_num(w, "ratio_lo95", t->k > 1 ? lo : NAN);
	jw_num(w, "ratio_hi95", t->k > 1 ? hi : NAN);
	jw_num(w, "ratio_baseline", b->s->confirm && anchor > 0 ? anchor : NAN);
	jw_num(w, "ratio_baseline_lo95", b->s->confirm ? alo : NAN);
	jw_num(w, "ratio_baseline_hi95", b->s->confirm ? ahi : NAN);
}

static int publish_key(struct bench *b, struct jsonw *w, struct err *e)
{
	char key[HASH_HEX];
	if (b->rig.class == DEVICE_SIM) {
		jw_null(w, "stage_key"); /* sim draws nothing from keys */
		return 0;
	}
	if (checker_subkey(b->rig.checker, key, e) != 0)
		return -1;
	jw_str(w, "stage_key", key);
	return 0;
}

static int report(struct bench *b, struct err *e)
{
	struct jsonw *w = &b->s->v.data;
	size_t len;
	const void *bytes = raw_bytes(&b->raw, &len);
	const char *file = b->s->confirm ? "confirm.raw" : "bench.raw";
	if (stage_side(b->s, file, bytes, len, e) != 0)
		return -1;
	summary_write(b, w);
	arms_write(b, w);
	jw_bool(w, "bench_again", b->again);
	if (b->rig.class == DEVICE_CUDA)
		rig_profile_write(&b->rig, last(b), w, "roofline");
	else
		jw_str(w, "roofline", b->rig.class == DEVICE_EMU ? "none: emulated times have no physical floor"
								 : "none: simulated");
	lane_write(&b->lane, w, "lane");
	aa_write(&b->aa, w, "aa");
	if (b->sick == SHOT_OK) /* else there was no plan yet */
		prereg_write(b, w, "prereg");
	if (b->rig.class == DEVICE_CUDA) {
		jw_obj(w, "machine");
		rig_cuda_write(&b->rig, w);
		jw_end(w);
	}
	if (b->first.n)
		contest_write(&b->first, w, "decide");
	if (b->fresh.n)
		contest_write(&b->fresh, w, "confirm");
	jw_obj(w, "raw");
	jw_str(w, "file", file);
	jw_str(w, "format", "TSRAW1");
	jw_int(w, "records", (int64_t)b->raw.count);
	jw_end(w);
	return publish_key(b, w, e);
}

static int prepare(struct bench *b, struct err *e)
{
	struct stage *s = b->s;
	if (rig_init(&b->rig, s, e) != 0 || rig_candidate(&b->rig, e) != 0 ||
	    rig_champion(&b->rig, e) != 0)
		return -1;
	if (s->confirm) {
		const struct verdict_in *was = stage_verdict(s, STEP_BENCH, e);
		const char *champion = was ? verdict_in_input(was, "champion") : NULL;
		if (!was)
			return -1;
		b->again = !champion || strcmp(champion, b->rig.arm[RAW_CHAMPION].candidate) != 0;
		if (rig_baseline(&b->rig, e) != 0)
			return -1;
	}
	b->rig.sim_session = (uint64_t)trial_number(s->id) * 100 + (s->confirm ? 50 : 0);
	/* A GPU's checker works on the GPU: its lane comes first, and outlives both. */
	if (b->rig.class == DEVICE_CUDA && gpu_take(&s->run, &b->lane, &b->rig.gpu, e) != 0)
		return -1;
	stage_on_gpu(s, &b->rig.gpu);
	if (rig_checker(&b->rig, e) != 0 || rig_workloads(&b->rig, s->confirm, e) != 0)
		return -1;
	s->v.mac = checker_mac_fn;
	s->v.mac_ctx = b->rig.checker;
	return draw_order(b, e);
}

static int is_champion(const struct bench *b)
{
	return strcmp(b->rig.arm[RAW_CANDIDATE].candidate, b->rig.arm[RAW_CHAMPION].candidate) == 0;
}

static int run(struct bench *b, struct err *e)
{
	if (prepare(b, e) != 0)
		return -1;
	if (is_champion(b)) {
		verdict_set(&b->s->v, V_REJECT,
			    b->s->confirm ? "confirm.below_margin" : "bench.below_margin",
			    "this candidate is the champion itself");
		return 0;
	}
	if (b->rig.class != DEVICE_CUDA && lane_exclusive(&b->lane, b->s->trial.device, e) != 0)
		return -1;
	int rc = measure(b, e);
	lane_drop(&b->lane);
	if (rc != 0)
		return -1;
	decide(b);
	check_floor(b);
	verdict_isolation_list(&b->s->v, b->rig.isolation); /* the rig is static and lives as long */
	return report(b, e);
}

/* The checker outlives this function: the verdict's MAC comes from it. */
static struct bench bench = {.lane = LANE_INIT};
static struct checker *engine_checker;

static int work(struct stage *s, struct err *e)
{
	struct buf text = BUF_INIT;
	int engine = engine_problem(s, &text, e);
	if (engine) {
		int rc = engine < 0 ? -1 : bench_engine(s, buf_str(&text), text.len, &engine_checker, e);
		buf_free(&text);
		return rc;
	}
	bench.s = s;
	raw_begin(&bench.raw, 1000000000);
	contest_init(&bench.first);
	contest_init(&bench.fresh);
	int rc = run(&bench, e);
	lane_drop(&bench.lane);
	raw_free(&bench.raw);
	contest_free(&bench.first);
	contest_free(&bench.fresh);
	return rc;
}

static int option(struct stage *s, const char *arg)
{
	(void)s; /* the target says the same: stage.confirm */
	return strcmp(arg, "--confirm") == 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
	static const struct stage_about about = {
		.stage = "bench", .help = HELP, .work = work, .option = option};
	int rc = stage_main(argc, argv, &about);
	rig_free(&bench.rig);
	if (engine_checker)
		checker_stop(engine_checker);
	return rc;
}
