/*
 * engine_sanitize.c - see engine_sanitize.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_sanitize.h"

#include "buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sanitizers cost two to ten times the time. */
enum { SLOWER = 10, LINES = 24 };

/* ---- what it says ---- */

static int is_report(const char *line, size_t n)
{
	return memmem(line, n, "ERROR: AddressSanitizer", 23) || memmem(line, n, "runtime error: ", 15);
}

/* The file below .../src/ that a word begins with, past that folder; or NULL. */
static const char *own_file(const char *word, const char *end)
{
	const char *stop = word;
	while (stop < end && *stop != ' ')
		stop++;
	const char *src = *word == '/' ? memmem(word, (size_t)(stop - word), "/src/", 5) : NULL;
	return src ? src + 5 : NULL;
}

/* Printable ASCII without places on this machine: ".../src/engine.c:9" is engine.c:9, a program in brackets goes. Numbers of
 * processes go as well, so that the same fault reads the same. */
static void add_line(struct buf *out, const char *line, size_t n)
{
	const char *place = memmem(line, n, " (/", 3);
	if (n > 2 && line[0] == '=' && line[1] == '=') {
		const char *end = memmem(line + 2, n - 2, "==", 2);
		if (end) {
			n -= (size_t)(end + 2 - line);
			line = end + 2;
		}
	}
	const size_t most = place && place > line ? (size_t)(place - line) : n;
	for (const char *at = line, *end = line + (most < n ? most : n); at < end; at++) {
		const char *file = at == line || at[-1] == ' ' ? own_file(at, end) : NULL;
		if (file)
			at = file;
		buf_addc(out, *at >= ' ' && *at <= '~' ? *at : '?');
	}
	buf_addc(out, '\n');
}

/* The report in an engine's standard error, if there is one: from its first line on. */
static int read_report(const struct buf *log, struct engine_sanitized *o)
{
	const char *at = buf_str(log), *end = at + log->len;
	int lines = 0;
	while (at < end && lines < LINES) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		const size_t n = (size_t)((stop ? stop : end) - at);
		if (lines || is_report(at, n)) {
			const size_t from = o->log.len;
			add_line(&o->log, at, n);
			if (!lines++)
				snprintf(o->words, sizeof o->words, "%.*s", (int)(o->log.len - from - 1), o->log.data + from);
		}
		if (lines && n > 8 && !memcmp(at, "SUMMARY:", 8)) /* what follows is shadow memory */
			break;
		at += n + 1;
	}
	return lines > 0;
}

/* ---- the run ---- */

/* One workload's first batch; *o is the outcome, and `end` has its words. */
static int run_row(const struct engine_rig *g, const char *program, const struct engine_row *row, enum engine_outcome *o,
		   struct engine_end *end, struct err *e)
{
	const struct engine_asked *a = &row->a[0];
	const double step = (g->step_s > 0 ? g->step_s : 10) * SLOWER;
	const struct engine_start q = {.program = program, .model_dir = g->model->dir, .load_s = g->load_s * SLOWER,
				       .vocab = g->model->model.c.vocab};
	struct engine child;
	struct err other;
	if (engine_open(&q, &child, o, e))
		return -1;
	int rc = 0;
	if (*o == ENGINE_OK) {
		int32_t *out = xcalloc((size_t)a->batch * (size_t)a->steps, sizeof *out);
		int64_t *stamp = xcalloc((size_t)a->steps, sizeof *stamp);
		struct engine_batch b = {.batch = a->batch, .prompt = a->prompt, .steps = a->steps, .ids = a->ids, .out = out,
					 .stamp = stamp, .limit_s = step * (a->steps + 1)};
		rc = engine_ask(&child, &b, o, e);
		free(out);
		free(stamp);
	}
	return engine_close(&child, o, end, rc ? &other : e) || rc ? -1 : 0;
}

static int run(const struct engine_rig *g, const char *program, const struct engine_report *r, struct engine_sanitized *o,
	       struct err *e)
{
	for (int i = 0; i < r->n; i++) {
		enum engine_outcome outcome = ENGINE_OK;
		struct engine_end end = {0};
		if (run_row(g, program, &r->row[i], &outcome, &end, e))
			return -1;
		const int told = read_report(&end.log, o);
		if (!told && outcome != ENGINE_OK)
			snprintf(o->words, sizeof o->words, "the build with sanitizers did not get through workload '%.40s' (%s, %.60s)",
				 r->row[i].w.name, engine_outcome_name(outcome), end.words);
		engine_end_free(&end);
		if (told || outcome != ENGINE_OK) {
			o->ran = told;
			return 0;
		}
	}
	o->ran = o->clean = 1;
	return 0;
}

int engine_sanitize(struct engine_files *f, const struct engine_rig *g, const struct engine_report *r,
		    struct engine_sanitized *o, struct err *e)
{
	struct engine_built b;
	int64_t took = 0;
	*o = (struct engine_sanitized){0};
	for (int i = 0; i < r->n; i++)
		took += r->row[i].ready_ns + r->row[i].total_ns;
	if ((double)took * 1e-9 > ENGINE_SANITIZE_MOST_S) {
		snprintf(o->words, sizeof o->words, "this model takes %.1f s without sanitizers", (double)took * 1e-9);
		return 0;
	}
	if (engine_build_sanitized(f->file, f->n, &b, e))
		return -1;
	if (!b.ok)
		snprintf(o->words, sizeof o->words, "no build with sanitizers here: %.150s", b.message);
	const int rc = b.ok ? run(g, b.path, r, o, e) : 0;
	engine_built_free(&b);
	return rc;
}

void engine_sanitized_free(struct engine_sanitized *o)
{
	buf_free(&o->log);
}
