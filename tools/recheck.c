/*
 * recheck.c - recompute the verdict of bench.json or confirm.json from its raw samples.
 *
 * A second implementation on purpose: it shares no code with bench or its statistics, only file,
 * hash and JSON reading. Reads the verdict, its *.raw and *.prereg.json; writes nothing; prints
 * what agrees and what does not.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file.h"
#include "json.h"
#include "recheck_engine.h"
#include "recheck_math.h"
#include "recheck_plan.h"
#include "recheck_say.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
	"recheck - recompute timing verdicts from raw samples\n"
	"\n"
	"usage: recheck trials/NNNN/bench.json [trials/NNNN/confirm.json ...]\n"
	"\n"
	"Checks the hashes of raw file and pre-registration, the drawn order of arms and input sets,\n"
	"every block, session and look, the guards, the estimate and the verdict, under the rule that\n"
	"was pre-registered: touchstone-bench-rule-1 or -2 (stages/lib/stats.h says what changed). Of an\n"
	"engine also the times of each batch and the gates that follow from them, not its tokens.\n"
	"\n"
	"exit: 0 everything agrees, 1 something does not (printed), 2 usage, 3 malformed file\n";

static void load_raw(const struct buf *f)
{
	const unsigned char *p = (const unsigned char *)buf_str(f);
	if (f->len < 32 || memcmp(p, "TSRAW1\n", 8) != 0 || little(p + 8, 4) != 32 ||
	    little(p + 12, 4) != 32 || f->len != 32 + 32 * little(p + 16, 8))
		die(EX_BADINPUT, "the raw file is not a whole TSRAW1 file");
	count = (f->len - 32) / 32;
	all = xcalloc(count, sizeof *all);
	for (size_t i = 0; i < count; i++) {
		const unsigned char *r = p + 32 + 32 * i;
		uint64_t a = little(r, 8), b = little(r + 8, 8);
		all[i] = (struct sample){b > a ? b - a : 1, (unsigned)little(r + 16, 2),
					 (unsigned)little(r + 18, 2), (unsigned)little(r + 20, 2),
					 (unsigned)little(r + 22, 2), (unsigned)little(r + 24, 4),
					 r[28], r[29], r[30], r[31]};
	}
}

/* ---- one session ---- */

struct result {
	double theta, w[MAXW], anchor, solo;
	double guard[2][MAXW], guard_se[2][MAXW]; /* drain, sustained; NAN: not measured */
	int broken;
};

/* The order of a quad is drawn: A B B A when the bit is 0. */
static void check_draws(const struct plan *p, const struct sample *s)
{
	int place = (int)(s->phase * 65536 + s->block), quad = (int)s->slot / 4, i = (int)s->slot % 4;
	uint64_t set = draw(p->seed, "set", (int)s->session, (int)s->workload, place, (int)s->slot / 2);
	uint64_t ring = (uint64_t)p->wring[s->workload % MAXW], other = ring > 1 ? 1 + (set >> 32) % (ring - 1) : 0;
	expect(s->set == (set % ring + (i % 2 ? other : 0)) % ring, "session %u: an input set was not the drawn one",
	       s->session);
	if (s->phase < 2)
		return;
	unsigned a = s->phase == 3 ? 2 : 0;
	int bit = (int)(draw(p->seed, "order", (int)s->session, (int)s->workload, place, quad) & 1);
	unsigned want = ((i == 0 || i == 3) == (bit == 0)) ? a : 1;
	expect(s->arm == want && s->drop == 0, "session %u: an arm was not the drawn one", s->session);
}

static void one_workload(const struct plan *p, int session, int w, const cJSON *j, struct result *r)
{
	static double sum[4][MAXB][3], alone[MAXC], company[MAXC];
	double l[MAXB], se = 0;
	int blocks = 0, behind = 0, count_of[4] = {0}, na = 0, nc = 0, reps[MAXB] = {0};
	memset(sum, 0, sizeof sum);
	for (size_t i = 0; i < count; i++) {
		const struct sample *s = &all[i];
		if ((int)s->session != session || (int)s->workload != w)
			continue;
		check_draws(p, s);
		if (s->block >= MAXB && s->phase >= 2)
			die(EX_BADINPUT, "the raw file has too many blocks");
		if (s->phase > 5 || s->arm > 2)
			die(EX_BADINPUT, "the raw file has an unknown phase or arm");
		if (s->phase == 1 && na < MAXC)
			alone[na++] = (double)s->ticks;
		if (s->phase >= 2)
			sum[s->phase - 2][s->block][s->arm] += (double)s->ticks;
		if (s->phase >= 2 && (int)s->block >= count_of[s->phase - 2])
			count_of[s->phase - 2] = (int)s->block + 1;
		if (s->phase == 2) {
			reps[s->block]++;
			if (s->arm == 0 && nc < MAXC)
				company[nc++] = (double)s->ticks;
		}
	}
	blocks = count_of[0];
	const cJSON *bl = json_get(j, "blocks");
	expect(bl && cJSON_GetArraySize(bl) == blocks, "session %d: number of blocks", session);
	for (int b = 0; b < blocks; b++) {
		expect(reps[b] == 4 * p->wquads[w], "session %d: block %d has %d reps", session, b, reps[b]);
		l[b] = log(sum[0][b][0] / sum[0][b][1]);
		const cJSON *v = bl ? cJSON_GetArrayItem(bl, b) : NULL;
		expect(v && same(v->valuedouble, l[b]), "session %d: block %d", session, b);
		double theta = trimmed(l, b + 1, p->trim, &se);
		double far = p->decisive > 0 ? fabs(theta - log(1 + p->margin)) / p->decisive : 0;
		behind += l[b] < -p->lost; /* what is far behind from its first block on is left there */
		int stop = (b + 1 >= p->bmin && se <= fmax(p->se_target, far)) || (behind > b && behind == p->lost_blocks);
		expect(b == blocks - 1 ? stop || b + 1 == p->wmax[w] : !stop,
		       "session %d: sampling stopped or went on against its rule", session);
		r->w[w] = theta;
	}
	expect_num(j, "theta", r->w[w], "workload");
	if (p->solo && na && nc) {
		double gap = log(middle(alone, na) / middle(company, nc));
		expect_num(j, "solo", gap, "workload");
		r->solo += p->weight[w] * gap;
	}
	for (int b = 0; b < count_of[1]; b++)
		l[b] = log(sum[1][b][2] / sum[1][b][1]);
	double anchor = count_of[1] ? trimmed(l, count_of[1], p->trim, &se) : NAN;
	expect_num(j, "anchor", anchor, "workload");
	r->anchor += p->weight[w] > 0 ? p->weight[w] * anchor : 0;
	for (int g = 0; g < 2; g++) {
		for (int b = 0; b < count_of[2 + g]; b++)
			l[b] = log(sum[2 + g][b][0] / sum[2 + g][b][1]);
		r->guard[g][w] = count_of[2 + g] ? trimmed(l, count_of[2 + g], p->trim, &r->guard_se[g][w]) : NAN;
		expect_num(j, g ? "sustained" : "drain", r->guard[g][w], "workload");
	}
}

/* Did the session end because the candidate was hopelessly slow? Its end is its last sample. */
static int given_up(const struct plan *p, int session, int w, double behind)
{
	double slowest = 0, least = HUGE_VAL;
	int pairs = 0;
	for (size_t i = 0; i < count; i++) {
		const struct sample *s = &all[i];
		if ((int)s->session != session || (int)s->workload != w || s->phase > 1)
			continue;
		if (s->arm == 0)
			slowest = fmax(slowest, (double)s->ticks);
		if (s->arm == 1 && s->phase == 0)
			least = fmin(least, (double)s->ticks), pairs++;
	}
	return (p->behind_s > 0 && behind > p->behind_s * 1e9) ||
	       (p->hopeless > 0 && pairs >= 2 && least > p->hopeless * slowest);
}

/* Time of the candidate less the champion's in the warm and measured pairs of a session. */
static double behind_in(int session)
{
	double t = 0;
	for (size_t i = 0; i < count; i++)
		if ((int)all[i].session == session && all[i].arm < 2 &&
		    (all[i].phase == 2 || (all[i].phase == 0 && all[i].block < 1000)))
			t += all[i].arm == 1 ? (double)all[i].ticks : -(double)all[i].ticks;
	return t;
}

static void one_session(const struct plan *p, int session, const cJSON *j, struct result *r)
{
	double weights = 0;
	*r = (struct result){0};
	const cJSON *ws = json_get(j, "workloads");
	for (size_t i = 0; i < count; i++)
		if ((int)all[i].session == session && all[i].check == 2)
			r->broken = 1;
	for (int w = 0; w < p->nw && !r->broken; w++) {
		one_workload(p, session, w, ws ? cJSON_GetArrayItem(ws, w) : NULL, r);
		r->theta += p->weight[w] * r->w[w];
		weights += p->weight[w];
	}
	r->theta /= weights;
	r->anchor /= weights, r->solo /= weights;
	if (r->broken)
		return;
	expect_num(j, "theta", r->theta, "session");
	expect_num(j, "solo", r->solo, "session");
}

/* ---- the decision ---- */

static int look(const struct plan *p, const double *theta, int k, const cJSON *j)
{
	double delta = log(1 + p->margin), m = average(theta, 0, k), s = spread(theta, k), t = 0, bf = 1;
	if (k > 1) {
		t = s > 0 ? sqrt(k) * (m - delta) / s : m > delta ? HUGE_VAL : m < delta ? -HUGE_VAL : 0;
		bf = bayes(t, k, p->g);
	}
	expect_num(j, "mean", m, "look"), expect_num(j, "s", s, "look"), expect_num(j, "t", t, "look");
	const cJSON *b = json_get(j, "bf");
	expect(b && fabs(b->valuedouble / bf - 1) < 1e-6, "look %d: bf recomputed %.9g", k, bf);
	if (k >= p->kmin && t > 0 && bf >= 1 / (2 * p->alpha))
		return 'p';
	if (k == 1 && m < delta - p->gap && m + p->z1 * p->s0 < delta)
		return 'r';
	if (k >= p->kmin && m + p->z * fmax(s, p->floor * p->s0) / sqrt(k) < delta)
		return 'r';
	return k >= p->kmax ? 'i' : 'm';
}

/* 1 every workload is above the guard, -1 one is below, 0 open. */
static int guard(const struct plan *p, double w[MAXW][MAXS], int k)
{
	int all_held = 1;
	for (int i = 0; p->nw > 1 && i < p->nw; i++) {
		double h = t_value(p->level, k - 1) * spread(w[i], k) / sqrt(k), m = average(w[i], 0, k);
		if (m + h < log(1 + p->guard))
			return -1;
		all_held &= m - h >= log(1 + p->guard);
	}
	return all_held;
}

/* -1: the champion alone runs at another speed; 1: the candidate beats it alone too; 0: open. */
static int alone_too(const struct plan *p, const double *theta, const double *solo, int k)
{
	double both[MAXS], m = average(solo, 0, k), h = t_value(0.975, k - 1) * spread(solo, k) / sqrt(k);
	for (int i = 0; i < k; i++)
		both[i] = theta[i] + fmin(solo[i], p->slack);
	if (!p->solo || m + h < -p->slack)
		return p->solo ? -1 : 1;
	h = t_value(p->level, k - 1) * spread(both, k) / sqrt(k), m = average(both, 0, k);
	return m > p->confirm_floor && m - h > 0;
}

/* Drain and sustained guards of the first session: NULL when both hold everywhere. */
static const char *unguarded(const struct plan *p, const struct result *r)
{
	for (int w = 0; w < p->nw; w++)
		for (int g = 0; g < 2; g++) {
			double least = log(1 - (g ? p->sustained : p->drain)), x = r->guard[g][w];
			if (x < least) /* never where it was not measured: NAN */
				return x + 2 * r->guard_se[g][w] < least ? "reject" : "inconclusive";
		}
	return NULL;
}

static const char *confirmed(const struct plan *p, const double *theta, const double *solo,
			     double w[MAXW][MAXS], int k, const char *guards)
{
	if (alone_too(p, theta, solo, k) < 0)
		return "invalid";
	const double *low = average(theta, 0, k) < p->confirm_floor ? theta : NULL;
	for (int i = 0; i < p->nw && !low; i++)
		low = average(w[i], 0, k) < log(1 + p->guard) ? w[i] : NULL;
	double need = low == theta ? log(1 + p->margin) : 0;
	if (!low)
		return guards ? guards : "pass";
	if (average(low, 0, k) + t_value(p->level, k - 1) * spread(low, k) / sqrt(k) < need)
		return "reject";
	return k >= p->confirm_most ? "inconclusive" : NULL;
}

static void estimate(const cJSON *o, const char *key, const double *x, int k)
{
	double m = average(x, 0, k), h = k > 1 ? t_value(0.975, k - 1) * spread(x, k) / sqrt(k) : NAN;
	expect_num(o, "ratio", exp(m), key), expect_num(o, "lo95", exp(m - h), key);
	expect_num(o, "hi95", exp(m + h), key);
}

/* Two groups of times, and no gain by the sum of them all; a winner alone is asked. */
static int lumpy(const struct plan *p, double theta[MAXW][MAXS], int k_theta, int first, int n)
{
	static double x[2][MAXC];
	for (int w = 0; w < p->nw; w++) {
		double sum[2] = {0, 0}, tail[2] = {0, 0};
		for (int at = first; at < first + n; at++) {
			int k[2] = {0, 0};
			for (size_t i = 0; i < count; i++) {
				const struct sample *s = &all[i];
				if ((int)s->session != at || (int)s->workload != w || s->phase != 2 || s->arm > 1 ||
				    k[s->arm] == MAXC)
					continue;
				sum[s->arm] += (double)s->ticks;
				x[s->arm][k[s->arm]++] = (double)s->ticks;
			}
			for (int a = 0; a < 2 && k[0] && k[1]; a++)
				tail[a] += beyond(x[a], k[a]) / n;
		}
		if (p->weight[w] > 0 && tail[1] > 0.03 && tail[1] > 2 * tail[0] + 0.02 &&
		    log(sum[0] / sum[1]) < fmax(p->confirm_floor, average(theta[w], 0, k_theta) / 2))
			return 1;
	}
	return 0;
}

/* What a pass rests on must be there: outputs that were verified, solo reps, guards. */
static void complete(const struct plan *p, int session, int first_of_fixed)
{
	static int solo[MAXW], quads[2][MAXW];
	memset(solo, 0, sizeof solo), memset(quads, 0, sizeof quads);
	for (size_t i = 0; i < count; i++) {
		const struct sample *s = &all[i];
		if ((int)s->session != session || s->workload >= MAXW)
			continue;
		expect(p->simulated || s->check == 1, "session %d: a sample's output was not verified", session);
		solo[s->workload] += s->phase == 1;
		if (s->phase > 3)
			quads[s->phase - 4][s->workload] += s->slot % 4 == 0;
	}
	for (int w = 0; w < p->nw; w++) {
		expect(!p->solo || solo[w] > 0, "session %d: the champion was not timed alone", session);
		for (int g = 0; first_of_fixed && p->weight[w] > 0 && g < 2; g++)
			expect(quads[g][w] >= p->guard_quads[g], "session %d: a guard was not measured", session);
	}
}

static const char *contest(const struct plan *p, const cJSON *c, int fixed)
{
	double theta[MAXS], w[MAXW][MAXS], anchor[MAXS], solo[MAXS];
	int k = 0, n = 0, late = cJSON_IsTrue(json_get(c, "out_of_time"));
	const char *verdict = NULL, *guards = NULL;
	const cJSON *up = json_get(c, "given_up");
	double behind = 0;
	int first = (int)json_get_int(c, "first_session", 0);
	const cJSON *list = json_get(c, "sessions"), *looks = json_get(c, "looks"), *s;
	cJSON_ArrayForEach(s, list) {
		struct result r;
		if (n >= MAXS)
			die(EX_BADINPUT, "too many sessions");
		expect(!verdict, "sampling went on after the decision");
		int at = first + n++;
		behind += behind_in(at);
		if (up && n == cJSON_GetArraySize(list)) {
			int ok = given_up(p, at, (int)json_get_int(up, "workload", -1), behind);
			expect(ok, "session %d: given up, but the candidate was not that slow", at);
			verdict = ok ? "reject" : verdict;
			break;
		}
		const char *over = n == cJSON_GetArraySize(list) ? ended(json_get_str(c, "code", "")) : NULL;
		if (over) {
			verdict = over;
			break;
		}
		one_session(p, at, s, &r);
		if (!r.broken)
			complete(p, at, fixed && n == 1);
		verdict = r.broken ? "reject" : verdict;
		if (r.broken)
			continue;
		if (fixed && n == 1 && p->drain > 0)
			guards = unguarded(p, &r);
		theta[k] = r.theta, anchor[k] = r.anchor, solo[k] = r.solo;
		for (int i = 0; i < p->nw; i++)
			w[i][k] = r.w[i];
		k++;
		if (fixed) {
			verdict = k % p->confirm_n ? NULL : confirmed(p, theta, solo, w, k, guards);
			continue;
		}
		int word = look(p, theta, k, cJSON_GetArrayItem(looks, k - 1));
		if (word == 'p') {
			int held = guard(p, w, k), free_too = alone_too(p, theta, solo, k);
			verdict = free_too < 0 ? "invalid" : held > 0 && free_too > 0 ? "pass"
				: held < 0 ? "reject" : k >= p->kmax ? "inconclusive" : NULL;
		} else if (word != 'm') {
			verdict = word == 'r' ? "reject" : "inconclusive";
		}
	}
	if (verdict && strcmp(verdict, "pass") == 0 && lumpy(p, w, k, first, n))
		verdict = "reject";
	if (!verdict && late && !fixed && k >= p->kmin && p->time_s > 0)
		verdict = "inconclusive"; /* whether the time was really up is not in the ticks */
	if (fixed && p->rule > 1)
		expect_num(c, "look", k > p->confirm_n ? 2 : 1, "confirm");
	if (k)
		estimate(json_get(c, "estimate"), "estimate", theta, k);
	if (k && p->anchor)
		estimate(json_get(c, "anchor"), "anchor", anchor, k);
	return verdict;
}

/* ---- files ---- */

static void read_side(const char *verdict, const cJSON *outputs, const char *file, struct buf *out)
{
	struct err e;
	const char *slash = strrchr(verdict, '/');
	char *path = xasprintf("%.*s%s", slash ? (int)(slash + 1 - verdict) : 0, verdict, file), hex[HASH_HEX];
	if (file_read(path, 1u << 30, out, &e) != 0)
		die_err(&e);
	hash_hex(buf_str(out), out->len, hex);
	expect(strcmp(hex, json_get_str(outputs, file, "")) == 0, "%s: hash of %s", verdict, file);
	free(path);
}

/* The pre-registration on disk is the one in the verdict. */
static void check_prereg(const char *path, const cJSON *outputs, const cJSON *prereg, int confirm)
{
	struct err e;
	struct buf text = BUF_INIT;
	const char *file = confirm ? "confirm.prereg.json" : "bench.prereg.json";
	read_side(path, outputs, file, &text);
	cJSON *j = json_parse(buf_str(&text), text.len, &JSON_OURS, file, &e);
	if (!j)
		die_err(&e);
	expect(cJSON_Compare(j, prereg, 1), "%s: pre-registration in the verdict", path);
	cJSON_Delete(j);
	buf_free(&text);
}

static void recheck(const char *path)
{
	struct err e;
	struct buf raw = BUF_INIT, batches = BUF_INIT;
	cJSON *v = json_read(path, &JSON_OURS, NULL, &e);
	if (!v)
		die_err(&e);
	const cJSON *data = json_obj(v, "data", path, &e), *outputs = json_obj(v, "outputs", path, &e);
	const char *said = json_str(v, "verdict", path, &e);
	const cJSON *r = data ? json_get(data, "raw") : NULL, *prereg = data ? json_get(data, "prereg") : NULL;
	if (!said || !outputs || !data)
		die_err(&e);
	if (!r || !prereg) {
		printf("%s: %s, nothing was timed\n", path, said);
		cJSON_Delete(v);
		return;
	}
	int confirm = strcmp(json_get_str(v, "stage", ""), "confirm") == 0, before = bad;
	const char *verdict = NULL, *const part[] = {"decide", "confirm"};
	read_side(path, outputs, json_get_str(r, "file", "?"), &raw);
	check_prereg(path, outputs, prereg, confirm);
	load_raw(&raw);
	checks = 0;
	if (json_get(r, "batches")) {
		read_side(path, outputs, json_get_str(r, "batches", "?"), &batches);
		engine_load(&batches);
	}
	for (int i = 0; i < 2; i++) {
		const cJSON *c = json_get(data, part[i]), *j = json_get(prereg, part[i]);
		static struct plan p;
		if (c && j) {
			load_plan(j, &p);
			verdict = contest(&p, c, i == 1);
			if (batch && verdict && strcmp(verdict, "pass") == 0)
				verdict = engine_gated(&p, c, json_get(prereg, "engine_gates"), json_get(data, "engine"));
		}
	}
	/* Faster than the device can be: that floor rests on the device's figures, and only ever speaks against a candidate. */
	const char *code = json_get_str(json_get(v, "reason"), "code", ""), *dot = strchr(code, '.');
	if (dot && strcmp(dot, ".roofline") == 0 && verdict && strcmp(verdict, "reject") != 0)
		verdict = "invalid";
	/* A dead or late arm leaves no figure to recompute; it can only have lost. */
	expect(verdict ? strcmp(verdict, said) == 0 : strcmp(said, "pass") != 0,
	       "verdict is %s, recomputed %s", said, verdict ? verdict : "none");
	const char *word = bad == before ? "agrees" : "DIFFERS";
	printf("%s: %s, %zu samples, %d checks, %s\n", path, said, count, checks, word);
	free(all), free(batch), buf_free(&raw), buf_free(&batches), cJSON_Delete(v);
	batch = NULL;
}

int main(int argc, char **argv)
{
	prog_name(argv[0]);
	if (argc < 2)
		die(EX_BADUSE, "wants bench.json or confirm.json files; -h for help");
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "-h") == 0)
			fputs(HELP, stdout);
		else
			recheck(argv[i]);
	return bad ? 1 : 0;
}
