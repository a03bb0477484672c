/*
 * box_cuda.c - see box_part.h: what a compile by NVRTC adds to the box, on either side of it.
 *
 * Our side says with which options and folders; the box's side looks at what came out. Source and
 * options alone decide the bytes: no line information, no path of this machine goes into a module.
 *
 * SPDX-License-Identifier: MIT
 */
#include "box_part.h"

#include "cubin.h"
#include "defence.h"
#include "file.h"
#include "plan.h"
#include "toolkit.h"

#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MAX = 32, HEADER_FILES_MAX = 20000 };

struct options {
	char *text[OPTIONS_MAX];
	int n;
};

static void add(struct options *o, char *text)
{
	if (o->n < OPTIONS_MAX)
		o->text[o->n++] = text;
	else
		free(text);
}

static void add_flag(struct options *o, const char *name, int value)
{
	if (value >= 0)
		add(o, xasprintf("--%s=%s", name, value ? "true" : "false"));
}

/* `<cutlass/gemm.h>` lies in the tree .../cutlass: the compiler looks in the folder above it. */
static void add_headers(struct options *o, const struct box_request *q, const struct toolkit *t)
{
	if (t->include[0])
		add(o, xasprintf("-I%s", t->include));
	if (t->cccl[0])
		add(o, xasprintf("-I%s", t->cccl));
	for (size_t i = 0; i < q->header_count; i++) {
		const char *slash = strrchr(q->headers[i], '/');
		if (slash)
			add(o, xasprintf("-I%.*s", (int)(slash - q->headers[i]), q->headers[i]));
	}
}

/* lines: the second compile of a source that reads a clock; PTX alone, with line information. */
static void options(const struct box_request *q, const struct toolkit *t, int lines, struct options *o)
{
	static const struct plan_compile defaults = {
	    .ftz = -1, .prec_div = -1, .prec_sqrt = -1, .fmad = 1, .opt_level = 3, .std = 17};
	struct plan_compile k = q->knobs ? *q->knobs : defaults;
	k.fast_math |= !q->knobs && q->fast_math;
	add(o, xasprintf("--gpu-architecture=%s%s", lines ? "compute" : "sm", q->arch + 2));
	add(o, xasprintf("--std=c++%d", k.std));
	add(o, xstrdup("-DNDEBUG")); /* assert would need a symbol of the run time */
	add_headers(o, q, t);
	if (k.fast_math)
		add(o, xstrdup("--use_fast_math"));
	add_flag(o, "ftz", k.ftz);
	add_flag(o, "prec-div", k.prec_div);
	add_flag(o, "prec-sqrt", k.prec_sqrt);
	if (!k.fmad)
		add_flag(o, "fmad", 0);
	if (k.max_registers > 0)
		add(o, xasprintf("--maxrregcount=%d", k.max_registers));
	if (lines) {
		add(o, xstrdup("--generate-line-info"));
		return;
	}
	if (k.opt_level != 3)
		add(o, xasprintf("--ptxas-options=-O%d", k.opt_level));
	add(o, xstrdup("--ptxas-options=-v"));
}

static void write_options(struct jsonw *w, const char *key, const struct box_request *q,
			  const struct toolkit *t, int lines)
{
	struct options o = {.n = 0};
	options(q, t, lines, &o);
	jw_arr(w, key);
	for (int i = 0; i < o.n; i++) {
		jw_str(w, NULL, o.text[i]);
		free(o.text[i]);
	}
	jw_end(w);
}

void box_cuda_request(const struct box_request *q, const struct toolkit *t, struct jsonw *w)
{
	jw_str(w, "library", t->lib);
	jw_bool(w, "trusted", q->trusted);
	jw_arr(w, "read");
	jw_str(w, NULL, t->root);
	for (size_t i = 0; i < q->header_count; i++)
		jw_str(w, NULL, q->headers[i]);
	jw_end(w);
	write_options(w, "options", q, t, 0);
	write_options(w, "line_options", q, t, 1);
}

/* ---- key ---- */

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int tree_key(const char *dir, struct buf *b, struct err *e)
{
	char *const roots[] = {(char *)(uintptr_t)dir, NULL};
	FTS *f = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
	int rc = f ? 0 : err_sys(e, "cannot read '%s'", dir), n = 0;
	for (FTSENT *x; rc == 0 && (x = fts_read(f));) {
		char sha[HASH_HEX];
		if (x->fts_info == FTS_DNR || x->fts_info == FTS_ERR || x->fts_info == FTS_NS)
			rc = err_set(e, EX_NOENV, "cannot read the header tree '%s'", x->fts_path);
		if (rc || x->fts_info != FTS_F)
			continue;
		if (++n > HEADER_FILES_MAX)
			rc = err_set(e, EX_BADINPUT, "the header tree '%s' has too many files", dir);
		else if (!(rc = hash_file(x->fts_path, sha, e)))
			buf_addf(b, "%s %s\n", sha, x->fts_path + strlen(dir));
	}
	if (f)
		fts_close(f);
	return rc;
}

int box_cuda_key(const struct box_request *q, const struct toolkit *t, struct buf *b, struct err *e)
{
	struct options o = {.n = 0};
	options(q, t, 0, &o);
	buf_addf(b, "%s trusted=%d\n", t->id, q->trusted != 0);
	for (int i = 0; i < o.n; i++) {
		buf_addf(b, "%s\n", o.text[i]);
		free(o.text[i]);
	}
	for (size_t i = 0; i < q->header_count; i++) {
		buf_addf(b, "tree %s\n", q->headers[i]);
		if (tree_key(q->headers[i], b, e))
			return -1;
	}
	return 0;
}

/* ---- the box's side ---- */

static void say(struct box_result *r, const char *code, const char *message)
{
	r->ok = 0;
	snprintf(r->code, sizeof r->code, "%s", code);
	snprintf(r->message, sizeof r->message, "%.255s", message);
}

/* "NVRTC 13.0", then the symbol of each entry. The build's number is in the PTX. */
static int read_out(const struct buf *out, const struct buf *ptx, char **symbol, size_t n,
		    struct box_result *r, struct err *e)
{
	static const char RELEASE[] = "release ";
	char *text = xstrdup(buf_str(out)), *rest = text, *line = strsep(&rest, "\n");
	const char *at = strstr(buf_str(ptx), RELEASE);
	const char *build = at && at - buf_str(ptx) < 400 ? strstr(at, "V") : NULL;
	if (build && build - at < 40)
		snprintf(r->compiler, sizeof r->compiler, "%.40s (%.*s)", line, (int)strcspn(build, "\n "),
			 build);
	else
		snprintf(r->compiler, sizeof r->compiler, "%.40s", line);
	int rc = 0;
	for (size_t i = 0; i < n && rc == 0; i++) {
		line = strsep(&rest, "\n");
		if (!line || !*line || strlen(line) >= CUBIN_NAME)
			rc = err_set(e, EX_BADINPUT, "the symbol of a kernel is missing or longer than %d characters",
				     CUBIN_NAME - 1);
		else
			symbol[i] = xstrdup(line);
	}
	free(text);
	return rc;
}

static int gates(const struct cubin *c, const struct buf *ptx, const struct buf *lines,
		 const char *const *entries, char *const *symbol, size_t n, struct box_result *r)
{
	char code[48], text[256];
	const char *const *symbols = (const char *const *)symbol;
	int bad =
	    cubin_gate(c, entries, n, code, text) || ptx_gate(buf_str(ptx), ptx->len, symbols, n, code, text);
	int clocks = bad ? 0 : ptx_clocks(buf_str(ptx), ptx->len);
	if (clocks && DEFENCE("guard.opcode") && ptx_clocks(buf_str(lines), lines->len) != clocks) {
		snprintf(code, sizeof code, "guard.opcode");
		snprintf(text, sizeof text, "reads a clock in a way that depends on how it is compiled");
		bad = 1;
	} else if (clocks) {
		bad = ptx_clock_gate(buf_str(lines), lines->len, code, text);
	}
	if (bad)
		say(r, code, text);
	return bad;
}

int box_cuda_finish(struct buf *cubin, const struct buf *ptx, const struct buf *lines, const struct buf *out,
		    const struct buf *log, const char *const *entries, size_t n, int trusted,
		    struct box_result *r, struct err *e)
{
	char **symbol = xcalloc(n + 1, sizeof *symbol);
	struct cubin *c = xcalloc(1, sizeof *c);
	int rc = read_out(out, ptx, symbol, n, r, e);
	if (rc == 0)
		rc = cubin_note_add(cubin, buf_str(ptx), ptx->len, entries, symbol, n, buf_str(log), e);
	if (rc == 0)
		rc = cubin_parse(cubin->data, cubin->len, c, e);
	/* a module beyond what we read is the source's fault: a name too long, kernels too many */
	if (rc < 0 && e->code == EX_BADINPUT) {
		say(r, "guard.limits", e->text);
		rc = 1;
	}
	if (rc == 0) {
		r->facts = cubin_json(c);
		if (!trusted)
			rc = gates(c, ptx, lines, entries, symbol, n, r);
	}
	for (size_t i = 0; i < n; i++)
		free(symbol[i]);
	free(symbol);
	free(c);
	return rc;
}

int box_cuda_options(const cJSON *request, const char *key, char *const *macros, size_t n, const char **argv,
		     int at, struct err *e)
{
	const cJSON *x, *list = json_arr(request, key, "request", e);
	argv[at++] = "--";
	for (size_t i = 0; i < n; i++)
		argv[at++] = macros[i];
	int most = at + OPTIONS_MAX;
	cJSON_ArrayForEach(x, list)
		if (cJSON_IsString(x) && at < most)
			argv[at++] = x->valuestring;
	return list ? at : -1;
}

/* Headers whose functions wait, and what clocks are called. A guess: it decides no verdict. */
int box_cuda_may_wait(const struct buf *source)
{
	static const char *const words[] = {"cuda/barrier", "cuda/pipeline", "cuda/atomic", "cuda/latch", "cuda/semaphore",
					    "cooperative_groups", "clock", "globaltimer", NULL};
	for (const char *const *w = words; *w; w++)
		if (strstr(buf_str(source), *w))
			return 1;
	return 0;
}

int box_cuda_clocks(const struct buf *ptx)
{
	return ptx_clocks(buf_str(ptx), ptx->len) > 0;
}

/* ptxas -v: figures that facts tell, and times that differ from compile to compile. */
static int noise(const char *line, size_t n)
{
	static const char *const words[] = {"Compiling entry function",
					    "Function properties for",
					    "bytes stack frame",
					    "ptxas info    : Used ",
					    "Compile time = ",
					    "bytes gmem",
					    "warnings can be suppressed",
					    NULL};
	for (const char *const *w = words; *w; w++)
		if (memmem(line, n, *w, strlen(*w)))
			return 1;
	return 0;
}

void box_cuda_log(const struct buf *log, char out[BOX_LOG_MAX + 1])
{
	struct buf kept = BUF_INIT;
	const char *at = buf_str(log), *end = at + log->len;
	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t n = stop ? (size_t)(stop - at) + 1 : (size_t)(end - at);
		if (!noise(at, n) && !(n == 1 && kept.len == 0))
			buf_add(&kept, at, n);
		at += n;
	}
	box_log_scrub(buf_str(&kept), kept.len, out);
	buf_free(&kept);
}
