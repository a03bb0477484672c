/*
 * guard.c - is this a candidate at all? Slots, bytes, plan, source rules, duplicates, compile.
 *
 * Reads aK/propose.json, aK/candidate/ by the hashes on record, the pinned spec, trials/index.tsv up to
 * the trial this one may know. Writes aK/guard.json, aK/guard.log and the artefacts that later steps
 * load by hash: emulated images, modules of a GPU with their PTX; for sim a text. Never runs a
 * candidate, never compiles in this process (the box does), never decides by the compiler's text.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lib/defence.h"
#include "lib/duplicate.h"
#include "lib/engine_problem.h"
#include "lib/facts.h"
#include "lib/file.h"
#include "lib/gpu.h"
#include "lib/guard_engine.h"
#include "lib/image.h"
#include "lib/json.h"
#include "lib/plan.h"
#include "lib/reason.h"
#include "lib/source.h"
#include "lib/spec.h"
#include "lib/stage.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char HELP[] =
	"guard - check a candidate's files and compile them\n"
	"\n"
	"usage: guard trials/NNNN/aK/guard.json\n"
	"\n"
	"Accepts exactly candidate/kernel.cu and candidate/plan.json: printable ASCII, within the\n"
	"size caps, a strict plan that fits the spec and the device at every public and tiny size\n"
	"and at the edges of the held-out ones, no reserved names, no credentials, no headers beyond\n"
	"the allowed ones, not tried before.\n"
	"Then the box compiles the source and its artefact is gated: no state of its own, no code\n"
	"outside kernels, no foreign symbols. An instrumented build that fails where the plain one does\n"
	"not rejects nothing; coverage is then `reduced` and the message names the build.\n"
	"For a GPU: one module for each configuration that the plan's `choose` can ask for, gated, with\n"
	"its arguments, registers and shared memory checked against the plan at the same sizes. A source\n"
	"that the host can emulate is built for that too; else coverage is `none`.\n"
	"\n"
	"An engine problem: engine.c (engine.cu) and kernels/; the box makes artefact/engine of them.\n"
	"\n"
	"reads   aK/propose.json, aK/candidate/, the run's spec, trials/index.tsv\n"
	"writes  aK/guard.json, aK/guard.log, aK/artefact/ (emu-fast, emu-sanitize,\n"
	"        emu-race; cuda-0, cuda-0.ptx, ...; sim)\n"
	"exit    0 verdict written, whatever it is; 3 malformed input; 4 environment; 70 our fault\n"
	"\n"
	"run settings: allow_duplicate 1 accepts a candidate that was tried before, as redo does\n";

enum { BUILDS = 3 };
static const char *const BUILD[BUILDS] = {"emu-fast", "emu-sanitize", "emu-race"};

struct guard {
	struct stage *s;
	struct spec *spec;
	struct plan *plan;
	struct facts facts;
	struct plan_sizes sizes;
	struct buf kernel, text, log; /* text: plan.json */
	struct box_result build[BUILDS];
	int nbuilds;
	char isolation[CONFINE_LIST];
	struct gpu gpu;               /* of the run; class cuda */
	struct image image;           /* its modules */
	int closed;                   /* rejected */
};

static struct guard guard; /* static: the verdict keeps pointers to isolation names */

/* ---- saying no ---- */

static int reject(struct guard *g, const char *code, int line, const char *message)
{
	g->closed = 1;
	if (line > 0)
		verdict_set(&g->s->v, V_REJECT, code, "kernel.cu:%d: %s", line, message);
	else
		verdict_set(&g->s->v, V_REJECT, code, "%s", message);
	buf_addf(&g->log, "FAIL %s\n", code);
	if (line > 0)
		buf_addf(&g->log, "kernel.cu:%d: ", line);
	buf_addf(&g->log, "%s\n", message);
	return 0;
}

static void passed(struct guard *g, const char *what)
{
	buf_addf(&g->log, "ok   %s\n", what);
}

/* ---- slots ---- */

/* Exactly the two slots, plain files. */
static int check_scope(struct guard *g, struct err *e)
{
	static const char *const slot[] = {"kernel.cu", "plan.json"};
	char dir[TRIAL_PATH], path[TRIAL_PATH + 16], file[32];
	snprintf(file, sizeof file, "%s/candidate", stage_candidate_dir(g->s));
	trial_path(dir, g->s->id, file);
	DIR *d = opendir(dir);
	struct dirent *entry;
	if (!d)
		return errno == ENOENT ? reject(g, "guard.scope", 0, "there is no candidate folder")
				       : err_sys(e, "cannot open folder '%s'", dir);
	while (!g->closed && (entry = readdir(d))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (strcmp(entry->d_name, slot[0]) && strcmp(entry->d_name, slot[1]) && DEFENCE("guard.scope"))
			reject(g, "guard.scope", 0, "the candidate has a file besides kernel.cu and plan.json");
	}
	closedir(d);
	for (int i = 0; i < 2 && !g->closed; i++) {
		struct stat st;
		char why[64];
		snprintf(path, sizeof path, "%s/%s", dir, slot[i]);
		snprintf(why, sizeof why, "%s is missing or no plain file", slot[i]);
		if ((lstat(path, &st) || !S_ISREG(st.st_mode)) && DEFENCE("guard.slot"))
			reject(g, "guard.scope", 0, why);
		else if (st.st_size > 1 << 20)
			reject(g, "guard.size", 0, "a file is larger than 1 MiB");
	}
	return 0;
}

static int check_bytes(struct guard *g)
{
	struct source_finding f = {0};
	size_t most = (size_t)g->spec->limits.source_bytes;
	if (source_ascii("kernel.cu", buf_str(&g->kernel), g->kernel.len, most, &f) ||
	    source_ascii("plan.json", buf_str(&g->text), g->text.len, PLAN_MAX_BYTES, &f) ||
	    source_credential("kernel.cu", buf_str(&g->kernel), g->kernel.len, &f) ||
	    source_credential("plan.json", buf_str(&g->text), g->text.len, &f))
		return reject(g, f.code, 0, f.message);
	passed(g, "slots, alphabet, sizes, no credentials");
	return 0;
}

/* ---- plan ---- */

static int check_plan(struct guard *g)
{
	static const struct json_limits limits = {PLAN_MAX_BYTES, 8};
	struct err why;
	cJSON *json = json_parse(buf_str(&g->text), g->text.len, &limits, "plan.json", &why);
	if (!json)
		return reject(g, "guard.json", 0, why.text);
	cJSON_Delete(json);
	if (plan_parse(buf_str(&g->text), g->text.len, "plan.json", &g->plan, &why) ||
	    plan_check(g->plan, g->spec, &why))
		return reject(g, "guard.plan", 0, why.text);
	passed(g, "plan.json fits the grammar and the spec");
	return 0;
}

/* Numbers at every size that is public, and at the edges of the held-out ones: a plan that cannot
 * handle a legal size is told so here, and not by a drawn size, later. */
static int check_sizes(struct guard *g)
{
	const struct spec *s = g->spec;
	struct jsonw *w = &g->s->v.data;
	struct err why = {0};
	int bad = plan_sizes(g->plan, s, &g->facts, 0, &g->sizes, &why);
	jw_obj(w, "launches");
	for (int i = 0; i < g->sizes.n; i++)
		jw_int(w, i < s->npublic ? s->public[i].name : s->tiny[i - s->npublic].name,
		       g->sizes.launches[i]);
	jw_end(w);
	if (bad && DEFENCE("guard.limits"))
		return reject(g, "guard.limits", 0, why.text);
	passed(g, "launches within the limits at every public and tiny size and at the edges of the others");
	return 0;
}

/* ---- source ---- */

static int check_source(struct guard *g)
{
	const char *headers[SPEC_MAX_HEADERS + 1] = {NULL};
	struct source_finding f = {0};
	for (int i = 0; i < g->spec->nheaders; i++)
		headers[i] = g->spec->header[i];
	struct source_rules rules = {.asm_ok = g->facts.class != DEVICE_EMU, .headers = headers};
	if (source_check(buf_str(&g->kernel), g->kernel.len, &rules, &f))
		return reject(g, f.code, f.line, f.message);
	passed(g, "source rules");
	return 0;
}

/* ---- duplicates ---- */

static int check_duplicate(struct guard *g, struct err *e)
{
	const char *code;
	char text[160];
	int found = duplicate_find(g->s, &g->kernel, &g->text, &code, text, e);
	if (found < 0)
		return -1;
	if (found && DEFENCE("guard.duplicate"))
		return reject(g, code, 0, text);
	passed(g, "not tried before");
	return 0;
}

/* ---- compile ---- */

/* Why the plain build failed: the box's code, or that the source lacks an entry of the plan. */
static void reject_build(struct guard *g, const struct box_result *r)
{
	char text[160];
	for (int i = 0; i < g->plan->nentries && !strcmp(r->code, "compile.error"); i++) {
		if (source_names(buf_str(&g->kernel), g->kernel.len, g->plan->entry[i]))
			continue;
		snprintf(text, sizeof text, "the plan's entry '%.64s' is not in kernel.cu", g->plan->entry[i]);
		reject(g, "guard.entry_missing", 0, text);
		return;
	}
	reject(g, reason_find(r->code) ? r->code : "compile.error", 0, r->message);
}

/* The artefact says how much static shared memory there is: of the whole image, which is what a
 * block of any of its kernels takes on emu. */
static int check_shared(struct guard *g)
{
	int64_t fixed[PLAN_MAX_ENTRIES];
	struct err why;
	for (int i = 0; i < g->plan->nentries; i++)
		fixed[i] = json_get_int(g->build[0].facts, "shared_bytes", 0);
	if (plan_shared_fits(g->plan, &g->facts, fixed, g->sizes.shared, &why))
		return reject(g, "guard.limits", 0, why.text);
	passed(g, "static and dynamic shared memory within the limit");
	return 0;
}

/* One build into aK/artefact/. 0 with g->closed when the source does not pass. */
static int build_one(struct guard *g, struct image *m, const char *dir, int i, struct err *e)
{
	struct box_result *r = &g->build[i];
	char file[TRIAL_PATH];
	if (image_build(m, g->spec, BUILD[i], NULL, dir, e))
		return -1;
	*r = m->box;
	m->box.facts = NULL;
	g->nbuilds = i + 1;
	if (r->ok) {
		snprintf(file, sizeof file, "%s/artefact/%s", stage_candidate_dir(g->s), BUILD[i]);
		verdict_output_sha(&g->s->v, file, r->sha256);
		buf_addf(&g->log, "ok   %s %.12s%s\n", BUILD[i], r->sha256, r->cached ? " (cached)" : "");
	} else if (i == 0 && g->facts.class != DEVICE_CUDA) {
		reject_build(g, r);
	} else {
		/* larger builds may fail (size, time): less is tested then, no fault of the source */
		buf_addf(&g->log, "note %s was not built, less is tested: %s: %s\n", BUILD[i], r->code,
			 r->message);
	}
	if (r->log[0])
		buf_addf(&g->log, "\n%s\n", r->log);
	return 0;
}

static void artefact_dir(struct guard *g, char dir[TRIAL_PATH])
{
	char sub[32];
	snprintf(sub, sizeof sub, "%s/artefact", stage_candidate_dir(g->s));
	trial_path(dir, g->s->id, sub);
}

static int compile_emu(struct guard *g, struct err *e)
{
	char dir[TRIAL_PATH];
	struct image m;
	artefact_dir(g, dir);
	int rc = image_text(&m, g->spec, &g->kernel, &g->text, "plan.json", e);
	for (int i = 0; i < BUILDS && !rc && !g->closed && (!g->nbuilds || g->build[0].ok); i++) {
		rc = build_one(g, &m, dir, i, e);
		if (!rc && !i && !g->closed && g->facts.class != DEVICE_CUDA)
			check_shared(g);
	}
	image_free(&m);
	return rc;
}

/* ---- a GPU ---- */

/* The host cannot run inline assembly: no need to ask its compiler. */
static int emulable(struct guard *g)
{
	struct source_rules rules = {.asm_ok = 0};
	struct source_finding f;
	return !source_check(buf_str(&g->kernel), g->kernel.len, &rules, &f);
}

static void name_outputs(struct guard *g)
{
	for (int k = 0; k < g->image.nbuilt; k++) {
		const struct box_result *r = &g->image.each[k];
		char file[TRIAL_PATH];
		if (!r->ok)
			continue;
		snprintf(file, sizeof file, "%s/artefact/cuda-%d", stage_candidate_dir(g->s), k);
		verdict_output_sha(&g->s->v, file, r->sha256);
		snprintf(file, sizeof file, "%s/artefact/cuda-%d.ptx", stage_candidate_dir(g->s), k);
		verdict_output_sha(&g->s->v, file, r->ptx_sha256);
		buf_addf(&g->log, "ok   cuda-%d %.12s%s\n", k, r->sha256, r->cached ? " (cached)" : "");
	}
}

static int compile_gpu(struct guard *g, struct err *e)
{
	char dir[TRIAL_PATH], spec[TRIAL_PATH], code[48], text[256];
	struct image *m = &g->image;
	artefact_dir(g, dir);
	run_path(spec, g->s->trial.run, "spec");
	if (image_text(m, g->spec, &g->kernel, &g->text, "plan.json", e) ||
	    image_build_gpu(m, g->spec, spec, g->gpu.arch, dir, e))
		return -1;
	name_outputs(g);
	if (!m->ok)
		reject_build(g, &m->box);
	if (m->box.log[0])
		buf_addf(&g->log, "\n%s\n", m->box.log);
	int rc = g->closed ? 0 : image_fits(m, g->spec, &g->facts, code, text, e);
	if (rc < 0)
		return -1;
	if (rc)
		reject(g, code, 0, text);
	else if (!g->closed)
		passed(g, "arguments, registers and shared memory of every module");
	return g->closed || !emulable(g) ? 0 : compile_emu(g, e);
}

static int device_read(struct guard *g, struct err *e)
{
	const char *device = g->s->trial.device;
	if (facts_of_run(&g->s->run, device, &g->facts, e))
		return -1;
	return g->facts.class == DEVICE_CUDA ? gpu_of_run(&g->s->run, &g->gpu, e) : 0;
}

/* sim runs nothing: its artefact says what it stands for. */
static int write_sim(struct guard *g, struct err *e)
{
	char kernel[HASH_HEX], plan[HASH_HEX], file[TRIAL_PATH], dir[TRIAL_PATH];
	struct buf out = BUF_INIT;
	hash_hex(buf_str(&g->kernel), g->kernel.len, kernel);
	hash_hex(buf_str(&g->text), g->text.len, plan);
	artefact_dir(g, dir);
	buf_addf(&out, "simulated: nothing was compiled\nkernel.cu %s\nplan.json %s\n", kernel, plan);
	snprintf(file, sizeof file, "%s/artefact/sim", stage_candidate_dir(g->s));
	int rc = dir_make(dir, e) ? -1 : stage_side(g->s, file, buf_str(&out), out.len, e);
	buf_free(&out);
	return rc;
}

/* ---- the stage ---- */

/* A build that only the tests want may be missing: then they show less, and that is said. */
static void pass(struct guard *g)
{
	struct verdict *v = &g->s->v;
	char missing[160] = "";
	size_t at = 0;
	if (g->facts.class == DEVICE_SIM) {
		verdict_set(v, V_PASS, "ok", "simulated: nothing was compiled");
		return;
	}
	for (int i = 1; i < g->nbuilds; i++)
		if (!g->build[i].ok)
			at += (size_t)snprintf(missing + at, sizeof missing - at, "%s%s (%.40s)", at ? ", " : "",
					       BUILD[i], g->build[i].code);
	if (g->facts.class == DEVICE_CUDA && (!g->nbuilds || !g->build[0].ok)) {
		verdict_set(v, V_PASS, "ok", "compiled and gated; the host cannot emulate it");
		jw_str(&v->data, "coverage", "none");
		return;
	}
	verdict_set(v, V_PASS, "ok", "compiled and gated%s%s", at ? "; lower coverage, not built: " : "",
		    missing);
	jw_str(&v->data, "coverage", at ? "reduced" : "full");
}

static void record_images(struct guard *g)
{
	struct jsonw *w = &g->s->v.data;
	jw_str(w, "arch", g->gpu.arch);
	jw_arr(w, "images");
	for (int k = 0; k < g->image.nbuilt; k++) {
		const struct box_result *r = &g->image.each[k];
		jw_obj(w, NULL);
		jw_obj(w, "config");
		for (int i = 0; i < g->plan->ntunables; i++)
			jw_int(w, g->plan->tunable[i].name, g->image.set.config[k].v[i]);
		jw_end(w);
		jw_str(w, "sha256", r->sha256);
		jw_str(w, "ptx_sha256", r->ptx_sha256);
		jw_str(w, "code", r->code);
		jw_str(w, "compiler", r->compiler);
		jw_num(w, "seconds", r->seconds);
		jw_bool(w, "cached", r->cached);
		if (r->facts)
			jw_item(w, "facts", r->facts);
		jw_end(w);
	}
	jw_end(w);
}

static void record(struct guard *g)
{
	struct jsonw *w = &g->s->v.data;
	jw_int(w, "kernel_bytes", (int64_t)g->kernel.len);
	jw_int(w, "plan_bytes", (int64_t)g->text.len);
	if (g->plan) {
		int64_t space;
		jw_obj(w, "config");
		for (int i = 0; i < g->plan->ntunables; i++)
			jw_int(w, g->plan->tunable[i].name, g->plan->tunable[i].current);
		jw_end(w);
		if (!plan_space(g->plan, &space, NULL))
			jw_int(w, "space", space);
	}
	if (g->facts.class == DEVICE_CUDA)
		record_images(g);
	jw_arr(w, "builds");
	for (int i = 0; i < g->nbuilds; i++) {
		const struct box_result *r = &g->build[i];
		jw_obj(w, NULL);
		jw_str(w, "mode", BUILD[i]);
		jw_bool(w, "ok", r->ok);
		jw_str(w, "code", r->code);
		jw_str(w, "compiler", r->compiler);
		jw_num(w, "seconds", r->seconds);
		jw_bool(w, "cached", r->cached);
		if (r->facts)
			jw_item(w, "facts", r->facts);
		jw_end(w);
	}
	jw_end(w);
}

static int check_all(struct guard *g, struct err *e)
{
	if (check_scope(g, e))
		return -1;
	if (g->closed)
		return 0;
	if (stage_candidate(g->s, &g->kernel, &g->text, e))
		return -1;
	int (*const check[])(struct guard *) = {check_bytes, check_plan, check_sizes, check_source};
	for (size_t i = 0; i < sizeof check / sizeof check[0] && !g->closed; i++)
		check[i](g);
	if (!g->closed && check_duplicate(g, e))
		return -1;
	if (g->closed)
		return 0;
	enum device_class class = g->facts.class;
	return class == DEVICE_SIM ? write_sim(g, e) : class == DEVICE_CUDA ? compile_gpu(g, e) : compile_emu(g, e);
}

static int guard_work(struct stage *s, struct err *e)
{
	struct guard *g = &guard;
	char dir[TRIAL_PATH], log[TRIAL_PATH];
	struct buf text = BUF_INIT;
	const int engine = engine_problem(s, &text, e);
	if (engine) {
		int rc = engine < 0 ? -1 : guard_engine(s, buf_str(&text), text.len, e);
		buf_free(&text);
		return rc;
	}
	g->s = s;
	run_path(dir, s->trial.run, "spec");
	if (device_read(g, e) || spec_load(dir, &g->spec, e) || check_all(g, e))
		return -1;
	if (!g->closed) {
		relies_candidate(&s->v.relies, buf_str(&g->kernel), g->kernel.len, g->plan, g->spec, &g->facts);
		pass(g);
	}
	record(g);
	box_isolation(g->image.each, g->image.nbuilt, 1, g->isolation);
	box_isolation(g->build, g->nbuilds, !g->image.nbuilt, g->isolation);
	verdict_isolation_list(&s->v, g->isolation);
	snprintf(log, sizeof log, "%s/guard.log", stage_candidate_dir(s));
	return stage_side(s, log, buf_str(&g->log), g->log.len, e);
}

static void guard_free(struct guard *g)
{
	for (int i = 0; i < BUILDS; i++)
		box_result_free(&g->build[i]);
	image_free(&g->image);
	plan_free(g->plan);
	spec_free(g->spec);
	buf_free(&g->kernel);
	buf_free(&g->text);
	buf_free(&g->log);
}

int main(int argc, char **argv)
{
	static const struct stage_about about = {.stage = "guard", .help = HELP, .work = guard_work};
	int rc = stage_main(argc, argv, &about);
	guard_free(&guard);
	return rc;
}
