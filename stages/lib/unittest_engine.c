/*
 * unittest_engine.c - see unittest_engine.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "unittest_engine.h"

#include "buf.h"
#include "engine_sanitize.h"
#include "engine_setup.h"
#include "facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct engine_setup u;
static struct buf lines; /* unittest.log */
static char layers[CONFINE_LIST];

/* What an engine said on standard error, for whoever repairs it: printable ASCII, the last of it. */
static void add_stderr(const struct engine_row *row)
{
	enum { MOST = 4000 };
	const size_t from = row->log.len > MOST ? row->log.len - MOST : 0;
	if (row->log.len == 0)
		return;
	buf_addf(&lines, "\nits standard error%s:\n", from ? ", the end of it" : "");
	for (size_t i = from; i < row->log.len; i++) {
		const char c = row->log.data[i];
		buf_addc(&lines, (c >= ' ' && c <= '~') || c == '\n' || c == '\t' ? c : '?');
	}
	buf_addc(&lines, '\n');
}

static void log_rows(const struct engine_report *r, const char *build)
{
	for (int i = 0; i < r->n && (r->at < 0 || i < r->at); i++) {
		const struct engine_row *row = &r->row[i];
		buf_addf(&lines, "ok   %s: batch %d, prompt %d, steps %d (%s)\n", row->w.name, row->w.batch, row->w.prompt,
			 row->w.steps, build);
		if (!row->repeats)
			buf_addf(&lines, "note %s: the same prompts gave other ids the second time\n", row->w.name);
	}
}

static int fail(struct stage *s, const struct engine_report *r, const char *build, struct err *e)
{
	struct buf why = BUF_INIT;
	char code[64];
	int rc = engine_rig_explain(&u.rig, r, 1, &why, e);
	engine_code(code, "unittest", r->word);
	if (rc == 0) {
		verdict_set(&s->v, V_REJECT, code, "%s", buf_str(&why));
		buf_addf(&lines, "FAIL %s\n%s, build %s\n", code, buf_str(&why), build);
	}
	if (rc == 0 && r->at >= 0)
		add_stderr(&r->row[r->at]);
	buf_free(&why);
	return rc;
}

static int run(struct stage *s, struct engine_report *r, const char *build, struct err *e)
{
	struct engine_rig_work *w = engine_setup_work(u.spec->tiny, u.spec->ntiny);
	int rc = u.spec->cuda ? 0 : lane_share(&u.lane, s->trial.device, e);
	if (rc == 0)
		rc = engine_rig_run(&u.rig, w, u.spec->ntiny, r, e);
	lane_drop(&u.lane);
	if (rc == 0)
		log_rows(r, build);
	if (rc == 0 && strcmp(r->word, "ok"))
		rc = fail(s, r, build, e);
	free(w);
	return rc;
}

/* An engine in C that is right: is it clean, too? */
static int sanitize(struct stage *s, const struct engine_report *r, struct engine_sanitized *o, struct err *e)
{
	struct engine_files f;
	if (engine_files_recorded(s, stage_candidate_dir(s), &f, e))
		return -1;
	int rc = lane_share(&u.lane, s->trial.device, e);
	if (rc == 0)
		rc = engine_sanitize(&f, &u.rig, r, o, e);
	lane_drop(&u.lane);
	engine_files_free(&f);
	if (rc == 0 && o->ran && !o->clean) {
		verdict_set(&s->v, V_REJECT, "unittest.sanitizer", "%s", o->words);
		buf_addf(&lines, "FAIL unittest.sanitizer\n%s", buf_str(&o->log));
	} else if (rc == 0)
		buf_addf(&lines, o->ran ? "ok   clean under AddressSanitizer and UndefinedBehaviorSanitizer\n" : "note no sanitizers: %s\n",
			 o->words);
	return rc;
}

static void record(struct stage *s, const struct engine_report *r, const struct engine_sanitized *o)
{
	if (!strcmp(r->word, "ok") && (!o->ran || o->clean))
		verdict_set(&s->v, V_PASS, "ok", "right at %d tiny workloads, %zu ids; %s%s", r->n, r->all.tokens,
			    o->ran ? "clean under sanitizers" : "no sanitizers", r->repeats ? "" : "; not the same each time");
	jw_str(&s->v.data, "coverage", o->ran ? "sanitized" : "reduced");
	jw_bool(&s->v.data, "sanitizers", o->ran);
	jw_bool(&s->v.data, "deterministic", r->repeats);
	engine_rig_write(r, &s->v.data);
	snprintf(layers, sizeof layers, "%s", r->isolation);
	verdict_isolation_list(&s->v, layers);
}

int unittest_engine(struct stage *s, const char *text, size_t len, struct checker **c, struct err *e)
{
	struct engine_report r = {0};
	struct engine_sanitized o = {0};
	char name[64];
	if (device_class_of(s->trial.device) == DEVICE_SIM) {
		verdict_set(&s->v, V_PASS, "ok", "simulated: nothing was run");
		return 0;
	}
	snprintf(name, sizeof name, "unittest-a%d", s->attempt);
	int rc = engine_setup(s, text, len, "engine", &u, e);
	if (rc == 0)
		rc = engine_setup_key(s, name, c, &u, e);
	if (rc == 0)
		rc = run(s, &r, "engine", e);
	if (rc == 0 && !u.spec->cuda && !strcmp(r.word, "ok"))
		rc = sanitize(s, &r, &o, e);
	if (rc == 0)
		record(s, &r, &o);
	snprintf(name, sizeof name, "%s/unittest.log", stage_candidate_dir(s));
	if (rc == 0)
		rc = stage_side(s, name, buf_str(&lines), lines.len, e);
	engine_report_free(&r);
	engine_sanitized_free(&o);
	engine_setup_free(&u);
	buf_free(&lines);
	return rc;
}
