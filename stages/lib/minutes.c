/*
 * minutes.c - see minutes.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "minutes.h"

#include "file.h"
#include "json.h"
#include "jsonw.h"
#include "lock.h"
#include "stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static double clock_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double at_least_0(double s)
{
	return s > 0 && s < 1e12 ? s : 0;
}

static double limit_s(const struct run *r)
{
	return 60 * at_least_0(run_num(r, "max_minutes", 0));
}

static void drop(struct minutes *m, const char *trial)
{
	for (int i = 0; i < m->nopen; i++)
		if (!strcmp(m->of[i].trial, trial)) {
			m->open -= m->of[i].s;
			m->charged -= m->of[i].s;
			m->of[i] = m->of[--m->nopen];
			return;
		}
}

static void reserve(struct minutes *m, const char *trial, double s)
{
	if (m->nopen == MINUTES_OPEN || !trial_id_ok(trial))
		return;
	drop(m, trial);
	snprintf(m->of[m->nopen].trial, TRIAL_ID, "%s", trial);
	m->of[m->nopen++].s = s;
	m->open += s;
	m->charged += s;
}

struct folding {
	struct minutes *m;
	double *s; /* of settled trials */
	size_t n, cap;
};

static void line(struct folding *f, const cJSON *j)
{
	struct minutes *m = f->m;
	const char *kind = json_get_str(j, "kind", ""), *trial = json_get_str(j, "trial", "");
	double s = at_least_0(json_get_num(j, "s", 0));

	if (!strcmp(kind, "reserve")) {
		reserve(m, trial, s);
		return;
	}
	if (!strcmp(kind, "settle")) {
		drop(m, trial);
		if (f->n == f->cap)
			f->s = xrealloc(f->s, (f->cap = f->cap ? 2 * f->cap : 64) * sizeof *f->s);
		f->s[f->n++] = s;
	} else if (!strcmp(kind, "end")) {
		m->charged -= m->open; /* what passed is known */
	} else if (strcmp(kind, "begin")) {
		return;
	}
	if (strcmp(kind, "settle")) { /* of a make that is over: nobody will settle it */
		m->open = 0;
		m->nopen = 0;
	}
	m->charged += s;
	m->last = at_least_0(json_get_num(j, "t", 0));
}

void minutes_fold(const char *text, size_t len, struct minutes *m)
{
	struct folding f = {.m = m};

	memset(m, 0, sizeof *m);
	for (size_t at = 0; at < len;) {
		const char *nl = memchr(text + at, '\n', len - at);
		size_t n = nl ? (size_t)(nl - (text + at)) : len - at;
		cJSON *j = nl && n < 4096 ? json_parse(text + at, n, &JSON_OURS, "minutes.jsonl", NULL) : NULL;
		if (j)
			line(&f, j);
		cJSON_Delete(j);
		at += n + 1;
	}
	m->median = f.n ? stats_median(f.s, f.n) : 0;
	free(f.s);
}

int minutes_read(const struct run *r, struct minutes *m, struct err *e)
{
	char path[TRIAL_PATH];
	struct buf b = BUF_INIT;

	run_path(path, r->name, "minutes.jsonl");
	int rc = file_exists(path) ? file_read(path, (size_t)64 << 20, &b, e) : 0;
	if (!rc)
		minutes_fold(buf_str(&b), b.len, m);
	buf_free(&b);
	return rc;
}

static int append(const struct run *r, const char *kind, const char *trial, double now, double s, struct err *e)
{
	char path[TRIAL_PATH];
	struct jsonw w = {0};

	run_path(path, r->name, "minutes.jsonl");
	jw_obj(&w, NULL);
	jw_num(&w, "t", (double)(int64_t)(now * 1000) / 1000);
	jw_str(&w, "kind", kind);
	jw_str(&w, "trial", trial);
	jw_num(&w, "s", (double)(int64_t)(at_least_0(s) * 1000) / 1000);
	jw_end(&w);
	int rc = file_append(path, buf_str(&w.out), e);
	jw_free(&w);
	return rc;
}

/* When the newest step of the run ended: status.json, written by the wrapper; 0 unknown. */
static double last_step(const struct run *r)
{
	char path[TRIAL_PATH];
	struct stat st;

	run_path(path, r->name, "status.json");
	return stat(path, &st) ? 0 : (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec / 1e9;
}

static int locked(const struct run *r, struct lock *l, struct minutes *m, struct err *e)
{
	char name[40];

	snprintf(name, sizeof name, "minutes-%s", r->name);
	if (lock_take(l, name, LOCK_ALONE, -1, e))
		return -1;
	if (minutes_read(r, m, e)) {
		lock_drop(l);
		return -1;
	}
	return 0;
}

int minutes_begin(const struct run *r, double *left_s, struct err *e)
{
	struct minutes m;
	struct lock l = LOCK_INIT;
	double most = limit_s(r), lost;

	*left_s = 0;
	if (!most)
		return 0;
	if (locked(r, &l, &m, e))
		return -1;
	lost = m.last > 0 ? at_least_0(last_step(r) - m.last - m.open) : 0;
	int rc = append(r, "begin", NULL, clock_s(), lost, e);
	lock_drop(&l);
	*left_s = most - m.charged - lost;
	if (!rc && *left_s <= 0)
		rc = err_set(e, EX_NOENV, "budget max_minutes=%g of run %s is used up", most / 60, r->name);
	return rc;
}

int minutes_end(const struct run *r, struct err *e)
{
	struct minutes m;
	struct lock l = LOCK_INIT;
	double now = clock_s();

	if (!limit_s(r))
		return 0;
	if (locked(r, &l, &m, e))
		return -1;
	int rc = append(r, "end", NULL, now, now - m.last, e);
	lock_drop(&l);
	return rc;
}

int minutes_reserve(const struct run *r, const char *trial, struct err *e)
{
	struct minutes m;
	struct lock l = LOCK_INIT;
	double most = limit_s(r), now = clock_s(), charged;
	int rc = 0;

	if (!most)
		return 0;
	if (locked(r, &l, &m, e))
		return -1;
	drop(&m, trial); /* a step that is tried again */
	charged = m.charged + (m.last > 0 ? at_least_0(now - m.last - m.open) : 0);
	if (charged + m.median > most)
		rc = err_set(e, EX_NOENV, "budget max_minutes=%g of run %s: %.2f are charged, the next trial may take %.2f",
			     most / 60, r->name, charged / 60, m.median / 60);
	if (!rc)
		rc = append(r, "reserve", trial, now, m.median, e);
	lock_drop(&l);
	return rc;
}

int minutes_settle(const struct run *r, const char *trial, struct err *e)
{
	struct minutes m;
	struct lock l = LOCK_INIT;
	double now = clock_s();

	if (!limit_s(r))
		return 0;
	if (locked(r, &l, &m, e))
		return -1;
	int rc = append(r, "settle", trial, now, m.last > 0 ? now - m.last : 0, e);
	lock_drop(&l);
	return rc;
}

int minutes_step(const char *run, const char *trial, int closed, struct err *e)
{
	struct run r;

	if (run_read(run, &r, e))
		return -1;
	int rc = closed ? minutes_settle(&r, trial, e) : minutes_reserve(&r, trial, e);
	run_free(&r);
	return rc;
}
