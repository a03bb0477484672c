/*
 * aa_rules.c - what decision rules say on the sessions that aa.c recorded.
 *
 * For every cell: time of one launch and how many of them a window has, mean of theta (for a dose: the effect that is
 * truly there) with its 95 % interval, sd between sessions; then how often each rule (aa_cells.h) calls B more than the
 * margin faster. Where nothing was seen, the 95 % upper bound (rule of three) is shown.
 *
 *   aa_rules FILE... [RESAMPLES]    default 3000; ends with 1 when ours promoted what is truly at most 1 % faster
 *
 * SPDX-License-Identifier: MIT
 */
#include "aa_cells.h"

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
	int won, of;
	printf("%-22s %2d%% %4d %8.2f %3d %+7.3f +-%5.3f %6.3f", c->name, c->dose, c->n, c->t / c->n * 1e-3 / c->windows,
	       c->windows, 100 * m, 100 * half_width(c), 100 * sd);
	for (int r = 0; r < RULES; r++) {
		won = naive_count(c, r, 1, &of);
		rate(won, of);
	}
	won = ours_count(c, &of);
	double p = ours_resampled(c, trials, &sessions, 0);
	printf("  %3d/%-4d", won, of);
	rate((int)lround(p * trials / 100), trials);
	printf(" (%.1f)\n", sessions);
	int nothing = nothing_there(c);
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
	int trials = argc > 2 ? atoi(argv[argc - 1]) : 3000, bad = 0, live = 0, won = 0;
	int files = argc - 1 - (argc > 2 && trials > 0);
	prog_name(argv[0]);
	if (argc < 2)
		die(EX_BADUSE, "usage: aa_rules FILE... [RESAMPLES]");
	trials = trials > 0 ? trials : 3000;
	aa_read(files, argv + 1);
	printf("P(\"B is more than 2 %% faster\"); <x: not seen, 95 %% bound by the rule of three; one session a trial but for "
	       "ours\n%-22s %3s %4s %8s %3s %16s %6s", "cell", "", "n", "T us", "win", "theta % (95 %)", "sd %");
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
