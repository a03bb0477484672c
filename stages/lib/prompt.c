/*
 * prompt.c - see prompt.h: templates, fences, and fitting the whole under a limit.
 *
 * SPDX-License-Identifier: MIT
 */
#include "prompt.h"

#include "defence.h"
#include "file.h"
#include "json.h"
#include "prompt_engine.h"
#include "repair.h"
#include "research.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEMPLATE = 256 << 10, MAX_DEPTH = 3 };

enum part {
	P_SPEC, P_REFERENCE, P_DEVICE, P_CHAMPION, P_MEASURED, P_RECENT, P_DIGEST, P_PLAYBOOK,
	P_RESEARCH, P_OWN, P_ERROR, P_TURN, P_CLUSTERS, P_PLATEAU, P_FROM, P_SOURCE_BYTES, P_MAIN, P_FILES, P_RULES, P_PROTOCOL,
	P_MODEL, P_OPTIONS, P_COUNT
};

static const char *const PART[P_COUNT] = {
	"spec", "reference", "device", "champion", "measured", "recent", "digest", "playbook",
	"research", "own", "error", "turn", "clusters", "plateau", "from", "source_bytes", "main", "files", "rules", "protocol",
	"model", "options",
};

int64_t prompt_estimate(size_t bytes)
{
	return (int64_t)(bytes / 3 + 16);
}

/* ---- templates ---- */

/* Once each, by name. */
int prompt_hashed(struct proposal *p, const char *name, const struct buf *text, struct err *e)
{
	struct proposal_template *t;

	for (int i = 0; i < p->ntemplates; i++)
		if (!strcmp(p->tmpl[i].name, name))
			return 0;
	if (p->ntemplates == PROPOSAL_PROMPTS)
		return err_set(e, EX_BADINPUT, "%s: more than %d templates", name, PROPOSAL_PROMPTS);
	t = &p->tmpl[p->ntemplates++];
	snprintf(t->name, sizeof t->name, "%.63s", name);
	hash_hex(buf_str(text), text->len, t->sha);
	return 0;
}

/* A file of prompts/, its hash into p. */
static int read_hashed(struct proposal *p, const char *name, struct buf *out, struct err *e)
{
	char path[160];

	snprintf(path, sizeof path, "%s/%s", PROMPT_DIR, name);
	return file_read(path, MAX_TEMPLATE, out, e) || prompt_hashed(p, name, out, e) ? -1 : 0;
}

static int read_template(struct proposal *p, const char *name, struct buf *out, struct err *e)
{
	if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-.") != strlen(name) || name[0] == '.')
		return err_set(e, EX_BADINPUT, "'%.60s' is no name of a template", name);
	return read_hashed(p, name, out, e);
}

struct expansion {
	struct proposal *p;
	const struct prompt_value *v;
	size_t n;
	struct buf *out;
};

static int expand_text(struct expansion *x, const char *file, const struct buf *t, int depth, struct err *e);

static int expand_tag(struct expansion *x, const char *file, const char *tag, size_t len, int depth,
		      struct err *e)
{
	char name[64];
	struct buf t = BUF_INIT;
	int rc;

	if (len >= sizeof name)
		return err_set(e, EX_BADINPUT, "%s/%s: a tag is too long", PROMPT_DIR, file);
	memcpy(name, tag, len);
	name[len] = '\0';
	if (name[0] == '>') {
		if (depth == MAX_DEPTH)
			return err_set(e, EX_BADINPUT, "%s/%s: templates nested too deep", PROMPT_DIR, file);
		rc = read_template(x->p, name + 1, &t, e) || expand_text(x, name + 1, &t, depth + 1, e);
		buf_free(&t);
		return rc ? -1 : 0;
	}
	for (size_t i = 0; i < x->n; i++)
		if (!strcmp(x->v[i].name, name)) {
			buf_add(x->out, buf_str(&x->v[i].text), x->v[i].text.len);
			return 0;
		}
	return err_set(e, EX_BADINPUT, "%s/%s: unknown tag '{{%s}}'", PROMPT_DIR, file, name);
}

/* One line of a template. Alone on its line, a tag brings its own line ends or nothing. */
static int expand_line(struct expansion *x, const char *file, const char *s, size_t len, int depth,
		       struct err *e)
{
	size_t i = 0, before = x->out->len;
	int alone = len > 4 && !memcmp(s, "{{", 2) && !memcmp(s + len - 2, "}}", 2) &&
		    memmem(s, len, "}}", 2) == s + len - 2;

	while (i < len) {
		const char *open = memmem(s + i, len - i, "{{", 2), *end;
		size_t k = open ? (size_t)(open - s) : len;
		buf_add(x->out, s + i, k - i);
		if (!open)
			break;
		end = memmem(open, len - k, "}}", 2);
		if (!end)
			return err_set(e, EX_BADINPUT, "%s/%s: '{{' without '}}'", PROMPT_DIR, file);
		if (expand_tag(x, file, open + 2, (size_t)(end - open) - 2, depth, e))
			return -1;
		i = (size_t)(end - s) + 2;
	}
	if (!alone || (x->out->len > before && x->out->data[x->out->len - 1] != '\n'))
		buf_addc(x->out, '\n');
	return 0;
}

static int expand_text(struct expansion *x, const char *file, const struct buf *t, int depth, struct err *e)
{
	size_t at = 0;

	while (at < t->len) {
		const char *nl = memchr(t->data + at, '\n', t->len - at);
		size_t n = nl ? (size_t)(nl - (t->data + at)) : t->len - at;
		if (expand_line(x, file, t->data + at, n, depth, e))
			return -1;
		at += n + 1;
	}
	return 0;
}

int prompt_expand(struct proposal *p, const char *name, const struct prompt_value *v, size_t n,
		  struct buf *out, struct err *e)
{
	struct expansion x = {p, v, n, out};
	struct buf t = BUF_INIT;
	int rc = read_template(p, name, &t, e) || expand_text(&x, name, &t, 0, e);

	buf_free(&t);
	return rc ? -1 : 0;
}

void prompt_fence(struct buf *out, const char *label, const char *text, size_t len, const char *salt)
{
	char nonce[HASH_HEX];
	struct buf b = BUF_INIT;

	/* The text would have to contain its own hash. */
	buf_addf(&b, "%s\n%s\n", salt, label);
	buf_add(&b, text, len);
	hash_hex(b.data, b.len, nonce);
	nonce[16] = '\0';
	if (!DEFENCE("prompt.fence"))
		nonce[0] = '\0';
	buf_free(&b);
	buf_addf(out, "BEGIN %s %s\n", label, nonce);
	buf_add(out, text, len);
	if (len && text[len - 1] != '\n')
		buf_addc(out, '\n');
	buf_addf(out, "END %s %s\n", label, nonce);
}

void prompt_identity(const struct stage *s, const struct proposal *p, const char *whom, char out[HASH_HEX])
{
	struct buf b = BUF_INIT;

	buf_addf(&b, "call\n%s\n%s\n%d\n%s\n%s\n%s\n", s->run.name, s->id, s->attempt, s->run.key_sha256,
		 p->parent.candidate, whom ? whom : "");
	hash_hex(b.data, b.len, out);
	buf_free(&b);
}

/* ---- the whole ---- */

/* Parts that a level of shedding leaves out. */
static int dropped(enum part part, int level)
{
	switch (part) {
	case P_RESEARCH:
		return level >= 1;
	case P_DIGEST:
	case P_CLUSTERS:
		return level >= 2;
	case P_PLAYBOOK:
		return level >= 6;
	case P_REFERENCE:
		return level >= 7;
	default:
		return 0;
	}
}

static int recent_kept(int level)
{
	return level < 3 ? 15 : level == 3 ? 8 : level == 4 ? 3 : 0;
}

enum { LAST_LEVEL = 7 };

static int template_part(struct proposal *p, const char *name, struct buf *out, struct err *e)
{
	char path[160];

	/* Places for playbook and research: a file that is not there is empty. */
	snprintf(path, sizeof path, "%s/%s", PROMPT_DIR, name);
	return file_exists(path) ? prompt_expand(p, name, NULL, 0, out, e) : 0;
}

/* Names of the problem's playbooks; 1: the spec itself gives them. */
static int playbook_names(const struct proposal *p, const char *name[2])
{
	if (p->engine) {
		name[0] = p->engine->cuda ? "engine" : "engine-c";
		return 0;
	}
	playbook_for(p->spec->op_type, name);
	for (int i = 0; i < 2 && p->spec->nplaybooks; i++)
		name[i] = i < p->spec->nplaybooks ? p->spec->playbook[i] : NULL;
	return p->spec->nplaybooks > 0;
}

/* The playbooks of the problem with what the record says of their items. One that goes by op_type may be missing. */
static int playbook(struct stage *s, struct proposal *p, struct buf *out, struct err *e)
{
	const char *name[2] = {NULL, NULL};
	char file[64], path[160];
	const cJSON *after;

	if (template_part(p, p->engine ? "engine_playbook.md" : "playbook.md", out, e) || stage_after(s, &after, e))
		return -1;
	const int given = playbook_names(p, name);
	if (!p->book)
		p->book = xcalloc(1, sizeof *p->book);
	playbook_free(p->book);
	for (int i = 0; i < 2 && name[i]; i++) {
		struct buf t = BUF_INIT;
		int rc;
		snprintf(file, sizeof file, "playbook/%.40s.md", name[i]);
		snprintf(path, sizeof path, "%s/%s", PROMPT_DIR, file);
		if (!given && !file_exists(path))
			continue;
		rc = read_hashed(p, file, &t, e) || playbook_parse(p->book, buf_str(&t), t.len, path, e);
		buf_free(&t);
		if (rc)
			return -1;
	}
	playbook_count(p->book, json_get(after, "items"));
	playbook_tell(p->book, out);
	return 0;
}

/* Which item a widened proposal should take: the open ones in turn, those tried least first; what waits for
 * another comes last, since the source may have that already. */
static const struct playbook_item *other_item(const struct playbook *b, int turn)
{
	const struct playbook_item *open[PLAYBOOK_ITEMS];
	int n = 0;

	for (int key = 0; b && key < 2 * PLAYBOOK_FAILS; key++)
		for (int i = 0; i < b->n; i++) {
			const struct playbook_item *t = &b->item[i];
			int tried = t->tried < PLAYBOOK_FAILS ? t->tried : PLAYBOOK_FAILS - 1;
			if (!playbook_closed(t) && tried + (playbook_waits(b, t) >= 0) * PLAYBOOK_FAILS == key)
				open[n++] = t;
		}
	return n ? open[(turn - 1) % n] : NULL;
}

static void widened(const struct proposal *p, struct buf *out)
{
	const struct plateau *w = &p->plateau;

	if (!w->widen)
		return;
	const struct playbook_item *i = other_item(p->book, w->widen);
	buf_addf(out, "# Widen\n\nThe last %d trials in a row were not kept: small steps from here lead nowhere. Propose something of "
		 "another kind than the trials above", w->dry);
	if (i)
		buf_addf(out, ", best the item %s of the playbook (%s)", i->id, buf_str(&i->title));
	buf_adds(out, ".");
	if (plateau_other_parent(w))
		buf_addf(out, " The source above is not the champion but the %s, on purpose: take another way from there. It is "
			 "measured against the champion all the same.", p->parent.from);
	buf_adds(out, "\n\n");
}

static int reference(struct stage *s, const struct proposal *p, struct buf *out, struct err *e)
{
	struct buf t = BUF_INIT;
	int rc = 0;

	if (p->spec->reference_source)
		rc = stage_spec(s, NULL, p->spec->reference_source, 1 << 20, &t, e);
	if (!rc && t.len && t.len <= 32768)
		buf_addf(out, "```cuda\n%s```\n", buf_str(&t));
	buf_free(&t);
	return rc;
}

/* What only a kernel's prompt has, and what it has in its own way. */
static int fill_kernel(struct stage *s, struct proposal *p, const char *salt, struct prompt_value *v, struct err *e)
{
	if (reference(s, p, &v[P_REFERENCE].text, e) || prompt_champion(s, p, salt, &v[P_CHAMPION].text, e) ||
	    prompt_measured(s, p, &v[P_MEASURED].text, e) || prompt_device(s, &v[P_DEVICE].text, e))
		return -1;
	buf_addf(&v[P_SOURCE_BYTES].text, "%lld", (long long)p->spec->limits.source_bytes);
	return 0;
}

static int fill_engine(struct stage *s, struct proposal *p, const char *salt, struct prompt_value *v, struct err *e)
{
	const struct engine_spec *k = p->engine;

	prompt_engine_files(&p->parent.files, salt, 0, &v[P_CHAMPION].text);
	prompt_engine_model(s, k, &v[P_MODEL].text);
	buf_adds(&v[P_MAIN].text, engine_main(k->cuda));
	buf_adds(&v[P_OPTIONS].text, k->cuda ? ENGINE_CUDA_OPTIONS : ENGINE_BUILD_OPTIONS);
	buf_addf(&v[P_FILES].text, "%lld", (long long)k->files);
	buf_addf(&v[P_SOURCE_BYTES].text, "%lld", (long long)k->source_bytes);
	return prompt_engine_measured(s, p, &v[P_MEASURED].text, e) || prompt_engine_device(s, p, &v[P_DEVICE].text, e) ||
	       prompt_engine_protocol(p, &v[P_PROTOCOL].text, e) ||
	       template_part(p, k->cuda ? "engine_cuda.md" : "engine_c.md", &v[P_RULES].text, e) ? -1 : 0;
}

static int fill(struct stage *s, struct proposal *p, const char *salt, struct prompt_value *v, struct err *e)
{
	for (int i = 0; i < P_COUNT; i++)
		v[i] = (struct prompt_value){.name = PART[i]};
	if (prompt_spec(s, &v[P_SPEC].text, e) ||
	    (p->engine ? fill_engine(s, p, salt, v, e) : fill_kernel(s, p, salt, v, e)) ||
	    prompt_digest(s, &v[P_DIGEST].text, e) || prompt_clusters(s, salt, &v[P_CLUSTERS].text, e) ||
	    playbook(s, p, &v[P_PLAYBOOK].text, e) || template_part(p, "research.md", &v[P_RESEARCH].text, e) ||
	    research_notes(s, salt, &v[P_RESEARCH].text, e))
		return -1;
	if (s->attempt &&
	    repair_prompt(s, p, salt, &v[P_OWN].text, &v[P_ERROR].text, &v[P_TURN].text, e))
		return -1;
	widened(p, &v[P_PLATEAU].text);
	buf_adds(&v[P_FROM].text, p->parent.from);
	return 0;
}

/* prompts/NAME.md, of engine problems prompts/engine_NAME.md. */
static int expand_for(struct proposal *p, const char *name, const struct prompt_value *v, struct buf *out, struct err *e)
{
	char file[64];

	snprintf(file, sizeof file, "%s%s.md", p->engine ? "engine_" : "", name);
	return prompt_expand(p, file, v, P_COUNT, out, e);
}

static int build(struct stage *s, struct proposal *p, const char *salt, struct prompt_value *v, int level,
		 struct prompt *q, struct err *e)
{
	struct buf kept[P_COUNT];
	int rc;

	buf_clear(&v[P_RECENT].text);
	if (prompt_recent(s, p, salt, recent_kept(level), &v[P_RECENT].text, e))
		return -1;
	for (int i = 0; i < P_COUNT; i++) {
		kept[i] = v[i].text;
		if (dropped((enum part)i, level))
			v[i].text = (struct buf)BUF_INIT;
	}
	buf_clear(&q->system);
	buf_clear(&q->user);
	rc = expand_for(p, "system", v, &q->system, e) ||
	     expand_for(p, s->attempt ? "repair" : "proposal", v, &q->user, e);
	for (int i = 0; i < P_COUNT; i++)
		v[i].text = kept[i];
	q->tokens = prompt_estimate(q->system.len + q->user.len);
	q->shed = level;
	return rc ? -1 : 0;
}

static int store(struct stage *s, struct proposal *p, const struct prompt *q, struct err *e)
{
	struct buf all = BUF_INIT;
	char file[32];
	int rc;

	buf_addf(&all, "%s\n---\n\n%s", buf_str(&q->system), buf_str(&q->user));
	hash_hex(all.data, all.len, p->prompt_sha);
	snprintf(file, sizeof file, "a%d/prompt.md", s->attempt);
	rc = dir_make(s->dir, e) || stage_side(s, file, all.data, all.len, e);
	buf_free(&all);
	return rc ? -1 : 0;
}

int prompt_make(struct stage *s, struct proposal *p, int64_t max_tokens, struct prompt *q, struct err *e)
{
	struct prompt_value v[P_COUNT];
	char salt[200];
	int rc;

	/* Nothing of this run in particular: equal records give equal prompts. */
	snprintf(salt, sizeof salt, "touchstone %s %s", s->run.spec, s->run.device);
	rc = fill(s, p, salt, v, e);
	for (int level = 0; !rc && level <= LAST_LEVEL; level++) {
		rc = build(s, p, salt, v, level, q, e);
		if (q->tokens <= max_tokens)
			break;
	}
	p->no_room = !rc && q->tokens > max_tokens;
	if (p->no_room)
		rc = err_set(e, EX_NOENV, "the prompt needs about %lld tokens, max_prompt_tokens is %lld",
			     (long long)q->tokens, (long long)max_tokens);
	if (!rc)
		rc = store(s, p, q, e);
	for (int i = 0; i < P_COUNT; i++)
		buf_free(&v[i].text);
	return rc;
}

void prompt_free(struct prompt *q)
{
	buf_free(&q->system);
	buf_free(&q->user);
}
