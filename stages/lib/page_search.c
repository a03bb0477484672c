/*
 * page_search.c - see page.h: what each proposer and each run came to, and what it cost.
 *
 * SPDX-License-Identifier: MIT
 */
#include "page.h"

#include "reason.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 32 };

struct line {
	const char *name;
	int trials, kept, asked, unusable, widened, ended;
	double gain; /* product of the ratios kept */
};

struct lines {
	struct line of[MOST];
	int n;
};

static struct line *line_of(struct lines *l, const char *name)
{
	for (int i = 0; i < l->n; i++)
		if (!strcmp(l->of[i].name, name))
			return &l->of[i];
	if (l->n == MOST)
		return NULL;
	l->of[l->n] = (struct line){.name = name, .gain = 1};
	return &l->of[l->n++];
}

static void add(struct line *l, const struct page_row *r)
{
	const int ended = reason_search_over(r->code);

	if (!l)
		return;
	l->ended += ended;
	l->trials += !ended;
	l->kept += r->kept;
	l->asked += !ended && strncmp(r->proposer, "sweep", 5) != 0;
	l->unusable += reason_unusable_reply(r->code);
	l->widened += r->plateau && !strcmp(r->plateau, "widened");
	if (r->kept && r->vs_champion.est > 0)
		l->gain *= r->vs_champion.est;
}

static void counts(struct buf *out, const struct line *l)
{
	page_element(out, "<tr><td>", l->name, "");
	if (l->widened)
		buf_addf(out, " <span class=tag>%d widened</span>", l->widened);
	if (l->ended)
		buf_addf(out, " <span class=tag>%d not proposed: the search was over</span>", l->ended);
	buf_addf(out, "</td><td class=n>%d</td><td class=n>%d</td><td class=n>%+.1f %%</td>", l->trials, l->kept,
		 (l->gain - 1) * 100);
}

/* What one accepted percent cost; nothing while none was. */
static void cost(struct buf *out, const struct page_spend *s, double percent)
{
	buf_addf(out, "<td class=n>%lld calls, %lld tokens, $%.4f, %.1f GPU s</td><td class=n>", s->calls, s->tokens, s->usd,
		 s->gpu_s);
	if (percent > 0 && (s->calls || s->gpu_s > 0))
		buf_addf(out, "%.0f tokens, $%.4f, %.2f GPU s", (double)s->tokens / percent, s->usd / percent,
			 s->gpu_s / percent);
	else
		buf_adds(out, "-");
	buf_adds(out, "</td></tr>\n");
}

static const struct page_spend *spend_of(const struct page_group *g, const char *run)
{
	static const struct page_spend nothing;

	for (size_t i = 0; i < g->spends; i++)
		if (!strcmp(g->spend[i].run, run))
			return &g->spend[i];
	return &nothing;
}

void page_search(struct buf *out, const struct page_group *g)
{
	struct lines who = {0}, runs = {0};

	if (!g->spend)
		return;
	for (size_t i = g->n; i > 0; i--) { /* the newest first; what does not fit is old */
		add(line_of(&who, g->row[i - 1]->proposer), g->row[i - 1]);
		add(line_of(&runs, g->row[i - 1]->run), g->row[i - 1]);
	}
	buf_adds(out, "<details class=search><summary>Proposers and what they cost</summary>\n<div class=wide><table><thead><tr>"
		      "<th>proposer<th>proposals<th>kept<th>accepted<th>replies without a usable candidate</thead><tbody>\n");
	for (int i = 0; i < who.n; i++) {
		counts(out, &who.of[i]);
		if (who.of[i].asked)
			buf_addf(out, "<td class=n>%d of %d (%.0f %%)</td></tr>\n", who.of[i].unusable, who.of[i].asked,
				 100.0 * who.of[i].unusable / who.of[i].asked);
		else
			buf_adds(out, "<td class=n>-</td></tr>\n");
	}
	buf_adds(out, "</tbody></table></div>\n<div class=wide><table><thead><tr><th>run<th>proposals<th>kept<th>accepted<th>spent"
		      "<th>per accepted percent</thead><tbody>\n");
	for (int i = 0; i < runs.n; i++) {
		counts(out, &runs.of[i]);
		cost(out, spend_of(g, runs.of[i].name), runs.of[i].kept ? (runs.of[i].gain - 1) * 100 : 0);
	}
	buf_adds(out, "</tbody></table></div></details>\n");
}
