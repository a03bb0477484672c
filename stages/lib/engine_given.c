/*
 * engine_given.c - see engine_given.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_given.h"

#include "hash.h"
#include "json.h"

#include <stdio.h>
#include <string.h>

int engine_given(const struct stage *s, char dir[TRIAL_PATH], struct err *e)
{
	const cJSON *all = json_get(s->run.json, "given");
	char path[TRIAL_PATH], file[128], sha[HASH_HEX];
	int n = 0;
	for (const cJSON *g = all ? all->child : NULL; g; g = g->next) {
		if (strncmp(g->string, ENGINE_GIVEN, strlen(ENGINE_GIVEN)) != 0)
			continue;
		snprintf(file, sizeof file, "given/%.100s", g->string);
		run_path(path, s->run.name, file);
		if (hash_file(path, sha, e))
			return -1;
		if (!cJSON_IsString(g) || strcmp(sha, g->valuestring) != 0)
			return err_set(e, EX_BADINPUT, "'%s' is not the file that run.json names", path);
		n++;
	}
	run_path(dir, s->run.name, "given/engine");
	return n > 0;
}
