/*
 * aa_cells.h - the sessions that aa.c recorded, and what decision rules say of them.
 *
 *   stored   mean of A from the session before against B's mean now, > 2 %
 *   fresh    both means now, blocked (A A A ... B B B ...), > 2 %
 *   median   the same with medians
 *   welch    fresh, and Welch's test at p < 0.05
 *   nvbench  intervals [min, q3] apart by 0.5 %
 *   inter    means of the first 96 interleaved reps, > 2 %
 *   ours     the rule of stages/lib/stats.h over sessions; live: consecutive sessions, each used once; resampled: drawn
 *            with replacement; at A/A either label may win
 * Naive rules need one session a trial, ours several. Several files are one set: rounds of each are its own.
 * Included by programs of one file: everything is static.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_AA_CELLS_H
#define TS_AA_CELLS_H

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
	int dose, n, windows;
	double t, theta[SESSIONS], se[SESSIONS], first[SESSIONS][2];
	struct row blocked[SESSIONS][2];
};
static struct cell cell[CELLS];
static int ncells;
static char aa_driver[32]; /* of the last session */

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

static int is_void(const cJSON *j, int shift)
{
	int n = (int)json_get_num(j, "round", -1) + shift;
	return n >= 0 && n < ROUNDS && void_round[n];
}

/* Rounds of each file are its own. */
static void aa_read_one(const char *file, int shift, int voids)
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
		if (spoilt >= 0 && spoilt + shift < ROUNDS)
			void_round[spoilt + shift] = 1;
		if (voids || spoilt >= 0 || is_void(j, shift)) {
			cJSON_Delete(j);
			continue;
		}
		struct cell *c = find(json_get_str(j, "cell", "?"), (int)json_get_num(j, "dose", 0));
		if (c->n == SESSIONS)
			die(EX_BADINPUT, "too many sessions");
		const cJSON *b = json_get(j, "blocked"), *first = json_get(j, "first");
		c->t += json_get_num(j, "T_ns", NAN);
		snprintf(aa_driver, sizeof aa_driver, "%s", json_get_str(j, "driver", ""));
		c->windows = (int)json_get_num(j, "windows", 1);
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

static int by_name(const void *a, const void *b)
{
	const struct cell *x = a, *y = b;
	int c = strcmp(x->name, y->name);
	return c ? c : x->dose - y->dose;
}

static void aa_read(int files, char **file)
{
	enum { APART = 8192 };
	for (int voids = 1; voids >= 0; voids--)
		for (int i = 0; i < files; i++)
			aa_read_one(file[i], i * APART, voids);
	qsort(cell, (size_t)ncells, sizeof *cell, by_name);
}

/* Does a naive rule call B (or, `swap`, A) the winner in session i, were the winner's times divided by `gain`? -1: it has
 * no say there. */
static int naive(const struct cell *c, int rule, int i, int swap, double gain)
{
	const struct row *a = &c->blocked[i][swap], *b = &c->blocked[i][!swap];
	double mean = b->mean / gain, sd = b->sd / gain, var = a->sd * a->sd / a->n + sd * sd / b->n;
	switch (rule) {
	case 0:
		return i == 0 ? -1 : c->blocked[i - 1][swap].mean / mean > 1.02;
	case 1:
		return a->mean / mean > 1.02;
	case 2:
		return a->median / b->median * gain > 1.02;
	case 3:
		return a->mean / mean > 1.02 && (a->mean - mean) / sqrt(var) > 1.96;
	case 4:
		return b->q3 / gain * 1.005 < a->min;
	default:
		return c->first[i][swap] / c->first[i][!swap] * gain > 1.02;
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

/* Sessions in which a naive rule says yes, of those in which it has a say; without a dose either label may win. */
static int naive_count(const struct cell *c, int rule, double gain, int *of)
{
	int won = 0;
	*of = 0;
	for (int i = 0; i < c->n; i++)
		for (int s = 0; s < (c->dose ? 1 : 2); s++) {
			int word = naive(c, rule, i, s, gain);
			*of += word >= 0;
			won += word > 0;
		}
	return won;
}

/* Live trials of ours: consecutive sessions, each used once. With the labels swapped a trial is no new one: it may only
 * add a promotion. */
static int ours_count(const struct cell *c, int *of)
{
	int won = 0;
	*of = 0;
	for (int s = 0; s < (c->dose ? 1 : 2); s++)
		for (int at = 0, word; (word = ours_live(c, &at, s)) >= 0; *of += s == 0)
			won += word;
	return won;
}

/* Half of the 95 % interval of the mean of theta. */
static double half_width(const struct cell *c)
{
	return c->n > 1 ? stats_t_quantile(0.975, c->n - 1) * stats_sd(c->theta, (size_t)c->n) / sqrt(c->n) : NAN;
}

/* Is what is truly there at most 1 %? At A/A the truth is known, of a dose only what was measured. */
static int nothing_there(const struct cell *c)
{
	return c->dose == 0 || stats_mean(c->theta, (size_t)c->n) + half_width(c) < 0.01;
}

#endif
