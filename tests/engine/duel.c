/*
 * duel.c - two engines (and a native one) through bench as its stage runs it, without the stage around it.
 *
 *   duel STEP MODEL_DIR CHAMPION CANDIDATE [NATIVE]   STEP is bench or confirm; one JSON line: verdict, code, message, ...
 *
 * Writes STEP.json, STEP.prereg.json, STEP.raw and STEP.engine.jsonl here, as far as tools/recheck reads them. Without NATIVE
 * the champion is it. Two small workloads, a third at confirm; a memory limit of 192 MiB.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_bench.h"
#include "file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct engine_task TASK[] = {{2, 4, 16, 1, "two"}, {3, 5, 20, 1, "three"}, {1, 7, 5, 0, "held_out_0"}};

static char step[16];
static struct jsonw out = {.pretty = 1};
static char sha[3][HASH_HEX];

/* A side file of the step, and its hash. */
static int side(int i, const char *suffix, const void *data, size_t len, struct err *e)
{
	char path[64];
	snprintf(path, sizeof path, "%s.%s", step, suffix);
	hash_hex(data, len, sha[i]);
	return file_write(path, data, len, 0644, e);
}

static int preregister(void *ctx, const char *text, size_t len, struct err *e)
{
	(void)ctx;
	return side(0, "prereg.json", text, len, e);
}

static void outputs(void)
{
	static const char *const suffix[] = {"prereg.json", "raw", "engine.jsonl"};
	char name[64];
	jw_obj(&out, "outputs");
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof name, "%s.%s", step, suffix[i]);
		jw_str(&out, name, sha[i]);
	}
	jw_end(&out);
}

static int record(struct engine_bench *b, struct err *e)
{
	const struct contest *t = engine_bench_last(b);
	char raw[64], lines[64], file[64];
	size_t len;
	const void *bytes = raw_bytes(&b->raw, &len);
	snprintf(raw, sizeof raw, "%s.raw", step);
	snprintf(lines, sizeof lines, "%s.engine.jsonl", step);
	snprintf(file, sizeof file, "%s.json", step);
	if (side(1, "raw", bytes, len, e) || side(2, "engine.jsonl", buf_str(&b->ses.lines), b->ses.lines.len, e))
		return -1;
	jw_obj(&out, NULL);
	jw_str(&out, "stage", step);
	jw_str(&out, "verdict", verdict_kind_name(t->kind));
	jw_obj(&out, "reason");
	jw_str(&out, "code", t->code);
	jw_str(&out, "message", t->message);
	jw_end(&out);
	outputs();
	jw_obj(&out, "data");
	engine_bench_write(b, raw, lines, &out);
	jw_end(&out);
	jw_end(&out);
	printf("%s %s %d %s\n", verdict_kind_name(t->kind), t->code, t->n, t->message);
	return file_write(file, out.out.data, out.out.len, 0644, e);
}

static void add_arm(struct engine_bench *b, int a, const char *path)
{
	struct engine_arm *arm = &b->arm[a];
	struct err e;
	if (!realpath(path, arm->program))
		die(EX_BADINPUT, "no such engine: %s", path);
	arm->present = 1;
	if (hash_file(arm->program, arm->sha, &e))
		die_err(&e);
	memcpy(arm->candidate, arm->sha, sizeof arm->sha);
}

int main(int argc, char **argv)
{
	static struct engine_bench b;
	struct engine_model model;
	struct err e;
	prog_name(argv[0]);
	if (argc < 5 || (strcmp(argv[1], "bench") && strcmp(argv[1], "confirm")))
		die(EX_BADUSE, "usage: duel STEP MODEL_DIR CHAMPION CANDIDATE [NATIVE]");
	snprintf(step, sizeof step, "%s", argv[1]);
	for (int a = 0; a < RAW_ARMS && a + 3 < argc; a++)
		add_arm(&b, a, argv[a + 3]);
	if (engine_model_open(&model, argv[2], "any", 1, NULL, &e))
		die_err(&e);
	b.trial = "0001";
	b.model = &model;
	b.confirming = strcmp(step, "confirm") == 0;
	memcpy(b.task, TASK, sizeof TASK);
	b.npublic = b.nshown = b.ntasks = 2;
	b.ntasks += b.confirming;
	b.margin = 0.01;
	b.guard = -0.03;
	b.limits = (struct engine_limits){1.05, 1.05, 0.25, 192 << 20};
	b.load_s = 20;
	b.step_s = 2;
	hash_hex("duel", 4, b.key);
	b.preregister = preregister;
	if (engine_bench_measure(&b, &e) || record(&b, &e))
		die_err(&e);
	engine_bench_free(&b);
	engine_model_close(&model);
	jw_free(&out);
	return 0;
}
