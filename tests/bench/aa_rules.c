/*
 * aa_rules.c - what decision rules say on the sessions that aa.c recorded.
 *
 * For every cell: time, mean of theta (for a dose: the effect that is truly there) with its 95 % interval, sd between
 * sessions; then how often each rule calls B more than the margin faster:
 *   stored   mean of A from the session before against B's mean now, > 2 %
 *   fresh    both means now, blocked (A A A ... B B B ...), > 2 %
 *   median   the same with medians
 *   welch    fresh, and Welch's test at p < 0.05
 *   nvbench  intervals [min, q3] apart by 0.5 %
 *   inter    means of the first 96 interleaved reps, > 2 %
 *   ours     the rule of stages/lib/stats.h over sessions; live: consecutive sessions, each used once; resampled: drawn
 *            with replacement; at A/A either label may win
 * Naive rules need one session a trial, ours several: counts are shown. Where nothing was seen, the 95 % upper bound
 * (rule of three) is.
 *
 *   aa_rules FILE [RESAMPLES]       default 3000; ends with 1 when ours promoted what is truly at most 1 % faster
 *
 * SPDX-License-Identifier: MIT
 */
#include "json.h"
#include "stats.h"

#include "noise.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 64, SESSIONS = 1024, RULES = 6 };
static const char *const RULE[RULES] = {"stored", "fresh", "median", "welch", "nvbench", "inter"};

struct row {
	double mean, median, sd, min, q3;
	int n;
};

struct cell {
	char name[96];
	int dose, n;
	double t, theta[SESSIONS], se[SESSIONS], first[SESSIONS][2];
	struct row blocked[SESSIONS][2];
};
static struct cell cell[CELLS];
static int ncells;

static struct cell *find(const char *name, int dose)
{
	for (int i = 0; i < ncells; i++)
		if (cell[i].dose == dose && strcmp(cell[i].name, name) == 0)
			return &cell[i];
	if (ncells == CELLS)
		die(EX_BADINPUT, "too many cells");
	struct cell *c = &cell[ncells++];
	snprintf(c->name, sizeof c->name, "%s", name);
	c->dose = dose;
	return c;
}

static void read_row(const cJSON *j, struct row *r)
{
	r->mean = json_get_num(j, "mean", NAN);
	r->median = json_get_num(j, "median", NAN);
	r->sd = json_get_num(j, "sd", NAN);
	r->min = json_get_num(j, "min", NAN);
	r->q3 = json_get_num(j, "q3", NAN);
	r->n = (int)json_get_num(j, "n", 0);
}

/* Rounds in which others used the GPU. */
enum { ROUNDS = 65536 };
static unsigned char void_round[ROUNDS];

static int is_void(const cJSON *j)
{
	int n = (int)json_get_num(j, "round", -1);
	return n >= 0 && n < ROUNDS && void_round[n];
}

static void read_file(const char *file, int voids)
{
	FILE *f = fopen(file, "re");
	char *line = NULL;
	size_t room = 0;
	ssize_t len;
	if (!f)
		die(EX_BADINPUT, "cannot read '%s'", file);
	while ((len = getline(&line, &room, f)) > 0) {
		struct err e;
		cJSON *j = json_parse(line, (size_t)len, &JSON_OURS, file, &e);
		if (!j)
			continue; /* a line cut off by a kill */
		int spoilt = (int)json_get_num(j, "void_round", -1);
		if (spoilt >= 0 && spoilt < ROUNDS)
			void_round[spoilt] = 1;
		if (voids || spoilt >= 0 || is_void(j)) {
			cJSON_Delete(j);
			continue;
		}
		struct cell *c = find(json_get_str(j, "cell", "?"), (int)json_get_num(j, "dose", 0));
		if (c->n == SESSIONS)
			die(EX_BADINPUT, "too many sessions");
		const cJSON *b = json_get(j, "blocked"), *first = json_get(j, "first");
		c->t += json_get_num(j, "T_ns", NAN);
		c->theta[c->n] = json_get_num(j, "theta", NAN);
		c->se[c->n] = json_get_num(j, "se", NAN);
		c->first[c->n][0] = json_get_num(first, "a", NAN);
		c->first[c->n][1] = json_get_num(first, "b", NAN);
		read_row(json_get(b, "a"), &c->blocked[c->n][0]);
		read_row(json_get(b, "b"), &c->blocked[c->n][1]);
		c->n++;
		cJSON_Delete(j);
	}
	free(line);
	fclose(f);
}

/* Does a naive rule call B (or, `swap`, A) the winner in session i? -1: it has no say there. */
static int naive(const struct cell *c, int rule, int i, int swap)
{
	const struct row *a = &c->blocked[i][swap], *b = &c->blocked[i][!swap];
	double var = a->sd * a->sd / a->n + b->sd * b->sd / b->n;
	switch (rule) {
	case 0:
		return i == 0 ? -1 : c->blocked[i - 1][swap].mean / b->mean > 1.02;
	case 1:
		return a->mean / b->mean > 1.02;
	case 2:
		return a->median / b->median > 1.02;
	case 3:
		return a->mean / b->mean > 1.02 && (a->mean - b->mean) / sqrt(var) > 1.96;
	case 4:
		return b->q3 * 1.005 < a->min;
	default:
		return c->first[i][swap] / c->first[i][!swap] > 1.02;
	}
}

static struct stats_rule rule_of(const struct cell *c)
{
	struct stats_rule r = STATS_DEFAULT;
	r.k_max = 12;
	r.s0 = fmax(fmax(stats_sd(c->theta, (size_t)c->n), stats_median(c->se, (size_t)c->n)), 0.0005);
	return r;
}

/* One trial of ours from session *at on; -1: the sessions ran out. */
static int ours_live(const struct cell *c, int *at, int swap)
{
	struct stats_rule r = rule_of(c);
	double x[16];
	for (int k = 0; *at < c->n;) {
		x[k++] = swap ? -c->theta[*at] : c->theta[*at];
		++*at;
		enum stats_word w = stats_look(&r, x, k).word;
		if (w != STATS_MORE)
			return w == STATS_PROMOTE;
	}
	return -1;
}

static double ours_resampled(const struct cell *c, int trials, double *sessions, double shift)
{
	struct stats_rule r = rule_of(c);
	struct noise_rng g = {.s = 1};
	int won = 0, used = 0;
	for (int i = 0; i < trials; i++) {
		double x[16], sign = c->dose == 0 && (noise_u64(&g) & 1) ? -1 : 1;
		enum stats_word w = STATS_MORE;
		for (int k = 0; w == STATS_MORE; used++) {
			x[k++] = shift + sign * c->theta[noise_u64(&g) % (uint64_t)c->n];
			w = stats_look(&r, x, k).word;
		}
		won += w == STATS_PROMOTE;
	}
	*sessions = (double)used / trials;
	return 100.0 * won / trials;
}

static void rate(int won, int of)
{
	if (of == 0)
		printf("       -");
	else if (won == 0)
		printf("  <%5.1f", 100 * fmin(1, 3.0 / of));
	else
		printf("  %5.1f%%", 100.0 * won / of);
}

/* 1 when ours promoted what is truly at most 1 % faster. */
static int line(const struct cell *c, int trials, int *live, int *live_won)
{
	double m = stats_mean(c->theta, (size_t)c->n), sd = stats_sd(c->theta, (size_t)c->n), sessions;
	double half = c->n > 1 ? stats_t_quantile(0.975, c->n - 1) * sd / sqrt(c->n) : NAN;
	printf("%-22s %2d%% %4d %8.2f %+7.3f +-%5.3f %6.3f", c->name, c->dose, c->n, c->t / c->n * 1e-3, 100 * m,
	       100 * half, 100 * sd);
	for (int r = 0; r < RULES; r++) {
		int won = 0, of = 0;
		for (int i = 0; i < c->n; i++)
			for (int s = 0; s < (c->dose ? 1 : 2); s++) {
				int word = naive(c, r, i, s);
				of += word >= 0;
				won += word > 0;
			}
		rate(won, of);
	}
	/* With the labels swapped a trial is no new one: it may only add a promotion. */
	int won = 0, of = 0;
	for (int s = 0; s < (c->dose ? 1 : 2); s++)
		for (int at = 0, word; (word = ours_live(c, &at, s)) >= 0; of += s == 0)
			won += word;
	double p = ours_resampled(c, trials, &sessions, 0);
	printf("  %3d/%-4d", won, of);
	rate((int)lround(p * trials / 100), trials);
	printf(" (%.1f)\n", sessions);
	int nothing = c->dose == 0 || m + half < 0.01; /* at A/A the truth is known */
	if (nothing) {
		*live += of;
		*live_won += won;
	}
	return nothing && (won > 0 || p > 0);
}

/* Power from the A/A sessions of a cell, shifted by a true effect. */
static void power(int trials)
{
	static const double gain[] = {0.01, 0.02, 0.025, 0.03, 0.05};
	printf("\nours on A/A sessions shifted by a true effect (resampled %d): promoted %% (mean sessions)\n%-22s", trials,
	       "cell");
	for (size_t i = 0; i < sizeof gain / sizeof *gain; i++)
		printf("  %+9.1f%%   ", 100 * gain[i]);
	putchar('\n');
	for (int i = 0; i < ncells; i++) {
		if (cell[i].dose || cell[i].n < 8)
			continue;
		printf("%-22s", cell[i].name);
		for (size_t k = 0; k < sizeof gain / sizeof *gain; k++) {
			double sessions, p = ours_resampled(&cell[i], trials, &sessions, log1p(gain[k]));
			printf("  %6.2f (%4.1f)", p, sessions);
		}
		putchar('\n');
	}
}

int main(int argc, char **argv)
{
	int trials = argc > 2 ? atoi(argv[2]) : 3000, bad = 0, live = 0, won = 0;
	prog_name(argv[0]);
	if (argc < 2 || trials < 1)
		die(EX_BADUSE, "usage: aa_rules FILE [RESAMPLES]");
	read_file(argv[1], 1);
	read_file(argv[1], 0);
	printf("P(\"B is more than 2 %% faster\"); <x: not seen, 95 %% bound by the rule of three; one session a trial but for "
	       "ours\n%-22s %3s %4s %8s %16s %6s", "cell", "", "n", "T us", "theta % (95 %)", "sd %");
	for (int r = 0; r < RULES; r++)
		printf(" %7s", RULE[r]);
	printf("  %s\n", "ours live   resampled (sessions)");
	for (int i = 0; i < ncells; i++)
		bad += line(&cell[i], trials, &live, &won);
	power(trials);
	printf("\nours, live trials of a true effect of at most 1 %%: %d promoted of %d", won, live);
	if (won == 0 && live > 0)
		printf(" (95 %% upper bound %.2f %%)", 100 * fmin(1, 3.0 / live));
	puts(bad ? "\nFALSE PROMOTION" : "");
	return bad ? 1 : 0;
}
