/*
 * runner.c - see runner.h: the command itself, and one step through it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runner.h"

#include "file.h"
#include "json.h"
#include "jsonw.h"
#include "spawn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 64, ENV = 48, STEP_WALL_S = 2 * 3600 };

/* --- which --- */

int runner_save(const char *run_dir, const char *gpu, const char *unittest, struct err *e)
{
	struct jsonw w = {.pretty = 1};
	char path[TRIAL_PATH];
	if (strlen(gpu) >= RUNNER_COMMAND || strlen(unittest) >= RUNNER_COMMAND)
		return err_set(e, EX_BADUSE, "a runner is a command of less than %d bytes", RUNNER_COMMAND);
	jw_obj(&w, NULL);
	jw_str(&w, "schema", RUNNER_SCHEMA);
	jw_str(&w, "gpu", gpu);
	jw_str(&w, "unittest", unittest);
	jw_end(&w);
	buf_addc(&w.out, '\n');
	snprintf(path, sizeof path, "%.200s/runner.json", run_dir);
	int rc = file_write(path, w.out.data, w.out.len, 0644, e);
	jw_free(&w);
	return rc;
}

int runner_read(const struct run *r, char gpu[RUNNER_COMMAND], char unittest[RUNNER_COMMAND], struct err *e)
{
	char path[TRIAL_PATH];
	gpu[0] = unittest[0] = '\0';
	run_path(path, r->name, "runner.json");
	if (!file_exists(path)) /* a run that has one does not become one of this machine by a lost file */
		return *run_str(r, "runner", "")
			? err_set(e, EX_BADINPUT, "'%s' is missing: say RUN_GPU= again", path) : 0;
	cJSON *j = json_read(path, &JSON_OURS, NULL, e);
	if (!j)
		return -1;
	snprintf(gpu, RUNNER_COMMAND, "%s", json_get_str(j, "gpu", ""));
	snprintf(unittest, RUNNER_COMMAND, "%s", json_get_str(j, "unittest", ""));
	cJSON_Delete(j);
	return 0;
}

int runner_of(const struct run *r, enum step step, char command[RUNNER_COMMAND], struct err *e)
{
	const char *stage = step_info(step)->stage;
	char gpu[RUNNER_COMMAND], own[RUNNER_COMMAND];
	command[0] = '\0';
	if (strcmp(stage, "propose") == 0 || strcmp(stage, "promote") == 0)
		return 0;
	if (runner_read(r, gpu, own, e))
		return -1;
	int tests = strcmp(stage, "unittest") == 0 && *own;
	if (!tests || strcmp(own, "local") != 0)
		snprintf(command, RUNNER_COMMAND, "%s", tests ? own : gpu);
	return 0;
}

void runner_name(const char *command, char out[TRIAL_NAME])
{
	command += strspn(command, " \t");
	size_t n = strcspn(command, " \t");
	for (size_t i = 0; i < n; i++)
		if (command[i] == '/') {
			command += i + 1;
			n -= i + 1;
			i = (size_t)-1;
		}
	snprintf(out, TRIAL_NAME, "%.*s", n < 60 ? (int)n : 60, command);
}

/* --- the command --- */

/* Words of the command; the first is looked for among ours, then as usual. Never a shell. */
static int words(const char *command, char **copy, char ours[RUNNER_COMMAND], const char *argv[WORDS],
		 struct err *e)
{
	char *rest, *w;
	int n = 0;
	*copy = xstrdup(command);
	for (w = strtok_r(*copy, " \t", &rest); w && n < WORDS - 1; w = strtok_r(NULL, " \t", &rest))
		argv[n++] = w;
	argv[n] = NULL;
	if (!n || w)
		return err_set(e, EX_BADUSE, "the runner '%.80s' is no command", command);
	if (!strchr(argv[0], '/')) {
		snprintf(ours, RUNNER_COMMAND, "tools/runners/%.64s", argv[0]);
		if (trial_name_ok(argv[0]) && file_exists(ours))
			argv[0] = ours;
	}
	return 0;
}

/* It may need to find its way to another machine, but no key of ours for a model. */
static void environment(const char *env[ENV])
{
	static const char *const names[] = {
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "SSH_AUTH_SOCK", "KRB5CCNAME",
		"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "SLURM_CONF", "SLURM_JOB_ID", "SLURM_JOBID", "KUBECONFIG",
		"LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CC", "CXX", "ASAN_OPTIONS",
		"UBSAN_OPTIONS", "TS_BIN", "TS_FAULT", "TS_FAULT_AT",
	};
	size_t n = 0;
	char *list = xstrdup(getenv("RUNNER_ENV") ? getenv("RUNNER_ENV") : ""), *rest;
	char far[4096];
	env[n++] = "LC_ALL=C";
	if (spawn_tool("far", far, sizeof far, NULL) == 0) /* loopback: of this very build */
		env[n++] = xasprintf("TS_FAR=%s", far);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (getenv(names[i]))
			env[n++] = xasprintf("%s=%s", names[i], getenv(names[i]));
	for (char *name = strtok_r(list, ",", &rest); name && n < ENV - 1; name = strtok_r(NULL, ",", &rest))
		if (getenv(name))
			env[n++] = xasprintf("%s=%s", name, getenv(name));
	env[n] = NULL;
	free(list);
}

static int is_ours(int code)
{
	return code == EX_DONE || code == EX_BADUSE || code == EX_BADINPUT || code == EX_NOENV ||
	       code == EX_HARNESS || code == EX_AGAIN || code == EX_SYS;
}

int runner_call(const char *command, const struct buf *in, double wall_s, struct buf *out, int *code,
		struct err *e)
{
	const char *argv[WORDS];
	static const char *env[ENV]; /* built once: its strings live as long as we do */
	char *copy, text[96], ours[RUNNER_COMMAND];
	struct spawn_result r;
	if (words(command, &copy, ours, argv, e)) {
		free(copy);
		return -1;
	}
	if (!env[0])
		environment(env);
	struct spawn_request q = {
		.argv = argv, .env = env, .in = in->data, .in_len = in->len, .out = SPAWN_CAPTURE,
		.out_cap = RUNNER_MOST, .err = SPAWN_KEEP, .wall_s = wall_s, .flags = SPAWN_SAME_SESSION,
	};
	int rc = spawn_run(&q, &r, e);
	free(copy);
	if (rc)
		return -1;
	if (r.out_over)
		rc = err_set(e, EX_BADINPUT, "the runner '%.80s' sent more than 1 GiB", command);
	*code = r.code;
	*out = r.out;
	r.out = (struct buf)BUF_INIT;
	/* 255 is ssh's own, 126 and 127 are a shell's. */
	if (!rc && (r.code == 126 || r.code == 127))
		rc = err_set(e, EX_NOENV, "the runner '%.80s' does not start (exit %d)", command, r.code);
	else if (!rc && !is_ours(r.code))
		rc = err_set(e, EX_AGAIN, "the runner '%.80s' failed: %s", command, spawn_words(&r, text));
	spawn_result_free(&r);
	return rc;
}

/* --- one step --- */

/* The step failed there. Its own words, when it sent any, say whose fault it was. */
static int failed(const char *command, int code, const struct tar *in, struct runner_failure *f, struct err *e)
{
	const struct tar_file *t = tar_find(in, RUNNER_FAILURE);
	cJSON *j = t ? json_parse(t->data, t->len, &JSON_OURS, RUNNER_FAILURE, NULL) : NULL;
	const char *who = json_get_str(j, "who", "world"), *text = json_get_str(j, "message", "");
	f->who = strcmp(who, "child") == 0 ? "child" : strcmp(who, "ours") == 0 ? "ours" : "world";
	snprintf(f->text, sizeof f->text, "%.300s", *text ? text : "no reason was sent");
	for (char *p = f->text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			*p = ' ';
	cJSON_Delete(j);
	return err_set(e, code, "by '%.60s': %.380s", command, f->text);
}

int runner_step(const char *command, const struct trial *t, const struct run *r, enum step step,
		struct runner_failure *f, struct err *e)
{
	struct buf out = BUF_INIT, in = BUF_INIT;
	struct tar tar = {0};
	int code = 0;
	f->who = "world";
	f->text[0] = '\0';
	int rc = runner_pack(t, r, step, &out, e);
	if (!rc)
		rc = runner_call(command, &out, STEP_WALL_S, &in, &code, e);
	if (out.data)
		explicit_bzero(out.data, out.len); /* it has keys */
	buf_free(&out);
	if (!rc && code != EX_DONE && !in.len)
		rc = failed(command, code, &tar, f, e);
	else if (!rc && (rc = tar_parse(in.data, in.len, &tar, e)) == 0)
		rc = code == EX_DONE ? runner_take(t, r, step, &tar, e) : failed(command, code, &tar, f, e);
	if (rc && !f->text[0])
		snprintf(f->text, sizeof f->text, "%.390s", e->text);
	tar_free(&tar);
	buf_free(&in);
	return rc;
}
