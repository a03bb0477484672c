/*
 * duplicate.c - see duplicate.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "duplicate.h"

#include "file.h"
#include "hash.h"
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Only a trial judged under the same spec says anything about this one. */
static int same_spec(struct stage *s, const char *id)
{
	struct trial t;
	struct run r;
	struct err why;
	if (trial_read(id, &t, &why))
		return 0;
	int same = !run_read(t.run, &r, &why);
	if (same) {
		same = !strcmp(r.spec_sha256, s->run.spec_sha256);
		run_free(&r);
	}
	trial_free(&t);
	return same;
}

static int ends_with(const char *s, const char *tail)
{
	size_t n = strlen(s), k = strlen(tail);
	return n >= k && !strcmp(s + n - k, tail);
}

/* One line of the index: trial spec device candidate verdict code proposed. Cut in place; 0 when it says nothing here. */
static int cut_line(struct stage *s, char *line, long upto, char *f[7])
{
	char *rest = line;
	for (int i = 0; i < 7; i++)
		if (!(f[i] = strsep(&rest, "\t")))
			return 0;
	return trial_number(f[0]) >= 1 && trial_number(f[0]) <= upto && !strcmp(f[1], s->trial.spec) &&
	       !strcmp(f[2], s->trial.device) && strcmp(f[4], "invalid") != 0;
}

static int match_line(struct stage *s, char *line, const char *candidate, long upto, const char **code,
		      char out[160])
{
	char *f[7];
	if (!cut_line(s, line, upto, f) || (strcmp(f[3], candidate) && strcmp(f[6], candidate)))
		return 0;
	if (!same_spec(s, f[0]))
		return 0;
	int hangs = ends_with(f[5], ".timeout") || ends_with(f[5], ".deadlock");
	snprintf(out, 160, "trial %.15s was this candidate: %.15s, %.40s (make redo runs it again)", f[0],
		 f[4], f[5]);
	*code = hangs ? "guard.hang" : "guard.duplicate";
	return 1;
}

/* `redo` asks for the same again on purpose. */
static int wants_again(const struct stage *s)
{
	const cJSON *origin = json_get(s->trial.json, "origin");
	const char *kind = origin ? json_get_str(origin, "kind", "") : "";
	/* redo of a trial that has no reply adopts that trial's files */
	int redo = !strcmp(kind, "redo") ||
		   (!strcmp(kind, "adopt") && trial_id_ok(json_get_str(origin, "from", "")));
	return redo || run_int(&s->run, "allow_duplicate", 0);
}

int duplicate_find_sha(struct stage *s, const char *candidate, const char **code, char text[160], struct err *e)
{
	const char *sees = s->trial.sees[0] ? s->trial.sees : json_get_str(s->run.json, "state_from", "");
	long upto = *sees ? trial_number(sees) : 0;
	struct buf index = BUF_INIT;
	int found = 0;
	if (upto < 1 || wants_again(s) || !file_exists("trials/index.tsv"))
		return 0;
	if (file_read("trials/index.tsv", (size_t)256 << 20, &index, e)) {
		buf_free(&index);
		return -1;
	}
	char *rest = index.data, *line;
	while (!found && rest && (line = strsep(&rest, "\n")))
		if (strstr(line, candidate))
			found = match_line(s, line, candidate, upto, code, text);
	buf_free(&index);
	return found;
}

int duplicate_find(struct stage *s, const struct buf *kernel_cu, const struct buf *plan_json, const char **code,
		   char text[160], struct err *e)
{
	char kernel[HASH_HEX], plan[HASH_HEX], candidate[HASH_HEX];
	hash_hex(buf_str(kernel_cu), kernel_cu->len, kernel);
	hash_hex(buf_str(plan_json), plan_json->len, plan);
	trial_candidate_sha(kernel, plan, candidate);
	return duplicate_find_sha(s, candidate, code, text, e);
}

/* ---- many at once ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void add_sha(struct duplicates *d, const char *sha)
{
	if (!hash_is_hex(sha))
		return;
	d->sha = xrealloc(d->sha, (d->n + 1) * sizeof *d->sha);
	memcpy(d->sha[d->n++], sha, HASH_HEX);
}

int duplicates_before(struct stage *s, long upto, struct duplicates *d, struct err *e)
{
	struct buf index = BUF_INIT;
	char *f[7];
	*d = (struct duplicates){0};
	if (upto < 1 || wants_again(s) || !file_exists("trials/index.tsv"))
		return 0;
	if (file_read("trials/index.tsv", (size_t)256 << 20, &index, e)) {
		buf_free(&index);
		return -1;
	}
	char *rest = index.data, *line;
	while (rest && (line = strsep(&rest, "\n")))
		if (cut_line(s, line, upto, f) && same_spec(s, f[0])) {
			add_sha(d, f[3]);
			add_sha(d, f[6]);
		}
	buf_free(&index);
	if (d->n)
		qsort(d->sha, d->n, sizeof *d->sha, by_text);
	return 0;
}

int duplicates_has(const struct duplicates *d, const char *candidate)
{
	return d->n && bsearch(candidate, d->sha, d->n, sizeof *d->sha, by_text) != NULL;
}

void duplicates_free(struct duplicates *d)
{
	free(d->sha);
	*d = (struct duplicates){0};
}
