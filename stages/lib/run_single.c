/*
 * run_single.c - see run_single.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run_single.h"

#include "engine_files.h"
#include "engine_given.h"
#include "facts.h"
#include "file.h"
#include "json.h"
#include "trial.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int give(struct run_plan *p, int i, const char *path, const char *name, struct err *e)
{
	if (!file_exists(path))
		return err_set(e, EX_BADUSE, "'%s' does not exist", path);
	p->given[i][0] = path;
	p->given[i][1] = name;
	return 0;
}

static cJSON *origin_of(const char *kind, const char *key, const char *value)
{
	cJSON *o = cJSON_CreateObject();
	cJSON_AddStringToObject(o, "kind", kind);
	cJSON_AddStringToObject(o, key, value);
	return o;
}

static int give_files(struct run_plan *p, const char *kind, const char *kernel, const char *plan, const char *from,
		      struct err *e)
{
	if (give(p, 0, kernel, "kernel.cu", e) || (plan && give(p, 1, plan, "plan.json", e)))
		return -1;
	p->proposer = "manual";
	p->origin = origin_of(kind, "from", from);
	return 0;
}

/* ---- engines ---- */

/* 1: DIR holds an engine, engine.c or engine.cu; its name. */
static int has_engine(const char *dir, const char **name)
{
	for (int cuda = 0; cuda < 2; cuda++) {
		char *path = xasprintf("%s/%s", dir, engine_main(cuda));
		const int there = file_exists(path);
		free(path);
		*name = engine_main(cuda);
		if (there)
			return 1;
	}
	return 0;
}

static int give_one(struct run_plan *p, int *n, const char *dir, const char *name, struct err *e)
{
	if (!engine_file_name_ok(name))
		return err_set(e, EX_BADUSE, "'%s/%s' is no file of an engine", dir, name);
	if (*n == RUN_GIVEN)
		return err_set(e, EX_BADUSE, "'%s' has more than %d files", dir, RUN_GIVEN);
	return give(p, (*n)++, xasprintf("%s/%s", dir, name), xasprintf(ENGINE_GIVEN "%s", name), e);
}

/* The engine in DIR, with kernels/; what else lies there, as beside a champion, is not the engine's. 1: there is none. */
static int give_engine(struct run_plan *p, const char *kind, const char *dir, const char *from, struct err *e)
{
	const char *name;
	int n = 0, rc = 0;
	struct dirent *at;
	if (!has_engine(dir, &name))
		return 1;
	if (give_one(p, &n, dir, name, e))
		return -1;
	char *sub = xasprintf("%s/kernels", dir);
	DIR *d = opendir(sub);
	free(sub);
	while (d && rc == 0 && (at = readdir(d))) {
		if (!strcmp(at->d_name, ".") || !strcmp(at->d_name, ".."))
			continue;
		char *file = xasprintf("kernels/%s", at->d_name);
		rc = give_one(p, &n, dir, file, e);
		free(file);
	}
	if (d)
		closedir(d);
	p->proposer = "manual";
	p->origin = origin_of(kind, "from", from);
	return rc;
}

/* An engine is tried as a folder; a single file stands for one that needs no other. */
static int try_engine(struct run_plan *p, const char *path, const char *plan, struct err *e)
{
	const char *dot = strrchr(path, '.');
	const int cuda = dot && !strcmp(dot, ".cu");
	struct stat st;
	if (plan)
		return err_set(e, EX_BADUSE, "an engine has no plan: KERNEL=folder, or the one file, alone");
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		const int rc = give_engine(p, "try", path, path, e);
		return rc > 0 ? err_set(e, EX_BADUSE, "'%s' holds no engine.c or engine.cu", path) : rc;
	}
	if (give(p, 0, path, cuda ? ENGINE_GIVEN "engine.cu" : ENGINE_GIVEN "engine.c", e))
		return -1;
	p->proposer = "manual";
	p->origin = origin_of("try", "from", path);
	return 0;
}

/* The sources of a trial's last attempt that had any. 1: they are no engine's. */
static int redo_engine(struct run_plan *p, const char *id, struct err *e)
{
	static char dir[TRIAL_PATH];
	char file[40];
	for (int last = TRIAL_ATTEMPTS - 1, rc = 1; last >= 0; last--) {
		snprintf(file, sizeof file, "a%d/candidate", last);
		trial_path(dir, id, file);
		if ((rc = give_engine(p, "adopt", dir, id, e)) <= 0)
			return rc;
	}
	return 1;
}

/* ---- the three ---- */

int run_try(struct run_plan *p, const char *kernel, const char *plan, int engine, struct err *e)
{
	if (!kernel)
		return err_set(e, EX_BADUSE, engine ? "try what? KERNEL=folder with engine.c or engine.cu, and kernels/"
						    : "try what? KERNEL=file.cu PLAN=file.json");
	if (engine)
		return try_engine(p, kernel, plan, e);
	return give_files(p, "try", kernel, plan, kernel, e);
}

int run_redo(struct run_plan *p, const char *id, int spec_given, int device_given, struct err *e)
{
	static char reply[TRIAL_PATH], kernel[TRIAL_PATH], plan[TRIAL_PATH];
	struct trial t;
	int last = TRIAL_ATTEMPTS;
	char file[40];
	if (!id || !trial_id_ok(id))
		return err_set(e, EX_BADUSE, "redo which trial? TRIAL=0042");
	if (trial_read(id, &t, e))
		return -1;
	if (!spec_given)
		p->spec = xstrdup(t.spec);
	if (!device_given) /* "cuda" may be another GPU today */
		p->device = xstrdup(device_class_of(t.device) == DEVICE_CUDA ? "cuda" : t.device);
	trial_free(&t);
	const int engine = redo_engine(p, id, e);
	if (engine <= 0)
		return engine;
	trial_path(reply, id, "a0/reply.txt");
	do { /* the attempt that gave the last candidate */
		snprintf(file, sizeof file, "a%d/candidate/kernel.cu", --last);
		trial_path(kernel, id, file);
	} while (last && !file_exists(kernel));
	/* a sweep or a file of somebody's: its sources are the reply; a repair alone may give one file of two */
	if (last || !file_exists(reply)) {
		snprintf(file, sizeof file, "a%d/candidate/plan.json", last);
		trial_path(plan, id, file);
		return give_files(p, "adopt", kernel, plan, id, e);
	}
	p->proposer = "replay";
	p->origin = origin_of("redo", "trial", id);
	return give(p, 0, reply, "reply.txt", e);
}

int run_adopt(struct run_plan *p, const char *from, int spec_given, struct err *e)
{
	static const char *const inside[] = {"candidate/", "", "a0/candidate/"};
	static char kernel[3][TRIAL_PATH];
	int i = 0, rc = 1;
	if (!from)
		return err_set(e, EX_BADUSE, "adopt what? FROM=a trial's record, or a folder with kernel.cu and plan.json, or engine.c");
	for (; i < 3; i++) {
		snprintf(kernel[i], sizeof kernel[i], "%.200s/%s", from, inside[i]);
		if ((rc = give_engine(p, "adopt", kernel[i], from, e)) <= 0)
			break;
		snprintf(kernel[i], sizeof kernel[i], "%.200s/%skernel.cu", from, inside[i]);
		if (file_exists(kernel[i]))
			break;
	}
	if (rc < 0)
		return -1;
	if (i == 3)
		return err_set(e, EX_BADUSE, "'%s' holds no kernel.cu, no engine.c, and no candidate/ of a trial's record", from);
	char *claim = xasprintf("%s/trial.json", from);
	cJSON *j = spec_given || !file_exists(claim) ? NULL : json_read(claim, &JSON_OURS, NULL, NULL);
	const char *spec = json_get_str(j, "spec", NULL);
	if (spec && trial_name_ok(spec))
		p->spec = xstrdup(spec);
	cJSON_Delete(j);
	free(claim);
	return rc == 0 ? 0 : give_files(p, "adopt", kernel[i], xasprintf("%s/%splan.json", from, inside[i]), from, e);
}
