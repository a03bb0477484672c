/*
 * relies.c - see relies.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "relies.h"

#include "cubin_part.h"
#include "json.h"
#include "lexer.h"
#include "plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *relies_rule(const char *name)
{
	static const char *const rules[] = {"fast_math", "cache_hints", "placement", "public_sizes", "order",
					    "isolation"};
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if (!strcmp(rules[i], name))
			return rules[i];
	return NULL;
}

void relies_add(struct relies *r, const char *rule, const char *fmt, ...)
{
	const char *known = relies_rule(rule);
	va_list ap;
	for (int i = 0; known && i < r->n; i++)
		if (r->item[i].rule == known)
			return;
	if (!known || r->n == RELIES_MAX)
		return;
	r->item[r->n].rule = known;
	va_start(ap, fmt);
	vsnprintf(r->item[r->n].words, RELIES_WORDS, fmt, ap);
	va_end(ap);
	r->n++;
}

void relies_join(struct relies *r, const cJSON *list)
{
	for (const cJSON *i = cJSON_IsArray(list) ? list->child : NULL; i; i = i->next)
		relies_add(r, json_get_str(i, "rule", ""), "%s", json_get_str(i, "words", ""));
}

void relies_write(const struct relies *r, struct jsonw *w, const char *key)
{
	jw_arr(w, key);
	for (int i = 0; i < r->n; i++) {
		jw_obj(w, NULL);
		jw_str(w, "rule", r->item[i].rule);
		jw_str(w, "words", r->item[i].words);
		jw_end(w);
	}
	jw_end(w);
}

/* ---- the plan ---- */

/* The kernels that run, in order and each once while it repeats (passes grow with the size), and the
 * tunables they run with. 0 when it cannot be said. */
static int way(const struct plan *p, const struct spec *s, const struct facts *f, const struct axes *a,
	       struct plan_config *c, char (**entries)[PLAN_NAME], int *n)
{
	struct launches l;
	if (plan_config_for(p, s, a, f, c, NULL) || plan_resolve(p, s, a, f, 0, &l, NULL))
		return 0;
	*entries = xcalloc((size_t)l.n + 1, sizeof **entries);
	*n = 0;
	for (int i = 0; i < l.n; i++)
		if (!*n || strcmp((*entries)[*n - 1], l.launch[i].entry))
			memcpy((*entries)[(*n)++], l.launch[i].entry, PLAN_NAME);
	launches_free(&l);
	return 1;
}

/* -1 when `b` cannot be resolved. */
static int same_way(const struct plan *p, const struct spec *s, const struct facts *f, const struct axes *a,
		    const struct axes *b)
{
	struct plan_config c[2];
	char(*entries[2])[PLAN_NAME] = {NULL, NULL};
	int n[2], same = -1;
	if (way(p, s, f, a, &c[0], &entries[0], &n[0]) && way(p, s, f, b, &c[1], &entries[1], &n[1])) {
		same = n[0] == n[1] && plan_config_equal(&c[0], &c[1]);
		for (int i = 0; same && i < n[0]; i++)
			same = !strcmp(entries[0][i], entries[1][i]);
	}
	free(entries[0]);
	free(entries[1]);
	return same;
}

/* Other sizes of that axis are legal, and none of those tried is served as this one is. */
static int alone(const struct plan *p, const struct spec *s, const struct facts *f, const struct axes *a, int axis)
{
	struct axes b;
	int tried = 0;
	for (int k = 0, found; (found = spec_near(s, f->class != DEVICE_CUDA, a, axis, k, &b)) >= 0; k++) {
		int same = found ? same_way(p, s, f, a, &b) : -1;
		if (same > 0)
			return 0;
		tried += same == 0;
	}
	return tried > 1;
}

static int chooses(const struct plan *p)
{
	int n = 0;
	for (int i = 0; i < p->nlaunches; i++)
		n += p->launch[i].when != NULL;
	for (int i = 0; i < p->ntunables; i++)
		n += p->tunable[i].nchoose;
	return n;
}

void relies_plan(struct relies *r, const struct plan *p, const struct spec *s, const struct facts *f)
{
	const struct plan_compile *c = &p->compile;
	const char *knob = c->fast_math ? "fast_math" : c->ftz == 1 ? "ftz" : !c->prec_div ? "prec_div"
			 : !c->prec_sqrt ? "prec_sqrt" : NULL;
	if (knob)
		relies_add(r, "fast_math", "compiled with %s: the bounds of this problem allow it, a program that "
			   "needs IEEE results may not. Without that knob it would be clean", knob);
	for (int i = 0; chooses(p) && i < s->npublic; i++) {
		const struct axes *a = f->class == DEVICE_CUDA ? &s->public[i].gpu : &s->public[i].emu;
		for (int x = 0; x < s->naxes; x++)
			if (!s->axis[x].is_const && alone(p, s, f, a, x))
				relies_add(r, "public_sizes", "plan.json launches at %s=%lld, a public size, what it "
					   "launches at no other that was tried: its speed there says nothing of sizes "
					   "beside it. A range of sizes would be clean",
					   s->axis[x].name, (long long)a->v[x]);
	}
}

/* ---- the source ---- */

/* Sizes up to a block's threads stand in every kernel. */
static const char *public_size(const struct spec *s, long long v)
{
	for (int i = 0; v > 1024 && i < s->npublic; i++)
		for (int x = 0; x < s->naxes; x++)
			if (!s->axis[x].is_const && (s->public[i].gpu.v[x] == v || s->public[i].emu.v[x] == v))
				return s->axis[x].name;
	return NULL;
}

static long long value_of(const struct lex_token *t)
{
	char digits[32];
	size_t n = 0;
	for (size_t i = 0; i < t->len && n < sizeof digits - 1; i++)
		if (t->text[i] != '\'')
			digits[n++] = t->text[i];
	digits[n] = '\0';
	char *end;
	long long v = strtoll(digits, &end, 0);
	return end[strspn(end, "uUlL")] ? -1 : v;
}

/* `==` or `!=`: the lexer gives an operator a character at a time. */
static int equality(const struct lex_token *first, const struct lex_token *second)
{
	return first->text && second->text && (lex_is(first, "=") || lex_is(first, "!")) && lex_is(second, "=") &&
	       !second->space;
}

static void size_named(struct relies *r, const struct spec *s, const struct lex_token *t)
{
	long long v = value_of(t);
	const char *axis = public_size(s, v);
	if (axis)
		relies_add(r, "public_sizes", "kernel.cu:%d: asks whether something is %lld, a public size of %s: "
			   "what it does there says nothing of sizes beside it. A range of sizes would be clean",
			   t->line, v, axis);
}

static int policy_name(const struct lex_token *t)
{
	static const char *const names[] = {"__ldcs", "__ldlu", "__stcs", "__createpolicy_fractional_L2",
					    "createpolicy", "access_property", "annotated_ptr", NULL};
	for (const char *const *n = names; *n; n++)
		if (t->kind == LEX_NAME && lex_is(t, *n))
			return 1;
	return 0;
}

#define HINT_WORDS "which says what caches keep: here every repetition begins with flushed caches, in a program " \
		   "others' data is what it drives out. Without such hints it would be clean"

void relies_source(struct relies *r, const char *text, size_t len, const struct spec *s)
{
	struct lexer *x = lex_open(text, len, 0);
	struct lex_token was[2] = {{0}}, t; /* was: the tokens before, newest first */
	while (lex_next(x, &t)) {
		if (t.directive)
			continue; /* of macros: tunables */
		if (t.kind == LEX_NUMBER && (equality(&was[1], &was[0]) || (was[0].text && lex_is(&was[0], "case"))))
			size_named(r, s, &t);
		if (was[1].kind == LEX_NUMBER && equality(&was[0], &t))
			size_named(r, s, &was[1]);
		if (policy_name(&t))
			relies_add(r, "cache_hints", "kernel.cu:%d: uses '%.*s', " HINT_WORDS, t.line,
				   t.len > 40 ? 40 : (int)t.len, t.text);
		was[1] = was[0];
		was[0] = t;
	}
	lex_close(x);
}

void relies_candidate(struct relies *r, const char *text, size_t len, const struct plan *p, const struct spec *s,
		      const struct facts *f)
{
	relies_plan(r, p, s, f);
	relies_source(r, text, len, s);
}

/* ---- the PTX ---- */

/* A descriptor is no data: every kernel with tensor maps fetches it ahead. */
static int of_descriptor(struct ptx_reader p)
{
	struct ptx_word next;
	return ptx_next(&p, &next) && ptx_is(&next, ".tensormap");
}

static int one_of(const struct ptx_word *w, const char *const *names)
{
	for (; *names; names++)
		if (ptx_is(w, *names))
			return 1;
	return 0;
}

void relies_ptx(struct relies *r, const char *ptx, size_t len)
{
	static const char *const hints[] = {"evict_last", "evict_first", "evict_unchanged", "no_allocate",
					    ".cache_hint", "cache_hint", "createpolicy", "prefetch", ".cs", ".lu", NULL};
	static const char *const places[] = {"%smid", "%nsmid", NULL};
	struct ptx_reader p = {ptx, ptx + len, 1};
	struct ptx_word w;
	while (ptx_next(&p, &w)) {
		if (one_of(&w, hints) && !of_descriptor(p))
			relies_add(r, "cache_hints", "its PTX, line %d, has '%.*s', " HINT_WORDS, w.line, (int)w.n, w.s);
		else if (one_of(&w, places))
			relies_add(r, "placement", "its PTX, line %d, reads '%.*s', where on the GPU it runs: what follows "
				   "from that differs between GPUs and runs. Without it it would be clean",
				   w.line, (int)w.n, w.s);
	}
}
