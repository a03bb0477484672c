/*
 * page_engine.c - the page's figures of an engine: its workloads. See page.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "page.h"

#include <string.h>

static void cell(struct buf *out, double v, int digits, const char *unit, double share)
{
	buf_adds(out, "</td><td class=n>");
	if (v > 0)
		buf_addf(out, "%.*f%s", digits, v, unit);
	else
		buf_adds(out, "<span class=dim>&ndash;</span>");
	if (v > 0 && share > 0)
		buf_addf(out, " <span class=dim>%.3g&nbsp;%%</span>", 100 * share);
}

static void work_row(struct buf *out, const struct page_work *w)
{
	page_element(out, "<tr><td>", w->name, " <span class=dim>");
	buf_addf(out, "%d / %d / %d</span>", w->batch, w->prompt, w->steps);
	cell(out, w->total_s * 1e3, 1, "&nbsp;ms", w->of_floor);
	cell(out, w->tokens_s, 0, "", 0);
	cell(out, w->ttft_s * 1e3, 2, "&nbsp;ms", w->ttft_of_floor);
	cell(out, w->tpot_s * 1e3, 3, "&nbsp;ms", w->tpot_of_floor);
	cell(out, w->total_s > 0 ? w->native_s / w->total_s : 0, 3, "&times;", 0);
	buf_adds(out, "</td></tr>\n");
}

void page_works(struct buf *out, const struct page_group *g)
{
	const int floor = g->ceilings && strcmp(g->ceilings, "none") != 0;
	if (!g->works)
		return;
	buf_adds(out, "<h3>A batch of the champion</h3>\n<div class=wide><table class=tight><thead><tr><th>workload<th>time<th>tokens/s"
		      "<th>first token<th>per token<th>vs baseline</thead><tbody>\n");
	for (size_t i = 0; i < g->works; i++)
		work_row(out, &g->work[i]);
	buf_adds(out, "</tbody></table></div>\n<p class=dim>Batch / prompt / steps; medians of the confirmation, by the clock of who asks. "
		      "Against the baseline: quotient of medians; the ratio above is the paired one.");
	if (floor)
		page_element(out, " Behind a time its share of what this GPU needs at best to read the weights and to multiply (100&nbsp;%: at the "
				  "floor); ceilings: ", g->ceilings, ".");
	buf_adds(out, "</p>\n");
}
