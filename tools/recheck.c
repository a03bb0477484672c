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

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
	"recheck - recompute timing verdicts from raw samples\n"
	"\n"
	"usage: recheck trials/NNNN/bench.json [trials/NNNN/confirm.json ...]\n"
	"\n"
	"Checks the hashes of the raw file and of the pre-registration, the drawn order of arms and\n"
	"input sets, every block, session and look, the guards, the estimate and the verdict.\n"
	"\n"
	"exit: 0 everything agrees, 1 something does not (printed), 2 usage, 3 malformed file\n";

enum { MAXW = 64, MAXB = 128, MAXS = 24 };

struct sample {
	uint64_t ticks;
	unsigned session, workload, block, slot, set, arm, phase, drop, check;
};

struct plan {
	const char *seed;
	double margin, alpha, g, gap, z1, z, floor, s0, guard, level, confirm_floor;
	double trim, se_target, decisive, slack, solo_z, weight[MAXW];
	int kmin, kmax, nw, bmin, bmax, quads, ring, voids, solo, anchor, confirm_n;
};

static int bad, checks;
static struct sample *all;
static size_t count;

__attribute__((format(printf, 2, 3))) static void expect(int ok, const char *fmt, ...)
{
	checks++;
	if (ok)
		return;
	va_list ap;
	va_start(ap, fmt);
	fputs("  differs: ", stdout);
	vprintf(fmt, ap);
	putchar('\n');
	va_end(ap);
	bad++;
}

static int same(double a, double b)
{
	return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= 1e-9 * (1 + fabs(a));
}

/* null stands for a number that does not exist or is infinite. */
static void expect_num(const cJSON *o, const char *key, double want, const char *where)
{
	const cJSON *i = json_get(o, key);
	double got = i && cJSON_IsNumber(i) ? i->valuedouble : NAN;
	if (!isfinite(want))
		want = NAN;
	expect(same(got, want), "%s: %s is %.12g, recomputed %.12g", where, key, got, want);
}

static uint64_t little(const unsigned char *p, int n)
{
	uint64_t v = 0;
	while (n--)
		v = v * 256 + p[n];
	return v;
}

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

/* ---- statistics, written again ---- */

static void order(double *x, int n)
{
	for (int i = 1; i < n; i++)
		for (int j = i; j > 0 && x[j] < x[j - 1]; j--) {
			double t = x[j];
			x[j] = x[j - 1];
			x[j - 1] = t;
		}
}

static double average(const double *x, int from, int to)
{
	long double s = 0;
	for (int i = from; i < to; i++)
		s += x[i];
	return (double)(s / (to - from));
}

static double spread(const double *x, int n)
{
	long double s = 0, m = average(x, 0, n);
	for (int i = 0; i < n; i++)
		s += (x[i] - m) * (x[i] - m);
	return n > 1 ? (double)sqrtl(s / (n - 1)) : 0;
}

static double middle(const double *x, int n)
{
	double y[4 * MAXB];
	memcpy(y, x, (size_t)n * sizeof *y);
	order(y, n);
	return (y[(n - 1) / 2] + y[n / 2]) / 2;
}

static double median_error(const double *x, int n)
{
	double y[4 * MAXB], m = middle(x, n);
	for (int i = 0; i < n; i++)
		y[i] = fabs(x[i] - m);
	return 1.2533 * 1.4826 * middle(y, n) / (m * sqrt(n));
}

static double trimmed(const double *x, int n, double trim, double *se)
{
	double y[MAXB];
	memcpy(y, x, (size_t)n * sizeof *y);
	order(y, n);
	int c = (int)(trim * n);
	double m = average(y, c, n - c);
	for (int i = 0; i < c; i++) {
		y[i] = y[c];
		y[n - 1 - i] = y[n - 1 - c];
	}
	*se = n > 1 ? spread(y, n) * sqrt(n) / (n - 2 * c) : HUGE_VAL;
	return m;
}

/* P(|T| <= t) for whole nu: the finite series of Abramowitz & Stegun 26.7.3 and 26.7.4. */
static double t_inside(double t, int nu)
{
	double a = atan(t / sqrt(nu)), c = cos(a), term = nu % 2 ? c : 1, sum = 0;
	for (int k = nu % 2 ? 1 : 0; k <= nu - 2; k += 2) {
		sum += term;
		term *= c * c * (k + 1) / (k + 2);
	}
	return nu % 2 ? (a + sin(a) * sum) * 2 / M_PI : sin(a) * sum;
}

static double t_value(double p, int nu)
{
	double lo = 0, hi = 1e6;
	for (int i = 0; i < 200; i++) {
		double m = (lo + hi) / 2;
		*(t_inside(m, nu) < 2 * p - 1 ? &lo : &hi) = m;
	}
	return lo;
}

/* Ratio of two t densities, the mixture's over the null's. */
static double bayes(double t, int k, double g)
{
	double wide = sqrt(1 + k * g), nu = k - 1;
	double null = pow(1 + t * t / nu, -(nu + 1) / 2);
	double mix = pow(1 + t * t / (nu * wide * wide), -(nu + 1) / 2) / wide;
	return isinf(t) ? pow(1 + k * g, nu / 2) : mix / null;
}

static uint64_t draw(const char *seed, const char *what, int a, int b, int c, int d)
{
	char text[160];
	uint8_t h[32];
	int n = snprintf(text, sizeof text, "%s:%s:%d:%d:%d:%d", seed, what, a, b, c, d);
	hash_bytes(text, (size_t)n, h);
	return little(h, 8);
}

/* ---- one session ---- */

struct result {
	double theta, w[MAXW], anchor;
	int apart, broken;
};

/* The order of a quad is drawn: A B B A when the bit is 0. */
static void check_draws(const struct plan *p, const struct sample *s)
{
	int place = (int)(s->phase * 65536 + s->block), quad = (int)s->slot / 4, i = (int)s->slot % 4;
	uint64_t set = draw(p->seed, "set", (int)s->session, (int)s->workload, place, (int)s->slot / 2);
	uint64_t ring = (uint64_t)p->ring, other = ring > 1 ? 1 + (set >> 32) % (ring - 1) : 0;
	expect(s->set == (set % ring + (i % 2 ? other : 0)) % ring, "session %u: an input set was not the drawn one",
	       s->session);
	if (s->phase < 2)
		return;
	unsigned a = s->phase == 2 ? 0 : 2;
	int bit = (int)(draw(p->seed, "order", (int)s->session, (int)s->workload, place, quad) & 1);
	unsigned want = ((i == 0 || i == 3) == (bit == 0)) ? a : 1;
	expect(s->arm == want && s->drop == 0, "session %u: an arm was not the drawn one", s->session);
}

static void one_workload(const struct plan *p, int session, int w, const cJSON *j, struct result *r)
{
	double sum[MAXB][3] = {{0}}, tied[3] = {0}, alone[4 * MAXB], company[4 * MAXB], l[MAXB], se = 0;
	int blocks = 0, na = 0, nc = 0, reps[MAXB] = {0};
	for (size_t i = 0; i < count; i++) {
		const struct sample *s = &all[i];
		if ((int)s->session != session || (int)s->workload != w)
			continue;
		check_draws(p, s);
		if (s->block >= MAXB && s->phase >= 2)
			die(EX_BADINPUT, "the raw file has too many blocks");
		if (s->phase == 1 && na < 4 * MAXB)
			alone[na++] = (double)s->ticks;
		if (s->phase == 2) {
			sum[s->block][s->arm % 3] += (double)s->ticks;
			reps[s->block]++;
			blocks = (int)s->block + 1 > blocks ? (int)s->block + 1 : blocks;
			if (s->arm == 0 && nc < 4 * MAXB)
				company[nc++] = (double)s->ticks;
		}
		if (s->phase == 3)
			tied[s->arm % 3] += (double)s->ticks;
	}
	const cJSON *bl = json_get(j, "blocks");
	expect(bl && cJSON_GetArraySize(bl) == blocks, "session %d: number of blocks", session);
	for (int b = 0; b < blocks; b++) {
		expect(reps[b] == 4 * p->quads, "session %d: block %d has %d reps", session, b, reps[b]);
		l[b] = log(sum[b][0] / sum[b][1]);
		const cJSON *v = bl ? cJSON_GetArrayItem(bl, b) : NULL;
		expect(v && same(v->valuedouble, l[b]), "session %d: block %d", session, b);
		double theta = trimmed(l, b + 1, p->trim, &se);
		double far = p->decisive > 0 ? fabs(theta - log(1 + p->margin)) / p->decisive : 0;
		int stop = b + 1 >= p->bmin && se <= fmax(p->se_target, far);
		expect(b == blocks - 1 ? stop || b + 1 == p->bmax : !stop,
		       "session %d: sampling stopped or went on against its rule", session);
		r->w[w] = theta;
	}
	expect_num(j, "theta", r->w[w], "workload");
	if (p->solo && na && nc) {
		double gap = log(middle(alone, na) / middle(company, nc));
		double err = hypot(median_error(alone, na), median_error(company, nc));
		expect_num(j, "solo", gap, "workload");
		r->apart |= fabs(gap) > p->slack + p->solo_z * err;
	}
	double anchor = p->anchor ? log(tied[2] / tied[1]) : NAN;
	if (p->anchor)
		expect_num(j, "anchor", anchor, "workload");
	r->anchor += p->weight[w] > 0 ? p->weight[w] * anchor : 0;
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
	r->anchor /= weights;
	if (r->broken)
		return;
	expect_num(j, "theta", r->theta, "session");
	expect(cJSON_IsTrue(json_get(j, "void")) == r->apart, "session %d: void or not", session);
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

static const char *confirmed(const struct plan *p, const double *theta, double w[MAXW][MAXS], int k)
{
	if (average(theta, 0, k) < p->confirm_floor)
		return "reject";
	int hurt = 0;
	for (int i = 0; i < p->nw; i++)
		hurt |= average(w[i], 0, k) < log(1 + p->guard);
	return hurt ? "reject" : "pass";
}

static void estimate(const cJSON *c, const char *key, const double *x, int k)
{
	const cJSON *o = json_get(c, key);
	const double m = average(x, 0, k), h = k > 1 ? t_value(0.975, k - 1) * spread(x, k) / sqrt(k) : NAN;
	expect_num(o, "ratio", exp(m), key), expect_num(o, "lo95", exp(m - h), key);
	expect_num(o, "hi95", exp(m + h), key);
}

static const char *contest(const struct plan *p, const cJSON *c, int fixed)
{
	double theta[MAXS], w[MAXW][MAXS], anchor[MAXS];
	int k = 0, voids = 0, n = 0;
	const char *verdict = NULL;
	int first = (int)json_get_num(c, "first_session", 0);
	const cJSON *list = json_get(c, "sessions"), *looks = json_get(c, "looks"), *s;
	cJSON_ArrayForEach(s, list) {
		struct result r;
		if (n >= MAXS)
			die(EX_BADINPUT, "too many sessions");
		expect(!verdict, "sampling went on after the decision");
		one_session(p, first + n++, s, &r);
		if (r.broken || (r.apart && ++voids >= p->voids))
			verdict = r.broken ? "reject" : "invalid";
		if (r.broken || r.apart)
			continue;
		theta[k] = r.theta;
		anchor[k] = r.anchor;
		for (int i = 0; i < p->nw; i++)
			w[i][k] = r.w[i];
		k++;
		if (fixed) {
			verdict = k == p->confirm_n ? confirmed(p, theta, w, k) : NULL;
			continue;
		}
		int word = look(p, theta, k, cJSON_GetArrayItem(looks, k - 1));
		if (word == 'p') {
			int held = guard(p, w, k);
			verdict = held > 0 ? "pass" : held < 0 ? "reject" : k >= p->kmax ? "inconclusive" : NULL;
		} else if (word != 'm') {
			verdict = word == 'r' ? "reject" : "inconclusive";
		}
	}
	if (k)
		estimate(c, "estimate", theta, k);
	if (k && p->anchor)
		estimate(c, "anchor", anchor, k);
	return verdict;
}

/* ---- files ---- */

static double number(const cJSON *o, const char *key)
{
	struct err e;
	double v = 0;
	if (json_num(o, key, &v, "prereg", &e) != 0)
		die_err(&e);
	return v;
}

static void load_plan(const cJSON *j, struct plan *p)
{
	struct err e;
	const cJSON *c = json_obj(j, "class", "prereg", &e), *list = json_arr(j, "workloads", "prereg", &e), *i;
	memset(p, 0, sizeof *p);
	p->seed = json_str(j, "order_seed", "prereg", &e);
	if (!c || !list || !p->seed)
		die_err(&e);
	p->margin = number(j, "margin"), p->alpha = number(j, "alpha"), p->g = number(j, "g");
	p->gap = number(j, "futile_gap"), p->z1 = number(j, "futile_z1"), p->z = number(j, "futile_z");
	p->floor = number(j, "futile_floor"), p->s0 = number(j, "s0"), p->guard = number(j, "guard");
	p->level = number(j, "guard_level"), p->confirm_floor = number(j, "confirm_floor");
	p->kmin = (int)number(j, "k_min"), p->kmax = (int)number(j, "k_max");
	p->voids = (int)number(j, "void_limit"), p->confirm_n = (int)number(j, "confirm_sessions");
	p->solo = cJSON_IsTrue(json_get(j, "solo")), p->anchor = cJSON_IsTrue(json_get(j, "anchor"));
	p->trim = number(c, "trim"), p->se_target = number(c, "se_target");
	p->decisive = number(c, "decisive"), p->slack = number(c, "solo_slack"), p->solo_z = number(c, "solo_z");
	p->quads = (int)number(c, "block_quads"), p->ring = (int)number(c, "ring");
	p->bmin = (int)number(c, "blocks_min"), p->bmax = (int)number(c, "blocks_max");
	cJSON_ArrayForEach(i, list) {
		if (p->nw == MAXW || p->ring < 1 || p->bmax > MAXB)
			die(EX_BADINPUT, "the plan is out of range");
		p->weight[p->nw++] = number(i, "weight");
	}
}

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
	struct buf raw = BUF_INIT;
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
	for (int i = 0; i < 2; i++) {
		const cJSON *c = json_get(data, part[i]), *j = json_get(prereg, part[i]);
		static struct plan p;
		if (c && j) {
			load_plan(j, &p);
			verdict = contest(&p, c, i == 1);
		}
	}
	/* A dead or late arm leaves no figure to recompute; it can only have lost. */
	expect(verdict ? strcmp(verdict, said) == 0 : strcmp(said, "pass") != 0,
	       "verdict is %s, recomputed %s", said, verdict ? verdict : "none");
	const char *word = bad == before ? "agrees" : "DIFFERS";
	printf("%s: %s, %zu samples, %d checks, %s\n", path, said, count, checks, word);
	free(all), buf_free(&raw), cJSON_Delete(v);
}

int main(int argc, char **argv)
{
	prog_name(argv[0]);
	if (argc == 2 && strcmp(argv[1], "-h") == 0)
		return fputs(HELP, stdout) < 0;
	if (argc < 2)
		die(EX_BADUSE, "wants bench.json or confirm.json files; -h for help");
	for (int i = 1; i < argc; i++)
		recheck(argv[i]);
	return bad ? 1 : 0;
}
