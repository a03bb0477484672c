/*
 * ledger.c - see ledger.h.
 *
 * A line: {"t","id","kind","trial","what","calls","tokens_in","tokens_out","usd","gpu_s",
 * "total":{...}}. kind is reserve (amounts are the upper bound), settle (the true figures) or
 * interrupted (the reservation stays charged until it is settled after all, amounts 0).
 *
 * SPDX-License-Identifier: MIT
 */
#include "ledger.h"

#include "file.h"
#include "json.h"
#include "jsonw.h"
#include "lock.h"
#include "stats.h"
#include "verdict.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TAIL = 4096 }; /* a line is shorter */

static const char *const amount_keys[] = {"calls", "tokens_in", "tokens_out", "usd", "gpu_s"};

/* A figure that no run can reach stays out of reach of a sum. */
static int64_t whole(const cJSON *obj, const char *key)
{
	double most = 9e15, v = json_get_num(obj, key, 0);
	return (int64_t)(v > most ? most : v < -most ? -most : v);
}

static void take_amount(const cJSON *obj, struct ledger_amount *a)
{
	a->calls = whole(obj, amount_keys[0]);
	a->tokens_in = whole(obj, amount_keys[1]);
	a->tokens_out = whole(obj, amount_keys[2]);
	a->usd = json_get_num(obj, amount_keys[3], 0);
	a->gpu_s = json_get_num(obj, amount_keys[4], 0);
}

static void put_amount(struct jsonw *w, const struct ledger_amount *a)
{
	jw_int(w, amount_keys[0], a->calls);
	jw_int(w, amount_keys[1], a->tokens_in);
	jw_int(w, amount_keys[2], a->tokens_out);
	jw_num(w, amount_keys[3], a->usd);
	jw_num(w, amount_keys[4], a->gpu_s);
}

static void add_amount(struct ledger_amount *to, const struct ledger_amount *a, int sign)
{
	to->calls += sign * a->calls;
	to->tokens_in += sign * a->tokens_in;
	to->tokens_out += sign * a->tokens_out;
	to->usd += sign * a->usd;
	to->gpu_s += sign * a->gpu_s;
}

/* Start of the last whole line in text[0..n), or NULL; n becomes its length. */
static const char *last_line(const char *text, size_t *n)
{
	size_t end = *n;
	while (end && text[end - 1] != '\n')
		end--;
	if (!end)
		return NULL;
	size_t from = end - 1;
	while (from && text[from - 1] != '\n')
		from--;
	*n = end - 1 - from;
	return text + from;
}

int ledger_total(const struct run *r, struct ledger_amount *total, struct err *e)
{
	char path[TRIAL_PATH], tail[TAIL];
	struct stat st;
	memset(total, 0, sizeof *total);
	run_path(path, r->name, "ledger.jsonl");
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return file_exists(path) ? err_sys(e, "cannot open '%s'", path) : 0;
	off_t from = fstat(fd, &st) == 0 && st.st_size > TAIL ? st.st_size - TAIL : 0;
	ssize_t got = pread(fd, tail, sizeof tail, from);
	close(fd);
	if (got < 0)
		return err_sys(e, "cannot read '%s'", path);
	size_t n = (size_t)got;
	const char *line = last_line(tail, &n);
	if (!line)
		return 0;
	cJSON *j = json_parse(line, n, &JSON_OURS, path, e);
	const cJSON *t = j ? json_obj(j, "total", path, e) : NULL;
	if (t)
		take_amount(t, total);
	cJSON_Delete(j);
	return t ? 0 : -1;
}

static int append(const struct run *r, const char *id, const char *kind, const char *trial,
		  const char *what, const struct ledger_amount *a,
		  const struct ledger_amount *total, struct err *e)
{
	char path[TRIAL_PATH], now[32];
	struct jsonw w = {0};
	verdict_now(now);
	run_path(path, r->name, "ledger.jsonl");
	jw_obj(&w, NULL);
	jw_str(&w, "t", now);
	jw_str(&w, "id", id);
	jw_str(&w, "kind", kind);
	jw_str(&w, "trial", trial);
	jw_str(&w, "what", what);
	put_amount(&w, a);
	jw_obj(&w, "total");
	put_amount(&w, total);
	jw_end(&w);
	jw_end(&w);
	int rc = file_append(path, buf_str(&w.out), e);
	jw_free(&w);
	return rc;
}

static int lock_ledger(struct lock *l, const struct run *r, struct err *e)
{
	char name[40];
	snprintf(name, sizeof name, "ledger-%s", r->name);
	return lock_take(l, name, LOCK_ALONE, -1, e);
}

/* Does `more` on top of `now` exceed the budget `key`? What is charged already and what does not
 * fit are two things to tell: the second can be helped by a smaller call. */
static int over(const struct run *r, const char *key, double now, double more, struct err *e)
{
	double most = run_num(r, key, 0);
	if (most <= 0 || now + more <= most)
		return 0;
	if (now >= most)
		return err_set(e, EX_NOENV, "budget %s=%g of run %s is used up", key, most,
			       r->name);
	return err_set(e, EX_NOENV,
		       "budget %s=%g of run %s: %g are charged, the next step may take %g", key,
		       most, r->name, now, more);
}

static int fits(const struct run *r, const struct ledger_amount *now,
		const struct ledger_amount *more, struct err *e)
{
	return over(r, "max_calls", (double)now->calls, (double)more->calls, e) ||
		       over(r, "max_tokens", (double)(now->tokens_in + now->tokens_out),
			    (double)(more->tokens_in + more->tokens_out), e) ||
		       over(r, "max_usd", now->usd, more->usd, e) ||
		       over(r, "max_gpu_s", now->gpu_s, more->gpu_s, e)
		   ? -1
		   : 0;
}

int ledger_reserve(const struct run *r, const char *trial, const char *what,
		   const struct ledger_amount *most, char id[LEDGER_ID], struct err *e)
{
	struct lock lock;
	struct ledger_amount total;
	static unsigned serial;
	if (lock_ledger(&lock, r, e))
		return -1;
	int rc = ledger_total(r, &total, e);
	if (!rc)
		rc = fits(r, &total, most, e);
	if (!rc) {
		char now[32];
		add_amount(&total, most, 1);
		verdict_now(now);
		snprintf(id, LEDGER_ID, "%s-%.13s-%ld-%u", trial, now + 11, (long)getpid(),
			 serial++);
		rc = append(r, id, "reserve", trial, what, most, &total, e);
	}
	lock_drop(&lock);
	return rc;
}

int ledger_settle(const struct run *r, const char *trial, const char *what, const char *id,
		  const struct ledger_amount *most, const struct ledger_amount *spent,
		  struct err *e)
{
	struct lock lock;
	struct ledger_amount total;
	if (lock_ledger(&lock, r, e))
		return -1;
	int rc = ledger_total(r, &total, e);
	if (!rc) {
		add_amount(&total, most, -1);
		add_amount(&total, spent, 1);
		rc = append(r, id, "settle", trial, what, spent, &total, e);
	}
	lock_drop(&lock);
	return rc;
}

/* All whole lines of the ledger as a JSON array; an absent file is an empty one. */
static cJSON *read_all(const struct run *r, struct err *e)
{
	char path[TRIAL_PATH];
	struct buf text = BUF_INIT;
	cJSON *list = cJSON_CreateArray();
	run_path(path, r->name, "ledger.jsonl");
	if (file_exists(path) && file_read(path, (size_t)256 << 20, &text, e)) {
		cJSON_Delete(list);
		buf_free(&text);
		return NULL;
	}
	char *line = text.data, *end;
	for (; line && (end = strchr(line, '\n')); line = end + 1) {
		cJSON *j = json_parse(line, (size_t)(end - line), &JSON_OURS, path, NULL);
		if (j) /* a torn line that was given its end later is no entry */
			cJSON_AddItemToArray(list, j);
	}
	buf_free(&text);
	return list;
}

int ledger_usual_gpu_s(const struct run *r, const char *what, double *s, struct err *e)
{
	*s = 0;
	if (run_num(r, "max_gpu_s", 0) <= 0)
		return 0; /* nobody looks at it */
	cJSON *list = read_all(r, e);
	if (!list)
		return -1;
	double *v = xcalloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *v);
	size_t n = 0;
	for (const cJSON *j = list->child; j; j = j->next) {
		v[n] = json_get_num(j, "gpu_s", 0);
		n += v[n] > 0 && v[n] < 1e9 && strcmp(json_get_str(j, "kind", ""), "settle") == 0 &&
		     strcmp(json_get_str(j, "what", ""), what) == 0;
	}
	*s = n ? stats_median(v, n) : 0;
	free(v);
	cJSON_Delete(list);
	return 0;
}

static int closed_after(const cJSON *j, const char *id)
{
	for (; j; j = j->next)
		if (strcmp(json_get_str(j, "id", ""), id) == 0 &&
		    strcmp(json_get_str(j, "kind", ""), "reserve") != 0)
			return 1;
	return 0;
}

int ledger_reserved(const struct run *r, const char *id, struct ledger_amount *most, struct err *e)
{
	cJSON *list = read_all(r, e);
	int found = 0;
	if (!list)
		return -1;
	for (const cJSON *j = list->child; j; j = j->next) {
		const char *kind = json_get_str(j, "kind", "");
		if (strcmp(json_get_str(j, "id", ""), id) != 0)
			continue;
		if (strcmp(kind, "reserve") == 0)
			take_amount(j, most);
		found = strcmp(kind, "reserve") == 0 || (found && strcmp(kind, "settle") != 0);
	}
	cJSON_Delete(list);
	return found;
}

int ledger_interrupt(const struct run *r, int *marked, struct err *e)
{
	static const struct ledger_amount nothing;
	struct ledger_amount total;
	*marked = 0;
	cJSON *list = read_all(r, e);
	if (!list)
		return -1;
	int rc = 0;
	for (const cJSON *j = list->child; j && !rc; j = j->next) {
		const char *id = json_get_str(j, "id", "");
		if (strcmp(json_get_str(j, "kind", ""), "reserve") != 0 || closed_after(j, id))
			continue;
		rc = ledger_total(r, &total, e);
		if (!rc)
			rc = append(r, id, "interrupted", json_get_str(j, "trial", ""),
				    json_get_str(j, "what", ""), &nothing, &total, e);
		*marked += json_get_num(j, "calls", 0) > 0;
	}
	cJSON_Delete(list);
	return rc;
}
