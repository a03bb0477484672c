/*
 * cubin_ptx.c - see cubin.h: what PTX may say.
 *
 * PTX has no macros and no way to glue words, so what a source assembled from pieces is whole here. The
 * text comes from the compiler and holds the candidate's inline assembly as it is.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cubin_part.h"

#include "defence.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int word_char(int c)
{
	return isalnum(c) || c == '_' || c == '$';
}

static void skip_blank(struct ptx_reader *r)
{
	while (r->at < r->end) {
		if (*r->at == '\n')
			r->line++;
		if (isspace((unsigned char)*r->at) || *r->at == '\0') {
			r->at++;
		} else if (r->end - r->at >= 2 && !memcmp(r->at, "//", 2)) {
			while (r->at < r->end && *r->at != '\n')
				r->at++;
		} else if (r->end - r->at >= 2 && !memcmp(r->at, "/*", 2)) {
			for (r->at += 2; r->at < r->end && (r->end - r->at < 2 || memcmp(r->at, "*/", 2));
			     r->at++)
				r->line += *r->at == '\n';
			r->at = r->end - r->at >= 2 ? r->at + 2 : r->end;
		} else {
			return;
		}
	}
}

int ptx_next(struct ptx_reader *r, struct ptx_word *w)
{
	skip_blank(r);
	*w = (struct ptx_word){r->at, 0, r->line};
	if (r->at >= r->end)
		return 0;
	const char *p = r->at;
	if (*p == '"') {
		for (p++; p < r->end && *p != '"' && *p != '\n'; p++)
			;
		p += p < r->end && *p == '"';
	} else {
		int lead = *p == '.' || *p == '%' || *p == '@';
		for (p += lead; p < r->end && word_char((unsigned char)*p); p++)
			;
		p += p == r->at; /* a mark of its own */
	}
	w->n = (size_t)(p - r->at);
	r->at = p;
	return 1;
}

int ptx_is(const struct ptx_word *w, const char *text)
{
	return w->n == strlen(text) && !memcmp(w->s, text, w->n);
}

static int starts(const struct ptx_word *w, const char *text)
{
	return w->n >= strlen(text) && !memcmp(w->s, text, strlen(text));
}

static int refuse(char out[48], char text[256], const char *code, const char *what, const struct ptx_word *w)
{
	snprintf(out, 48, "%s", code);
	snprintf(text, 256, "%s '%.*s' (PTX line %d)", what, w->n > 80 ? 80 : (int)w->n, w->s, w->line);
	return 1;
}

static int clock_register(const struct ptx_word *w)
{
	return starts(w, "%clock") || starts(w, "%globaltimer") || starts(w, "%envreg");
}

/* Registers that tell one launch from another, and that no library needs. */
static int hidden_register(const struct ptx_word *w)
{
	static const char *const names[] = {"%gridid", "%current_graph_exec", NULL};
	for (const char *const *n = names; *n; n++)
		if (ptx_is(w, *n))
			return 1;
	return starts(w, "%reserved_smem") ||
	       (starts(w, "%pm") && w->n > 3 && isdigit((unsigned char)w->s[3]));
}

/* discard and applypriority undo the cache state that a rep starts from; pmevent and brkpt talk to tools; memory
 * that is taken from the stack at run time is in no frame, so it would not be scrubbed. */
static int hidden_opcode(const struct ptx_word *w)
{
	static const char *const names[] = {"discard", "applypriority", "prefetchu",
					    "pmevent", "brkpt",		"alloca",
					    "stacksave", "stackrestore", NULL};
	for (const char *const *n = names; *n; n++)
		if (ptx_is(w, *n))
			return 1;
	return 0;
}

/* After `.extern`: only shared memory, whose size the launch gives. `w` becomes what is needed. */
static int extern_ok(struct ptx_reader *r, struct ptx_word *w)
{
	struct ptx_word name = *w;
	int depth = 0, shared = 0;
	for (struct ptx_reader k = *r; ptx_next(&k, w) && !ptx_is(w, ";") && !ptx_is(w, "{");) {
		shared |= ptx_is(w, ".shared");
		depth += ptx_is(w, "(") ? 1 : ptx_is(w, ")") ? -1 : 0;
		if (depth == 0 && (isalpha((unsigned char)w->s[0]) || w->s[0] == '_' || w->s[0] == '$'))
			name = *w;
	}
	*w = name;
	return shared;
}

static int entry_known(const struct ptx_word *w, const char *const *entries, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ptx_is(w, entries[i]))
			return 1;
	return 0;
}

int ptx_gate(const char *ptx, size_t len, const char *const *entries, size_t n, char code[48], char text[256])
{
	struct ptx_reader r = {ptx, ptx + len, 1};
	struct ptx_word w;
	int opcode = 1; /* the next word may be an instruction: after ; { } : or a guard */
	int guard = 0;  /* its register comes next */
	while (ptx_next(&r, &w)) {
		if (ptx_is(&w, ".entry")) {
			if ((!ptx_next(&r, &w) || !entry_known(&w, entries, n)) && DEFENCE("guard.entry_extra"))
				return refuse(code, text, "guard.entry_extra",
					      "a kernel that is not an entry of the plan:", &w);
		} else if (ptx_is(&w, ".extern")) {
			if (!extern_ok(&r, &w) && DEFENCE("guard.undefined_symbol"))
				return refuse(code, text, "guard.undefined_symbol",
					      "kernels may not use (printf, malloc, launches, "
					      "functions of other modules):",
					      &w);
		} else if (ptx_is(&w, ".loc") || ptx_is(&w, ".file") || ptx_is(&w, ".section")) {
			return refuse(code, text, "guard.opcode", "line information written by hand:", &w);
		} else if (ptx_is(&w, ".managed") && DEFENCE("guard.module_state")) {
			return refuse(code, text, "guard.module_state",
				      "variables that the host maps, too, are not for kernels:", &w);
		} else if (hidden_register(&w) && DEFENCE("guard.opcode")) {
			return refuse(code, text, "guard.opcode",
				      "a special register that kernels may not read:", &w);
		} else if (opcode && hidden_opcode(&w) && DEFENCE("guard.opcode")) {
			return refuse(code, text, "guard.opcode",
				      "an instruction that kernels may not use:", &w);
		}
		/* @p is one word; in @%p, @!p and @!%p the register is one of its own */
		guard = ptx_is(&w, "@") || (guard && ptx_is(&w, "!")) ? 1 : guard ? 2 : 0;
		opcode = ptx_is(&w, ";") || ptx_is(&w, "{") || ptx_is(&w, "}") || ptx_is(&w, ":") ||
			 w.s[0] == '@' || guard == 2;
		guard = guard == 1;
	}
	return DEFENCE("guard.module_state") ? ptx_state(ptx, len, code, text) : 0;
}

int ptx_clocks(const char *ptx, size_t len)
{
	struct ptx_reader r = {ptx, ptx + len, 1};
	struct ptx_word w;
	int n = 0;
	while (ptx_next(&r, &w))
		n += clock_register(&w);
	return n;
}

/* ---- where a clock is read ---- */

enum { FILES_MAX = 4096, FRAMES_MAX = 4096, DEPTH_MAX = 64 };

/* A place that code was inlined from, and the place that it was inlined at. */
struct frame {
	long file, line, column, up_file, up_line, up_column;
};

struct lines {
	char (*file)[64];    /* by number: the end of its path */
	struct frame *frame; /* of this function, by place */
	int frames;
	struct frame now;
	int known; /* `now` is set */
};

static long number(const struct ptx_word *w)
{
	long v = 0;
	for (size_t i = 0; i < w->n && isdigit((unsigned char)w->s[i]) && v < 100000000; i++)
		v = v * 10 + (w->s[i] - '0');
	return w->n && isdigit((unsigned char)w->s[0]) ? v : -1;
}

/* .file N "PATH": at the end of a module, so read first. */
static void files_read(const char *ptx, size_t len, struct lines *l)
{
	struct ptx_reader r = {ptx, ptx + len, 1};
	struct ptx_word w;
	while (ptx_next(&r, &w)) {
		long n;
		if (!ptx_is(&w, ".file") || !ptx_next(&r, &w) || (n = number(&w)) < 0 || n >= FILES_MAX ||
		    !ptx_next(&r, &w) || w.n < 2)
			continue;
		size_t k = w.n - 2, keep = k < 63 ? k : 63;
		snprintf(l->file[n], 64, "%.*s", (int)keep, w.s + 1 + (k - keep));
	}
}

static int same_place(const struct frame *f, long file, long line, long column)
{
	return f->file == file && f->line == line && f->column == column;
}

/* .loc FILE LINE COLUMN [, function_name NAME, inlined_at FILE LINE COLUMN] */
static void loc_read(struct ptx_reader *r, struct lines *l)
{
	struct ptx_word w;
	long v[6] = {-1, -1, -1, -1, -1, -1};
	for (int i = 0; i < 3; i++)
		v[i] = ptx_next(r, &w) ? number(&w) : -1;
	struct ptx_reader k = *r;
	if (ptx_next(&k, &w) && ptx_is(&w, ",") && ptx_next(&k, &w) && ptx_is(&w, "function_name")) {
		while (ptx_next(&k, &w) && !ptx_is(&w, "inlined_at") && !ptx_is(&w, ";"))
			;
		for (int i = 3; i < 6; i++)
			v[i] = ptx_next(&k, &w) ? number(&w) : -1;
		*r = k;
	}
	l->now = (struct frame){v[0], v[1], v[2], v[3], v[4], v[5]};
	l->known = 1;
	for (int i = 0; i < l->frames; i++)
		if (same_place(&l->frame[i], v[0], v[1], v[2])) {
			l->frame[i] = l->now; /* the latest */
			return;
		}
	if (l->frames < FRAMES_MAX)
		l->frame[l->frames++] = l->now;
}

/* Library code that waits, and is known to read the clock to know for how long, or that finds the
 * barrier of a cooperative grid. */
static int waits(const char *file)
{
	static const char *const places[] = {"__barrier/",
					     "__semaphore/",
					     "__latch/",
					     "__atomic/wait",
					     "pipeline",
					     "/barrier",
					     "/semaphore",
					     "/latch",
					     "__thread/",
					     "cooperative_groups",
					     "__atomic/",
					     "polling",
					     "details/sync.h",
					     "details/driver_abi.h",
					     "details/helpers.h",
					     "details/info.h",
					     NULL};
	for (const char *const *p = places; *p; p++)
		if (strstr(file, *p))
			return 1;
	return 0;
}

/* From the instruction outwards: library files only, until one that waits. */
static int inside_wait(const struct lines *l)
{
	struct frame f = l->now;
	for (int depth = 0; l->known && depth < DEPTH_MAX; depth++) {
		if (f.file < 0 || f.file >= FILES_MAX || !l->file[f.file][0])
			return 0;
		const char *name = l->file[f.file], *slash = strrchr(name, '/');
		if (!strcmp(slash ? slash + 1 : name, "kernel.cu"))
			return 0;
		if (waits(name))
			return 1;
		int up = -1;
		for (int i = 0; i < l->frames && up < 0; i++)
			if (same_place(&l->frame[i], f.up_file, f.up_line, f.up_column))
				up = i;
		if (up < 0)
			return 0;
		f = l->frame[up];
	}
	return 0;
}

int ptx_clock_gate(const char *ptx, size_t len, char code[48], char text[256])
{
	struct ptx_reader r = {ptx, ptx + len, 1};
	struct ptx_word w;
	struct lines l = {.file = xcalloc(FILES_MAX, sizeof *l.file),
			  .frame = xcalloc(FRAMES_MAX, sizeof *l.frame)};
	int bad = 0;
	files_read(ptx, len, &l);
	while (!bad && ptx_next(&r, &w)) {
		if (ptx_is(&w, ".entry") || ptx_is(&w, ".func")) {
			l.frames = 0;
			l.known = 0;
		} else if (ptx_is(&w, ".loc")) {
			loc_read(&r, &l);
		} else if (clock_register(&w) && !inside_wait(&l) && DEFENCE("guard.opcode")) {
			bad = refuse(code, text, "guard.opcode",
				     "a clock or grid register outside library functions that wait:", &w);
		}
	}
	free(l.file);
	free(l.frame);
	return bad;
}

/* ---- globals ---- */

static int by_word(const void *a, const void *b)
{
	const struct ptx_word *x = a, *y = b;
	int c = memcmp(x->s, y->s, x->n < y->n ? x->n : y->n);
	return c ? c : x->n < y->n ? -1 : x->n > y->n;
}

/* After `.global`: the name is the first word that is neither a directive nor a number. */
static int global_name(struct ptx_reader r, struct ptx_word *w)
{
	while (ptx_next(&r, w) && !ptx_is(w, ";"))
		if (isalpha((unsigned char)w->s[0]) || w->s[0] == '_' || w->s[0] == '$' || w->s[0] == '%')
			return 1;
	return 0;
}

/* Can a declaration follow this word? In `ld.global` none does. */
static int begins(const struct ptx_word *w)
{
	static const char *const before[] = {";", "{", "}", ".visible", ".weak", ".common", ".extern", NULL};
	for (const char *const *b = before; *b; b++)
		if (ptx_is(w, *b))
			return 1;
	return isdigit((unsigned char)w->s[0]); /* .address_size 64 */
}

cJSON *ptx_live_globals(const char *ptx, size_t len)
{
	struct ptx_reader r = {ptx, ptx + len, 1};
	struct ptx_word w, *name = NULL;
	size_t n = 0, cap = 0;
	for (int fresh = 1; ptx_next(&r, &w); fresh = begins(&w)) {
		struct ptx_word x;
		if (!fresh || !ptx_is(&w, ".global") || !global_name(r, &x))
			continue;
		if (n == cap)
			name = xrealloc(name, (cap = cap ? 2 * cap : 256) * sizeof *name);
		name[n++] = x;
	}
	if (n)
		qsort(name, n, sizeof *name, by_word);
	int *seen = xcalloc(n + 1, sizeof *seen);
	for (r = (struct ptx_reader){ptx, ptx + len, 1}; n && ptx_next(&r, &w);) {
		const struct ptx_word *at = bsearch(&w, name, n, sizeof *name, by_word);
		if (at)
			seen[at - name]++;
	}
	cJSON *out = cJSON_CreateArray();
	for (size_t i = 0; i < n; i++) {
		if (seen[i] < 2 || (i && !by_word(&name[i - 1], &name[i])))
			continue;
		char *text = xasprintf("%.*s", (int)name[i].n, name[i].s);
		cJSON_AddItemToArray(out, cJSON_CreateString(text));
		free(text);
	}
	free(seen);
	free(name);
	return out;
}
