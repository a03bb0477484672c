/*
 * record_code.c - the machine code of a champion of a GPU: cubin, PTX and, where the toolkit's
 * disassembler is installed, SASS. See record.h.
 *
 * The disassembler reads what a candidate's compile made, so it runs confined, and a failure of it
 * only means that there is no SASS.
 *
 * SPDX-License-Identifier: MIT
 */
#include "record.h"

#include "facts.h"
#include "file.h"
#include "plan.h"
#include "spawn.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SASS_MAX = 8 << 20 };

static int disassembler(char out[PATH_MAX])
{
	const char *const dirs[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda", "/opt/cuda", "/usr"};
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++) {
		if (!dirs[i])
			continue;
		snprintf(path, sizeof path, "%.4000s/bin/nvdisasm", dirs[i]);
		if (access(path, X_OK) == 0 && realpath(path, out))
			return 1;
	}
	return 0;
}

static int sass(const char *cubin, const char *to, struct err *e)
{
	char tool[PATH_MAX], file[PATH_MAX], root[PATH_MAX];
	struct spawn_result r;
	struct err none;

	if (!disassembler(tool) || !realpath(cubin, file))
		return 0;
	snprintf(root, sizeof root, "%s", tool);
	for (int i = 0; i < 2; i++) {
		char *slash = strrchr(root, '/');
		if (slash && slash != root)
			*slash = '\0';
	}
	const struct confine_path paths[] = {
		{.path = "/usr", .access = CONFINE_EXEC}, {.path = "/lib", .access = CONFINE_EXEC},
		{.path = "/lib64", .access = CONFINE_EXEC}, {.path = root, .access = CONFINE_EXEC},
		{.path = file, .access = CONFINE_READ},
	};
	struct confine f = {
		.calls = CONFINE_CALLS_COMMAND, .paths = paths, .path_count = sizeof paths / sizeof paths[0],
		.namespaces = CONFINE_NS_ALL,
		.limits = {.memory = 2ull << 30, .cpu_s = 20, .file_bytes = 1 << 20, .files = 64, .processes = 16},
	};
	const char *argv[] = {tool, file, NULL};
	struct spawn_request q = {.argv = argv, .out = SPAWN_CAPTURE, .err = SPAWN_NULL, .out_cap = SASS_MAX,
				  .wall_s = 20, .confine = &f};
	if (spawn_run(&q, &r, &none))
		return 0;
	int rc = r.code == 0 && !r.out_over && r.out.len ? file_write(to, r.out.data, r.out.len, 0644, e) : 0;
	spawn_result_free(&r);
	return rc;
}

int record_code(const struct closed *c, const char *dir, struct err *e)
{
	char from[TRIAL_PATH], to[TRIAL_PATH], name[40];

	if (device_class_of(c->trial.device) != DEVICE_CUDA)
		return 0;
	for (int i = 0; i < PLAN_MAX_CONFIGS; i++) {
		for (int ptx = 1; ptx >= 0; ptx--) {
			snprintf(name, sizeof name, "artefact/cuda-%d%s", i, ptx ? ".ptx" : "");
			trial_path(from, c->trial.id, name);
			if (!file_exists(from))
				continue;
			snprintf(to, sizeof to, "%.180s/evidence/cuda-%d.%s", dir, i, ptx ? "ptx" : "cubin");
			if (file_copy(from, to, e))
				return -1;
			snprintf(to, sizeof to, "%.180s/evidence/cuda-%d.sass", dir, i);
			if (!ptx && sass(from, to, e))
				return -1;
		}
	}
	return 0;
}
