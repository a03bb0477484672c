/*
 * proof_judge.c - the whole examination of one artefact. See proof.h and design.md 4.
 *
 * Per public workload and per secret held-out shape: reps with new inputs each (a few elements
 * changed in place against the set's base content), regimes mixed in an order nobody knows
 * beforehand, poisoned outputs, workspaces and guards, thread orders and scrub patterns that
 * change, every output compared in full. Then pairs of runs on the same inputs: other guards and
 * scrub patterns must give the same bits, unless the very same fills already do not. Then a pass
 * with an unmapped page behind every buffer.
 *
 * A GPU has no thread orders to choose; there the scrub patterns alone change, and the first rep is of
 * the spec's own distribution, so that what is plainly wrong is refused at once.
 *
 * Last, one such pass at each of a dozen more secret shapes, drawn where kernels go wrong (spec_draw).
 *
 * SPDX-License-Identifier: MIT
 */
#include "proof.h"

#include "arm_impl.h"
#include "defence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

const struct proof_budget PROOF_JUDGE_EMU = {
	.reps = 10, .held_reps = 5, .held_out = -1, .probes = 12, .probe_s = 0.6, .wall_s = 2.0,
};
const struct proof_budget PROOF_TUNE_EMU = {.reps = 4, .held_reps = 2, .held_out = 1, .wall_s = 0.5};
/* A run costs less on a GPU, a reference in double precision at full size more. */
const struct proof_budget PROOF_JUDGE_CUDA = {
	.reps = 10, .held_reps = 5, .held_out = -1, .probes = 12, .probe_s = 1.5, .wall_s = 3.0,
};
const struct proof_budget PROOF_TUNE_CUDA = {.reps = 3, .held_reps = 2, .held_out = 1, .wall_s = 0.5};

/* How two runs on the same inputs differ. */
enum { BASE_POISON = 100, OTHER_POISON = 201 };

struct exam {
	struct proof *p;
	const struct proof_arm *a;
	const struct proof_budget *b;
	struct proof_report *r;
	struct proof_row *row;
	int64_t end_ns;
	int gpu;
	uint64_t rep; /* counts up: no two reps share a number */
};

static uint64_t any_word(void)
{
	uint64_t v = 0;

	if (getrandom(&v, sizeof v, 0) != sizeof v)
		v = (uint64_t)arm_now_ns();
	return v;
}

static void worse(double *have, double v)
{
	if (!(v <= *have))
		*have = v;
}

static void failed(struct exam *x, const char *word, const char *text)
{
	struct proof_report *r = x->r;

	if (!r->pass)
		return;
	r->pass = 0;
	snprintf(r->word, sizeof r->word, "%s", word);
	snprintf(r->where, sizeof r->where, "%s", x->row->name);
	snprintf(r->text, sizeof r->text, "%s", text ? text : "");
	r->held_out = x->row->mode == CHECKER_HELD_OUT;
}

static int one_rep(struct exam *x, struct proof_work *w, const struct checker_prep *prep,
		   enum arm_order order, uint64_t seed, struct proof_out *out, struct err *e)
{
	struct proof_row *row = x->row;

	if (proof_rep(w, prep, order, seed, out, e) < 0)
		return -1;
	row->runs++;
	if (out->status == ARM_OK) {
		worse(&row->worst, out->cmp.worst);
		worse(&row->rel_l2, out->cmp.rel_l2);
		worse(&row->row_l2, out->cmp.row_l2);
		worse(&row->ratio, out->cmp.ratio);
	}
	if (!out->pass)
		failed(x, out->word, out->text);
	return 0;
}

/* Regimes in secret order: each allowed one once, mixed magnitudes three times where there are enough reps
 * (no two such fills are alike), the rest as the spec says, of which one goes first where `first` asks. */
static void draw_regimes(uint32_t allowed, int reps, int first, enum fill_regime *out)
{
	int n = 0;

	for (int g = REGIME_COUNT - 1; g > 0 && n < reps - 1; g--)
		if (allowed & 1u << g)
			out[n++] = (enum fill_regime)g;
	for (int i = 0; i < 2 && reps >= 10 && allowed & 1u << REGIME_MIXED; i++)
		out[n++] = REGIME_MIXED;
	while (n < reps)
		out[n++] = REGIME_SPEC;
	for (int i = reps; i > 1; i--) {
		int k = (int)(any_word() % (uint64_t)i);
		enum fill_regime t = out[i - 1];
		out[i - 1] = out[k];
		out[k] = t;
	}
	for (int i = 1; i < reps && first && out[0] != REGIME_SPEC; i++)
		if (out[i] == REGIME_SPEC) {
			out[i] = out[0];
			out[0] = REGIME_SPEC;
		}
}

static int main_reps(struct exam *x, struct proof_work *w, int reps, struct err *e)
{
	enum fill_regime regime[64];
	struct proof_out *out = xcalloc(1, sizeof *out);
	int rc = 0;

	reps = reps > 64 ? 64 : reps;
	draw_regimes(w->w.regimes, reps, x->gpu, regime);
	for (int i = 0; i < reps && rc == 0 && x->r->pass; i++) {
		/* Overlong: keep one rep of each regime, drop repetitions. */
		if (arm_now_ns() > x->end_ns && regime[i] == REGIME_SPEC && i > 2) {
			x->r->cut = 1;
			continue;
		}
		struct checker_prep q = {
			.rep = ++x->rep, .set = (uint32_t)i % 4, .perturb = 1, .regime = regime[i],
			.poison = (uint32_t)i, .ratio = 1,
		};
		rc = one_rep(x, w, &q, (enum arm_order)(any_word() % 3), any_word() >> 1, out, e);
		x->row->reps++;
		x->row->regimes[regime[i]]++;
		x->row->exact_done |= regime[i] >= REGIME_EXACT_A;
	}
	free(out);
	return rc;
}

/* Two runs that differ in what guards, slack, workspaces and shared memory hold gave different bits. Is it
 * that? Then each filling gives its own bits, time and again. Sums in an order of the moment differ, too, and
 * two of three such runs agree often: that is no crime. */
static int fills_matter(struct exam *x, struct proof_work *w, const uint64_t seed[2], struct proof_out *a,
			struct err *e)
{
	struct checker_prep q = {.rep = x->rep, .perturb = 1};

	for (int i = 0; i < 2 * PROOF_AGAIN; i++) {
		q.poison = i % 2 ? OTHER_POISON : BASE_POISON;
		if (one_rep(x, w, &q, ARM_FORWARD, seed[i % 2], &a[2], e) < 0)
			return -1;
		if (!x->r->pass)
			return 0;
		if (memcmp(a[2].cmp.hash, a[i % 2].cmp.hash, 32)) {
			x->r->deterministic = 0;
			return 0;
		}
	}
	if (DEFENCE("judge.guard_read"))
		failed(x, "guard_read", "");
	return 0;
}

/* The same inputs again with other guards, slack, poison and scrub: the bits must not move. And see
 * whether thread order moves them. */
static int pair_runs(struct exam *x, struct proof_work *w, struct err *e)
{
	struct proof_out *a = xcalloc(4, sizeof *a);
	uint64_t word = any_word() >> 1, seed[2] = {word, word + 12345};
	struct checker_prep q = {.rep = ++x->rep, .perturb = 1, .poison = BASE_POISON};
	int rc = one_rep(x, w, &q, ARM_FORWARD, seed[0], &a[0], e);

	q.poison = OTHER_POISON;
	if (rc == 0 && x->r->pass)
		rc = one_rep(x, w, &q, ARM_FORWARD, seed[1], &a[1], e);
	if (rc == 0 && x->r->pass && x->r->orders)
		rc = one_rep(x, w, &q, ARM_SHUFFLED, seed[0], &a[3], e);
	if (rc == 0 && x->r->pass && memcmp(a[0].cmp.hash, a[1].cmp.hash, 32))
		rc = fills_matter(x, w, seed, a, e);
	if (rc == 0 && x->r->pass && x->r->orders && memcmp(a[1].cmp.hash, a[3].cmp.hash, 32))
		x->r->order_dependent = 1;
	free(a);
	return rc;
}

static int fence_pass(struct exam *x, struct checker_open *q, struct err *e)
{
	int fence = DEFENCE("fence");

	struct proof_work w;
	struct proof_out *out = xcalloc(1, sizeof *out);
	struct checker_prep prep = {.rep = ++x->rep, .perturb = 1, .poison = 1};

	q->fence = fence;
	q->baseline = 0;
	int rc = proof_open(x->p, x->a, q, &w, e);
	if (rc == 0)
		rc = one_rep(x, &w, &prep, ARM_SHUFFLED, any_word() >> 1, out, e);
	x->row->fence = rc == 0 && out->pass;
	proof_close(&w);
	free(out);
	return rc;
}

static int examine(struct exam *x, enum checker_mode mode, uint32_t index, const char *name, int reps,
		   struct err *e)
{
	struct proof_work w;
	struct checker_open q = {.mode = mode, .index = index, .baseline = 1};

	if (x->r->n >= PROOF_ROWS)
		return 0;
	x->row = &x->r->row[x->r->n++];
	x->row->mode = mode;
	snprintf(x->row->name, sizeof x->row->name, "%s", name);
	int rc = proof_open(x->p, x->a, &q, &w, e);
	if (rc == 0)
		rc = main_reps(x, &w, reps, e);
	if (rc == 0 && x->r->pass)
		rc = pair_runs(x, &w, e);
	proof_close(&w);
	if (rc == 0 && x->r->pass)
		rc = fence_pass(x, &q, e);
	return rc;
}

/* A slow candidate must not choose how few shapes it is tried at: half of them are always made. */
static int probe(struct exam *x, int first, struct err *e)
{
	int64_t end = arm_now_ns() + (int64_t)(x->b->probe_s * 1e9);
	int rc = 0;

	for (int i = 0; i < x->b->probes && rc == 0 && x->r->pass && x->r->n < PROOF_ROWS; i++) {
		struct checker_open q = {.mode = CHECKER_HELD_OUT, .index = (uint32_t)(first + i)};
		if (arm_now_ns() > end && i >= x->b->probes / 2) {
			x->r->cut = 1;
			break;
		}
		x->row = &x->r->row[x->r->n++];
		x->row->mode = CHECKER_HELD_OUT;
		x->row->probe = x->row->reps = 1;
		snprintf(x->row->name, sizeof x->row->name, "a held-out shape");
		rc = fence_pass(x, &q, e);
	}
	return rc;
}

int proof_judge(struct proof *p, const struct proof_arm *a, const struct proof_budget *b,
		struct proof_report *r, struct err *e)
{
	struct exam x = {.p = p, .a = a, .b = b, .r = r};
	int held = b->held_out < 0 ? p->spec->held_out_count : b->held_out;
	int rc = 0;

	memset(r, 0, sizeof *r);
	r->pass = r->deterministic = 1;
	x.gpu = device_class_of(p->device) == DEVICE_CUDA;
	r->orders = !x.gpu;
	strcpy(r->word, "ok");
	x.end_ns = arm_now_ns() + (int64_t)(b->wall_s * 1e9);
	if (held > p->spec->held_out_count)
		held = p->spec->held_out_count;
	for (int i = 0; i < p->spec->npublic && DEFENCE("shapes.public") && rc == 0 && r->pass; i++)
		rc = examine(&x, CHECKER_PUBLIC, (uint32_t)i, p->spec->public[i].name, b->reps, e);
	for (int i = 0; i < held && DEFENCE("shapes.held_out") && rc == 0 && r->pass; i++)
		rc = examine(&x, CHECKER_HELD_OUT, (uint32_t)i, "a held-out shape", b->held_reps, e);
	if (rc == 0 && r->pass && p->spec->held_out_count > 0 && DEFENCE("shapes.probes"))
		rc = probe(&x, p->spec->held_out_count, e);
	return rc;
}

void proof_report_write(const struct proof_report *r, struct jsonw *w)
{
	jw_bool(w, "sampled", 0);
	jw_bool(w, "deterministic", r->deterministic);
	if (r->orders)
		jw_bool(w, "order_dependent", r->order_dependent);
	else
		jw_null(w, "order_dependent"); /* threads of a GPU run in no order that could be asked for */
	jw_bool(w, "cut", r->cut);
	jw_arr(w, "workloads");
	for (int i = 0; i < r->n; i++) {
		const struct proof_row *row = &r->row[i];
		jw_obj(w, NULL);
		jw_str(w, "name", row->name);
		jw_bool(w, "held_out", row->mode == CHECKER_HELD_OUT);
		jw_int(w, "reps", row->reps);
		jw_int(w, "runs", row->runs);
		jw_num(w, "worst_over_bound", row->worst);
		jw_num(w, "rel_l2", row->rel_l2);
		jw_num(w, "row_rel_l2", row->row_l2);
		jw_num(w, "error_ratio", row->ratio);
		jw_bool(w, "fence", row->fence);
		jw_bool(w, "probe", row->probe);
		jw_obj(w, "regimes");
		for (int g = 0; g < REGIME_COUNT; g++)
			if (row->regimes[g])
				jw_int(w, fill_regime_name((enum fill_regime)g), row->regimes[g]);
		jw_end(w);
		jw_end(w);
	}
	jw_end(w);
}
