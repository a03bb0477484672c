/*
 * page.c - see page.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "page.h"

#include "clusters.h"

#include <stdio.h>
#include <string.h>

static const char STYLE[] =
	":root{--bg:#fff;--fg:#1b1f24;--dim:#5b6570;--line:#d8dee4;--card:#f6f8fa;--good:#1a7f37;"
	"--bad:#b42318;--mid:#8a6100;--accent:#0b5cad;--keep:#e6f4ea}"
	"@media(prefers-color-scheme:dark){:root{--bg:#0f1318;--fg:#e4e8ec;--dim:#9aa5b1;--line:#2b333c;"
	"--card:#171d24;--good:#5bd07f;--bad:#ff8a80;--mid:#e5b567;--accent:#7ab8ff;--keep:#12301d}}"
	"*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--fg);"
	"font:16px/1.5 system-ui,sans-serif}main{max-width:70rem;margin:0 auto;padding:1rem}"
	"h1{font-size:1.5rem;margin:.5rem 0}h2{font-size:1.25rem;margin:2rem 0 .5rem}"
	"h3{font-size:1rem;margin:1.25rem 0 .25rem}table.tight{width:auto}table.tight td{padding-right:1.5rem}"
	"a{color:var(--accent)}.dim{color:var(--dim)}.good{color:var(--good)}.bad{color:var(--bad)}"
	".mid{color:var(--mid)}.cards{display:flex;flex-wrap:wrap;gap:.75rem;margin:1rem 0}"
	".card{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.75rem 1rem;"
	"flex:1 1 10rem}"
	".card b{display:block;font-size:1.4rem}.card b .dim{font-size:.85rem;font-weight:400}.tag{display:inline-block;border:1px solid "
	"var(--mid);color:var(--mid);border-radius:1rem;padding:0 .6rem;font-size:.8rem;margin-left:.5rem}"
	".wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.9rem}"
	"th,td{text-align:left;padding:.35rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}"
	"th{color:var(--dim);font-weight:600;white-space:nowrap}td.n{font-variant-numeric:tabular-nums;"
	"white-space:nowrap}tr.kept td{background:var(--keep)}pre{background:var(--card);border:1px solid "
	"var(--line);border-radius:.5rem;padding:.75rem;overflow:auto;max-height:28rem;font:13px/1.4 "
	"ui-monospace,monospace;margin:.5rem 0}summary{cursor:pointer}svg{width:100%;max-width:52rem;height:auto;"
	"display:block}"
	"code{font:.9em ui-monospace,monospace;overflow-wrap:anywhere}.live{border-left:4px solid var(--accent);padding:.25rem .75rem;"
	"background:var(--card)}@media(max-width:40rem){main{padding:.6rem}th.x,td.x{display:none}"
	"h1{font-size:1.25rem}td,th{padding:.3rem .25rem}td.n{white-space:normal}.wide{font-size:.85rem}}"
	"td.why{min-width:9rem}";

void page_escape(struct buf *out, const char *text)
{
	for (const char *p = text ? text : ""; *p; p++) {
		switch (*p) {
		case '&':
			buf_adds(out, "&amp;");
			break;
		case '<':
			buf_adds(out, "&lt;");
			break;
		case '>':
			buf_adds(out, "&gt;");
			break;
		case '"':
			buf_adds(out, "&quot;");
			break;
		case '\'':
			buf_adds(out, "&#39;");
			break;
		default:
			buf_addc(out, *p);
		}
	}
}

void page_element(struct buf *out, const char *open, const char *text, const char *close)
{
	buf_adds(out, open);
	page_escape(out, text);
	buf_adds(out, close);
}

void page_ratio_text(struct buf *out, const struct page_ratio *r)
{
	if (!(r->est > 0)) {
		buf_adds(out, "<span class=dim>&ndash;</span>");
		return;
	}
	buf_addf(out, "%.3f&times;", r->est);
	if (r->lo > 0 && r->hi > 0 && r->hi < 1e6)
		buf_addf(out, " <span class=dim>[%.3f,&nbsp;%.3f]</span>", r->lo, r->hi);
}

void page_begin(struct buf *out, const struct page_state *s)
{
	buf_adds(out, "<!doctype html>\n<html lang=en><meta charset=utf-8>"
		      "<meta name=viewport content=\"width=device-width,initial-scale=1\">"
		      "<meta name=color-scheme content=\"light dark\">"
		      "<meta http-equiv=Content-Security-Policy content=\"default-src 'none';"
		      "style-src 'unsafe-inline';script-src 'unsafe-inline'\">\n");
	page_element(out, "<title>", s->title, "</title>\n<style>");
	buf_adds(out, STYLE);
	page_element(out, "</style>\n<main>\n<h1>", s->title, "</h1>\n");
	if (s->running)
		page_element(out, "<p class=live>Running: ", s->running, ". This page refreshes itself.</p>\n");
}

static int label_of(const struct page_row *r, const char **label)
{
	*label = r->simulated ? "simulated" : r->emulated ? "emulated" : "";
	return **label != '\0';
}

/* Newest kept trial of the group, or NULL. */
static const struct page_row *champion_of(const struct page_group *g)
{
	for (size_t i = g->n; i > 0; i--)
		if (g->row[i - 1]->kept)
			return g->row[i - 1];
	return NULL;
}

/* What the loop added to a kernel that was there before it, and what that kernel gives by itself. */
static void start_card(struct buf *out, const struct page_group *g, const struct page_row *champion)
{
	struct page_ratio start = page_worth(g, g->start), over = {0};
	if (champion && champion != g->start)
		over = page_over_start(g, champion);
	buf_adds(out, "<div class=card>Found by the loop, beyond start/<b>");
	if (over.est > 0)
		page_ratio_text(out, &over);
	else
		buf_adds(out, champion == g->start || !champion ? "nothing yet" : "not known");
	buf_adds(out, "</b><span class=dim>start/ as it is shipped, no work of the loop: ");
	if (start.est > 0)
		page_ratio_text(out, &start);
	else
		buf_adds(out, "not measured");
	buf_adds(out, " against the baseline</span></div>");
}

static void device_card(struct buf *out, const struct page_group *g)
{
	const char *label;
	const struct page_machine *m = g->machine;
	page_element(out, "<div class=card>Device<b>", m && m->name ? m->name : g->row[0]->device,
		     "</b><span class=dim>");
	if (label_of(g->row[0], &label)) {
		buf_addf(out, "%s: never a GPU speed", label);
	} else if (m) {
		page_element(out, "", m->arch, "");
		page_element(out, ", driver ", m->driver, "");
		page_element(out, ", CUDA ", m->toolkit, "");
	} else {
		buf_adds(out, "measured on the device named");
	}
	buf_adds(out, "</span></div>");
}

static void headline(struct buf *out, const struct page_group *g)
{
	const struct page_row *c = champion_of(g);
	size_t kept = 0, rejected = 0, unclear = 0;
	for (size_t i = 0; i < g->n; i++) {
		kept += g->row[i]->kept != 0;
		rejected += !strcmp(g->row[i]->verdict, "reject");
	}
	unclear = g->n - kept - rejected;
	buf_adds(out, "<div class=cards><div class=card>Champion against the naive baseline<b>");
	if (c)
		page_ratio_text(out, &c->vs_baseline);
	else
		buf_adds(out, "1.000&times;");
	buf_adds(out, "</b><span class=dim>");
	if (c)
		page_element(out, "trial ", c->trial, ", measured directly, 95 % interval");
	else
		buf_adds(out, "nothing kept yet: the baseline stands");
	if (c && c->weak)
		buf_adds(out, "<br>weak isolation: fewer layers held than Touchstone asks for (ALLOW_WEAK=1)");
	if (c && c->relies)
		page_element(out, "; <span class=tag>", c->status, "</span>");
	buf_adds(out, "</span></div>");
	if (g->start)
		start_card(out, g, c);
	buf_addf(out,
		 "<div class=card>Trials<b>%zu</b><span class=dim>%zu kept, %zu rejected, %zu other</span></div>",
		 g->n, kept, rejected, unclear);
	device_card(out, g);
	buf_adds(out, "</div>\n");
}

void page_staircase(struct buf *out, const struct page_group *g)
{
	const double w = 680, h = 230, left = 52, right = 12, top = 12, bottom = 28;
	double best = 1, max = 1.05;
	for (size_t i = 0; i < g->n; i++) {
		const struct page_row *r = g->row[i];
		if (r->kept && r->vs_baseline.est > max)
			max = r->vs_baseline.est * 1.03;
	}
	double start = page_worth(g, g->start).est;
	if (start > max)
		max = start * 1.03;
	double dx = (w - left - right) / (double)(g->n ? g->n : 1);
	double dy = (h - top - bottom) / (max - 0.95);
#define Y(v) (h - bottom - ((v) - 0.95) * dy)
	buf_addf(out, "<svg viewBox=\"0 0 %.0f %.0f\" role=img aria-label=\"best ratio to the baseline by "
		      "trial\"><style>text{font:12px system-ui;fill:var(--dim)}@media(max-width:40rem){text{font-size:"
		      "19px}}</style>",
		 w, h);
	for (int k = 0; k <= 4; k++) {
		double v = 1 + (max - 1) * k / 4;
		buf_addf(out,
			 "<line x1=%.1f x2=%.1f y1=%.1f y2=%.1f stroke=\"var(--line)\"/><text x=%.1f "
			 "y=%.1f text-anchor=end>%.2f</text>",
			 left, w - right, Y(v), Y(v), left - 6, Y(v) + 4, v);
	}
	buf_addf(out, "<text x=%.1f y=%.1f>trial %s</text><text x=%.1f y=%.1f text-anchor=end>%s</text>",
		 left, h - 8, g->row[0]->trial, w - right, h - 8, g->row[g->n - 1]->trial);
	if (start > 0.95)
		buf_addf(out,
			 "<line x1=%.1f x2=%.1f y1=%.1f y2=%.1f stroke=\"var(--mid)\" stroke-dasharray=\"6 5\"/><text "
			 "x=%.1f y=%.1f text-anchor=end>start/ %.2f</text>",
			 left, w - right, Y(start), Y(start), w - right, Y(start) + 18, start);
	buf_addf(out, "<path fill=none stroke=\"var(--good)\" stroke-width=2 d=\"M%.1f %.1f", left, Y(1.0));
	for (size_t i = 0; i < g->n; i++) {
		const struct page_row *r = g->row[i];
		if (r->kept && r->vs_baseline.est > 0) {
			best = r->vs_baseline.est;
			buf_addf(out, "H%.1fV%.1f", left + ((double)i + 0.5) * dx, Y(best));
		}
	}
	buf_addf(out, "H%.1f\"/>", w - right);
	best = 1;
	for (size_t i = 0; i < g->n; i++) {
		const struct page_row *r = g->row[i];
		double x = left + ((double)i + 0.5) * dx;
		if (r->kept && r->vs_baseline.est > 0) {
			best = r->vs_baseline.est;
			buf_addf(out, "<circle cx=%.1f cy=%.1f r=5 fill=\"var(--good)\"><title>trial %s: "
				      "%.3f</title></circle>",
				 x, Y(best), r->trial, best);
		} else if (r->vs_champion.est > 0) {
			double v = r->vs_champion.est * best;
			v = v < 0.95 ? 0.95 : v > max ? max : v;
			buf_addf(out, "<circle cx=%.1f cy=%.1f r=2.5 fill=\"var(--dim)\"><title>trial %s"
				      "</title></circle>",
				 x, Y(v), r->trial);
		}
	}
#undef Y
	buf_adds(out, "</svg>\n<p class=dim>Line: the champion's measured ratio to the baseline. Grey: "
		      "candidates that were timed and not kept, placed by their ratio to the champion of "
		      "the moment.");
	buf_adds(out, start > 0.95 ? " Dashed: start/, which was there before the loop.</p>\n" : "</p>\n");
}

static void block(struct buf *out, const char *title, const char *text)
{
	if (!text || !*text)
		return;
	page_element(out, "<p class=dim>", title, "</p><pre>");
	page_escape(out, text);
	buf_adds(out, "</pre>");
}

static void fold_out(struct buf *out, const struct page_row *r, const struct page_source *s)
{
	page_element(out, "<p>", r->hypothesis, "</p>");
	if (r->relies)
		page_element(out, "<p>It relies on what not every user would allow: ", r->relies, "</p>");
	if (s->patch || s->kernel) {
		buf_adds(out, "<details><summary>source and patch</summary>");
		block(out, "patch against its parent", s->patch);
		block(out, s->file, s->kernel);
		block(out, "plan.json", s->plan);
		buf_adds(out, "</details>");
	}
	buf_adds(out, "<p class=dim>");
	if (s->dir)
		page_element(out, "<a href=\"", s->dir, "\">record</a> &middot; ");
	page_element(out, "candidate <code>", r->candidate ? r->candidate : "none", "</code>");
	if (s->dir) {
		page_element(out, " &middot; again: <code>make replay TRIAL=", r->trial, "");
		if (s->from)
			page_element(out, " FROM=", s->from, "");
		buf_adds(out, "</code>");
	} else {
		buf_adds(out, " &middot; its record is not here");
	}
	buf_adds(out, "</p>");
}

static void row(struct buf *out, const struct page_row *r, const struct page_source *s,
		const struct page_row *start)
{
	const char *class = r->kept			      ? "good"
			    : !strcmp(r->verdict, "reject") ? "bad"
							      : "mid";
	buf_addf(out, "<tr%s><td class=n>", r->kept ? " class=kept" : "");
	if (s->dir)
		page_element(out, "<a href=\"", s->dir, "\">");
	page_element(out, "", r->trial, s->dir ? "</a>" : "");
	if (r == start)
		buf_adds(out, " <span class=tag>start/</span>");
	if (r->weak)
		buf_adds(out, " <span class=tag>weak isolation</span>");
	buf_adds(out, "</td>");
	buf_addf(out, "<td class=\"n %s\">", class);
	page_element(out, "", r->kept ? "kept" : r->verdict, "");
	if (r->relies)
		page_element(out, "<br><span class=tag>", r->status, "</span>");
	buf_adds(out, "</td><td class=why>");
	page_element(out, "<code>", r->code, "</code> ");
	page_escape(out, r->message);
	if (r->repairs) {
		buf_addf(out, " <span class=tag>%d repair%s after ", r->repairs, r->repairs > 1 ? "s" : "");
		page_element(out, "", r->first_error ? r->first_error : "an error", "</span>");
	}
	page_element(out, "<details><summary class=dim>", *r->item ? r->item : "details", "</summary>");
	fold_out(out, r, s);
	buf_adds(out, "</details></td><td class=n>");
	page_ratio_text(out, &r->vs_champion);
	buf_adds(out, "</td><td class=\"n x\">");
	page_ratio_text(out, &r->vs_baseline);
	page_element(out, "</td><td class=x>", r->proposer, "</td>");
	char when[32]; /* to the minute: the record has the rest */
	snprintf(when, sizeof when, "%.16s", r->started);
	char *t = strchr(when, 'T');
	if (t)
		*t = ' ';
	page_element(out, "<td class=\"n x\">", when, "</td></tr>\n");
}

/* What trials failed of more than once, by reason and message: five at most. */
static void failures(struct buf *out, const struct page_group *g)
{
	struct clusters k = {0};
	char count[64];

	for (size_t i = g->n; i > 0; i--) {
		const struct page_row *r = g->row[i - 1];
		if (r->verdict && (!strcmp(r->verdict, "reject") || !strcmp(r->verdict, "inconclusive")))
			clusters_add(&k, r->code ? r->code : "", r->message ? r->message : "");
	}
	clusters_sort(&k);
	if (!k.n || k.c[0].n < 2)
		return;
	buf_adds(out, "<details class=failures><summary>What failed more than once</summary>\n<ul>\n");
	for (int i = 0; i < k.n && i < 5 && k.c[i].n > 1; i++) {
		snprintf(count, sizeof count, "<li>%d of %zu trials: <code>", k.c[i].n, g->n);
		page_element(out, count, k.c[i].code, "</code> ");
		page_element(out, "", k.c[i].message, "\n");
	}
	buf_adds(out, "</ul></details>\n");
}

void page_group(struct buf *out, const struct page_group *g)
{
	if (!g->n)
		return;
	const char *label;
	page_element(out, "<section><h2>", g->row[0]->spec, "");
	page_element(out, " on ", g->row[0]->device, "");
	if (label_of(g->row[0], &label))
		page_element(out, "<span class=tag>", label, "</span>");
	buf_adds(out, "</h2>\n");
	headline(out, g);
	page_sizes(out, g);
	page_works(out, g);
	page_staircase(out, g);
	buf_adds(out, "<div class=wide><table><thead><tr><th>trial<th>verdict<th>reason<th>vs champion"
		      "<th class=x>vs baseline<th class=x>proposer<th class=x>started</thead><tbody>\n");
	for (size_t i = g->n; i > 0; i--)
		row(out, g->row[i - 1], &g->source[i - 1], g->start);
	buf_adds(out, "</tbody></table></div>\n");
	failures(out, g);
	page_search(out, g);
	page_element(out, "<p class=dim>How to reproduce: <code>make iterate SPEC=", g->row[0]->spec, "");
	page_element(out, " DEVICE=", g->row[0]->device, "</code> continues or starts a run; <code>make replay ");
	const char *from = NULL;
	for (size_t i = 0; i < g->n && !from; i++)
		from = g->source[i].from;
	page_element(out, from ? "FROM=" : "TRIAL=n", from,
		     "</code> judges a recorded trial again; <code>make champion SPEC=");
	page_element(out, "", g->row[0]->spec, "</code> shows the files of the best here.</p></section>\n");
}

void page_end(struct buf *out, const struct page_state *s)
{
	page_element(out, "<p class=dim>Made ", s->now,
		" from ");
	page_element(out, "", s->from,
		" and the records it names. Ratios are time of the other over time of "
		"the candidate, with 95 % intervals from independent processes; they are evidence only "
		"together with the record they link to. Not checked here: that nobody edited the folder."
		"</p>\n</main>\n");
	if (s->running)
		buf_adds(out, "<script>setInterval(function(){if(!document.querySelector('details[open]'))"
			      "location.reload()},3000)</script>\n");
	buf_adds(out, "</html>\n");
}
