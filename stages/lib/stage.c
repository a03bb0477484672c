/*
 * stage.c - see stage.h: the body of every stage program.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stage.h"

#include "child_call.h"
#include "failure.h"
#include "file.h"
#include "gpu.h"
#include "ieee.h"
#include "json.h"
#include "lock.h"
#include "repair.h"
#include "tool.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/prctl.h>
#include <unistd.h>

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The first word of MAKEFLAGS holds make's one-letter options. */
int stage_dry_make(void)
{
	const char *p = getenv("MAKEFLAGS");
	if (!p || (p[0] == '-' && p[1] == '-'))
		return 0;
	size_t n = strcspn(p, " ");
	if (memchr(p, '=', n))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (strchr("nqt", p[i]))
			return 1;
	return 0;
}

static int null_stdin(struct err *e)
{
	int fd = open("/dev/null", O_RDONLY);
	if (fd < 0)
		return err_sys(e, "cannot open /dev/null");
	if (fd == 0)
		return 0;
	int rc = dup2(fd, 0);
	close(fd);
	return rc < 0 ? err_sys(e, "cannot redirect standard input") : 0;
}

static int load(struct stage *s, struct err *e)
{
	if (trial_read(s->id, &s->trial, e) || run_read(s->trial.run, &s->run, e))
		return -1;
	if (strcmp(s->run.spec, s->trial.spec) != 0 ||
	    strcmp(s->run.device, s->trial.device) != 0)
		return err_set(e, EX_BADINPUT, "trial %s and its run %s disagree", s->id,
			       s->trial.run);
	if (s->step != STEP_A0_PROPOSE) {
		const struct verdict_in *up = stage_verdict(s, s->step - 1, e);
		if (!up)
			return -1;
		s->up = *up;
		if (strcmp(up->run, s->trial.run) != 0)
			return err_set(e, EX_BADINPUT, "'%s' is of another run", up->path);
	}
	if (tool_hash_self(s->v.tool_sha, e))
		return -1;
	int ok = run_tool_ok(&s->run, prog_get(), s->v.tool_sha, e);
	if (ok < 0)
		return -1;
	if (!ok)
		return err_set(e, EX_NOENV, "this build of %s is not pinned by run %s; "
			       "`make resume` accepts a rebuild", prog_get(), s->trial.run);
	return 0;
}

/* On a GPU: which model, by which driver and toolkit. The very card is named by stage_on_gpu. */
static int fill_device(struct stage *s, struct err *e)
{
	char toolkit[32];
	struct gpu g;
	if (device_class_of(s->trial.device) != DEVICE_CUDA)
		return 0;
	if (gpu_of_run_toolkit(&s->run, &g, toolkit, e))
		return -1;
	cJSON *d = s->v.device = cJSON_CreateObject();
	cJSON_AddStringToObject(d, "kind", s->trial.device);
	cJSON_AddStringToObject(d, "class", "cuda");
	cJSON_AddStringToObject(d, "name", g.facts.name);
	cJSON_AddStringToObject(d, "arch", g.arch);
	cJSON_AddStringToObject(d, "driver", g.driver_version);
	cJSON_AddStringToObject(d, "toolkit", toolkit);
	verdict_input(&s->v, "device", run_pin_device(&s->run));
	return 0;
}

void stage_on_gpu(struct stage *s, const struct gpu *g)
{
	if (!s->v.device)
		return;
	cJSON_DeleteItemFromObjectCaseSensitive(s->v.device, "uuid");
	cJSON_AddStringToObject(s->v.device, "uuid", g->uuid);
	/* Of the card at work now, which need not be that of the run's start. */
	cJSON_ReplaceItemInObjectCaseSensitive(s->v.device, "driver", cJSON_CreateString(g->driver_version));
}

static int fill(struct stage *s, struct err *e)
{
	struct verdict *v = &s->v;
	snprintf(v->run, sizeof v->run, "%s", s->trial.run);
	snprintf(v->tool, sizeof v->tool, "%s", prog_get());
	snprintf(v->device_name, sizeof v->device_name, "%s", s->trial.device);
	v->simulated = strcmp(s->trial.device, "sim") == 0;
	/* a run with a model has an engine problem: programs of this processor, which emulate nothing */
	v->emulated = strcmp(s->trial.device, "emu") == 0 && !run_str(&s->run, "model_sha256", NULL);
	verdict_input(v, "trial", s->trial.sha);
	verdict_input(v, "spec", s->run.spec_sha256);
	verdict_input(v, "key", s->run.key_sha256);
	if (s->up.json) {
		verdict_input(v, "upstream", s->up.sha);
		const cJSON *p = json_get(s->up.json, "proposer");
		if (p)
			v->proposer = cJSON_Duplicate(p, 1);
	}
	return fill_device(s, e);
}

/* Where the upstream says that the trial is closed. */
struct closing {
	int closed;
	const char *step, *code, *verdict;
};

static struct closing closing_of(const struct verdict_in *up)
{
	struct closing c = {0};
	if (!up->json || up->kind == V_PASS || up->kind == V_NA)
		return c;
	if (up->kind != V_SKIP) {
		c.closed = 1;
		c.step = step_info(up->step)->name;
		c.code = up->code;
		c.verdict = verdict_kind_name(up->kind);
		return c;
	}
	const cJSON *by = json_get(up->data, "closed_by");
	if (by) {
		c.closed = 1;
		c.step = json_get_str(by, "step", "?");
		c.code = json_get_str(by, "code", "?");
		c.verdict = json_get_str(by, "verdict", "?");
	}
	return c;
}

static void skip(struct stage *s, const struct closing *c, const char *code)
{
	if (c->closed) {
		verdict_set(&s->v, V_SKIP, code, "closed by %s: %s", c->step, c->code);
		jw_obj(&s->v.data, "closed_by");
		jw_str(&s->v.data, "step", c->step);
		jw_str(&s->v.data, "code", c->code);
		jw_str(&s->v.data, "verdict", c->verdict);
		jw_end(&s->v.data);
	} else {
		verdict_set(&s->v, V_SKIP, code, "the attempt before passed");
	}
}

/* Decide whether there is anything to do; 1 when a skip verdict was set. */
static int skip_if_closed(struct stage *s)
{
	struct closing c = closing_of(&s->up);
	const char *stage = step_info(s->step)->stage;
	if (s->about->always || s->step == STEP_A0_PROPOSE)
		return 0;
	if (strcmp(stage, "propose") == 0) {
		const char *why = c.closed ? "skip.repair_off" : "skip.passed";
		if (c.closed && s->about->repairs &&
		    repair_wanted(&s->run, &s->trial, step_info(s->step)->attempt, c.step, c.verdict, c.code, &why))
			return 0;
		skip(s, &c, why);
		return 1;
	}
	/* An attempt that was not made is skipped to its end; what follows the attempts is open
	 * when the last one made has passed. */
	int idle = s->up.kind == V_SKIP && step_info(s->step)->attempt >= 0;
	if (!c.closed && !idle)
		return 0;
	skip(s, &c, "skip.upstream");
	return 1;
}

static int find_attempt(struct stage *s, struct err *e)
{
	s->attempt = step_info(s->step)->attempt;
	if (s->attempt >= 0) {
		const char name[] = {'a', (char)('0' + s->attempt), '\0'};
		trial_path(s->dir, s->id, name);
		return 0;
	}
	memcpy(s->dir, s->trial_dir, sizeof s->dir);
	for (int k = TRIAL_ATTEMPTS - 1; k >= 0; k--) {
		const struct verdict_in *p = stage_verdict(s, (enum step)(3 * k), e);
		if (!p && !s->about->always) /* promote has a verdict for a broken chain */
			return -1;
		s->attempt = k;
		if (p && p->kind != V_SKIP)
			break;
	}
	return 0;
}

/* The wrapper counts failures (tools/run.c); it notes those that die without a word itself. */
static void note_failure(const struct stage *s, const struct err *e)
{
	struct failure f = {
		.who = s->child_died || child_was_killed() ? "child"
		     : e->code == EX_AGAIN || e->code == EX_NOENV ? "world" : "ours",
		.upstream = s->up.json ? s->up.sha : "", .tool = s->v.tool_sha,
		.code = e->code, .message = e->text,
	};
	failure_note(s->id, s->step, &f);
}

static int decide(struct stage *s, struct err *e)
{
	if (load(s, e) || fill(s, e))
		return -1;
	if (skip_if_closed(s))
		return 0;
	if (find_attempt(s, e))
		return -1;
	return s->about->work(s, e);
}

static int make_verdict(struct stage *s, struct err *e)
{
	s->started_s = now_s();
	if (decide(s, e))
		return -1;
	s->v.elapsed_s = now_s() - s->started_s;
	if (s->v.kind == V_NONE)
		return err_set(e, EX_HARNESS, "%s decided nothing", s->about->stage);
	return verdict_write(&s->v, e);
}

static void stage_free(struct stage *s)
{
	for (int i = 0; i < STEP_COUNT; i++)
		verdict_in_free(&s->seen[i]);
	verdict_in_free(&s->after_in);
	verdict_free(&s->v);
	trial_free(&s->trial);
	run_free(&s->run);
}

static int run_stage(struct stage *s, struct err *e)
{
	struct verdict_in old;
	struct lock lock;
	char name[32];
	snprintf(name, sizeof name, "trial-%s", s->id);
	if (null_stdin(e) || lock_take(&lock, name, LOCK_ALONE, 0, e))
		return -1;
	if (verdict_read(s->id, s->step, &old, NULL) == 0) {
		/* An orphan of a killed make finished it meanwhile. */
		verdict_in_free(&old);
		if (s->about->after && load(s, e) == 0)
			return s->about->after(s, e);
		return 0;
	}
	verdict_init(&s->v, "", s->id, s->step);
	if (make_verdict(s, e)) {
		note_failure(s, e);
		return -1;
	}
	return s->about->after ? s->about->after(s, e) : 0;
}

static void stage_prepare(struct stage *s, const struct stage_about *about, const char *id,
			  enum step step)
{
	*s = (struct stage){.about = about, .step = step};
	snprintf(s->id, sizeof s->id, "%s", id);
	trial_path(s->trial_dir, id, "");
	verdict_init(&s->v, "", id, step);
}

int stage_skip(const char *id, enum step step, struct err *e)
{
	static struct stage stage;
	/* As propose: whether a closed attempt is repaired follows from the record. */
	static const struct stage_about about = {.stage = "run", .repairs = 1};
	struct lock lock;
	char name[32], path[TRIAL_PATH];
	if (step == STEP_A0_PROPOSE || step == STEP_PROMOTE)
		return 0;
	snprintf(name, sizeof name, "trial-%s", id);
	if (lock_take(&lock, name, LOCK_ALONE, 0, NULL))
		return 0; /* the stage itself will say who has it */
	trial_step_path(path, id, step);
	if (file_exists(path)) {
		lock_drop(&lock);
		return 0;
	}
	stage_prepare(&stage, &about, id, step);
	int rc = load(&stage, e) || fill(&stage, e) ? -1 : 0;
	if (!rc) {
		rc = skip_if_closed(&stage) ? verdict_write(&stage.v, e) ? -1 : 1 : 0;
	}
	stage_free(&stage);
	lock_drop(&lock);
	return rc;
}

int stage_close(const char *id, enum step step, enum verdict_kind kind, const char *code,
		const char *message, struct err *e)
{
	static struct stage stage;
	static const struct stage_about about = {.stage = "run"};
	stage_prepare(&stage, &about, id, step);
	int rc = load(&stage, e) || fill(&stage, e) ? -1 : 0;
	if (!rc) {
		verdict_set(&stage.v, kind, code, "%s", message);
		rc = verdict_write(&stage.v, e);
	}
	stage_free(&stage);
	return rc;
}

int stage_main(int argc, char **argv, const struct stage_about *about)
{
	static struct stage stage; /* static: large, and the process ends with it */
	struct err e = {0};
	int i = 1;
	prog_name(argv[0]);
	if (argc == 2 && (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0)) {
		fputs(about->help, stdout);
		return fflush(stdout) ? EX_SYS : EX_DONE;
	}
	stage.about = about;
	while (i < argc - 1 && (strcmp(argv[i], "--confirm") == 0 ||
				(about->option && about->option(&stage, argv[i]) == 0)))
		i++; /* --confirm says nothing that the target does not */
	if (i != argc - 1)
		die(EX_BADUSE, "wants one target, like trials/0001/%s.json; -h for help",
		    about->stage);
	if (trial_target(argv[i], stage.id, &stage.step, &e))
		die_err(&e);
	if (strcmp(step_info(stage.step)->program, about->stage) != 0)
		die(EX_BADUSE, "'%s' is not a step of mine", argv[i]);
	if (stage_dry_make())
		die(EX_BADUSE, "make -n, -q and -t must change nothing: not run");
	const char *broken = ieee_broken();
	if (broken)
		die(EX_HARNESS, "floating point of this build does not follow IEEE 754: %s", broken);
	stage.confirm = stage.step == STEP_CONFIRM;
	trial_path(stage.trial_dir, stage.id, "");
	/* no other program of this user looks into the memory that decides, takes a descriptor out of it, or reads a
	 * key in our environment that is on its way to the client */
	prctl(PR_SET_DUMPABLE, 0);
	int rc = run_stage(&stage, &e);
	if (rc)
		warn("%s", e.text);
	stage_free(&stage);
	return rc ? (e.code ? e.code : EX_HARNESS) : EX_DONE;
}
