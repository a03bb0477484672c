/*
 * page_gpu.c - the page's figures of a GPU, and what start/ gives apart from what was found. See page.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "page.h"

#include <math.h>
#include <string.h>

/* Half the width of an interval, in logarithms; NAN without one. */
static double half(const struct page_ratio *r)
{
	return r->lo > 0 && r->hi > 0 ? log(r->hi / r->lo) / 2 : NAN;
}

struct page_ratio page_worth(const struct page_group *g, const struct page_row *r)
{
	if (!r || r->vs_baseline.est > 0)
		return r ? r->vs_baseline : (struct page_ratio){0};
	for (size_t i = 0; i < g->n && g->row[i] != r; i++)
		if (g->row[i]->kept)
			return (struct page_ratio){0};
	return r->vs_champion;
}

struct page_ratio page_over_start(const struct page_group *g, const struct page_row *champion)
{
	struct page_ratio start = page_worth(g, g->start), out = {0};
	const struct page_row *before = NULL;
	for (size_t i = 0; i < g->n && g->row[i] != champion; i++)
		if (g->row[i]->kept)
			before = g->row[i];
	if (before && before == g->start)
		return champion->vs_champion;
	if (!(start.est > 0) || !(champion->vs_baseline.est > 0))
		return out;
	/* Two measurements: their errors add like the sides of a right angle. */
	double wide = hypot(half(&start), half(&champion->vs_baseline));
	out.est = champion->vs_baseline.est / start.est;
	if (wide < 1)
		out.lo = out.est * exp(-wide), out.hi = out.est * exp(wide);
	return out;
}

static void number(struct buf *out, double v, int digits, const char *unit)
{
	if (v > 0)
		buf_addf(out, "%.*f%s", digits, v, unit);
	else
		buf_adds(out, "<span class=dim>&ndash;</span>");
}

static void time_text(struct buf *out, double us)
{
	if (us >= 1000)
		number(out, us / 1000, 3, "&nbsp;ms");
	else
		number(out, us, us < 100 ? 2 : 1, "&nbsp;&micro;s");
}

static void size_row(struct buf *out, const struct page_size *s, int rivals)
{
	page_element(out, "<tr><td>", s->name, "</td><td class=n>");
	time_text(out, s->time_us);
	buf_adds(out, "</td><td class=\"n x\">");
	number(out, s->gbs, 0, "");
	buf_adds(out, "</td><td class=\"n x\">");
	number(out, s->tflops, s->tflops < 10 ? 2 : 0, "");
	buf_adds(out, "</td><td class=n>");
	number(out, s->percent, 1, "&nbsp;%");
	if (s->percent > 0 && s->bound)
		page_element(out, " <span class=dim>", s->bound, "</span>");
	buf_adds(out, "</td>");
	if (rivals) {
		buf_adds(out, "<td class=n>");
		number(out, s->rival && s->time_us > 0 ? s->rival_us / s->time_us : 0, 3, "&times;");
		if (s->rival) {
			page_element(out, " <span class=dim>", s->rival, ", ");
			time_text(out, s->rival_us);
			buf_adds(out, "</span>");
		}
		buf_adds(out, "</td>");
	}
	buf_adds(out, "</tr>\n");
}

static void ceilings(struct buf *out, const struct page_machine *m)
{
	if (!m || !(m->copy_gbs > 0))
		return;
	buf_addf(out, " Ceilings, measured on this GPU: copy %.0f GB/s, read %.0f GB/s, fp32 %.0f TFLOP/s, bf16 %.0f "
		      "TFLOP/s. The roofline of bytes is the copy, so a kernel that reads more than it writes can pass "
		      "100 %%.",
		 m->copy_gbs, m->read_gbs, m->fp32_tflops, m->bf16_tflops);
}

void page_sizes(struct buf *out, const struct page_group *g)
{
	int rivals = 0;
	if (!g->sizes)
		return;
	for (size_t i = 0; i < g->sizes; i++)
		rivals |= g->size[i].rival != NULL;
	buf_adds(out, "<h3>One run of the champion</h3>\n<div class=wide><table class=tight><thead><tr><th>size<th>time"
		      "<th class=x>GB/s<th class=x>TFLOP/s<th>roofline");
	buf_adds(out, rivals ? "<th>vs fastest library</thead><tbody>\n" : "</thead><tbody>\n");
	for (size_t i = 0; i < g->sizes; i++)
		size_row(out, &g->size[i], rivals);
	buf_adds(out, "</tbody></table></div>\n<p class=dim>Cold caches, mean of the confirmation's runs.");
	if (rivals)
		buf_adds(out, " Libraries: measured on the same GPU model by tests/gpu/compare.py, cold as well; time of the "
			      "library over time of the champion, not a paired measurement.");
	ceilings(out, g->machine);
	buf_adds(out, "</p>\n");
}
