/*
 * selftest_record.c - see selftest_record.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "selftest_record.h"

#include "defence.h"
#include "facts.h"
#include "file.h"
#include "json.h"
#include "runner.h"
#include "spawn.h"
#include "tool.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WALL_S = 300 }; /* kernels may have to be compiled, a lane may be held */

static const char SCHEMA[] = "touchstone/selftest/1";

/* All that both know are the same, and there is such a one. */
static int same_tools(const cJSON *line, const cJSON *now)
{
	const cJSON *then = json_get(line, "tools");
	int known = 0;

	for (const cJSON *t = then ? then->child : NULL; t; t = t->next) {
		const char *sha = json_get_str(now, t->string, NULL);
		if (!cJSON_IsString(t) || (sha && strcmp(sha, t->valuestring) != 0))
			return 0;
		known += sha != NULL;
	}
	return known > 0;
}

static int is_of(const struct run *r, const cJSON *line)
{
	return strcmp(json_get_str(line, "schema", ""), SCHEMA) == 0 &&
	       strcmp(json_get_str(line, "device", ""), r->device) == 0;
}

static void count_words(const cJSON *line, char words[160])
{
	const cJSON *rules = json_get(line, "rules");

	snprintf(words, 160, "passed: %.0f specimens of %d rules", json_get_num(line, "specimens", 0),
		 rules ? cJSON_GetArraySize(rules) : 0);
}

/* The newest line with these programs decides. */
static int find(const struct run *r, struct buf *text, const cJSON *tools, char sha[HASH_HEX], char words[160])
{
	int passed = 0;
	char *end;

	snprintf(words, 160, "was not made with these programs");
	for (char *line = text->data; line && (end = strchr(line, '\n')); line = end + 1) {
		cJSON *j = json_parse(line, (size_t)(end - line), &JSON_OURS, "selftest", NULL);
		if (j && is_of(r, j) && same_tools(j, tools)) {
			passed = strcmp(json_get_str(j, "verdict", ""), "pass") == 0 &&
				 json_get_num(j, "failed", 1) == 0;
			hash_hex(line, (size_t)(end - line), sha);
			if (passed)
				count_words(j, words);
			else
				snprintf(words, 160, "failed: %.140s", json_get_str(j, "words", ""));
		}
		cJSON_Delete(j);
	}
	return passed;
}

int selftest_passed(const struct run *r, const cJSON *tools, char sha[HASH_HEX], char words[160], struct err *e)
{
	char path[TRIAL_PATH], why[160];
	struct buf text = BUF_INIT;
	int rc = 0;

	sha[0] = '\0';
	snprintf(why, sizeof why, "was never made");
	run_path(path, r->name, "selftest.jsonl");
	if (file_exists(path))
		rc = file_read(path, (size_t)64 << 20, &text, e) < 0 ? -1 : find(r, &text, tools, sha, why);
	buf_free(&text);
	if (words)
		memcpy(words, why, sizeof why);
	return rc == 0 && !DEFENCE("promote.selftest") ? 1 : rc;
}

int selftest_append(const struct run *r, const char *text, size_t len, struct err *e)
{
	char path[TRIAL_PATH];
	cJSON *j = json_parse(text, len, &JSON_OURS, "the record of a self-test", e);
	char *line = j && is_of(r, j) ? cJSON_PrintUnformatted(j) : NULL;

	if (j && !line)
		err_set(e, EX_BADINPUT, "the record of a self-test is not one of this run's device");
	run_path(path, r->name, "selftest.jsonl");
	int rc = line ? file_append(path, line, e) : -1;
	free(line);
	cJSON_Delete(j);
	return rc;
}

static void environment(const char *env[16])
{
	static const char *const names[] = {"PATH", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH",
		"CUDA_VISIBLE_DEVICES", "ASAN_OPTIONS", "UBSAN_OPTIONS"};
	size_t n = 0;

	env[n++] = "LC_ALL=C";
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (getenv(names[i]))
			env[n++] = xasprintf("%s=%s", names[i], getenv(names[i]));
	env[n] = NULL;
}

int selftest_call(const char *program, const char *device, const char *cwd, const char *file, int *code,
		  struct err *e)
{
	char to[PATH_MAX], where[TRIAL_NAME + 16];
	const char *argv[] = {program, where, to, NULL}, *env[16];
	struct spawn_result r;

	if (!trial_name_ok(device))
		return err_set(e, EX_BADINPUT, "a self-test on no device");
	snprintf(to, sizeof to, "--out=%.4000s", file);
	snprintf(where, sizeof where, "--DEVICE=%.64s", device);
	environment(env);
	struct spawn_request q = {.argv = argv, .env = env, .cwd = cwd, .out = SPAWN_CAPTURE, .err = SPAWN_KEEP,
				  .wall_s = WALL_S};
	int rc = spawn_run(&q, &r, e);
	for (size_t i = 1; env[i]; i++)
		free((void *)(uintptr_t)env[i]);
	if (rc < 0)
		return -1;
	*code = r.code < 0 ? EX_AGAIN : r.code;
	if (*code && r.out.len)
		fputs(buf_str(&r.out), stderr);
	spawn_result_free(&r);
	return 0;
}

/* ---- a run's start ---- */

static cJSON *tools_here(const char *bin, struct err *e)
{
	static const char *const names[] = {"bench", "box", "checker", "child", "judge", "selftest", "tune",
					    "unittest", "worker"};
	cJSON *o = cJSON_CreateObject();

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char path[PATH_MAX], sha[HASH_HEX];
		snprintf(path, sizeof path, "%.4000s/%s", bin, names[i]);
		if (file_exists(path) && tool_hash(path, sha, e) < 0) {
			cJSON_Delete(o);
			return NULL;
		}
		if (file_exists(path))
			cJSON_AddStringToObject(o, names[i], sha);
	}
	return o;
}

static int make(const struct run *r, const struct selftest_where *w, struct err *e)
{
	struct buf text = BUF_INIT;
	char program[PATH_MAX], file[TRIAL_PATH];
	int code = 0, rc;

	snprintf(program, sizeof program, "%.4000s/selftest", w->bin);
	run_path(file, r->name, "selftest.new");
	unlink(file);
	if (w->command)
		rc = runner_selftest(w->command, r->device, &text, e);
	else
		rc = selftest_call(program, r->device, NULL, file, &code, e);
	if (rc == 0 && !w->command && !file_exists(file))
		rc = err_set(e, code ? code : EX_HARNESS, "the judge's self-test could not be made (see above)");
	if (rc == 0 && !w->command)
		rc = file_read(file, 1 << 20, &text, e);
	if (rc == 0)
		rc = selftest_append(r, buf_str(&text), text.len, e);
	unlink(file);
	buf_free(&text);
	return rc;
}

int selftest_admit(const struct run *r, const struct selftest_where *w, char words[160], struct err *e)
{
	char sha[HASH_HEX];
	cJSON *own = NULL;

	words[0] = '\0';
	if (device_class_of(r->device) == DEVICE_SIM)
		return 0;
	const cJSON *tools = w->command ? w->tools : (own = tools_here(w->bin, e));
	int rc = tools ? selftest_passed(r, tools, sha, words, e) : -1;
	if (rc == 0) {
		rc = make(r, w, e) < 0 ? -1 : selftest_passed(r, tools, sha, words, e);
		if (rc == 0)
			rc = err_set(e, EX_HARNESS, "the judge's self-test %.150s; nothing is started (`make selftest` "
				     "says more)", words);
	}
	cJSON_Delete(own);
	return rc < 0 ? -1 : 0;
}
