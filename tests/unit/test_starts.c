/*
 * test_starts.c - every start/ reads well, and its plan holds at the sizes of a GPU in all configurations tried.
 *
 * Reads specs/ below the working directory (the root of the repository). What the kernels compute is
 * proved by tests/starts/run. Where there is a CUDA toolkit, starts, baselines and references go through the
 * loop's own compiler and gates; spills and registers are looked at by tests/starts/t1-compile.sh.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/engine_spec.h"
#include "../../stages/lib/box_call.h"
#include "../../stages/lib/file.h"
#include "../../stages/lib/plan.h"
#include "../../stages/lib/source.h"
#include "../../stages/lib/toolkit.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

enum { TRIES = 400 };

/* A GPU of 132 SMs; how many clusters fit is what an H200 says. */
static void gpu(struct facts *f)
{
	static const int64_t clusters[17] = {0, 132, 66, 44, 30, 22, 20, 16, 15, 12, 11, 10, 9, 8, 8, 7, 7};
	struct err e = {0};

	assert_int_equal(facts_find("sim", f, &e), 0);
	f->class = DEVICE_CUDA;
	f->l2_bytes = 60 << 20;
	memcpy(f->clusters, clusters, sizeof clusters);
}

static struct plan *load(const struct spec *s, const char *dir)
{
	struct err e = {0};
	struct buf text = BUF_INIT;
	struct plan *p = NULL;
	char path[160];

	snprintf(path, sizeof path, "%s/%s/plan.json", dir, s->start);
	if (file_read(path, PLAN_MAX_BYTES, &text, &e) || plan_parse(buf_str(&text), text.len, path, &p, &e) ||
	    plan_check(p, s, &e))
		fail_msg("%s", e.text);
	buf_free(&text);
	return p;
}

/* What guard reads before it compiles; a start may use assembly. */
static void reads_well(const struct spec *s, const char *dir)
{
	struct source_rules rules = {.asm_ok = 1};
	struct source_finding found;
	struct err e = {0};
	struct buf text = BUF_INIT;
	char path[160];

	snprintf(path, sizeof path, "%s/%s/kernel.cu", dir, s->start);
	if (file_read(path, 1 << 20, &text, &e))
		fail_msg("%s", e.text);
	if (source_ascii("kernel.cu", buf_str(&text), text.len, 1 << 20, &found) ||
	    source_check(buf_str(&text), text.len, &rules, &found))
		fail_msg("%s:%d: %s: %s", path, found.line, found.code, found.message);
	buf_free(&text);
}

/* 1 when c was legal at every public size; then its plan must hold at all sizes. */
static int holds(struct plan *p, const struct spec *s, const struct facts *f, const struct plan_config *c)
{
	struct err e = {0};
	struct plan_sizes sizes;
	int legal = 1;

	for (int i = 0; i < s->npublic && legal; i++)
		if (plan_config_legal(p, s, &s->public[i].gpu, f, c, &legal, &e))
			fail_msg("%s", e.text);
	if (legal && (plan_config_set(p, c, &e) || plan_sizes(p, s, f, 0, &sizes, &e)))
		fail_msg("%s", e.text);
	return legal;
}

static void start_holds(const char *dir, const struct spec *s)
{
	struct facts f;
	struct plan_config c;
	struct plan *p = load(s, dir);
	int64_t space, legal = 0;

	reads_well(s, dir);
	gpu(&f);
	plan_config_current(p, &c);
	assert_true(holds(p, s, &f, &c));
	assert_int_equal(plan_space(p, &space, NULL), 0);
	int64_t step = (space / TRIES + 1) | 1; /* odd: the last tunables often have two or four values */
	for (int64_t i = 0; i < space; i += step) {
		plan_config_at(p, i, &c);
		legal += holds(p, s, &f, &c);
	}
	assert_true(legal > 0);
	print_message("# %s: %lld configurations, %lld of %lld tried are legal and hold\n", s->name,
		      (long long)space, (long long)legal, (long long)((space + step - 1) / step));
	plan_free(p);
}

static void each(void (*what)(const char *dir, const struct spec *s))
{
	struct dirent *d;
	DIR *all = opendir("specs");
	int n = 0;

	assert_non_null(all);
	while ((d = readdir(all))) {
		struct err e = {0};
		struct spec *s;
		char dir[128];
		struct buf text = BUF_INIT;
		snprintf(dir, sizeof dir, "specs/%.64s/spec.json", d->d_name);
		if (d->d_name[0] == '.' || file_read(dir, 1 << 20, &text, NULL))
			continue;
		enum spec_kind kind;
		if (spec_kind(buf_str(&text), text.len, &kind, &e))
			fail_msg("%s", e.text);
		buf_free(&text);
		if (kind == SPEC_ENGINE) /* has no kernels */
			continue;
		snprintf(dir, sizeof dir, "specs/%.64s", d->d_name);
		if (spec_load(dir, &s, &e))
			fail_msg("%s", e.text);
		if (s->start) {
			what(dir, s);
			n++;
		}
		spec_free(s);
	}
	closedir(all);
	assert_true(n >= 10);
}

static void starts_hold(void **state)
{
	(void)state;
	each(start_holds);
}

/* ---- all three sources of a spec pass the compiler of the loop, and its gates ---- */

static void compiles(const struct spec *s, const char *dir, const char *kernel, const char *plan, int trusted)
{
	struct err e = {0};
	struct buf text = BUF_INIT, source = BUF_INIT;
	struct plan *p = NULL;
	struct box_macro macro[PLAN_MAX_TUNABLES + SPEC_MAX_AXES];
	char path[256], name[SPEC_MAX_AXES][80];
	const char *entry[PLAN_MAX_ENTRIES];
	size_t n = 0;

	snprintf(path, sizeof path, "%s/%s", dir, plan);
	if (file_read(path, PLAN_MAX_BYTES, &text, &e) || plan_parse(buf_str(&text), text.len, path, &p, &e))
		fail_msg("%s", e.text);
	snprintf(path, sizeof path, "%s/%s", dir, kernel);
	if (file_read(path, 1 << 20, &source, &e))
		fail_msg("%s", e.text);
	for (int i = 0; i < p->ntunables; i++)
		macro[n++] = (struct box_macro){p->tunable[i].name, p->tunable[i].current};
	for (int i = 0; i < s->naxes; i++)
		if (s->axis[i].is_const) {
			snprintf(name[i], sizeof name[i], "AXIS_%s", s->axis[i].name);
			macro[n++] = (struct box_macro){name[i], s->axis[i].value};
		}
	for (int i = 0; i < p->nentries; i++)
		entry[i] = p->entry[i];
	struct box_request q = {.mode = "cuda", .source = buf_str(&source), .source_len = source.len,
				.entries = entry, .entry_count = (size_t)p->nentries, .macros = macro,
				.macro_count = n, .arch = "sm_90a", .knobs = &p->compile, .trusted = trusted};
	struct box_result r;
	if (box_compile(&q, &r, &e))
		fail_msg("%s: %s", path, e.text);
	if (!r.ok)
		fail_msg("%s: %s: %s\n%.2000s", path, r.code, r.message, r.log);
	box_result_free(&r);
	plan_free(p);
	buf_free(&text);
	buf_free(&source);
}

static void spec_compiles(const char *dir, const struct spec *s)
{
	char kernel[80], plan[80];

	snprintf(kernel, sizeof kernel, "%.64s/kernel.cu", s->start);
	snprintf(plan, sizeof plan, "%.64s/plan.json", s->start);
	compiles(s, dir, kernel, plan, 0);
	compiles(s, dir, "baseline/kernel.cu", "baseline/plan.json", 0);
	compiles(s, dir, s->reference_source, s->reference_plan, 1);
}

static void specs_compile(void **state)
{
	struct toolkit t;
	struct err e = {0};

	(void)state;
	if (toolkit_find(&t, &e)) {
		print_message("skipped: %s\n", e.text);
		skip();
	}
	each(spec_compiles);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_hold),
		cmocka_unit_test(specs_compile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
