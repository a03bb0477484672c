/*
 * engine_run.c - see engine_run.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_run.h"

#include "buf.h"
#include "engine_about.h"
#include "engine_model.h"
#include "engine_spec.h"
#include "facts.h"
#include "file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 1 and *spec, 0 a kernel problem, -1. */
static int load(const char *name, struct engine_spec **spec, struct err *e)
{
	enum spec_kind kind = SPEC_KERNEL;
	struct buf text = BUF_INIT;
	char *path = xasprintf("specs/%s/spec.json", name);
	int rc = -1;
	*spec = NULL;
	if (file_read(path, 1 << 20, &text, e) == 0 && spec_kind(buf_str(&text), text.len, &kind, e) == 0)
		rc = kind == SPEC_KERNEL ? 0 : engine_spec_parse(buf_str(&text), text.len, path, spec, e) ? -1 : 1;
	buf_free(&text);
	free(path);
	return rc;
}

int engine_run_kind(const char *name, struct err *e)
{
	struct engine_spec *spec;
	const int rc = load(name, &spec, e);
	if (rc == 1)
		engine_spec_free(spec);
	return rc;
}

int engine_run_device(const char *name, const char **device, struct err *e)
{
	struct engine_spec *spec;
	int rc = load(name, &spec, e);
	if (rc != 1)
		return rc;
	const int cuda = spec->cuda;
	engine_spec_free(spec);
	if (!*device)
		*device = cuda ? "cuda" : "emu";
	if (cuda && device_class_of(*device) != DEVICE_CUDA && strcmp(*device, "cuda") != 0)
		return err_set(e, EX_BADUSE, "an engine in CUDA runs on a GPU, not on %s", *device);
	if (cuda)
		return 1;
	if (strcmp(*device, "emu") != 0)
		return err_set(e, EX_BADUSE, "an engine in C runs on this processor: DEVICE=emu, not %s", *device);
	return 1;
}

int engine_run_model(const char *name, const char *model_dir, cJSON *more, struct err *e)
{
	struct engine_spec *spec;
	struct engine_model model;
	int rc = load(name, &spec, e);
	if (rc == 0)
		return err_set(e, EX_BADUSE, "MODEL_DIR is for engine problems, and '%s' is none", name);
	if (rc < 0)
		return -1;
	rc = engine_model_open(&model, model_dir, spec->shape, spec->seed, NULL, e);
	const int cuda = spec->cuda;
	engine_spec_free(spec);
	if (rc)
		return -1;
	if (model_dir)
		cJSON_AddStringToObject(more, "model_dir", model.dir);
	cJSON_AddStringToObject(more, "model_sha256", model.sha);
	engine_about_model(&model.model.c, more);
	if (!cuda)
		engine_about_host(more);
	engine_model_close(&model);
	return 0;
}

int engine_run_proposer(const char *proposer, struct err *e)
{
	static const char *const known[] = {"openai", "command", "sweep", "replay"};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(proposer, known[i]) == 0)
			return 0;
	return err_set(e, EX_BADUSE, "'%.40s' knows kernels alone: engine problems take PROPOSER=openai, command, sweep, or replay with "
		       "REPLY= a folder of engines", proposer);
}
