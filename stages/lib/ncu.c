/*
 * ncu.c - see ncu.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "ncu.h"

#include "json.h"
#include "utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 512, CELL = 256 };

const struct ncu_metric NCU_METRIC[NCU_METRICS] = {
	{"gpu__time_duration.sum", "time_ns", "", " ns under the profiler"},
	{"dram__bytes_read.sum", "dram_read_bytes", "DRAM read ", " bytes"},
	{"dram__bytes_write.sum", "dram_write_bytes", "written ", " bytes"},
	{"dram__throughput.avg.pct_of_peak_sustained_elapsed", "dram_pct", "DRAM at ", " % of peak"},
	{"sm__throughput.avg.pct_of_peak_sustained_elapsed", "sm_pct", "SMs at ", " % of peak"},
	{"sm__warps_active.avg.pct_of_peak_sustained_active", "warps_pct", "warps active ", " % of the most"},
	{"smsp__issue_active.avg.pct_of_peak_sustained_active", "issue_pct", "issue slots used ", " %"},
	{"l1tex__t_sector_hit_rate.pct", "l1_hit_pct", "L1 hits ", " %"},
	{"lts__t_sector_hit_rate.pct", "l2_hit_pct", "L2 hits ", " %"},
	{"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", "stall_memory",
	 "warps waiting for memory ", " an issue"},
	{"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", "stall_barrier",
	 "for a barrier ", " an issue"},
	{"l1tex__data_bank_conflicts_pipe_lsu.sum", "bank_conflicts", "shared memory bank conflicts ", ""},
};

struct line {
	const char *at, *end;
};

/* The next line of [*p, end); 0 at the end. */
static int next_line(const char **p, const char *end, struct line *l)
{
	if (*p >= end)
		return 0;
	const char *nl = memchr(*p, '\n', (size_t)(end - *p));
	l->at = *p;
	l->end = nl ? nl : end;
	*p = nl ? nl + 1 : end;
	if (l->end > l->at && l->end[-1] == '\r')
		l->end--;
	return 1;
}

static int starts(const struct line *l, const char *with)
{
	size_t n = strlen(with);
	return (size_t)(l->end - l->at) >= n && memcmp(l->at, with, n) == 0;
}

/* The next cell, quotes taken off, cut to its room. 1; 0 at the end; -1 for what is no CSV. */
static int next_cell(struct line *l, char out[CELL])
{
	size_t n = 0;
	int quoted = l->at < l->end && *l->at == '"';
	if (l->at > l->end) /* behind the last comma */
		return 0;
	const char *p = l->at + quoted;
	for (; p < l->end; p++) {
		if (quoted && *p == '"') {
			if (p + 1 < l->end && p[1] == '"')
				p++;
			else
				break;
		} else if (!quoted && *p == ',') {
			break;
		}
		if (n < CELL - 1)
			out[n++] = *p >= ' ' && *p < 127 ? *p : '?';
	}
	out[n] = '\0';
	if (quoted && p == l->end)
		return -1;
	p += quoted;
	if (p < l->end && *p != ',')
		return -1;
	l->at = p + 1;
	return 1;
}

struct table {
	int columns, kernel, metric[COLUMNS]; /* which metric a column is; -1 none */
	double scale[COLUMNS];
};

static int read_header(struct line l, struct table *t)
{
	char cell[CELL];
	int rc, found = 0;
	t->columns = 0;
	t->kernel = -1;
	while ((rc = next_cell(&l, cell)) == 1 && t->columns < COLUMNS) {
		int at = t->columns++;
		t->metric[at] = -1;
		t->scale[at] = 1;
		if (strcmp(cell, "Kernel Name") == 0)
			t->kernel = at;
		for (int i = 0; i < NCU_METRICS; i++)
			if (strcmp(cell, NCU_METRIC[i].ask) == 0) {
				t->metric[at] = i;
				found++;
			}
	}
	return rc == 0 && t->kernel >= 0 && found > 0 ? 0 : -1;
}

static double scale_of(const char *unit)
{
	static const struct {
		const char *name;
		double scale;
	} known[] = {{"us", 1e3}, {"usecond", 1e3}, {"ms", 1e6}, {"msecond", 1e6}, {"s", 1e9}, {"second", 1e9},
		     {"Kbyte", 1e3}, {"Mbyte", 1e6}, {"Gbyte", 1e9}, {"Tbyte", 1e12}};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(unit, known[i].name) == 0)
			return known[i].scale;
	return 1;
}

/* 1,234.5 in the C locale; anything else ("n/a", "") is NAN. */
static double number_of(const char *text, double scale)
{
	char plain[CELL], *end;
	size_t n = 0;
	for (const char *p = text; *p; p++)
		if (*p != ',')
			plain[n++] = *p;
	plain[n] = '\0';
	if (n == 0 || strspn(plain, "0123456789.eE+-") != n)
		return NAN;
	double v = strtod(plain, &end) * scale;
	return *end || !isfinite(v) || v < 0 ? NAN : v;
}

static int is_space(const char *s)
{
	return s[strspn(s, " ")] == '\0';
}

/* A row of units (no kernel), or of a launch. -1: it does not fit the header. */
static int read_row(struct line l, struct table *t, struct ncu_report *r)
{
	char cell[CELL];
	struct ncu_launch one = {.kernel = ""};
	double scale[COLUMNS];
	int rc, at = 0;
	for (int i = 0; i < NCU_METRICS; i++)
		one.value[i] = NAN;
	for (; (rc = next_cell(&l, cell)) == 1 && at < t->columns; at++) {
		scale[at] = scale_of(cell);
		if (at == t->kernel)
			snprintf(one.kernel, sizeof one.kernel, "%.*s", NCU_NAME - 1, is_space(cell) ? "" : cell);
		else if (t->metric[at] >= 0)
			one.value[t->metric[at]] = number_of(cell, t->scale[at]);
	}
	if (rc != 0 || at != t->columns)
		return -1;
	if (!one.kernel[0])
		memcpy(t->scale, scale, (size_t)at * sizeof *scale);
	else if (r->n < NCU_LAUNCHES)
		r->launch[r->n++] = one;
	return 0;
}

int ncu_parse(const char *text, size_t len, struct ncu_report *r, struct err *e)
{
	const char *p = text, *end = text + len;
	static struct table t;
	struct line l, said = {NULL, NULL};
	int have = 0;
	memset(r, 0, sizeof *r);
	while (next_line(&p, end, &l)) {
		if (starts(&l, "==ERROR==") && !said.at)
			said = l;
		if (starts(&l, "\"ID\"") && !have)
			have = read_header(l, &t) == 0;
		else if (have && starts(&l, "\"") && read_row(l, &t, r))
			return err_set(e, EX_BADINPUT, "a row of ncu's table does not fit its header");
	}
	if (r->n > 0)
		return 0;
	if (!said.at)
		return err_set(e, EX_BADINPUT, have ? "ncu saw no launch" : "ncu wrote no table with our metrics");
	struct buf why = BUF_INIT;
	utf8_line(&why, said.at + 9, (size_t)(said.end - said.at) - 9, NCU_WHY);
	const char *words = buf_str(&why) + strspn(buf_str(&why), " ");
	err_set(e, EX_BADINPUT, "%s", *words ? words : "ncu failed without a reason");
	buf_free(&why);
	return -1;
}

void ncu_write(const struct ncu_report *r, struct jsonw *w, const char *key)
{
	jw_arr(w, key);
	for (int i = 0; i < r->n; i++) {
		jw_obj(w, NULL);
		jw_str(w, "kernel", r->launch[i].kernel);
		for (int k = 0; k < NCU_METRICS; k++)
			jw_num(w, NCU_METRIC[k].key, r->launch[i].value[k]);
		jw_end(w);
	}
	jw_end(w);
}

void ncu_tell(const cJSON *launches, struct buf *out)
{
	const cJSON *l;
	cJSON_ArrayForEach(l, launches) {
		const char *kernel = json_get_str(l, "kernel", "?");
		int n = 0;
		buf_adds(out, "  - ncu, ");
		utf8_line(out, kernel, strlen(kernel), NCU_NAME);
		for (int k = 0; k < NCU_METRICS; k++) {
			double v = json_get_num(l, NCU_METRIC[k].key, NAN);
			if (!isnan(v))
				buf_addf(out, "%s%s%.*f%s", n++ ? ", " : ": ", NCU_METRIC[k].text, v < 1000 ? 1 : 0, v,
					 NCU_METRIC[k].unit);
		}
		buf_adds(out, n ? "\n" : ": nothing measured\n");
	}
}
