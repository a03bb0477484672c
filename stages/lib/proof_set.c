/*
 * proof_set.c - the GPU images that earlier steps of a trial recorded. See proof.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "proof.h"
#include "stage.h"

#include <stdio.h>
#include <string.h>

int proof_set(struct stage *s, const struct plan *p, const char *dir, struct image_set *set, struct err *e)
{
	char file[TRIAL_PATH], path[TRIAL_PATH], name[32];

	memset(set, 0, sizeof *set);
	if (plan_configs(p, set->config, &set->n, e) < 0)
		return -1;
	for (int i = 0; i < set->n; i++) {
		snprintf(file, sizeof file, "%.16s%sartefact/cuda-%d", dir, *dir ? "/" : "", i);
		if (stage_recorded(s, file, set->sha[i], e) < 0)
			return -1;
		trial_path(path, s->id, file);
		snprintf(set->path[i], sizeof set->path[i], "%s", path);
		snprintf(name, sizeof name, i ? "artefact-%d" : "artefact", i);
		verdict_input(&s->v, name, set->sha[i]);
	}
	return 0;
}
