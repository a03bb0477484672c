/*
 * record.c - see record.h: reading a closed trial, the log and the index, and the order.
 *
 * SPDX-License-Identifier: MIT
 */
#include "record.h"

#include "file.h"
#include "json.h"
#include "jsonw.h"
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG "trials/log.jsonl"
#define INDEX "trials/index.tsv"
#define DERIVED "trials/.derived"

enum { TAIL = 65536 };

/* A kept candidate must have passed everything, by the very files the verdict names. */
static int check_keep(const struct closed *c, struct err *e)
{
	static const enum step must[] = {STEP_JUDGE, STEP_BENCH, STEP_CONFIRM};
	for (size_t i = 0; i < sizeof must / sizeof must[0]; i++) {
		struct verdict_in in;
		if (verdict_read(c->trial.id, must[i], &in, e))
			return -1;
		int pass = in.kind == V_PASS;
		const char *up = verdict_in_input(&c->promote, "upstream");
		int linked = must[i] != STEP_CONFIRM || (up && strcmp(up, in.sha) == 0);
		const char *cand = verdict_in_input(&in, "candidate");
		int same = cand && c->candidate && strcmp(cand, c->candidate) == 0;
		verdict_in_free(&in);
		if (!pass || !linked || !same)
			return err_set(e, EX_HARNESS, "trial %s is kept, but its %s does not say so",
				       c->trial.id, step_info(must[i])->name);
	}
	return 0;
}

static const char *id_or_null(const cJSON *obj, const char *key)
{
	const char *s = obj ? json_get_str(obj, key, NULL) : NULL;
	return trial_id_ok(s) ? s : NULL;
}

int closed_read(const char *id, struct closed *c, struct err *e)
{
	memset(c, 0, sizeof *c);
	if (trial_read(id, &c->trial, e))
		return -1;
	if (verdict_read(id, STEP_PROMOTE, &c->promote, e)) {
		trial_free(&c->trial);
		return -1;
	}
	const cJSON *d = c->promote.data;
	c->number = trial_number(id);
	c->kept = c->promote.kind == V_PASS;
	c->candidate = json_get_str(d, "candidate_sha256", NULL);
	c->parent = id_or_null(d, "parent");
	c->before = id_or_null(d, "champion_before");
	c->title = json_get_str(d, "item", "");
	c->dir = json_get_str(d, "candidate_dir", "a0");
	if (c->kept && check_keep(c, e)) {
		closed_free(c);
		return -1;
	}
	return 0;
}

void closed_free(struct closed *c)
{
	verdict_in_free(&c->promote);
	trial_free(&c->trial);
}

/* Number at the start of the last whole line, after `{"trial":"` in the log. */
static long line_number(const char *line)
{
	static const char lead[] = "{\"trial\":\"";
	if (strncmp(line, lead, sizeof lead - 1) == 0)
		line += sizeof lead - 1;
	return strtol(line, NULL, 10);
}

/* How far a file of lines is; a torn last line is cut off first. */
static int tail_number(const char *path, long *number, struct err *e)
{
	static char tail[TAIL + 1];
	struct stat st;
	*number = 0;
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "cannot open '%s'", path);
	off_t from = fstat(fd, &st) == 0 && st.st_size > TAIL ? st.st_size - TAIL : 0;
	ssize_t n = pread(fd, tail, TAIL, from);
	int rc = n < 0 ? err_sys(e, "cannot read '%s'", path) : 0;
	ssize_t end = n;
	while (end > 0 && tail[end - 1] != '\n')
		end--;
	if (!rc && end < n && (ftruncate(fd, from + end) || fsync(fd)))
		rc = err_sys(e, "cannot cut the torn line off '%s'", path);
	close(fd);
	if (rc || end <= 0)
		return rc;
	tail[end - 1] = '\0';
	const char *line = strrchr(tail, '\n');
	*number = line_number(line ? line + 1 : tail);
	return 0;
}

int record_last(long *number, struct err *e)
{
	return tail_number(LOG, number, e);
}

static void copy_key(struct jsonw *w, const cJSON *from, const char *key)
{
	const cJSON *item = json_get(from, key);
	if (item)
		jw_item(w, key, item);
}

/* Promoted although too few layers of isolation held (ALLOW_WEAK=1)? */
static int weak(const struct closed *c)
{
	const cJSON *i;
	cJSON_ArrayForEach(i, json_get(c->promote.json, "isolation"))
		if (cJSON_IsString(i) && strcmp(i->valuestring, "weak") == 0)
			return 1;
	return 0;
}

static int roll_log(const struct closed *c, struct err *e)
{
	static const char *const keys[] = {"item", "hypothesis", "parent", "ratio", "ratio_lo95",
		"ratio_hi95", "ratio_baseline", "ratio_baseline_lo95", "ratio_baseline_hi95",
		"charged", "spent", "relies", "repairs", "first_error", "playbook_item", "plateau"};
	long last;
	if (tail_number(LOG, &last, e))
		return -1;
	if (last >= c->number)
		return 0;
	struct jsonw w = {0};
	jw_obj(&w, NULL);
	jw_str(&w, "trial", c->trial.id);
	jw_str(&w, "run", c->trial.run);
	jw_str(&w, "spec", c->trial.spec);
	jw_str(&w, "device", c->trial.device);
	jw_str(&w, "verdict", verdict_kind_name(c->promote.kind));
	jw_str(&w, "code", c->promote.code);
	jw_str(&w, "message", c->promote.message);
	jw_str(&w, "status", json_get_str(c->promote.json, "status", "clean"));
	jw_bool(&w, "kept", c->kept);
	jw_str(&w, "candidate_sha256", c->candidate);
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		copy_key(&w, c->promote.data, keys[i]);
	const cJSON *by = json_get(c->promote.data, "closed_by");
	if (by)
		jw_str(&w, "closed_by", json_get_str(by, "step", ""));
	copy_key(&w, c->promote.json, "proposer");
	copy_key(&w, c->promote.json, "simulated");
	copy_key(&w, c->promote.json, "emulated");
	copy_key(&w, c->promote.json, "started");
	if (weak(c))
		jw_bool(&w, "weak", 1);
	jw_str(&w, "promote_sha256", c->promote.sha);
	jw_end(&w);
	int rc = file_append(LOG, buf_str(&w.out), e);
	jw_free(&w);
	return rc;
}

/* The candidate of the last attempt as proposed: tune may have gone on with another plan, and
 * the same proposal must be known again. */
static void find_proposed(const struct closed *c, char out[HASH_HEX])
{
	for (int k = TRIAL_ATTEMPTS - 1; k >= 0; k--) {
		struct verdict_in in;
		struct err none;
		if (verdict_read(c->trial.id, (enum step)(3 * k), &in, &none))
			continue;
		const char *sha = in.kind == V_SKIP ? NULL : verdict_in_input(&in, "candidate");
		snprintf(out, HASH_HEX, "%s", sha ? sha : "-");
		verdict_in_free(&in);
		if (sha)
			return;
	}
}

static int roll_index(const struct closed *c, struct err *e)
{
	long last;
	char proposed[HASH_HEX] = "-";
	if (tail_number(INDEX, &last, e))
		return -1;
	if (last >= c->number)
		return 0;
	find_proposed(c, proposed);
	char *line = xasprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s", c->trial.id, c->trial.spec,
			       c->trial.device, c->candidate ? c->candidate : "-",
			       c->kept ? "keep" : verdict_kind_name(c->promote.kind),
			       c->promote.code, proposed);
	int rc = file_append(INDEX, line, e);
	free(line);
	return rc;
}

/* Only a hint where to begin next time, so it is not synced: a lost one costs a second look. */
static void set_derived(const struct closed *c)
{
	int fd = open(DERIVED ".tmp", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return;
	size_t n = strlen(c->trial.id);
	int ok = write(fd, c->trial.id, n) == (ssize_t)n;
	close(fd);
	if (!ok || rename(DERIVED ".tmp", DERIVED))
		unlink(DERIVED ".tmp");
}

static int roll_locked(const char *id, struct err *e)
{
	struct closed c;
	if (closed_read(id, &c, e))
		return -1;
	int rc = roll_log(&c, e) || roll_index(&c, e) || record_history(&c, e) ||
		 record_champion(&c, e) ? -1 : 0;
	if (!rc)
		set_derived(&c);
	closed_free(&c);
	return rc;
}

int record_roll(const char *id, struct err *e)
{
	struct lock lock;
	if (lock_take(&lock, "record", LOCK_ALONE, -1, e))
		return -1;
	int rc = roll_locked(id, e);
	lock_drop(&lock);
	return rc;
}

int record_catch_up(int *rolled, struct err *e)
{
	struct lock lock;
	struct buf at = BUF_INIT;
	*rolled = 0;
	if (lock_take(&lock, "record", LOCK_ALONE, -1, e))
		return -1;
	long n = file_read(DERIVED, 64, &at, NULL) == 0 ? trial_number(buf_str(&at)) : 0;
	int rc = 0;
	for (n = n < 0 ? 1 : n + 1; !rc; n++) {
		char id[TRIAL_ID], path[TRIAL_PATH];
		trial_id(id, n);
		trial_path(path, id, "trial.json");
		if (!file_exists(path))
			break; /* ids are claimed without a gap */
		trial_step_path(path, id, STEP_PROMOTE);
		if (!file_exists(path))
			continue;
		rc = roll_locked(id, e);
		*rolled += !rc;
	}
	buf_free(&at);
	lock_drop(&lock);
	return rc;
}
