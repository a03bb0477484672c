/*
 * sweep.c - see sweep.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sweep.h"

#include "file.h"
#include "json.h"
#include "trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INDEX = 64 << 20 };

struct work {
	const struct sweep *s;
	struct plan_config own; /* base's configuration as given */
	int64_t own_point;
	int64_t size;
	uint64_t key;           /* of the space and the seed */
	char name[HASH_HEX];    /* hash of all that the cache depends on */
	struct buf tried;       /* index.tsv */
};

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

void sweep_plan_text(const struct plan *p, struct buf *out)
{
	struct jsonw w = {.pretty = 1};

	plan_write(p, &w, NULL);
	buf_add(out, buf_str(&w.out), w.out.len);
	jw_free(&w);
}

void sweep_words(const struct plan *p, const struct plan_config *from, const struct plan_config *to,
		 struct buf *out)
{
	size_t start = out->len;

	for (int i = 0; i < p->ntunables && i < from->n && i < to->n; i++) {
		if (from->v[i] == to->v[i])
			continue;
		buf_addf(out, "%s%s %lld -> %lld", out->len > start ? ", " : "", p->tunable[i].name,
			 (long long)from->v[i], (long long)to->v[i]);
	}
	if (out->len == start)
		buf_adds(out, "no change");
}

/* ---- what has been tried ---- */

/* Is there a line of this spec and device, of a trial up to `upto`, with this candidate? */
static int index_has(const struct work *w, const char *sha, long upto)
{
	const char *p = w->tried.data, *end = p + w->tried.len, *hit;

	while (p && p < end && (hit = memmem(p, (size_t)(end - p), sha, HASH_HEX - 1))) {
		const char *line = hit;
		char want[2 * TRIAL_NAME + 4];
		size_t n;
		while (line > w->tried.data && line[-1] != '\n')
			line--;
		n = strcspn(line, "\t\n");
		snprintf(want, sizeof want, "\t%s\t%s\t", w->s->spec->name, w->s->device);
		if (!strncmp(line + n, want, strlen(want)) && line + n + strlen(want) == hit &&
		    strtol(line, NULL, 10) <= upto)
			return 1;
		p = hit + HASH_HEX - 1;
	}
	return 0;
}

/* Base with configuration c, as text. Leaves base changed: the caller owns it for this. */
static int plan_of(const struct work *w, const struct plan_config *c, struct buf *out, struct err *e)
{
	if (plan_config_set(w->s->base, c, e))
		return -1;
	sweep_plan_text(w->s->base, out);
	return 0;
}

static int tried(const struct work *w, const struct plan_config *c, long upto, int *yes, struct err *e)
{
	char plan[HASH_HEX], candidate[HASH_HEX];
	struct buf text = BUF_INIT;

	*yes = 0;
	if (w->s->base_tried && plan_config_equal(c, &w->own)) {
		*yes = 1;
		return 0;
	}
	if (!w->tried.len)
		return 0;
	if (plan_of(w, c, &text, e))
		return -1;
	hash_hex(text.data, text.len, plan);
	buf_free(&text);
	trial_candidate_sha(w->s->kernel_sha, plan, candidate);
	*yes = index_has(w, candidate, upto);
	return 0;
}

/* Constraints without axes first: they settle most points. */
static int legal(const struct work *w, const struct plan_config *c, int *yes, struct err *e)
{
	const struct spec *sp = w->s->spec;
	int emu = w->s->facts->class != DEVICE_CUDA;

	if (plan_config_legal(w->s->base, sp, NULL, w->s->facts, c, yes, e))
		return -1;
	for (int i = 0; *yes && i < sp->npublic; i++) {
		const struct axes *a = emu ? &sp->public[i].emu : &sp->public[i].gpu;
		if (plan_config_legal(w->s->base, sp, a, w->s->facts, c, yes, e))
			return -1;
	}
	return 0;
}

static int free_point(const struct work *w, const struct plan_config *c, long upto, int *yes, struct err *e)
{
	int used;

	if (legal(w, c, yes, e))
		return -1;
	if (!*yes)
		return 0;
	if (tried(w, c, upto, &used, e))
		return -1;
	*yes = !used;
	return 0;
}

/* ---- the small space ---- */

static void shuffle(int64_t *v, int n, uint64_t key)
{
	for (int i = n - 1; i > 0; i--) {
		int k = (int)(mix(key ^ (uint64_t)i) % (uint64_t)(i + 1));
		int64_t t = v[i];
		v[i] = v[k];
		v[k] = t;
	}
}

static int cache_read(const struct work *w, int64_t *v, int *n, int *all)
{
	cJSON *j = w->s->cache ? json_read(w->s->cache, &JSON_OURS, NULL, NULL) : NULL;
	const cJSON *left = json_get(j, "left"), *x;
	int ok = j && !strcmp(json_get_str(j, "key", ""), w->name) && cJSON_IsArray(left);

	*n = 0;
	*all = (int)json_get_int(j, "legal", 0);
	if (ok)
		cJSON_ArrayForEach(x, left) {
			if (*n == SWEEP_EXHAUSTIVE || json_is_int(x, &v[*n]) || v[*n] < 0 ||
			    v[*n] >= w->size) {
				ok = 0;
				break;
			}
			(*n)++;
		}
	cJSON_Delete(j);
	return ok;
}

static int cache_write(const struct work *w, const int64_t *v, int n, int all, struct err *e)
{
	struct jsonw j = {0};
	int rc;

	if (!w->s->cache)
		return 0;
	jw_obj(&j, NULL);
	jw_str(&j, "schema", "touchstone/sweep/1");
	jw_str(&j, "key", w->name);
	jw_int(&j, "size", w->size);
	jw_int(&j, "legal", all);
	jw_arr(&j, "left");
	for (int i = 0; i < n; i++)
		jw_int(&j, NULL, v[i]);
	jw_end(&j);
	jw_end(&j);
	rc = file_write(w->s->cache, j.out.data, j.out.len, 0644, e);
	jw_free(&j);
	return rc;
}

/* Every legal point not tried before the run; base as it stands goes first. */
static int list_left(const struct work *w, int64_t *v, int *n, int *all, struct err *e)
{
	int64_t own = w->own_point;
	int yes, head = 0;

	*n = *all = 0;
	for (int64_t i = 0; i < w->size; i++) {
		struct plan_config c;
		plan_config_at(w->s->base, i, &c);
		if (legal(w, &c, &yes, e))
			return -1;
		*all += yes;
		if (!yes)
			continue;
		if (tried(w, &c, w->s->first - 1, &yes, e))
			return -1;
		if (yes)
			continue;
		v[(*n)++] = i;
		if (i == own) { /* to the front */
			v[*n - 1] = v[0];
			v[0] = own;
			head = 1;
		}
	}
	shuffle(v + head, *n - head, w->key);
	return cache_write(w, v, *n, *all, e);
}

static int next_small(const struct work *w, struct sweep_pick *out, struct err *e)
{
	int64_t *v = xmalloc(SWEEP_EXHAUSTIVE * sizeof *v);
	int n, all, rc = 0;

	if (!cache_read(w, v, &n, &all))
		rc = list_left(w, v, &n, &all, e);
	if (!rc && w->s->index >= n) {
		out->done = 1;
		snprintf(out->how, sizeof out->how, "all %d legal configurations have been tried", all);
	} else if (!rc) {
		plan_config_at(w->s->base, v[w->s->index], &out->config);
		snprintf(out->how, sizeof out->how, "number %ld of %d untried, %d legal of %lld",
			 w->s->index + 1, n, all, (long long)w->size);
	}
	free(v);
	return rc;
}

/* ---- the large space ---- */

static int mine(const struct work *w, int64_t point)
{
	uint64_t width = w->s->width > 0 ? (uint64_t)w->s->width : 1;

	if (point == w->own_point) /* the first trial's, whatever its class */
		return 0;
	return mix((uint64_t)point ^ w->key) % width == (uint64_t)w->s->index % width;
}

/* A bijection of [0, size): four Feistel rounds on 2h bits, walked until it lands inside. */
static int64_t permute(const struct work *w, int64_t x)
{
	unsigned h = 1;
	uint64_t l, r, t, m, y = (uint64_t)x;

	while (((uint64_t)1 << (2 * h)) < (uint64_t)w->size)
		h++;
	m = ((uint64_t)1 << h) - 1;
	do {
		l = y >> h;
		r = y & m;
		for (uint64_t i = 0; i < 4; i++) {
			t = l ^ (mix(r ^ w->key ^ (i << 56)) & m);
			l = r;
			r = t;
		}
		y = l << h | r;
	} while (y >= (uint64_t)w->size);
	return (int64_t)y;
}

static int next_random(const struct work *w, struct sweep_pick *out, struct err *e)
{
	int64_t at = (int64_t)((uint64_t)w->s->index * 1009 % (uint64_t)w->size);
	int64_t steps = w->size < SWEEP_WALK ? w->size : SWEEP_WALK, point;
	int yes;

	for (int64_t k = 0; k < steps; k++) {
		point = permute(w, (at + k) % w->size);
		if (!mine(w, point))
			continue;
		plan_config_at(w->s->base, point, &out->config);
		if (free_point(w, &out->config, w->s->sees, &yes, e))
			return -1;
		if (yes) {
			snprintf(out->how, sizeof out->how, "a random point of %lld", (long long)w->size);
			return 0;
		}
	}
	out->done = 1;
	snprintf(out->how, sizeof out->how, "no untried legal configuration among %lld points",
		 (long long)steps);
	return 0;
}

struct points {
	int64_t *v;
	int n, cap;
};

static void add_point(const struct work *w, struct points *p, const struct plan_config *c)
{
	int64_t i = plan_config_index(w->s->base, c);

	if (i < 0 || !mine(w, i))
		return;
	if (p->n == p->cap) {
		p->cap = p->cap ? 2 * p->cap : 64;
		p->v = xrealloc(p->v, (size_t)p->cap * sizeof *p->v);
	}
	p->v[p->n++] = i;
}

static int place(const struct plan_tunable *t, int64_t v)
{
	for (int i = 0; i < t->nvalues; i++)
		if (t->value[i] == v)
			return i;
	return 0;
}

/* Move tunable i by d places in its list; 0 at the end of the list. */
static int step(const struct plan *p, struct plan_config *c, int i, int d)
{
	const struct plan_tunable *t = &p->tunable[i];
	int k = place(t, c->v[i]) + d;

	if (k < 0 || k >= t->nvalues || !d)
		return 0;
	c->v[i] = t->value[k];
	return 1;
}

/* Ring 0: one step of one tunable; 1: any value of one; 2: one step of two. */
static void ring(const struct work *w, int which, struct points *out)
{
	const struct plan *p = w->s->base;
	int reach = which == 1 ? PLAN_MAX_VALUES : 1;

	for (int i = 0; i < p->ntunables; i++) {
		for (int d = -reach; d <= reach; d++) {
			struct plan_config c = *w->s->champion;
			if (!step(p, &c, i, d))
				continue;
			if (which < 2) {
				add_point(w, out, &c);
				continue;
			}
			for (int k = i + 1; k < p->ntunables; k++)
				for (int f = -1; f <= 1; f += 2) {
					struct plan_config two = c;
					if (step(p, &two, k, f))
						add_point(w, out, &two);
				}
		}
	}
}

static int next_local(const struct work *w, struct sweep_pick *out, int *found, struct err *e)
{
	struct points p = {0};
	int rc = 0, yes = 0;

	for (int which = 0; which < 3 && !yes && !rc; which++) {
		p.n = 0;
		ring(w, which, &p);
		shuffle(p.v, p.n, w->key ^ (uint64_t)which);
		for (int i = 0; i < p.n && !yes && !rc; i++) {
			plan_config_at(w->s->base, p.v[i], &out->config);
			rc = free_point(w, &out->config, w->s->sees, &yes, e);
		}
	}
	if (yes)
		snprintf(out->how, sizeof out->how, "next to the champion, of %lld points",
			 (long long)w->size);
	*found = yes;
	free(p.v);
	return rc;
}

static int next_large(const struct work *w, struct sweep_pick *out, struct err *e)
{
	long width = w->s->width > 0 ? w->s->width : 1;
	int found = 0;

	if (!w->s->index) {
		out->config = w->own;
		if (free_point(w, &w->own, w->s->first - 1, &found, e))
			return -1;
		snprintf(out->how, sizeof out->how, "as it stands, of %lld points", (long long)w->size);
	}
	if (!found && w->s->champion && (w->s->index / width) % 2 && next_local(w, out, &found, e))
		return -1;
	return found ? 0 : next_random(w, out, e);
}

/* ---- */

/* Name the space: kernel, and plan at its first configuration; then all else that counts. */
static int name_space(struct work *w, struct err *e)
{
	struct buf t = BUF_INIT;
	struct plan_config zero;
	uint8_t h[32];

	plan_config_current(w->s->base, &w->own);
	w->own_point = plan_config_index(w->s->base, &w->own);
	plan_config_at(w->s->base, 0, &zero);
	if (plan_of(w, &zero, &t, e)) {
		buf_free(&t);
		return -1;
	}
	buf_addf(&t, "%s\n%lld\n", w->s->kernel_sha, (long long)w->s->seed);
	hash_bytes(t.data, t.len, h);
	memcpy(&w->key, h, sizeof w->key);
	buf_addf(&t, "%s %s %ld %d %lld", w->s->spec->name, w->s->device, w->s->first, w->s->base_tried,
		 (long long)plan_config_index(w->s->base, &w->own));
	hash_hex(t.data, t.len, w->name);
	buf_free(&t);
	return 0;
}

int sweep_next(const struct sweep *s, struct sweep_pick *out, struct err *e)
{
	struct work w = {.s = s};
	int rc;

	memset(out, 0, sizeof *out);
	if (plan_space(s->base, &w.size, e) || name_space(&w, e))
		return -1;
	if (file_exists(s->tried) && file_read(s->tried, MAX_INDEX, &w.tried, e))
		return -1;
	rc = w.size <= SWEEP_EXHAUSTIVE ? next_small(&w, out, e) : next_large(&w, out, e);
	if (!rc && !out->done)
		rc = plan_of(&w, &out->config, &out->plan, e);
	buf_free(&w.tried);
	/* As it came, but for `choose`: the next call must see the same space. */
	return plan_config_set(s->base, &w.own, rc ? NULL : e) || rc ? -1 : 0;
}
