/*
 * test_page.c - the report page: what start/ gives apart from what was found, the figures of a GPU, labels and
 * escapes. Files of page_read lie in a scratch folder.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/file.h"
#include "../../stages/lib/page_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROW(id, keep, c, b)                                                                                       \
	{.trial = id, .run = "r0001", .spec = "vector_add", .device = "nvidia-h200", .verdict = keep ? "pass" : "reject", \
	 .code = "ok", .message = "", .item = "tunables: no change", .hypothesis = "", .proposer = "sweep",        \
	 .started = "2026-01-01T00:00:00Z", .closed_by = "", .kept = keep, .vs_champion = c, .vs_baseline = b}
#define R(...) ((struct page_ratio){__VA_ARGS__})

static const struct page_row start_kept = ROW("0001", 1, R(1.2, 1.19, 1.21), R(1.2, 1.19, 1.21));
static const struct page_row start_lost = ROW("0001", 0, R(0.8, 0.79, 0.81), R(0));
static const struct page_row second = ROW("0002", 1, R(1.05, 1.04, 1.06), R(1.27, 1.26, 1.28));
static const struct page_row third = ROW("0003", 1, R(1.1, 1.09, 1.11), R(1.5, 1.485, 1.515));

static struct page_source none[3];

static struct page_group group(const struct page_row **rows, size_t n, const struct page_row *start)
{
	return (struct page_group){.row = rows, .source = none, .n = n, .start = start};
}

static void near(double a, double b)
{
	if (!(fabs(a - b) < 1e-6))
		fail_msg("%.9g is not %.9g", a, b);
}

static void test_over_start(void **state)
{
	(void)state;
	const struct page_row *rows[] = {&start_kept, &second, &third};
	struct page_group g = group(rows, 2, &start_kept);
	struct page_ratio r = page_over_start(&g, &second);
	near(r.est, 1.05), near(r.lo, 1.04); /* they met */
	g = group(rows, 3, &start_kept);
	r = page_over_start(&g, &third);
	near(r.est, 1.5 / 1.2);
	double wide = hypot(log(1.21 / 1.19) / 2, log(1.515 / 1.485) / 2);
	near(r.lo, 1.25 * exp(-wide)), near(r.hi, 1.25 * exp(wide));
}

/* start/ lost to the baseline: its only measurement is against the champion of then, the baseline. */
static void test_start_lost(void **state)
{
	(void)state;
	const struct page_row *rows[] = {&start_lost, &second}, *late[] = {&second, &start_lost};
	struct page_group g = group(rows, 2, &start_lost);
	near(page_worth(&g, &start_lost).est, 0.8);
	near(page_over_start(&g, &second).est, 1.27 / 0.8);
	g = group(late, 2, &start_lost); /* against a champion that was kept before: says nothing */
	near(page_worth(&g, &start_lost).est, 0);
	near(page_over_start(&g, &second).est, 0);
}

static char *text_of(const struct page_group *g)
{
	struct buf b = BUF_INIT;
	page_group(&b, g);
	return b.data;
}

static void has(const char *text, const char *want)
{
	if (!strstr(text, want))
		fail_msg("no '%s' in: %s", want, text);
}

static void test_gpu_words(void **state)
{
	(void)state;
	const struct page_row *rows[] = {&start_kept, &second};
	const struct page_size size[] = {
		{.name = "la<rge", .bound = "memory", .time_us = 182.58, .gbs = 4411, .tflops = 0.37, .percent = 112.5,
		 .rival = "eager", .rival_us = 200.838},
		{.name = "odd", .time_us = 2046.7},
	};
	const struct page_machine m = {.name = "NVIDIA <b>", .arch = "sm_90a", .driver = "580", .toolkit = "13.0",
				       .copy_gbs = 3920, .read_gbs = 4556, .fp32_tflops = 63, .bf16_tflops = 956};
	struct page_group g = group(rows, 2, &start_kept);
	g.size = size, g.sizes = 2, g.machine = &m;
	char *t = text_of(&g);
	has(t, "NVIDIA &lt;b&gt;");
	has(t, "la&lt;rge");
	has(t, "182.6&nbsp;&micro;s");
	has(t, "2.047&nbsp;ms");
	has(t, "112.5&nbsp;%");
	has(t, "1.100&times; <span class=dim>eager, 200.8");
	has(t, "copy 3920 GB/s");
	has(t, "Found by the loop, beyond start/<b>1.050&times;");
	has(t, "no work of the loop: 1.200&times;");
	has(t, ">start/</span>");
	has(t, "its record is not here");
	assert_null(strstr(t, "emulated"));
	assert_null(strstr(t, "never a GPU speed"));
	free(t);
	/* start/ itself is the champion: nothing was found. */
	g.n = 1;
	t = text_of(&g);
	has(t, "Found by the loop, beyond start/<b>nothing yet");
	free(t);
	g.start = NULL;
	t = text_of(&g);
	assert_null(strstr(t, "beyond start/"));
	free(t);
}

static void test_engine_words(void **state)
{
	(void)state;
	const struct page_row *rows[] = {&start_kept, &second};
	const struct page_work work[] = {
		{.name = "on<e", .batch = 1, .prompt = 512, .steps = 32, .total_s = 0.115, .ttft_s = 0.0125, .tpot_s = 0.00331, .tokens_s = 278.3,
		 .of_floor = 0.498, .ttft_of_floor = 0.385, .tpot_of_floor = 0.511, .native_s = 0.198},
		{.name = "single", .batch = 2, .prompt = 7, .steps = 1, .total_s = 0.02, .ttft_s = 0.02},
	};
	struct page_group g = group(rows, 2, NULL);
	g.work = work, g.works = 2, g.ceilings = "measured";
	char *t = text_of(&g);
	has(t, "on&lt;e <span class=dim>1 / 512 / 32</span>");
	has(t, "115.0&nbsp;ms <span class=dim>49.8&nbsp;%</span>");
	has(t, ">278<");
	has(t, "12.50&nbsp;ms <span class=dim>38.5&nbsp;%</span>");
	has(t, "3.310&nbsp;ms <span class=dim>51.1&nbsp;%</span>");
	has(t, "1.722&times;");
	has(t, "&ndash;");
	has(t, "ceilings: measured.");
	free(t);
	g.ceilings = "none";
	t = text_of(&g);
	assert_null(strstr(t, "ceilings"));
	free(t);
}

static void test_failures(void **state)
{
	(void)state;
	struct page_row a = start_kept, b = start_kept, kept = start_kept;
	const struct page_row *rows[] = {&a, &kept, &b};
	a.verdict = b.verdict = "reject", a.code = b.code = "judge.rel_l2";
	a.message = "judge: 0.5 of <b>";
	b.message = "judge: 0.75 of <b>";
	struct page_group g = group(rows, 3, NULL);
	char *t = text_of(&g);
	has(t, "<li>2 of 3 trials: <code>judge.rel_l2</code> 0.75 of &lt;b&gt;"); /* the newest speaks */
	free(t);
	b.code = "judge.nan"; /* each once: no pattern */
	t = text_of(&g);
	assert_null(strstr(t, "failed more than once"));
	free(t);
}

static void test_search(void **state)
{
	(void)state;
	struct page_row a = start_kept, b = start_lost, c = start_lost, d = start_lost;
	const struct page_row *rows[] = {&a, &b, &c, &d};
	static struct page_source four[4];
	const struct page_spend spend[] = {{"r0001", 3, 4000, 0.5, 60}};
	a.proposer = b.proposer = c.proposer = "openai x/<m>";
	b.code = "propose.truncated", c.plateau = "widened", d.code = "propose.plateau", d.proposer = "openai x/<m>";
	struct page_group g = {.row = rows, .source = four, .n = 4, .spend = spend, .spends = 1};
	char *t = text_of(&g);
	has(t, "<tr><td>openai x/&lt;m&gt; <span class=tag>1 widened</span> <span class=tag>1 not proposed: the search was over</span>"
	       "</td><td class=n>3</td><td class=n>1</td><td class=n>+20.0 %</td><td class=n>1 of 3 (33 %)</td>");
	has(t, "<td class=n>3 calls, 4000 tokens, $0.5000, 60.0 GPU s</td><td class=n>200 tokens, $0.0250, 3.00 GPU s</td>");
	free(t);
	a.kept = 0;
	t = text_of(&g);
	has(t, "60.0 GPU s</td><td class=n>-</td>");
	free(t);
	g.spend = NULL; /* shipped: not told */
	t = text_of(&g);
	assert_null(strstr(t, "what they cost"));
	free(t);
}

static void test_emulated(void **state)
{
	(void)state;
	struct page_row row = second;
	row.device = "emu", row.emulated = 1;
	const struct page_row *rows[] = {&row};
	struct page_group g = group(rows, 1, NULL);
	char *t = text_of(&g);
	has(t, "emulated: never a GPU speed");
	assert_null(strstr(t, "One run of the champion"));
	free(t);
}

static void put(const char *dir, const char *file, const char *text)
{
	struct err e;
	char *path = xasprintf("%s/%s", dir, file), *slash = strrchr(path, '/');
	*slash = '\0';
	assert_int_equal(dir_make(path, &e), 0);
	*slash = '/';
	assert_int_equal(file_write(path, text, strlen(text), 0644, &e), 0);
	free(path);
}

static void test_read(void **state)
{
	(void)state;
	char dir[] = "/tmp/test_page.XXXXXX", base[64];
	assert_non_null(mkdtemp(dir));
	snprintf(base, sizeof base, "%s/", dir);
	put(dir, "trials/0001/a0/propose.json", "{\"data\":{\"parent_from\":\"start\"}}");
	put(dir, "trials/0002/a0/propose.json", "{\"data\":{\"parent_from\":\"baseline\"}}");
	put(dir, "trials/0002/confirm.json",
	    "{\"data\":{\"roofline\":[{\"name\":\"large\",\"time_us\":100,\"gbs\":null,\"roofline_percent\":99,\"bound\":\"memory\"}]}}");
	put(dir, "trials/runs/r0001/device.json",
	    "{\"toolkit\":\"13.0\",\"gpu\":{\"name\":\"NVIDIA H200\",\"arch\":\"sm_90a\",\"driver_version\":\"580\",\"ceilings\":null}}");
	put(dir, "compare-a.jsonl",
	    "{\"spec\":\"vector_add\",\"workload\":\"large\",\"gpu\":\"NVIDIA H200\",\"rival\":\"slow\",\"cold_us\":120}\n"
	    "torn {\n"
	    "{\"spec\":\"vector_add\",\"workload\":\"large\",\"gpu\":\"NVIDIA H100\",\"rival\":\"other GPU\",\"cold_us\":90}\n"
	    "{\"spec\":\"vector_add\",\"workload\":\"large\",\"gpu\":\"NVIDIA H200\",\"rival\":\"broken\",\"error\":\"x\"}\n"
	    "{\"spec\":\"softmax\",\"workload\":\"large\",\"gpu\":\"NVIDIA H200\",\"rival\":\"else\",\"cold_us\":80}\n");
	put(dir, "compare-b.jsonl",
	    "{\"spec\":\"vector_add\",\"workload\":\"large\",\"gpu\":\"NVIDIA H200\",\"rival\":\"fast\",\"cold_us\":110}\n");

	struct page_row changed = start_kept;
	changed.item = "tunables: BLOCK 1 -> 2";
	assert_true(page_is_start(base, &start_kept));
	assert_false(page_is_start(base, &changed));
	assert_false(page_is_start(base, &second)); /* of the baseline */
	assert_false(page_is_start(base, &third));  /* no file */

	cJSON *rivals = page_rivals(dir);
	const struct page_row *rows[] = {&start_kept, &second};
	struct page_group g = group(rows, 2, NULL);
	struct page_keep keep = {0};
	page_read_gpu(base, &second, rivals, &keep, &g);
	assert_int_equal(g.sizes, 1);
	assert_string_equal(g.size[0].rival, "fast");
	near(g.size[0].rival_us, 110), near(g.size[0].gbs, 0), near(g.size[0].percent, 99);
	assert_string_equal(g.machine->name, "NVIDIA H200");
	near(g.machine->copy_gbs, 0);
	page_keep_free(&keep);
	cJSON_Delete(rivals);
	/* Nothing there is no error. */
	g = group(rows, 2, NULL);
	rivals = page_rivals("/nonexistent");
	page_read_gpu("/nonexistent/", &second, rivals, &keep, &g);
	assert_int_equal(g.sizes, 0);
	assert_null(g.machine);
	page_keep_free(&keep);
	cJSON_Delete(rivals);
	assert_int_equal(dir_remove(dir, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_over_start), cmocka_unit_test(test_start_lost), cmocka_unit_test(test_gpu_words),
		cmocka_unit_test(test_emulated), cmocka_unit_test(test_failures), cmocka_unit_test(test_search),
		cmocka_unit_test(test_read), cmocka_unit_test(test_engine_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
