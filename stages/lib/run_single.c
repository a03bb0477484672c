/*
 * run_single.c - see run_single.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run_single.h"

#include "facts.h"
#include "file.h"
#include "json.h"
#include "trial.h"

#include <stdio.h>
#include <stdlib.h>

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

int run_try(struct run_plan *p, const char *kernel, const char *plan, struct err *e)
{
	if (!kernel)
		return err_set(e, EX_BADUSE, "try what? KERNEL=file.cu PLAN=file.json");
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
	int i = 0;
	if (!from)
		return err_set(e, EX_BADUSE, "adopt what? FROM=a trial's record, or a folder with kernel.cu and plan.json");
	for (; i < 3; i++) {
		snprintf(kernel[i], sizeof kernel[i], "%.200s/%skernel.cu", from, inside[i]);
		if (file_exists(kernel[i]))
			break;
	}
	if (i == 3)
		return err_set(e, EX_BADUSE, "'%s' holds no kernel.cu, and no candidate/ of a trial's record", from);
	char *claim = xasprintf("%s/trial.json", from);
	cJSON *j = spec_given || !file_exists(claim) ? NULL : json_read(claim, &JSON_OURS, NULL, NULL);
	const char *spec = json_get_str(j, "spec", NULL);
	if (spec && trial_name_ok(spec))
		p->spec = xstrdup(spec);
	cJSON_Delete(j);
	free(claim);
	return give_files(p, "adopt", kernel[i], xasprintf("%s/%splan.json", from, inside[i]), from, e);
}
