/*
 * aa_page.c - the page about recorded sessions: false promotions by rule and kernel, and power over the true effect.
 *
 * One self-contained file: tables, and plots as inline SVG, light and dark. Live trials (each session used once)
 * stand apart from resampled ones; where nothing was seen the 95 % bound stands (rule of three).
 *
 *   aa_page OUT FILE...
 *
 * SPDX-License-Identifier: MIT
 */
#include "aa_cells.h"

#include "file.h"
#include "page.h"

enum { TRIALS = 3000, STEPS = 25, LEFT = 46, WIDTH = 560, HEIGHT = 250, FOOT = 36 };
#define MOST 0.06 /* of the true effect in the plot */

static const char *const COLOUR[RULES + 1] = {"#8c6bb1", "#d95f02", "#b8860b", "#e7298a", "#4d8f3a", "#3b7dd8", "var(--fg)"};

static double rate_of(int won, int of)
{
	return of ? 100.0 * won / of : NAN;
}

/* "3.1 % of 56", or "0 of 56, below 5.4 %" */
static void share(struct buf *out, int won, int of, int bad)
{
	if (of == 0)
		buf_adds(out, "<td class=n>&ndash;");
	else if (won == 0)
		buf_addf(out, "<td class=n>0 of %d <span class=dim>&lt;&nbsp;%.1f&nbsp;%%</span>", of, 100 * fmin(1, 3.0 / of));
	else
		buf_addf(out, "<td class=n>%s%.1f&nbsp;%%</span> <span class=dim>of %d</span>", bad ? "<span class=bad>" : "<span>",
			 rate_of(won, of), of);
}

static void name_of(struct buf *out, const struct cell *c)
{
	page_element(out, "<tr><td>", c->name, "");
	if (c->dose)
		buf_addf(out, " +%d&nbsp;%%", c->dose);
	buf_addf(out, "<td class=n>%.1f<td class=n>%d<td class=n>%d", c->t / c->n * 1e-3 / c->windows, c->windows, c->n);
}

static void head(struct buf *out, const char *effect)
{
	buf_addf(out, "<div class=wide><table><tr><th>kernel<th>&micro;s<th>in a window<th>sessions%s", effect);
	for (int r = 0; r < RULES; r++)
		buf_addf(out, "<th>%s", RULE[r]);
	buf_adds(out, "<th>ours, live<th>ours, resampled\n");
}

static void cells(struct buf *out, int dosed)
{
	head(out, dosed ? "<th>true effect, measured" : "<th>sd between sessions");
	for (int i = 0; i < ncells; i++) {
		const struct cell *c = &cell[i];
		int of, won, nothing = nothing_there(c);
		double sessions, p;
		if ((c->dose != 0) != dosed)
			continue;
		name_of(out, c);
		if (dosed)
			buf_addf(out, "<td class=n>%+.2f&nbsp;%% &plusmn;&nbsp;%.2f", 100 * stats_mean(c->theta, (size_t)c->n),
				 100 * half_width(c));
		else
			buf_addf(out, "<td class=n>%.2f&nbsp;%%", 100 * stats_sd(c->theta, (size_t)c->n));
		for (int r = 0; r < RULES; r++) {
			won = naive_count(c, r, 1, &of);
			share(out, won, of, nothing);
		}
		won = ours_count(c, &of);
		share(out, won, of, nothing);
		p = ours_resampled(c, TRIALS, &sessions, 0);
		share(out, (int)lround(p * TRIALS / 100), TRIALS, nothing);
		buf_addf(out, " <span class=dim>in %.1f sessions</span>\n", sessions);
	}
	buf_adds(out, "</table></div>\n");
}

/* ---- plots ---- */

static double x_of(double effect)
{
	return LEFT + effect / MOST * WIDTH;
}

static double y_of(double percent)
{
	return 12 + (100 - percent) / 100 * HEIGHT;
}

static void axes(struct buf *out, const char *what)
{
	buf_addf(out, "<svg viewBox=\"0 0 %d %d\" role=img aria-label=\"%s\" style=\"font:12px system-ui,sans-serif\">", LEFT + WIDTH + 110,
		 HEIGHT + FOOT + 16, what);
	for (int p = 0; p <= 100; p += 25)
		buf_addf(out, "<path d=\"M%d %.1fh%d\" stroke=\"var(--line)\" fill=none /><text x=%d y=%.1f text-anchor=end "
			 "fill=\"var(--dim)\">%d</text>", LEFT, y_of(p), WIDTH, LEFT - 6, y_of(p) + 4, p);
	for (int e = 0; e <= 6; e++)
		buf_addf(out, "<text x=%.1f y=%d text-anchor=middle fill=\"var(--dim)\">%d</text>", x_of(e * 0.01),
			 HEIGHT + 30, e);
	buf_addf(out, "<text x=%d y=%d text-anchor=middle fill=\"var(--dim)\">true effect, %% faster (the margin is 2)</text>"
		 "<path d=\"M%.1f %.1fV%.1f\" stroke=\"var(--dim)\" stroke-dasharray=\"4 4\" fill=none />", LEFT + WIDTH / 2,
		 HEIGHT + 46, x_of(0.02), y_of(0), y_of(100));
}

/* A curve's value at a true effect: rule below RULES naive, else ours resampled; the mean over A/A cells in a band of time. */
static double at(int rule, double effect, double least_us, double most_us)
{
	double sum = 0;
	int n = 0;
	for (int i = 0; i < ncells; i++) {
		double us = cell[i].t / cell[i].n * 1e-3 / cell[i].windows, sessions;
		int of;
		if (cell[i].dose || cell[i].n < 8 || us < least_us || us >= most_us)
			continue;
		if (rule == RULES) {
			sum += ours_resampled(&cell[i], TRIALS / 5, &sessions, log1p(effect));
		} else {
			int won = naive_count(&cell[i], rule, 1 + effect, &of);
			sum += of ? rate_of(won, of) : 0;
		}
		n++;
	}
	return n ? sum / n : NAN;
}

static void curve(struct buf *out, int rule, double least_us, double most_us)
{
	buf_addf(out, "<path fill=none stroke=\"%s\" stroke-width=%s d=\"", COLOUR[rule], rule == RULES ? "3" : "1.5");
	for (int i = 0; i < STEPS; i++) {
		double e = MOST * i / (STEPS - 1), y = at(rule, e, least_us, most_us);
		if (isnan(y))
			continue;
		buf_addf(out, "%c%.1f %.1f", i ? 'L' : 'M', x_of(e), y_of(y));
	}
	buf_addf(out, "\"><title>%s</title></path>", rule == RULES ? "ours" : RULE[rule]);
}

static void power(struct buf *out, const char *what, double least_us, double most_us)
{
	if (isnan(at(RULES, 0, least_us, most_us)))
		return;
	page_element(out, "<h3>", what, "</h3>\n");
	axes(out, what);
	for (int r = 0; r <= RULES; r++)
		curve(out, r, least_us, most_us);
	for (int i = 0; i < ncells; i++) { /* what was there, and live */
		const struct cell *c = &cell[i];
		double us = c->t / c->n * 1e-3 / c->windows, theta = stats_mean(c->theta, (size_t)c->n);
		int of, won = ours_count(c, &of);
		if (c->dose && of && theta >= 0 && theta < MOST && us >= least_us && us < most_us)
			buf_addf(out, "<circle cx=%.1f cy=%.1f r=4.5 fill=\"var(--bg)\" stroke=\"var(--fg)\" stroke-width=2><title>%s +%d %%: %d of "
				 "%d live trials</title></circle>", x_of(theta), y_of(rate_of(won, of)), c->name, c->dose, won, of);
	}
	for (int r = 0; r <= RULES; r++)
		buf_addf(out, "<path d=\"M%d %dh14\" stroke=\"%s\" stroke-width=%s /><text x=%d y=%d fill=\"var(--fg)\">%s</text>",
			 LEFT + WIDTH + 20, 24 + 20 * r, COLOUR[r], r == RULES ? "3" : "1.5", LEFT + WIDTH + 40, 28 + 20 * r,
			 r == RULES ? "ours" : RULE[r]);
	buf_adds(out, "</svg>\n");
}

/* False promotions: a line a rule, a dot a kernel. */
static void dots(struct buf *out)
{
	buf_addf(out, "<svg viewBox=\"0 0 %d %d\" role=img aria-label=\"false promotions by rule and kernel\" "
		 "style=\"font:12px system-ui,sans-serif\">", LEFT + WIDTH + 110, 28 * (RULES + 1) + 40);
	for (int p = 0; p <= 50; p += 10)
		buf_addf(out, "<path d=\"M%.1f 8V%d\" stroke=\"var(--line)\" /><text x=%.1f y=%d text-anchor=middle fill=\"var(--dim)\">"
			 "%d %%</text>", LEFT + 30 + p * 0.02 * WIDTH, 28 * (RULES + 1) + 10, LEFT + 30 + p * 0.02 * WIDTH,
			 28 * (RULES + 1) + 28, p);
	for (int r = 0; r <= RULES; r++) {
		buf_addf(out, "<text x=%d y=%d text-anchor=end fill=\"var(--fg)\">%s</text>", LEFT + 16, 26 + 28 * r,
			 r == RULES ? "ours, live" : RULE[r]);
		for (int i = 0; i < ncells; i++) {
			int of, won;
			if (cell[i].dose)
				continue;
			won = r == RULES ? ours_count(&cell[i], &of) : naive_count(&cell[i], r, 1, &of);
			buf_addf(out, "<circle cx=%.1f cy=%d r=5 fill=\"%s\" fill-opacity=.55><title>%s: %d of %d</title></circle>",
				 LEFT + 30 + fmin(50, rate_of(won, of)) * 0.02 * WIDTH, 22 + 28 * r, COLOUR[r], cell[i].name, won, of);
		}
	}
	buf_adds(out, "</svg>\n");
}

/* Live trials of what is truly at most 1 %, all cells together. */
static void headline(struct buf *out)
{
	int live = 0, won = 0, sessions = 0, kernels = 0, naive_live[RULES] = {0}, naive_won[RULES] = {0}, worst = 0;
	for (int i = 0; i < ncells; i++) {
		int of, w = ours_count(&cell[i], &of);
		sessions += cell[i].n;
		kernels += cell[i].dose == 0;
		if (!nothing_there(&cell[i]))
			continue;
		live += of;
		won += w;
		for (int r = 0; r < RULES; r++) {
			naive_won[r] += naive_count(&cell[i], r, 1, &of);
			naive_live[r] += of;
		}
	}
	for (int r = 1; r < RULES; r++)
		worst = rate_of(naive_won[r], naive_live[r]) > rate_of(naive_won[worst], naive_live[worst]) ? r : worst;
	buf_addf(out, "<div class=cards><div class=card>ours, where the true effect is at most 1 %%<b class=%s>%d of %d live trials</b>",
		 won ? "bad" : "good", won, live);
	if (!won && live)
		buf_addf(out, "<span class=dim>promoted; 95 %% upper bound %.2f %%</span>", 100 * fmin(1, 3.0 / live));
	buf_addf(out, "</div><div class=card>the worst simple rule there: %s<b>%.1f %% of %d</b></div>"
		 "<div class=card>recorded<b>%d sessions</b><span class=dim>%d kernels against themselves, %d cells</span></div></div>\n",
		 RULE[worst], rate_of(naive_won[worst], naive_live[worst]), naive_live[worst], sessions, kernels, ncells);
}

static void words(struct buf *out)
{
	buf_adds(out,
		"<p>Every session is a fresh process in which two kernels ran in turns, and then one after the other, on a real GPU. "
		"The same sessions are given to each rule: <b>stored</b> (mean, against that of the session before), <b>fresh</b> (means, "
		"one arm after the other), <b>median</b>, <b>welch</b> (fresh and p &lt; 0.05), <b>nvbench</b> (intervals apart by 0.5 %), "
		"<b>inter</b> (means of 96 interleaved runs), each asking for more than 2 %; a simple rule decides by one session, ours "
		"by 1 to 12. <b>Live</b>: consecutive sessions, each used once. <b>Resampled</b>: drawn with replacement from the same "
		"sessions, so no new evidence of rare events. Not seen: the 95 % bound by the rule of three.</p>\n");
}

int main(int argc, char **argv)
{
	struct buf out = {0};
	struct err e;
	struct page_state s = {.title = "What decision rules say on recorded sessions"};
	prog_name(argv[0]);
	if (argc < 3)
		die(EX_BADUSE, "usage: aa_page OUT FILE...");
	aa_read(argc - 2, argv + 2);
	page_begin(&out, &s);
	headline(&out);
	words(&out);
	buf_adds(&out, "<h2>A kernel against itself: how often is it called more than 2 % faster?</h2>\n");
	dots(&out);
	buf_adds(&out, "<p class=dim>One dot a kernel.</p>\n");
	cells(&out, 0);
	buf_adds(&out, "<h2>Known doses of work</h2><p>A dose is work that one arm does more. What it takes in time is measured, not "
		"known: where the extra bytes are in cache or the launch is most of the time, it is less than its name says. Each cell is "
		"judged by the effect that was measured, with its 95 % interval; only where that lies below 1 % does a promotion count as "
		"false.</p>\n");
	cells(&out, 1);
	buf_adds(&out, "<h2>Power over the true effect</h2><p>A/A sessions shifted by an effect, mean over the kernels; ours resampled, "
		"simple rules on each session once. Circles: doses, live trials of ours at the effect that was measured.</p>\n");
	power(&out, "Kernels of 10 \xc2\xb5s and more", 10, 1e9);
	power(&out, "Kernels below 10 \xc2\xb5s, several launches in a window", 0, 10);
	buf_adds(&out, "</main>\n</html>\n");
	if (file_write(argv[1], buf_str(&out), out.len, 0644, &e))
		die_err(&e);
	buf_free(&out);
	return 0;
}
