/*
 * rig.c - see rig.h: arms and workloads. The reps are made in rig_emu.c and rig_sim.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rig.h"

#include "file.h"
#include "image.h"
#include "proof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rig_init(struct rig *r, struct stage *s, struct err *e)
{
	struct buf text = BUF_INIT;
	memset(r, 0, sizeof *r);
	r->s = s;
	r->class = device_class_of(s->trial.device);
	r->work.in_fd = r->work.rw_fd = -1;
	r->limits = *session_class_of(s->trial.device);
	if (r->class == DEVICE_CUDA && (gpu_of_run(&s->run, &r->gpu, e) != 0 ||
					facts_of_run(&s->run, s->trial.device, &r->facts, e) != 0))
		return -1;
	int rc = stage_spec(s, NULL, "spec.json", RIG_FILE_MAX, &text, e);
	if (rc == 0)
		rc = spec_parse(buf_str(&text), text.len, "spec.json", &r->spec, e);
	buf_free(&text);
	if (rc == 0 && r->class == DEVICE_CUDA)
		r->limits.time_s *= r->spec->npublic;
	return rc;
}

void rig_layers(struct rig *r, const char *layers)
{
	if (r->layered)
		confine_common(r->isolation, layers, r->isolation);
	else
		snprintf(r->isolation, sizeof r->isolation, "%s", layers);
	r->layered = 1;
}

const struct session_class *rig_class(const struct rig *r)
{
	return &r->limits;
}

struct rig_arm *rig_arm_of(struct rig *r, enum raw_arm arm)
{
	return &r->arm[r->self && arm == RAW_CANDIDATE ? RAW_CHAMPION : arm];
}

void rig_free(struct rig *r)
{
	for (int i = 0; i < RAW_ARMS; i++) {
		/* Two places may share the baseline's plan. */
		if (r->arm[i].plan && !(i && r->arm[i].plan == r->arm[0].plan)) {
			plan_free(r->arm[i].plan);
			free(r->arm[i].set);
		}
	}
	rig_cuda_free(r);
	if (r->checker)
		checker_stop(r->checker);
	spec_free(r->spec);
	free(r->flush);
	memset(r, 0, sizeof *r);
}

static int take_plan(struct rig *r, struct rig_arm *a, const struct buf *kernel,
		     const struct buf *plan, const char *what, struct err *e)
{
	char k[HASH_HEX], p[HASH_HEX];
	hash_hex(buf_str(kernel), kernel->len, k);
	hash_hex(buf_str(plan), plan->len, p);
	trial_candidate_sha(k, p, a->candidate);
	if (plan_parse(buf_str(plan), plan->len, what, &a->plan, e) != 0)
		return -1;
	a->present = 1;
	return plan_check(a->plan, r->spec, e);
}

int rig_candidate(struct rig *r, struct err *e)
{
	struct rig_arm *a = &r->arm[RAW_CANDIDATE];
	struct buf kernel = BUF_INIT, plan = BUF_INIT;
	int rc = stage_candidate(r->s, &kernel, &plan, e);
	if (rc == 0)
		rc = take_plan(r, a, &kernel, &plan, "candidate/plan.json", e);
	buf_free(&kernel);
	buf_free(&plan);
	if (rc != 0 || r->class == DEVICE_SIM)
		return rc;
	snprintf(a->trial, sizeof a->trial, "%s", r->s->id);
	if (r->class == DEVICE_CUDA) {
		a->set = xcalloc(1, sizeof *a->set);
		if (proof_set(r->s, a->plan, "", a->set, e) != 0)
			return -1;
		memcpy(a->image_sha, a->set->sha[0], HASH_HEX);
		return 0;
	}
	if (stage_recorded(r->s, RIG_ARTEFACT, a->image_sha, e) != 0)
		return -1;
	verdict_input(&r->s->v, "artefact", a->image_sha);
	snprintf(a->image, sizeof a->image, "%s/%s", r->s->trial_dir, RIG_ARTEFACT);
	return 0;
}

static int build_gpu(struct rig *r, struct rig_arm *a, struct image *m, struct err *e)
{
	char dir[TRIAL_PATH];
	run_path(dir, r->s->run.name, "spec");
	if (image_build_gpu(m, r->spec, dir, r->gpu.arch, NULL, e) != 0)
		return -1;
	a->set = xcalloc(1, sizeof *a->set);
	*a->set = m->set;
	memcpy(a->image_sha, m->set.sha[0], HASH_HEX);
	return 0;
}

/* Baseline and champion are built here from their sources (or found in the box's cache), so that both
 * arms come from the compiler and the emulator of today, whatever made the champion's own record. */
static int build(struct rig *r, struct rig_arm *a, const struct buf *kernel, const struct buf *plan,
		 const char *what, struct err *e)
{
	struct image *m = xcalloc(1, sizeof *m);
	int rc = image_text(m, r->spec, kernel, plan, what, e);
	if (rc == 0) {
		rc = r->class == DEVICE_CUDA ? build_gpu(r, a, m, e)
					     : image_build(m, r->spec, "emu-fast", NULL, NULL, e);
		if (rc == 0 && !m->ok)
			rc = err_set(e, EX_HARNESS, "%s of '%s' does not compile: %s", what,
				     r->spec->name, m->box.message);
		if (rc == 0 && r->class == DEVICE_EMU) {
			snprintf(a->image, sizeof a->image, "%s", m->box.path);
			memcpy(a->image_sha, m->box.sha256, HASH_HEX);
		}
		image_free(m);
	}
	free(m);
	return rc;
}

static int baseline_into(struct rig *r, struct rig_arm *a, struct err *e)
{
	struct buf kernel = BUF_INIT, plan = BUF_INIT;
	int rc = -1;
	if (stage_spec(r->s, NULL, "baseline/kernel.cu", RIG_FILE_MAX, &kernel, e) == 0 &&
	    stage_spec(r->s, NULL, "baseline/plan.json", RIG_FILE_MAX, &plan, e) == 0)
		rc = take_plan(r, a, &kernel, &plan, "baseline/plan.json", e);
	if (rc == 0 && r->class != DEVICE_SIM)
		rc = build(r, a, &kernel, &plan, "the baseline", e);
	buf_free(&kernel);
	buf_free(&plan);
	return rc;
}

int rig_baseline(struct rig *r, struct err *e)
{
	if (rig_champion_is_baseline(r)) {
		r->arm[RAW_BASELINE] = r->arm[RAW_CHAMPION];
		return 0;
	}
	return baseline_into(r, &r->arm[RAW_BASELINE], e);
}

int rig_champion_is_baseline(const struct rig *r)
{
	return r->arm[RAW_CHAMPION].present && r->arm[RAW_CHAMPION].trial[0] == '\0';
}

static int read_of_trial(const char *trial, const char *file, struct buf *out, struct err *e)
{
	char path[TRIAL_PATH];
	trial_path(path, trial, file);
	return file_read(path, RIG_FILE_MAX, out, e);
}

/* A champion's sources are its own trial's; their hashes must be those the state names. */
static int champion_of(struct rig *r, struct rig_arm *a, const char *want, struct err *e)
{
	struct buf kernel = BUF_INIT, plan = BUF_INIT;
	int rc = -1;
	if (read_of_trial(a->trial, "candidate/kernel.cu", &kernel, e) == 0 &&
	    read_of_trial(a->trial, "candidate/plan.json", &plan, e) == 0)
		rc = take_plan(r, a, &kernel, &plan, "champion's plan.json", e);
	if (rc == 0 && strcmp(a->candidate, want) != 0)
		rc = err_set(e, EX_BADINPUT, "trials/%s/candidate is not the champion recorded", a->trial);
	if (rc == 0 && r->class != DEVICE_SIM)
		rc = build(r, a, &kernel, &plan, "the champion", e);
	buf_free(&kernel);
	buf_free(&plan);
	return rc;
}

int rig_champion(struct rig *r, struct err *e)
{
	struct rig_arm *a = &r->arm[RAW_CHAMPION];
	char want[HASH_HEX];
	if (stage_champion(r->s, a->trial, want, e) != 0)
		return -1;
	int rc = a->trial[0] ? champion_of(r, a, want, e) : baseline_into(r, a, e);
	if (rc == 0)
		verdict_input(&r->s->v, "champion", a->candidate);
	return rc;
}

/* sim draws its held-out sizes from the search seed: it has no key. */
static uint64_t sim_word(void *ctx)
{
	uint64_t z = *(uint64_t *)ctx += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static int held_out(struct rig *r, struct rig_workload *w, struct err *e)
{
	uint64_t state = (uint64_t)r->s->run.seed * 1000 + w->index;
	if (r->class != DEVICE_SIM)
		return checker_draw(r->checker, CHECKER_HELD_OUT, w->index, r->class == DEVICE_EMU, &w->axes, e);
	return spec_draw(r->spec, 0, 0, sim_word, &state, &w->axes, e);
}

int rig_workloads(struct rig *r, int with_held_out, struct err *e)
{
	int extra = with_held_out ? r->spec->held_out_count : 0;
	if (r->spec->npublic < 1 || r->spec->npublic + extra > SESSION_WORKLOADS)
		return err_set(e, EX_BADINPUT, "spec '%s' has %d workloads", r->spec->name,
			       r->spec->npublic + extra);
	r->nworkloads = 0;
	for (int i = 0; i < r->spec->npublic + extra; i++) {
		struct rig_workload *w = &r->workload[r->nworkloads++];
		const struct spec_workload *p = &r->spec->public[i];
		if (i < r->spec->npublic) {
			w->mode = CHECKER_PUBLIC;
			w->index = (uint32_t)i;
			w->axes = r->class == DEVICE_EMU ? p->emu : p->gpu;
			w->weight = p->weight;
			snprintf(w->name, sizeof w->name, "%s", p->name);
			continue;
		}
		w->mode = CHECKER_HELD_OUT;
		w->index = (uint32_t)(i - r->spec->npublic);
		w->weight = 0;
		snprintf(w->name, sizeof w->name, "held_out_%u", w->index);
		if (held_out(r, w, e) != 0)
			return -1;
	}
	return 0;
}

int rig_checker(struct rig *r, struct err *e)
{
	char dir[TRIAL_PATH];
	run_path(dir, r->s->run.name, "");
	size_t n = strlen(dir);
	dir[n - (n > 0 && dir[n - 1] == '/')] = '\0';
	struct checker_opts o = {.device = r->s->trial.device,
				 .gpu = r->class == DEVICE_CUDA ? r->gpu.uuid : NULL, .run_dir = dir, .trial = r->s->id,
				 .stage = r->s->confirm ? "confirm" : "bench"};
	return checker_start(&r->checker, &o, e);
}

const struct session_ops *rig_ops(const struct rig *r)
{
	static const struct session_ops *const of[] = {
		[DEVICE_EMU] = &RIG_EMU_OPS, [DEVICE_SIM] = &RIG_SIM_OPS, [DEVICE_CUDA] = &RIG_CUDA_OPS};
	return of[r->class];
}
