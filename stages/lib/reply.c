/*
 * reply.c - see reply.h. Three passes: normalise the text, sort its blocks into files and headers,
 * then insist that exactly one answer is left for each.
 *
 * SPDX-License-Identifier: MIT
 */
#include "reply.h"

#include "defence.h"
#include "engine_files.h"
#include "fence.h"
#include "json.h"
#include "jsonw.h"
#include "utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *const REPLY_FILE[REPLY_SLOTS] = {"kernel.cu", "plan.json"};

static const struct json_limits REPLY_JSON = {.bytes = REPLY_MAX_TEXT, .depth = 32};

/* One possible content of a slot. */
struct answer {
	int slot;
	int named; /* the model named the file; otherwise it is told by its content */
	struct buf text;
};

struct parse {
	struct reply *out;
	const struct reply_rules *rules; /* NULL: a kernel's two slots */
	struct answer *answer;
	size_t nanswers;
	int headers;
	int listed[REPLY_FILES]; /* the header's `files` names this slot */
	int lists;               /* ... and there was such a list */
};

__attribute__((format(printf, 3, 4)))
static void fail(struct reply *r, const char *code, const char *fmt, ...)
{
	va_list ap;

	if (strcmp(r->code, "ok") || !DEFENCE(code))
		return; /* the first reason stands */
	r->code = code;
	va_start(ap, fmt);
	vsnprintf(r->message, sizeof r->message, fmt, ap);
	va_end(ap);
}

void reply_normalise(struct buf *out, const char *s, size_t len)
{
	size_t i = len >= 3 && !memcmp(s, "\xef\xbb\xbf", 3) ? 3 : 0;

	for (; i < len; i++) {
		if (s[i] != '\r')
			buf_addc(out, s[i]);
		else if (i + 1 == len || s[i + 1] != '\n')
			buf_addc(out, '\n');
	}
	if (out->len && out->data[out->len - 1] != '\n')
		buf_addc(out, '\n');
}

/* The slot of a file; an engine's gets one at its first mention. -1: no candidate has such a file, or too many. */
static int slot_of(struct parse *p, const char *s, size_t n)
{
	struct reply *r = p->out;
	char name[REPLY_NAME];

	for (int i = 0; i < r->n; i++)
		if (n == strlen(r->name[i]) && !memcmp(s, r->name[i], n))
			return i;
	if (!p->rules || n >= sizeof name)
		return -1;
	memcpy(name, s, n);
	name[n] = '\0';
	if (!engine_file_of(name, p->rules->cuda))
		return -1;
	if (r->n == REPLY_FILES || r->n >= p->rules->files) {
		fail(r, "propose.too_large", "the reply gives more files than the %lld of a candidate",
		     (long long)p->rules->files);
		return -1;
	}
	memcpy(r->name[r->n], name, n + 1);
	return r->n++;
}

/* Whether a word looks like the name of a source file that a candidate might have. */
static int is_file_name(const char *s, size_t n)
{
	static const char *const ext[] = {".cu", ".cuh", ".h", ".hpp", ".c", ".cc",
					  ".cpp", ".json", ".ptx", ".py"};

	for (size_t i = 0; i < sizeof ext / sizeof *ext; i++) {
		size_t k = strlen(ext[i]);
		if (n > k && !strncasecmp(s + n - k, ext[i], k))
			return 1;
	}
	return 0;
}

/* A slot named by a word of the info string: "cuda kernel.cu", "cuda:kernel.cu",
 * title="plan.json". -1 none, -2 some other file. */
static int named_by_info(struct parse *p, const struct fence *f)
{
	static const char seps[] = " \t:=\"'`{}(),;";
	size_t i = 0;
	int found = -1;

	while (i < f->info_len) {
		size_t n = 0;
		while (i < f->info_len && strchr(seps, f->info[i]) && f->info[i])
			i++;
		while (i + n < f->info_len && f->info[i + n] && !strchr(seps, f->info[i + n]))
			n++;
		if (!n)
			break;
		int slot = slot_of(p, f->info + i, n);
		if (slot >= 0 && found < 0)
			found = slot;
		else if (slot < 0 && found == -1 && is_file_name(f->info + i, n))
			found = -2;
		i += n;
	}
	return found;
}

/* The line before, if it is a file name and nothing else but decoration. */
static int named_by_label(struct parse *p, const struct fence *f)
{
	static const char *const lead[] = {"file name", "filename", "file", "path"};
	static const char deco[] = " \t*_`#:>-\"'()";
	const char *s = f->label;
	size_t n = f->label_len;

	for (int pass = 0; pass < 2; pass++) {
		while (n && *s && strchr(deco, *s))
			s++, n--;
		while (n && s[n - 1] && strchr(deco, s[n - 1]))
			n--;
		for (size_t i = 0; !pass && i < sizeof lead / sizeof *lead; i++) {
			size_t k = strlen(lead[i]);
			if (n > k && !strncasecmp(s, lead[i], k) && strchr(deco, s[k])) {
				s += k;
				n -= k;
				break;
			}
		}
	}
	int slot = slot_of(p, s, n);
	if (slot >= 0)
		return slot;
	return is_file_name(s, n) && !memchr(s, ' ', n) ? -2 : -1;
}

static int info_lang(const struct fence *f, const char *const *langs)
{
	size_t n = 0;

	while (n < f->info_len && !strchr(" \t{:,", f->info[n]))
		n++;
	if (!n)
		return !*langs[0];
	for (; *langs; langs++)
		if (strlen(*langs) == n && !strncasecmp(f->info, *langs, n))
			return 1;
	return 0;
}

static void add_answer(struct parse *p, int slot, int named, const char *s, size_t len)
{
	struct answer *a;

	if (len > REPLY_MAX_FILE) {
		fail(p->out, "propose.too_large", "%s has %zu bytes, at most %d are taken",
		     p->out->name[slot], len, REPLY_MAX_FILE);
		return;
	}
	p->answer = xrealloc(p->answer, sizeof *p->answer * (p->nanswers + 1));
	a = &p->answer[p->nanswers++];
	memset(a, 0, sizeof *a);
	a->slot = slot;
	a->named = named;
	reply_normalise(&a->text, s, len);
}

static void file_name_bad(struct parse *p, const char *s, size_t n)
{
	struct buf line = BUF_INIT;

	utf8_line(&line, s, n, 60);
	if (!p->rules)
		fail(p->out, "propose.file_name", "'%s' is no file of a candidate: only kernel.cu and plan.json are",
		     buf_str(&line));
	else
		fail(p->out, "propose.file_name", "'%s' is no file of a candidate: only %s are, NAME of a-z 0-9 _",
		     buf_str(&line), p->rules->cuda ? "engine.cu and kernels/NAME.cu, .cuh or .h"
						    : "engine.c and kernels/NAME.c or .h");
	buf_free(&line);
}

/* Member `v` of an answer's `files`, under the name `name`. */
static void take_file(struct parse *p, const char *name, const cJSON *v)
{
	int slot = slot_of(p, name, strlen(name));

	if (slot < 0) {
		file_name_bad(p, name, strlen(name));
	} else if (cJSON_IsString(v)) {
		add_answer(p, slot, 1, v->valuestring, strlen(v->valuestring));
	} else if (!p->rules && slot == REPLY_PLAN && cJSON_IsObject(v)) {
		struct jsonw w = {.pretty = 1};
		jw_item(&w, NULL, v);
		add_answer(p, slot, 1, buf_str(&w.out), w.out.len);
		jw_free(&w);
	} else if (!cJSON_IsNull(v)) { /* null: left as it is */
		fail(p->out, "propose.header", "files.%s is not text", name);
	}
}

static void take_files(struct parse *p, const cJSON *files)
{
	const cJSON *f;
	int slot;

	cJSON_ArrayForEach(f, files) {
		const char *name = f->string;
		if (cJSON_IsObject(files)) {
			take_file(p, name, f);
			continue;
		}
		name = cJSON_IsString(f) ? f->valuestring
					 : json_get_str(f, "name", json_get_str(f, "path", NULL));
		if (!name) {
			fail(p->out, "propose.header", "an entry of `files` has no name");
		} else if (cJSON_IsObject(f)) {
			take_file(p, name, json_get(f, "content"));
		} else if ((slot = slot_of(p, name, strlen(name))) < 0) {
			file_name_bad(p, name, strlen(name));
		} else {
			p->lists = 1;
			p->listed[slot] = 1;
		}
	}
}

static void take_words(struct buf *to, const cJSON *v, size_t max)
{
	struct jsonw w = {0};

	buf_clear(to);
	if (cJSON_IsString(v)) {
		utf8_line(to, v->valuestring, strlen(v->valuestring), max);
	} else if (v) {
		jw_item(&w, NULL, v);
		utf8_line(to, buf_str(&w.out), w.out.len, max);
		jw_free(&w);
	}
}

static int is_header(const cJSON *o)
{
	return json_get(o, "item") || json_get(o, "hypothesis") || json_get(o, "files");
}

static void take_header(struct parse *p, const cJSON *o)
{
	struct reply_words *w = &p->out->words;

	p->out->header = 1;
	if (++p->headers > 1) {
		fail(p->out, "propose.ambiguous", "two headers in one reply");
		return;
	}
	take_words(&w->item, json_get(o, "item"), 120);
	take_words(&w->hypothesis, json_get(o, "hypothesis"), 800);
	take_words(&w->expected_effect, json_get(o, "expected_effect"), 300);
	take_words(&w->risk, json_get(o, "risk"), 400);
	take_words(&w->reasoning, json_get(o, "reasoning"), 4000);
	take_files(p, json_get(o, "files"));
}

/* The slot that a block of code fills by what is in it, -1 none. */
static int slot_by_code(struct parse *p, const char *s)
{
	if (!p->rules)
		return strstr(s, "__global__") ? REPLY_KERNEL : -1;
	const char *name = engine_main(p->rules->cuda);
	return strstr(s, "engine_ready") && strstr(s, "engine_next") ? slot_of(p, name, strlen(name)) : -1;
}

/* Judge a block that the model did not name by what is in it. */
static void sort_unnamed(struct parse *p, const struct fence *f)
{
	static const char *const json[] = {"", "json", "jsonc", NULL};
	static const char *const cuda[] = {"", "cuda", "cu", "cuda-c", "cuda-cpp", "cuda-c++", "cpp",
					   "c++", "c", NULL};
	const char *s = buf_str(&f->body);
	size_t i = strspn(s, " \t\n");

	if (s[i] == '{' && (f->object || info_lang(f, json))) {
		cJSON *o = json_parse(s, f->body.len, &REPLY_JSON, "block", NULL);
		if (o && !p->rules && json_get(o, "launches"))
			add_answer(p, REPLY_PLAN, 0, s, f->body.len);
		else if (o && is_header(o))
			take_header(p, o);
		cJSON_Delete(o);
	} else if (!f->object && info_lang(f, cuda) && slot_by_code(p, s) >= 0) {
		add_answer(p, slot_by_code(p, s), 0, s, f->body.len);
	}
}

static void sort_block(struct parse *p, const struct fence *f)
{
	int slot = -1;

	if (!f->closed) {
		if (f->body.len > strspn(buf_str(&f->body), " \t\n"))
			fail(p->out, "propose.truncated", "the last fenced block is not closed");
		return;
	}
	if (!f->object) {
		slot = named_by_info(p, f);
		if (slot == -1)
			slot = named_by_label(p, f);
	}
	if (slot == -2) {
		const char *s = named_by_info(p, f) == -2 ? f->info : f->label;
		file_name_bad(p, s, s == f->info ? f->info_len : f->label_len);
	} else if (slot >= 0) {
		if (f->inner)
			fail(p->out, "propose.ambiguous", "a fence opens inside the block of %s",
			     p->out->name[slot]);
		add_answer(p, slot, 1, buf_str(&f->body), f->body.len);
	} else {
		sort_unnamed(p, f);
	}
}

/* A whole answer inside ```markdown ... ``` (a longer fence) is looked into once. */
static void sort_text(struct parse *p, const char *s, size_t len, int level)
{
	static const char *const md[] = {"markdown", "md", NULL};
	struct fences all;

	fence_scan(s, len, &all);
	if (all.overflow)
		fail(p->out, "propose.ambiguous", "more than %d blocks in one reply", FENCE_MAX);
	for (int i = 0; i < all.n; i++) {
		struct fence *f = &all.f[i];
		if (!f->object && f->closed && !level && info_lang(f, md))
			sort_text(p, buf_str(&f->body), f->body.len, 1);
		else
			sort_block(p, f);
	}
	if (all.object_cut && !p->nanswers)
		fail(p->out, "propose.truncated", "a JSON object is not closed");
	fence_free(&all);
}

/* An engine's file below kernels/ that is given empty is to go. */
static int may_be_empty(const struct parse *p, int slot)
{
	return p->rules && !strncmp(p->out->name[slot], "kernels/", 8);
}

/* Exactly one content for a slot, named ones first. */
static void settle(struct parse *p, int slot)
{
	const struct answer *got = NULL;
	const char *name = p->out->name[slot];

	for (int named = 1; named >= 0 && !got; named--) {
		/* A header that lists files makes unnamed blocks of others mere illustration. */
		if (!named && p->lists && !p->listed[slot])
			break;
		for (size_t i = 0; i < p->nanswers; i++) {
			const struct answer *a = &p->answer[i];
			if (a->slot != slot || a->named != named)
				continue;
			if (got && (got->text.len != a->text.len ||
				    memcmp(buf_str(&got->text), buf_str(&a->text), a->text.len)))
				fail(p->out, "propose.ambiguous", "two different answers for %s", name);
			got = a;
		}
	}
	if (got && (got->text.len || may_be_empty(p, slot))) {
		buf_add(&p->out->file[slot], buf_str(&got->text), got->text.len);
		p->out->has[slot] = 1;
	} else if (got) {
		fail(p->out, "propose.missing_file", "%s is empty", name);
	} else if (p->listed[slot]) {
		fail(p->out, "propose.missing_file", "the header names %s but no block has it", name);
	}
}

/* Cut reasoning that the server left in the text. Returns where the answer begins, or -1 when
 * the reasoning never ends. */
static long skip_think(const char *s)
{
	static const char *const tag[] = {"think", "thinking", "reasoning"};
	size_t at = strspn(s, " \t\n");
	char open[16], close[16];

	for (size_t i = 0; i < sizeof tag / sizeof *tag; i++) {
		const char *end, *again;
		snprintf(open, sizeof open, "<%s>", tag[i]);
		snprintf(close, sizeof close, "</%s>", tag[i]);
		end = strstr(s, close);
		if (!strncmp(s + at, open, strlen(open)))
			return end ? end - s + (long)strlen(close) : -1;
		/* Templates that open the block in the prompt leave only its end in the reply. */
		again = end ? strstr(end + 1, close) : NULL;
		if (end && !again && !strstr(s, open))
			return end - s + (long)strlen(close);
	}
	return 0;
}

static int any_file(const struct reply *r)
{
	for (int i = 0; i < r->n; i++)
		if (r->has[i])
			return 1;
	return 0;
}

/* The text's blocks into p->answer, and of them one answer a slot. */
static void read_text(struct parse *p, const char *text, size_t len)
{
	struct reply *out = p->out;
	struct buf t = BUF_INIT;
	long skip;

	reply_normalise(&t, len ? text : "", len);
	skip = skip_think(buf_str(&t));
	if (strspn(buf_str(&t), " \t\n") == t.len)
		fail(out, "propose.empty", "the reply is empty");
	else if (skip < 0)
		fail(out, "propose.truncated", "the reply ends inside its reasoning");
	else
		sort_text(p, buf_str(&t) + skip, t.len - (size_t)skip, 0);
	for (int i = 0; i < out->n; i++)
		settle(p, i);
	if (!any_file(out))
		fail(out, "propose.no_files", "the reply gives %s", p->rules ? "no file of an engine"
									    : "neither kernel.cu nor plan.json");
	buf_free(&t);
}

void reply_parse_engine(const char *text, size_t len, const struct reply_rules *rules, struct reply *out)
{
	struct parse p = {.out = out, .rules = rules};

	memset(out, 0, sizeof *out);
	out->code = "ok";
	for (int i = 0; !rules && i < REPLY_SLOTS; i++, out->n++)
		snprintf(out->name[i], sizeof out->name[i], "%s", REPLY_FILE[i]);
	if (len > REPLY_MAX_TEXT)
		fail(out, "propose.too_large", "the reply has %zu bytes, at most %d are read", len, REPLY_MAX_TEXT);
	else if (len && memchr(text, 0, len))
		fail(out, "propose.malformed", "the reply has a NUL byte");
	else
		read_text(&p, text, len);
	for (size_t i = 0; i < p.nanswers; i++)
		buf_free(&p.answer[i].text);
	free(p.answer);
}

void reply_parse(const char *text, size_t len, struct reply *out)
{
	reply_parse_engine(text, len, NULL, out);
}

void reply_free(struct reply *r)
{
	struct reply_words *w = &r->words;

	for (int i = 0; i < REPLY_FILES; i++)
		buf_free(&r->file[i]);
	buf_free(&w->item);
	buf_free(&w->hypothesis);
	buf_free(&w->expected_effect);
	buf_free(&w->risk);
	buf_free(&w->reasoning);
	memset(r, 0, sizeof *r);
}
