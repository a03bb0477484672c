/*
 * playbook.c - see playbook.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "playbook.h"

#include "json.h"

#include <stdio.h>
#include <string.h>

enum { MAX_FILE = 64 << 10, MAX_LINE = 400 };

static const char *const PART[PLAYBOOK_PARTS] = {"when", "how", "measure"};

struct reader {
	struct playbook *b;
	const char *file;
	int line, first; /* index of the file's first item */
	int title;       /* its title was read */
	int next;        /* part expected; PLAYBOOK_PARTS: needs, or another item; one more: another item */
	struct buf *last; /* what a line that begins with spaces goes on with; NULL nothing */
};

static int wrong(const struct reader *r, struct err *e, const char *what)
{
	return err_set(e, EX_BADINPUT, "%s:%d: %s", r->file, r->line, what);
}

int playbook_id_ok(const char *s)
{
	size_t n = strlen(s);

	return n && n < PLAYBOOK_ID && s[0] >= 'a' && s[0] <= 'z' &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

static int find(const struct playbook *b, int from, const char *id)
{
	for (int i = from; i < b->n; i++)
		if (!strcmp(b->item[i].id, id))
			return i;
	return -1;
}

/* "id: What to do" */
static int begin(struct reader *r, const char *s, struct err *e)
{
	const char *colon = strstr(s, ": ");
	char id[PLAYBOOK_ID] = "";
	struct playbook_item *i;

	if (!r->title)
		return wrong(r, e, "an item before the title");
	if (r->b->n > r->first && r->next < PLAYBOOK_PARTS)
		return wrong(r, e, "the item before has no 'measure'");
	if (colon && (size_t)(colon - s) < sizeof id)
		snprintf(id, sizeof id, "%.*s", (int)(colon - s), s);
	if (!playbook_id_ok(id) || !colon[2])
		return wrong(r, e, "an item begins with '## id: what to do', id of a-z 0-9 -");
	if (find(r->b, 0, id) >= 0)
		return wrong(r, e, "this id is taken");
	if (r->b->n == PLAYBOOK_ITEMS)
		return wrong(r, e, "too many items");
	i = &r->b->item[r->b->n++];
	memcpy(i->id, id, sizeof id);
	buf_adds(&i->title, colon + 2);
	r->next = PLAYBOOK_WHEN;
	r->last = NULL;
	return 0;
}

static int needs(struct reader *r, char *s, struct err *e)
{
	struct playbook_item *i = &r->b->item[r->b->n - 1];
	char *save = NULL;

	for (char *id = strtok_r(s, ", ", &save); id; id = strtok_r(NULL, ", ", &save)) {
		int at = find(r->b, r->first, id);
		if (at < 0 || at == r->b->n - 1)
			return wrong(r, e, "'needs' names no earlier item of this file");
		if (i->nneeds == PLAYBOOK_NEEDS)
			return wrong(r, e, "too many needs");
		i->need[i->nneeds++] = at;
	}
	r->next = PLAYBOOK_PARTS + 1;
	r->last = NULL;
	return i->nneeds ? 0 : wrong(r, e, "'needs' is empty");
}

/* "- when: ..." */
static int member(struct reader *r, char *s, struct err *e)
{
	if (r->b->n == r->first)
		return wrong(r, e, "a member before the first item");
	if (r->next == PLAYBOOK_PARTS && !strncmp(s, "- needs: ", 9))
		return needs(r, s + 9, e);
	if (r->next < PLAYBOOK_PARTS) {
		const char *key = PART[r->next];
		size_t n = strlen(key);
		if (!strncmp(s + 2, key, n) && !strncmp(s + 2 + n, ": ", 2) && s[4 + n]) {
			r->last = &r->b->item[r->b->n - 1].part[r->next++];
			buf_adds(r->last, s + 4 + n);
			return 0;
		}
	}
	return wrong(r, e, "an item has '- when: ', '- how: ', '- measure: ' in this order, then at most '- needs: '");
}

static int one_line(struct reader *r, char *s, struct err *e)
{
	if (!*s) {
		r->last = NULL;
		return 0;
	}
	if (!strncmp(s, "# ", 2) && s[2] && !r->title) {
		r->title = 1;
		return 0;
	}
	if (!strncmp(s, "## ", 3))
		return begin(r, s + 3, e);
	if (!strncmp(s, "- ", 2))
		return member(r, s, e);
	if (!strncmp(s, "  ", 2) && s[2] && s[2] != ' ' && r->last) {
		buf_adds(r->last, s + 1);
		return 0;
	}
	return wrong(r, e, "a line that is no title, item, member or continuation");
}

int playbook_parse(struct playbook *b, const char *text, size_t len, const char *file, struct err *e)
{
	struct reader r = {.b = b, .file = file, .first = b->n, .next = PLAYBOOK_PARTS};
	char line[MAX_LINE];
	size_t at = 0;

	if (len > MAX_FILE)
		return wrong(&r, e, "too long");
	while (at < len) {
		const char *nl = memchr(text + at, '\n', len - at);
		size_t n = nl ? (size_t)(nl - (text + at)) : len - at;
		r.line++;
		if (n >= sizeof line)
			return wrong(&r, e, "a line is too long");
		for (size_t i = 0; i < n; i++)
			if (text[at + i] < ' ' || text[at + i] > '~')
				return wrong(&r, e, "a byte that is not printable ASCII");
		memcpy(line, text + at, n);
		line[n] = '\0';
		if (one_line(&r, line, e))
			return -1;
		at += n + 1;
	}
	if (b->n == r.first || r.next < PLAYBOOK_PARTS)
		return wrong(&r, e, "it ends without a whole item");
	return 0;
}

void playbook_free(struct playbook *b)
{
	for (int i = 0; i < b->n; i++) {
		buf_free(&b->item[i].title);
		for (int k = 0; k < PLAYBOOK_PARTS; k++)
			buf_free(&b->item[i].part[k]);
	}
	memset(b, 0, sizeof *b);
}

void playbook_for(const char *op_type, const char *name[2])
{
	static const char *const of[][3] = {
		{"elementwise", "memory", NULL},     {"transpose", "memory", NULL},
		{"softmax", "memory", "reduction"},  {"normalization", "memory", "reduction"},
		{"reduction", "memory", "reduction"}, {"topk", "memory", "reduction"},
		{"gemm", "gemm", NULL},              {"attention", "attention", NULL},
		{"paged", "decode", NULL},           {"engine", "engine", NULL},
	};

	name[0] = name[1] = NULL;
	for (size_t i = 0; i < sizeof of / sizeof *of; i++)
		if (!strcmp(of[i][0], op_type))
			name[0] = of[i][1], name[1] = of[i][2];
}

static int whole(const cJSON *one, const char *key)
{
	double v = json_get_num(one, key, 0);

	return v > 0 && v < 1e6 ? (int)v : 0;
}

void playbook_count(struct playbook *b, const cJSON *items)
{
	for (int i = 0; i < b->n; i++) {
		const cJSON *one = json_get(items, b->item[i].id);
		b->item[i].tried = whole(one, "tried");
		b->item[i].kept = whole(one, "kept");
		b->item[i].failed = whole(one, "failed");
	}
}

int playbook_closed(const struct playbook_item *i)
{
	return i->failed >= PLAYBOOK_FAILS;
}

int playbook_waits(const struct playbook *b, const struct playbook_item *i)
{
	for (int k = 0; k < i->nneeds; k++) {
		const struct playbook_item *n = &b->item[i->need[k]];
		if (!n->kept && !playbook_closed(n))
			return i->need[k];
	}
	return -1;
}

const struct playbook_item *playbook_named(const struct playbook *b, const char *words)
{
	size_t n = strspn(words, "abcdefghijklmnopqrstuvwxyz0123456789-");

	if (words[n] && words[n] != ':' && words[n] != ' ')
		return NULL;
	for (int i = 0; i < b->n; i++)
		if (strlen(b->item[i].id) == n && !memcmp(b->item[i].id, words, n))
			return &b->item[i];
	return NULL;
}

void playbook_tell(const struct playbook *b, struct buf *out)
{
	if (b->n)
		buf_adds(out, "# Playbook\n\nIdeas for this kind of problem, in the order that usually pays. If you follow one, begin "
			 "`item` with its id. Another idea is welcome, too. Five failures close an item.\n\n");
	for (int i = 0; i < b->n; i++) {
		const struct playbook_item *t = &b->item[i];
		int wait = playbook_waits(b, t);
		buf_addf(out, "- %s: %s", t->id, buf_str(&t->title));
		if (t->tried)
			buf_addf(out, " [tried %d, kept %d, failed %d]", t->tried, t->kept, t->failed);
		if (playbook_closed(t)) {
			buf_adds(out, " CLOSED: do not propose it again\n");
			continue;
		}
		if (wait >= 0) {
			buf_addf(out, " WAITS for %s, unless the source above has that already\n", b->item[wait].id);
			continue;
		}
		buf_addf(out, "\n  when: %s\n  how: %s\n  measure: %s\n", buf_str(&t->part[PLAYBOOK_WHEN]),
			 buf_str(&t->part[PLAYBOOK_HOW]), buf_str(&t->part[PLAYBOOK_MEASURE]));
	}
}
