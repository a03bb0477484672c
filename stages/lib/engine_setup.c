/*
 * engine_setup.c - see engine_setup.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_setup.h"

#include "buf.h"
#include "engine_files.h"
#include "engine_problem.h"
#include "facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The hash of the model that this trial or run is held to; NULL when nobody has named one yet. */
static const char *model_on_record(struct stage *s)
{
	struct err none;
	for (int i = (int)s->step - 1; i >= 0; i--) {
		const struct verdict_in *in = stage_verdict(s, (enum step)i, &none);
		const char *sha = in ? verdict_in_input(in, "model") : NULL;
		if (sha)
			return sha;
	}
	return run_str(&s->run, "model_sha256", NULL);
}

static int find_artefact(struct stage *s, const char *name, struct engine_setup *u, struct err *e)
{
	char file[TRIAL_PATH], path[TRIAL_PATH], now[HASH_HEX];
	const char *dir = stage_candidate_dir(s);
	snprintf(file, sizeof file, "%s%sartefact/%s", dir, *dir ? "/" : "", name);
	if (stage_recorded(s, file, u->artefact, e))
		return -1;
	trial_path(path, s->id, file);
	if (!realpath(path, u->program))
		return err_set(e, EX_BADINPUT, "cannot find '%s' (%s)", path, strerror(errno));
	if (hash_file(u->program, now, e))
		return -1;
	if (strcmp(now, u->artefact) != 0)
		return err_set(e, EX_BADINPUT, "'%s' is not the file that was recorded", path);
	verdict_input(&s->v, "artefact", u->artefact);
	return 0;
}

static int find_candidate(struct stage *s, struct err *e)
{
	struct engine_files f;
	const int rc = engine_files_stage(s, &f, e);
	engine_files_free(&f);
	return rc;
}

int engine_setup(struct stage *s, const char *text, size_t len, const char *artefact, struct engine_setup *u,
		 struct err *e)
{
	memset(u, 0, sizeof *u);
	u->lane = (struct lane)LANE_INIT;
	if (engine_spec_parse(text, len, "spec.json", &u->spec, e))
		return -1;
	const struct engine_spec *p = u->spec;
	engine_on_host(s);
	if (engine_device(s, p, e) || find_candidate(s, e))
		return -1;
	if (!artefact)
		return 0;
	if (p->cuda && gpu_take(&s->run, &u->lane, &u->gpu, e))
		return -1;
	if (p->cuda)
		stage_on_gpu(s, &u->gpu);
	if (find_artefact(s, artefact, u, e))
		return -1;
	if (engine_model_open(&u->model, run_str(&s->run, "model_dir", NULL), p->shape, p->seed, model_on_record(s), e))
		return -1;
	u->open = 1;
	verdict_input(&s->v, "model", u->model.sha);
	if (p->cuda && engine_model_gpu(&u->model, u->gpu.uuid, e))
		return -1;
	u->rig = (struct engine_rig){.program = u->program, .gpu = p->cuda ? u->gpu.uuid : NULL, .model = &u->model, .load_s = p->load_s, .step_s = p->step_s,
				     .memory = (uint64_t)p->memory_bytes};
	return 0;
}

void engine_setup_free(struct engine_setup *u)
{
	if (u->open)
		engine_model_close(&u->model);
	engine_spec_free(u->spec);
	if (u->lane.mode) /* NULL: engine_setup was never called */
		lane_drop(&u->lane);
	memset(u, 0, sizeof *u);
	u->lane = (struct lane)LANE_INIT;
}

int engine_setup_key(struct stage *s, const char *stage, struct checker **c, struct engine_setup *u, struct err *e)
{
	char run[TRIAL_PATH], byte[3] = "";
	run_path(run, s->trial.run, "");
	const struct checker_opts o = {.device = "emu", .run_dir = run, .trial = s->id, .stage = stage};
	if (checker_start(c, &o, e) || checker_subkey(*c, u->key, e))
		return -1;
	for (int i = 0; i < 32; i++) {
		memcpy(byte, u->key + 2 * i, 2);
		u->rig.key[i] = (uint8_t)strtoul(byte, NULL, 16);
	}
	return 0;
}

struct engine_rig_work *engine_setup_work(const struct engine_workload *w, int n)
{
	struct engine_rig_work *k = xcalloc((size_t)n, sizeof *k);
	for (int i = 0; i < n; i++)
		k[i] = (struct engine_rig_work){w[i].name, w[i].batch, w[i].prompt, w[i].steps};
	return k;
}
