/*
 * render.c - write reports/index.html from the closed records.
 *
 * Reads trials/log.jsonl and, for kept and recent trials, their sources and patches; of a GPU also the
 * champion's profile and reports/compare*.jsonl. With --shipped it reads champion/shipped/DEVICE/ instead.
 * Writes the page whole. Never writes below trials/ and decides nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lib/file.h"
#include "lib/json.h"
#include "lib/ledger.h"
#include "lib/page.h"
#include "lib/page_read.h"
#include "lib/trial.h"
#include "lib/verdict.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char HELP[] =
	"usage: render [options]\n"
	"\n"
	"Write reports/index.html, one self-contained page, from trials/log.jsonl and the records it\n"
	"names. Sources and patches of kept trials and of the newest 100 are embedded.\n"
	"\n"
	"  --running TEXT     say that a run is on and let the page refresh itself\n"
	"  --at-most SECONDS  do nothing when the page is younger than that\n"
	"  --out FILE         write there instead\n"
	"  --shipped DEVICE   a page of what the repository has for DEVICE, from champion/shipped/DEVICE\n"
	"                     and reports/shipped/DEVICE/compare*.jsonl; for reports/shipped/DEVICE/\n"
	"\n"
	"exit: 0 written or young enough, 2 usage, 3 a record is malformed, 111 a system call failed\n";

enum { EMBED = 100, SOURCE_MAX = 256 << 10 };
static const char LOG[] = "trials/log.jsonl";

struct options {
	const char *running, *out, *shipped;
	double at_most;
};

struct log {
	struct page_row *row;
	cJSON **json; /* parallel: owns the strings of row */
	char **proposer, **relies;
	char **base; /* parallel: the tree with the trial, "" or with a slash at its end */
	size_t n, cap;
};

/* `key`, key_lo95 and key_hi95 of a log line. */
static struct page_ratio ratio_of(const cJSON *line, const char *key)
{
	char lo[64], hi[64];
	snprintf(lo, sizeof lo, "%s_lo95", key);
	snprintf(hi, sizeof hi, "%s_hi95", key);
	return (struct page_ratio){
		.est = json_get_num(line, key, 0),
		.lo = json_get_num(line, lo, 0),
		.hi = json_get_num(line, hi, 0),
	};
}

static char *proposer_of(const cJSON *p)
{
	const char *kind = json_get_str(p, "kind", "none"), *model = json_get_str(p, "model", "");
	const char *provider = json_get_str(p, "provider", "");
	if (!*model && !*provider)
		return xstrdup(kind);
	return xasprintf("%s %s%s%s", kind, provider, *provider && *model ? "/" : "", model);
}

/* "fast_math: compiled with ...; order: ..." of data.relies; NULL when there is none. */
static char *relies_of(const cJSON *list)
{
	struct buf b = BUF_INIT;
	for (const cJSON *i = cJSON_IsArray(list) ? list->child : NULL; i; i = i->next)
		buf_addf(&b, "%s%s: %s", b.len ? "; " : "", json_get_str(i, "rule", ""),
			 json_get_str(i, "words", ""));
	return b.data;
}

static int log_line(struct log *log, const char *file, const char *base, const char *line, size_t len, size_t at,
		    struct err *e)
{
	char what[TRIAL_PATH];
	snprintf(what, sizeof what, "%.200s line %zu", file, at);
	cJSON *j = json_parse(line, len, &JSON_OURS, what, e);
	if (!j)
		return -1;
	if (!trial_id_ok(json_get_str(j, "trial", "")) || !trial_name_ok(json_get_str(j, "spec", "")) ||
	    !trial_name_ok(json_get_str(j, "device", ""))) {
		cJSON_Delete(j);
		return err_set(e, EX_BADINPUT, "%s: no trial, spec or device", what);
	}
	if (log->n == log->cap) {
		log->cap = log->cap ? log->cap * 2 : 256;
		log->row = xrealloc(log->row, log->cap * sizeof *log->row);
		log->json = xrealloc(log->json, log->cap * sizeof *log->json);
		log->proposer = xrealloc(log->proposer, log->cap * sizeof *log->proposer);
		log->base = xrealloc(log->base, log->cap * sizeof *log->base);
		log->relies = xrealloc(log->relies, log->cap * sizeof *log->relies);
	}
	log->base[log->n] = xstrdup(base);
	log->json[log->n] = j;
	log->proposer[log->n] = proposer_of(json_get(j, "proposer"));
	log->relies[log->n] = relies_of(json_get(j, "relies"));
	log->row[log->n] = (struct page_row){
		.trial = json_get_str(j, "trial", ""),
		.run = json_get_str(j, "run", ""),
		.spec = json_get_str(j, "spec", ""),
		.device = json_get_str(j, "device", ""),
		.verdict = json_get_str(j, "verdict", ""),
		.code = json_get_str(j, "code", ""),
		.message = json_get_str(j, "message", ""),
		.item = json_get_str(j, "item", ""),
		.hypothesis = json_get_str(j, "hypothesis", ""),
		.proposer = log->proposer[log->n],
		.started = json_get_str(j, "started", ""),
		.candidate = json_get_str(j, "candidate_sha256", NULL),
		.parent = json_get_str(j, "parent", NULL),
		.closed_by = json_get_str(j, "closed_by", ""),
		.status = json_get_str(j, "status", NULL),
		.relies = log->relies[log->n],
		.first_error = json_get_str(j, "first_error", NULL),
		.repairs = (int)json_get_int(j, "repairs", 0),
		.plateau = json_get_str(json_get(j, "plateau"), "state", NULL),
		.vs_champion = ratio_of(j, "ratio"),
		.vs_baseline = ratio_of(j, "ratio_baseline"),
		.kept = cJSON_IsTrue(json_get(j, "kept")),
		.emulated = cJSON_IsTrue(json_get(j, "emulated")),
		.simulated = cJSON_IsTrue(json_get(j, "simulated")),
		.weak = cJSON_IsTrue(json_get(j, "weak")),
	};
	log->n++;
	return 0;
}

static int log_read(struct log *log, const char *file, const char *base, struct err *e)
{
	struct buf b = BUF_INIT;
	if (!file_exists(file))
		return 0;
	int r = file_read(file, (size_t)1 << 30, &b, e);
	size_t at = 1;
	for (char *line = b.data; !r && line && *line; at++) {
		char *end = strchr(line, '\n');
		if (!end)
			break; /* a torn last line: the next append repairs it */
		if (end > line)
			r = log_line(log, file, base, line, (size_t)(end - line), at, e);
		line = end + 1;
	}
	buf_free(&b);
	return r;
}

/* The logs of all problems shipped for a device. */
static int log_read_shipped(struct log *log, const char *device, struct err *e)
{
	char dir[TRIAL_PATH], file[2 * TRIAL_PATH], base[2 * TRIAL_PATH];
	struct dirent **list;
	snprintf(dir, sizeof dir, "champion/shipped/%.64s", device);
	int n = scandir(dir, &list, NULL, alphasort), r = 0;
	if (n < 0)
		return err_set(e, EX_BADUSE, "nothing is shipped for '%s': no %s", device, dir);
	for (int i = 0; i < n; i++) {
		if (!r && trial_name_ok(list[i]->d_name)) {
			snprintf(file, sizeof file, "%s/%.64s/log.jsonl", dir, list[i]->d_name);
			snprintf(base, sizeof base, "%s/%.64s/record/", dir, list[i]->d_name);
			r = log_read(log, file, base, e);
		}
		free(list[i]);
	}
	free(list);
	return r;
}

static void log_free(struct log *log)
{
	for (size_t i = 0; i < log->n; i++) {
		cJSON_Delete(log->json[i]);
		free(log->proposer[i]);
		free(log->relies[i]);
		free(log->base[i]);
	}
	free(log->row), free(log->json), free(log->proposer), free(log->base), free(log->relies);
}

/* A file of a trial as text, or NULL: a report does without what is not there. */
static char *trial_text(const char *base, const char *id, const char *file)
{
	char *path = xasprintf("%strials/%s/%s", base, id, file);
	struct buf b = BUF_INIT;
	struct err e;
	if (file_read(path, SOURCE_MAX, &b, &e))
		buf_free(&b);
	free(path);
	return b.data;
}

static char *first_text(const char *base, const char *id, const char *const *files)
{
	char *text = NULL;
	for (; !text && *files; files++)
		text = trial_text(base, id, *files);
	return text;
}

static void source_read(const struct options *o, const char *base, const struct page_row *r, struct page_source *s,
			int embed)
{
	static const char *const kernel[] = {"candidate/kernel.cu", "a2/candidate/kernel.cu",
					     "a1/candidate/kernel.cu", "a0/candidate/kernel.cu", NULL};
	static const char *const engine[] = {"candidate/engine.c", "a2/candidate/engine.c",
					     "a1/candidate/engine.c", "a0/candidate/engine.c", NULL};
	static const char *const cuda[] = {"candidate/engine.cu", "a2/candidate/engine.cu",
					   "a1/candidate/engine.cu", "a0/candidate/engine.cu", NULL};
	static const char *const plan[] = {"candidate/plan.json", "a2/candidate/plan.json",
					   "a1/candidate/plan.json", "a0/candidate/plan.json", NULL};
	static const char *const patch[] = {"a2/candidate.patch", "a1/candidate.patch",
					    "a0/candidate.patch", NULL};
	char *dir = xasprintf("%strials/%s/", base, r->trial);
	if (!o->shipped || file_exists(dir)) {
		s->dir = xasprintf("%s%s", o->shipped ? "../../../" : "../", dir);
		s->from = o->shipped ? xasprintf("champion/shipped/%s/%s", r->device, r->spec) : NULL;
	}
	free(dir);
	if (!embed)
		return;
	s->file = "kernel.cu";
	if (!(s->kernel = first_text(base, r->trial, kernel)) && (s->kernel = first_text(base, r->trial, engine)))
		s->file = "engine.c";
	if (!s->kernel && (s->kernel = first_text(base, r->trial, cuda)))
		s->file = "engine.cu";
	s->plan = first_text(base, r->trial, plan);
	s->patch = first_text(base, r->trial, patch);
}

static void group_free(struct page_group *g)
{
	for (size_t i = 0; i < g->n; i++) {
		free((char *)g->source[i].kernel), free((char *)g->source[i].plan);
		free((char *)g->source[i].patch), free((char *)g->source[i].dir);
		free((char *)g->source[i].from);
	}
	free(g->row), free(g->source), free((void *)g->spend);
}

/* Totals of the runs that the rows name; a ledger that cannot be read has spent nothing. */
static void spend_read(struct page_group *g)
{
	struct page_spend *s = xcalloc(g->n + 1, sizeof *s);
	for (size_t i = 0; i < g->n; i++) {
		struct run r = {0};
		struct ledger_amount t;
		if ((g->spends && !strcmp(s[g->spends - 1].run, g->row[i]->run)) || !run_name_ok(g->row[i]->run))
			continue;
		s[g->spends].run = g->row[i]->run;
		snprintf(r.name, sizeof r.name, "%.*s", TRIAL_ID - 1, g->row[i]->run);
		if (!ledger_total(&r, &t, NULL))
			s[g->spends] = (struct page_spend){g->row[i]->run, t.calls, t.tokens_in + t.tokens_out, t.usd, t.gpu_s};
		g->spends++;
	}
	g->spend = s;
}

static void group_write(struct buf *out, const struct options *o, const struct log *log, const cJSON *rivals,
			size_t first, char *done)
{
	struct page_group g = {0};
	struct page_keep keep = {0};
	const struct page_row *like = &log->row[first], *champion = NULL;
	g.row = xcalloc(log->n, sizeof *g.row);
	g.source = xcalloc(log->n, sizeof *g.source);
	for (size_t i = first; i < log->n; i++) {
		const struct page_row *r = &log->row[i];
		if (done[i] || strcmp(r->spec, like->spec) || strcmp(r->device, like->device))
			continue;
		done[i] = 1;
		source_read(o, log->base[i], r, &g.source[g.n], r->kept || i + EMBED >= log->n);
		g.row[g.n++] = r;
		champion = r->kept ? r : champion;
		if (!g.start && page_is_start(log->base[i], r))
			g.start = r;
	}
	if (!o->shipped)
		spend_read(&g);
	page_read_gpu(log->base[first], champion, rivals, &keep, &g);
	page_read_engine(log->base[first], champion, &keep, &g);
	page_group(out, &g);
	page_keep_free(&keep);
	group_free(&g);
}

/* The problem worked on last comes first; of shipped ones, by name. */
static void groups_write(struct buf *out, const struct options *o, const struct log *log)
{
	char *done = xcalloc(log->n, 1);
	char *where = o->shipped ? xasprintf("reports/shipped/%s", o->shipped) : xstrdup("reports");
	cJSON *rivals = page_rivals(where);
	for (size_t i = 0; i < log->n; i++) {
		size_t first = 0, at = o->shipped ? i : log->n - 1 - i;
		while (strcmp(log->row[first].spec, log->row[at].spec) ||
		       strcmp(log->row[first].device, log->row[at].device))
			first++;
		if (!done[first])
			group_write(out, o, log, rivals, first, done);
	}
	cJSON_Delete(rivals);
	free(where);
	free(done);
}

/* The folder of a file, made. */
static int folder_make(const char *file, struct err *e)
{
	char dir[TRIAL_PATH];
	const char *slash = strrchr(file, '/');
	if (!slash || slash == file)
		return 0;
	snprintf(dir, sizeof dir, "%.*s", (int)(slash - file), file);
	return dir_make(dir, e);
}

static int render(const struct options *o, struct err *e)
{
	struct log log = {0};
	struct buf out = BUF_INIT;
	char now[32];
	if (o->shipped ? log_read_shipped(&log, o->shipped, e) : log_read(&log, LOG, "", e)) {
		log_free(&log);
		return -1;
	}
	verdict_now(now);
	char *title = o->shipped ? xasprintf("Touchstone: shipped for %s", o->shipped) : xstrdup("Touchstone");
	char *from = o->shipped ? xasprintf("champion/shipped/%s/", o->shipped) : xstrdup(LOG);
	struct page_state s = {.title = title, .now = now, .running = o->running, .from = from};
	page_begin(&out, &s);
	if (!log.n)
		buf_adds(&out, "<p>No trial is closed yet. <code>make iterate N=10</code> makes ten.</p>\n");
	groups_write(&out, o, &log);
	page_end(&out, &s);
	int r = folder_make(o->out, e);
	if (!r)
		r = file_write(o->out, out.data, out.len, 0666, e);
	free(title), free(from);
	buf_free(&out);
	log_free(&log);
	return r;
}

static int young(const struct options *o)
{
	struct stat st;
	struct timespec now;
	if (!(o->at_most > 0) || stat(o->out, &st) || clock_gettime(CLOCK_REALTIME, &now))
		return 0;
	double age = (double)(now.tv_sec - st.st_mtim.tv_sec) +
		     (double)(now.tv_nsec - st.st_mtim.tv_nsec) * 1e-9;
	return age >= 0 && age < o->at_most;
}

int main(int argc, char **argv)
{
	struct options o = {.out = "reports/index.html"};
	struct err e = {0};
	prog_name(argv[0]);
	for (int i = 1; i < argc; i++) {
		const char *next = i + 1 < argc ? argv[i + 1] : NULL;
		if (!strcmp(argv[i], "-h")) {
			fputs(HELP, stdout);
			return 0;
		}
		if (!next)
			die(EX_BADUSE, "'%s' is no option, or wants a value (render -h explains)", argv[i]);
		if (!strcmp(argv[i], "--running"))
			o.running = next;
		else if (!strcmp(argv[i], "--out"))
			o.out = next;
		else if (!strcmp(argv[i], "--shipped") && trial_name_ok(next))
			o.shipped = next;
		else if (!strcmp(argv[i], "--at-most"))
			o.at_most = atof(next);
		else
			die(EX_BADUSE, "'%s' is no option (render -h explains)", argv[i]);
		i++;
	}
	if (young(&o))
		return 0;
	if (render(&o, &e))
		die_err(&e);
	printf("%s\n", o.out);
	return 0;
}
