/*
 * session.c - see session.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "session.h"

#include "defence.h"
#include "hash.h"
#include "stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t session_word(const char *seed, const char *what, int a, int b, int c, int d)
{
	char text[160];
	uint8_t digest[32];
	uint64_t word = 0;
	int n = snprintf(text, sizeof text, "%s:%s:%d:%d:%d:%d", seed, what, a, b, c, d);
	hash_bytes(text, (size_t)n, digest);
	for (int i = 7; i >= 0; i--)
		word = word << 8 | digest[i];
	return word;
}

int session_order(const char *seed, int session, int workload, int block, int quad)
{
	return (int)(session_word(seed, "order", session, workload, block, quad) & 1);
}

uint32_t session_set(const char *seed, int session, int workload, int place, int slot, int ring)
{
	uint64_t word = session_word(seed, "set", session, workload, place, slot / 2);
	uint64_t first = word % (uint64_t)ring;
	if (slot % 2 == 0 || ring < 2)
		return (uint32_t)first;
	return (uint32_t)((first + 1 + (word >> 32) % (uint64_t)(ring - 1)) % (uint64_t)ring);
}

enum raw_arm session_arm(int order, int slot, enum raw_arm a, enum raw_arm b)
{
	int outer = slot == 0 || slot == 3;
	return outer == (order == 0) ? a : b;
}

/* Running figures of one workload. Sums are integers: 2^63 ns is 292 years. */
struct tally {
	uint64_t sum[RAW_ARMS], min[RAW_ARMS], count[RAW_ARMS];
	double *solo, *company; /* champion's times */
	double *own;            /* candidate's, measured */
	int solos, companies, owns;
	uint64_t slowest; /* rep of the champion before the first block */
};

/* Of a workload; or of all workloads in turn, where a process lasts for the session. */
enum part { WHOLE, ALONE, PAIRS, ANCHOR };

struct walk {
	const struct session_job *job;
	struct session_result *r;
	int workload;
	struct session_size size;
	struct tally t;
};

static int bad(const struct walk *k)
{
	return k->r->outcome != SHOT_OK;
}

/* One rep, into the raw file. Returns its ticks, or 0 when it went wrong (r->outcome says so) or
 * -1 for trouble of ours. */
static int64_t shoot(struct walk *k, enum raw_arm arm, enum raw_phase phase, int block, int slot,
		     struct err *e)
{
	const struct session_job *j = k->job;
	struct shot s = {.session = j->index, .workload = k->workload, .arm = arm, .phase = phase,
			 .block = block};
	s.set = session_set(j->order_seed, j->index, k->workload, (int)phase * 65536 + block, slot,
			    k->size.ring);
	s.rep = j->raw->count;
	if (j->ops->shoot(j->ctx, &s, e) != 0)
		return -1;
	raw_add(j->raw, &(struct raw_rep){
				.start = s.start,
				.stop = s.stop,
				.session = (uint16_t)j->index,
				.workload = (uint16_t)k->workload,
				.block = (uint16_t)block,
				.slot = (uint16_t)slot,
				.set = s.set,
				.arm = (uint8_t)arm,
				.phase = (uint8_t)phase,
				.check = (uint8_t)s.check,
			});
	if (s.outcome != SHOT_OK) {
		k->r->outcome = s.outcome;
		k->r->guilty = s.arm; /* a confirmation warms up both arms before a block: either may fail */
		k->r->at_workload = k->workload;
		snprintf(k->r->text, sizeof k->r->text, "%s", s.text);
		return 0;
	}
	int64_t ticks = s.stop > s.start ? (int64_t)(s.stop - s.start) : 1;
	if (arm == RAW_CHAMPION && phase < RAW_MEASURE && (uint64_t)ticks > k->t.slowest)
		k->t.slowest = (uint64_t)ticks;
	if (j->behind && arm != RAW_BASELINE && block < SESSION_SOLO_WARM && (phase == RAW_WARM || phase == RAW_MEASURE))
		*j->behind += arm == RAW_CANDIDATE ? ticks : -ticks;
	return ticks;
}

/* The lane is everybody's: a candidate that has lost does not hold it. */
static void give_up(struct walk *k, double times)
{
	k->r->outcome = SHOT_SLOW;
	k->r->guilty = RAW_CANDIDATE;
	k->r->at_workload = k->workload;
	k->r->slow_times = times;
	if (times > 0)
		snprintf(k->r->text, sizeof k->r->text, "two reps, %.0f times as long as the champion's slowest",
			 times);
	else
		snprintf(k->r->text, sizeof k->r->text, "%.0f s behind the champion in as many reps",
			 (double)*k->job->behind * 1e-9);
}

static void check_behind(struct walk *k)
{
	const struct session_job *j = k->job;
	if (!bad(k) && j->behind && j->c->behind_s > 0 && (double)*j->behind > j->c->behind_s * 1e9)
		give_up(k, 0);
}

static int start(struct walk *k, enum raw_arm arm, struct err *e)
{
	enum shot_outcome out = SHOT_OK;
	char text[256] = "";
	if (k->job->ops->start(k->job->ctx, arm, &out, text, e) != 0)
		return -1;
	if (out != SHOT_OK) {
		k->r->outcome = out;
		k->r->guilty = arm;
		k->r->at_workload = k->workload;
		memcpy(k->r->text, text, sizeof text);
	}
	return 0;
}

/* The champion alone: two reps to warm up (one where its process goes on), then the counted ones. */
static int run_solo(struct walk *k, struct err *e)
{
	const struct session_job *j = k->job;
	const int lasting = j->c->lasting;
	if (!lasting && start(k, RAW_CHAMPION, e) != 0)
		return -1;
	for (int i = lasting ? -1 : -2; i < k->size.solo_reps && !bad(k); i++) {
		enum raw_phase phase = i < 0 ? RAW_WARM : RAW_SOLO;
		int64_t ticks = shoot(k, RAW_CHAMPION, phase, i < 0 ? SESSION_SOLO_WARM : 0, i < 0 ? i + 2 : i, e);
		if (ticks < 0)
			return -1;
		if (i >= 0 && ticks > 0)
			k->t.solo[k->t.solos++] = (double)ticks;
	}
	if (k->t.solos > 0)
		k->r->w[k->workload].alone = stats_median(k->t.solo, (size_t)k->t.solos);
	return lasting ? 0 : j->ops->stop(j->ctx, RAW_CHAMPION, e);
}

static int run_warm(struct walk *k, struct err *e)
{
	const struct session_class *c = k->job->c;
	int n = 2 * c->warm_pairs;
	double least = HUGE_VAL; /* of the candidate's reps */
	for (int i = 0; i < n && !bad(k); i++) {
		int64_t ticks = shoot(k, i % 2 ? RAW_CANDIDATE : RAW_CHAMPION, RAW_WARM, 0, i, e);
		if (ticks < 0)
			return -1;
		if (i % 2 == 0 || bad(k))
			continue;
		least = fmin(least, (double)ticks);
		if (i != n - 1 || !k->job->behind || !(c->hopeless > 0) ||
		    least <= c->hopeless * (double)k->t.slowest)
			continue;
		/* One such rep may be the machine's doing: once more. */
		if (n == 2 * c->warm_pairs)
			n += 2;
		else
			give_up(k, least / (double)k->t.slowest);
	}
	check_behind(k);
	return 0;
}

static void count(struct tally *t, enum raw_arm arm, uint64_t ticks)
{
	t->sum[arm] += ticks;
	t->count[arm]++;
	if (t->min[arm] == 0 || ticks < t->min[arm])
		t->min[arm] = ticks;
}

/* Quads of one block; *log_ratio = ln(sum over a / sum over b). */
static int run_block(struct walk *k, enum raw_phase phase, int block, int quads, enum raw_arm a,
		     enum raw_arm b, double *log_ratio, struct err *e)
{
	const struct session_job *j = k->job;
	uint64_t sum[RAW_ARMS] = {0};
	for (int q = 0; q < quads; q++) {
		int order = session_order(j->order_seed, j->index, k->workload,
					  (int)phase * 65536 + block, q);
		for (int i = 0; i < 4; i++) {
			enum raw_arm arm = session_arm(order, i, a, b);
			int64_t ticks = shoot(k, arm, phase, block, 4 * q + i, e);
			if (ticks < 0)
				return -1;
			if (bad(k))
				return 0;
			sum[arm] += (uint64_t)ticks;
			if (phase <= RAW_ANCHOR)
				count(&k->t, arm, (uint64_t)ticks);
			if (phase == RAW_MEASURE && arm == RAW_CHAMPION)
				k->t.company[k->t.companies++] = (double)ticks;
			if (phase == RAW_MEASURE && arm == RAW_CANDIDATE)
				k->t.own[k->t.owns++] = (double)ticks;
		}
	}
	*log_ratio = log((double)sum[a]) - log((double)sum[b]);
	return 0;
}

/* Far behind from its first block on: how far need not be known well. */
static int lost(const struct session_job *j, const struct session_workload *w)
{
	int all = j->c->lost_blocks > 0 && !isnan(j->delta) && w->blocks == j->c->lost_blocks;
	for (int i = 0; i < w->blocks && all; i++)
		all = w->block[i] < -j->c->lost;
	return all;
}

/* Enough blocks? But for a clear loser, symmetric about the margin: what ends a session early for being far above ends
 * it for being as far below. */
static int enough(const struct session_job *j, const struct session_workload *w)
{
	double most = j->c->se_target;
	if (!DEFENCE("bench.samples"))
		return 1;
	if (j->c->decisive > 0 && !isnan(j->delta))
		most = fmax(most, fabs(w->theta - j->delta) / j->c->decisive);
	return w->blocks >= j->c->blocks_min && w->se <= most;
}

static int run_measure(struct walk *k, struct err *e)
{
	const struct session_class *c = k->job->c;
	struct session_workload *w = &k->r->w[k->workload];
	while (w->blocks < k->size.blocks_max && !bad(k)) {
		double l = 0;
		if (run_block(k, RAW_MEASURE, w->blocks, k->size.block_quads, RAW_CHAMPION,
			      RAW_CANDIDATE, &l, e) != 0)
			return -1;
		if (bad(k))
			return 0;
		w->block[w->blocks++] = l;
		size_t n = (size_t)w->blocks;
		w->theta = stats_trimmed(w->block, n, c->trim);
		w->se = stats_trimmed_se(w->block, n, c->trim);
		check_behind(k);
		if (bad(k) || enough(k->job, w) || lost(k->job, w))
			break;
	}
	return 0;
}

static int run_anchor(struct walk *k, struct err *e)
{
	struct session_workload *w = &k->r->w[k->workload];
	const int lasting = k->job->c->lasting;
	if (!lasting && start(k, RAW_BASELINE, e) != 0)
		return -1;
	if (bad(k))
		return 0;
	/* One warm rep of the newcomer, then blocks of one quad each. */
	double l[SESSION_BLOCKS];
	int n = 0;
	if (shoot(k, RAW_BASELINE, RAW_WARM, 2000, 0, e) < 0)
		return -1;
	for (; n < k->size.anchor_quads && !bad(k); n++)
		if (run_block(k, RAW_ANCHOR, n, 1, RAW_BASELINE, RAW_CANDIDATE, &l[n], e) != 0)
			return -1;
	if (!bad(k))
		w->anchor = stats_trimmed(l, (size_t)n, k->job->c->trim);
	return lasting ? 0 : k->job->ops->stop(k->job->ctx, RAW_BASELINE, e);
}

/* Guards: blocks of one quad each. */
static int run_guard(struct walk *k, enum raw_phase phase, int quads, double *theta, double *se, struct err *e)
{
	double l[SESSION_BLOCKS];
	int n = 0;
	for (; n < quads && !bad(k); n++)
		if (run_block(k, phase, n, 1, RAW_CHAMPION, RAW_CANDIDATE, &l[n], e) != 0)
			return -1;
	if (n == 0 || bad(k))
		return 0;
	*theta = stats_trimmed(l, (size_t)n, k->job->c->trim);
	*se = stats_trimmed_se(l, (size_t)n, k->job->c->trim);
	return 0;
}

static int run_guards(struct walk *k, struct err *e)
{
	const struct session_class *c = k->job->c;
	struct session_workload *w = &k->r->w[k->workload];
	if (run_guard(k, RAW_DRAIN, c->drain_quads, &w->drain, &w->drain_se, e) != 0)
		return -1;
	return run_guard(k, RAW_SUSTAINED, c->sustained_quads, &w->sustained, &w->sustained_se, e);
}

static double sum(const double *x, int n)
{
	double s = 0;
	for (int i = 0; i < n; i++)
		s += x[i];
	return s;
}

static double tail(const double *x, int n)
{
	double most = SESSION_TAIL * stats_median(x, (size_t)n);
	int over = 0;
	for (int i = 0; i < n; i++)
		over += x[i] > most;
	return (double)over / n;
}

static void settle(struct walk *k)
{
	struct session_workload *w = &k->r->w[k->workload];
	struct tally *t = &k->t;
	for (int a = 0; a < RAW_ARMS; a++) {
		w->mean[a] = t->count[a] ? (double)t->sum[a] / (double)t->count[a] : 0;
		w->min[a] = (double)t->min[a];
	}
	if (!bad(k) && t->companies > 0 && t->owns > 0) {
		w->total[RAW_CHAMPION] = sum(t->company, t->companies);
		w->total[RAW_CANDIDATE] = sum(t->own, t->owns);
		w->tail[RAW_CHAMPION] = tail(t->company, t->companies);
		w->tail[RAW_CANDIDATE] = tail(t->own, t->owns);
	}
	if (bad(k) || !(w->alone > 0) || t->companies == 0)
		return;
	w->solo = log(w->alone) - log(stats_median(t->company, (size_t)t->companies));
}

static int start_both(struct walk *k, struct err *e)
{
	const struct session_job *j = k->job;
	int flip = (int)(session_word(j->order_seed, "start", j->index, k->workload, 0, 0) & 1);
	for (int i = 0; i < 2 && !bad(k); i++)
		if (start(k, i == flip ? RAW_CHAMPION : RAW_CANDIDATE, e) != 0)
			return -1;
	return 0;
}

static int run_workload(struct walk *k, enum part part, struct err *e)
{
	const struct session_job *j = k->job;
	const int anchor = j->anchor && j->weight[k->workload] > 0; /* held-out workloads are guarded alone */
	if (part == ANCHOR)
		return anchor ? run_anchor(k, e) : 0;
	if (j->solo && part != PAIRS && run_solo(k, e) != 0)
		return -1;
	if (part == ALONE)
		return 0;
	if (part == WHOLE && start_both(k, e) != 0)
		return -1;
	if (!bad(k) && (run_warm(k, e) != 0 || run_measure(k, e) != 0))
		return -1;
	if (!bad(k) && part == WHOLE && anchor && run_anchor(k, e) != 0)
		return -1;
	if (!bad(k) && j->guards && j->weight[k->workload] > 0 && run_guards(k, e) != 0)
		return -1;
	settle(k);
	return 0;
}

static int one_workload(const struct session_job *j, struct session_result *r, int workload, enum part part,
			struct err *e)
{
	struct walk k = {.job = j, .r = r, .workload = workload};
	k.size = j->size ? j->size[workload]
			 : (struct session_size){.ring = j->c->ring, .block_quads = j->c->block_quads,
						 .blocks_max = j->c->blocks_max, .solo_reps = j->c->solo_reps,
						 .anchor_quads = j->c->anchor_quads};
	int most = 2 * k.size.block_quads * k.size.blocks_max;
	k.t.solo = xcalloc((size_t)k.size.solo_reps, sizeof(double));
	k.t.company = xcalloc((size_t)most, sizeof(double));
	k.t.own = xcalloc((size_t)most, sizeof(double));
	if (part == WHOLE)
		r->w[workload].anchor = NAN;
	int rc = j->ops->open(j->ctx, j->index, workload, e);
	if (rc == 0) {
		rc = run_workload(&k, part, e);
		j->ops->close(j->ctx);
	}
	free(k.t.solo);
	free(k.t.company);
	free(k.t.own);
	return rc;
}

/* Order of the workloads: sorted by a word drawn for each. */
static void shuffle(const struct session_job *j, int order[SESSION_WORKLOADS])
{
	uint64_t key[SESSION_WORKLOADS];
	for (int i = 0; i < j->workloads; i++) {
		uint64_t word = session_word(j->order_seed, "place", j->index, i, 0, 0);
		int at = i;
		for (; at > 0 && key[at - 1] > word; at--) {
			key[at] = key[at - 1];
			order[at] = order[at - 1];
		}
		key[at] = word;
		order[at] = i;
	}
}

/* A void session says nothing against an arm; a wrong output or a fault is one on any machine. */
static int end_session(const struct session_job *j, struct session_result *r, struct err *e)
{
	struct shot s = {.session = j->index, .arm = RAW_CANDIDATE};
	if (!j->ops->end)
		return 0;
	if (j->ops->end(j->ctx, &s, e) != 0)
		return -1;
	if (s.outcome == SHOT_OK || (r->outcome != SHOT_OK && r->outcome != SHOT_SLOW && r->outcome != SHOT_TIMEOUT))
		return 0;
	r->outcome = s.outcome;
	if (s.outcome != SHOT_ENV) {
		r->guilty = s.arm;
		r->at_workload = s.workload;
	}
	memcpy(r->text, s.text, sizeof r->text);
	return 0;
}

static int all_workloads(const struct session_job *j, struct session_result *r, const int *order, enum part part, struct err *e)
{
	for (int i = 0; i < j->workloads && r->outcome == SHOT_OK; i++)
		if (one_workload(j, r, order[i], part, e) != 0)
			return -1;
	return 0;
}

/* One process of each arm for all of it; what is alone, or is not there yet, disturbs nobody. */
static int lasting(const struct session_job *j, struct session_result *r, const int *order, struct err *e)
{
	struct walk k = {.job = j, .r = r, .workload = order[0]};
	static const struct {
		enum raw_arm arm;
		enum part part;
	} turn[] = {{RAW_CHAMPION, ALONE}, {RAW_CANDIDATE, PAIRS}, {RAW_BASELINE, ANCHOR}};
	for (int i = 0; i < j->workloads; i++)
		r->w[i].anchor = NAN;
	for (int i = 0; i < (j->anchor ? 3 : 2) && !bad(&k); i++)
		if (start(&k, turn[i].arm, e) != 0 || all_workloads(j, r, order, turn[i].part, e) != 0)
			return -1;
	return 0;
}

int session_run(const struct session_job *j, struct session_result *r, struct err *e)
{
	if (j->workloads < 1 || j->workloads > SESSION_WORKLOADS ||
	    j->c->blocks_max > SESSION_BLOCKS || j->c->anchor_quads > SESSION_BLOCKS ||
	    j->c->drain_quads > SESSION_BLOCKS || j->c->sustained_quads > SESSION_BLOCKS)
		return err_set(e, EX_HARNESS, "session of %d workloads", j->workloads);
	int order[SESSION_WORKLOADS] = {0};
	memset(r, 0, sizeof *r);
	r->index = j->index;
	for (int i = 0; i < SESSION_WORKLOADS; i++)
		r->w[i].drain = r->w[i].sustained = NAN;
	shuffle(j, order);
	if ((j->c->lasting ? lasting(j, r, order, e) : all_workloads(j, r, order, WHOLE, e)) != 0)
		return -1;
	if (end_session(j, r, e) != 0)
		return -1;
	double sum = 0, solo = 0, weights = 0;
	for (int i = 0; i < j->workloads; i++) {
		sum += j->weight[i] * r->w[i].theta;
		solo += j->weight[i] * r->w[i].solo;
		weights += j->weight[i];
	}
	r->theta = weights > 0 ? sum / weights : 0;
	r->solo = weights > 0 ? solo / weights : 0;
	return 0;
}
