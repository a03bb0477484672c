/*
 * bare.c - run the launches of a kept candidate once, with nothing around them: what ncu looks at.
 *
 * Confined by nothing and timing nothing, so that a profiler can be injected; nothing secret is here, and nothing
 * that is printed or computed is believed. Reads a trial's record below trials/; the inputs are the spec's fills
 * under a fixed key. The GPU is the first that CUDA_VISIBLE_DEVICES shows. tools/profile.c starts it.
 *
 * With --tiny it runs what lies in a folder (spec.json, plan.json, cuda-0...) at all tiny shapes: for compute-sanitizer, on
 * what nobody has judged, so whoever starts that confines it (sanitizer_run.c).
 *
 *   bare TRIAL WORKLOAD | --tiny DIR     exit 0; 3 cannot run; 4 no GPU; 70 a call failed
 *
 * SPDX-License-Identifier: MIT
 */
#include "cubin.h"
#include "dtype.h"
#include "facts_cuda.h"
#include "file.h"
#include "fill.h"
#include "gpu.h"
#include "gpu_run.h"
#include "image.h"
#include "memory.h"
#include "oracle.h"
#include "verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
	"usage: bare TRIAL WORKLOAD | bare --tiny DIR\n"
	"\n"
	"Runs the launches of a trial's candidate once on this GPU, for a profiler (make profile); or those of\n"
	"the images in DIR at the tiny shapes of its spec.json, for a sanitizer (SANITIZER=1).\n";

#define TRY(call, ...) \
	do { \
		CUresult result = cu.call(__VA_ARGS__); \
		if (result) { \
			struct err failed; \
			cuda_fail(&failed, "cu" #call, result); \
			die_err(&failed); \
		} \
	} while (0)

struct bare {
	struct trial trial;
	struct run run;
	struct spec *spec;
	struct plan *plan;
	const struct axes *axes;
	struct facts facts;
	struct cubin cubin;
	struct buf image;
	struct launches launches;
	struct mem_layout layout;
	double scalar[SPEC_MAX_TENSORS];
};

static void must(int rc, const struct err *e)
{
	if (rc)
		die_err(e);
}

static void load(struct bare *b, const char *id, const char *workload)
{
	char path[TRIAL_PATH];
	struct buf text = BUF_INIT;
	struct err e;
	must(trial_read(id, &b->trial, &e), &e);
	must(run_read(b->trial.run, &b->run, &e), &e);
	must(facts_of_run(&b->run, b->trial.device, &b->facts, &e), &e);
	run_path(path, b->trial.run, "spec");
	must(spec_load(path, &b->spec, &e), &e);
	trial_path(path, id, "candidate/plan.json");
	must(file_read(path, 1 << 20, &text, &e), &e);
	must(plan_parse(buf_str(&text), text.len, path, &b->plan, &e), &e);
	must(plan_check(b->plan, b->spec, &e), &e);
	buf_free(&text);
	for (int i = 0; i < b->spec->npublic; i++)
		if (!strcmp(b->spec->public[i].name, workload))
			b->axes = &b->spec->public[i].gpu;
	if (!b->axes)
		die(EX_BADINPUT, "'%s' has no workload '%.40s'", b->run.spec, workload);
}

/* Nothing confines what runs here, so it must be what the judge has seen. */
static void recorded(const struct bare *b, const char *file, const char *path)
{
	struct verdict_in tune = {0};
	char sha[HASH_HEX];
	struct err e;
	must(verdict_read(b->trial.id, STEP_TUNE, &tune, &e), &e);
	const char *want = verdict_in_output(&tune, file);
	hash_hex(buf_str(&b->image), b->image.len, sha);
	if (!want || strcmp(want, sha))
		die(EX_BADINPUT, "'%s' is not the artefact of its record: its sha256 differs", path);
	verdict_in_free(&tune);
}

/* `dir`: the images lie there, else in the trial's record. */
static void resolve(struct bare *b, const char *dir)
{
	char path[4096], file[32];
	struct image_set *set = xcalloc(1, sizeof *set);
	struct err e;
	must(plan_configs(b->plan, set->config, &set->n, &e), &e);
	int i = image_pick(set, b->plan, b->spec, b->axes, &b->facts, &e);
	must(i < 0 ? -1 : 0, &e);
	snprintf(file, sizeof file, "%scuda-%d", dir ? "" : "artefact/", i);
	if (dir)
		snprintf(path, sizeof path, "%.4000s/%s", dir, file);
	else
		trial_path(path, b->trial.id, file);
	must(file_read(path, 64u << 20, &b->image, &e), &e);
	if (!dir)
		recorded(b, file, path);
	must(cubin_parse(buf_str(&b->image), b->image.len, &b->cubin, &e), &e);
	cubin_facts(&b->cubin, &b->facts);
	must(plan_resolve(b->plan, b->spec, b->axes, &b->facts, 0, &b->launches, &e), &e);
	free(set);
}

static void memory(struct bare *b)
{
	static const uint8_t key[32] = {1};
	uint64_t ws[CHECKER_WS] = {0};
	struct err e;
	for (int i = 0; i < b->launches.nworkspaces && i < PLAN_MAX_WORKSPACES; i++)
		ws[i] = (uint64_t)b->launches.workspace[i].bytes;
	must(oracle_add_inputs(&b->layout, b->spec, b->axes, &e), &e);
	must(oracle_add_outputs(&b->layout, b->spec, b->axes, 0, &e), &e);
	must(oracle_add_workspaces(&b->layout, ws, (uint32_t)b->launches.nworkspaces, &e), &e);
	for (uint32_t i = 0; i < b->layout.n; i++) {
		struct mem_buf *m = &b->layout.buf[i];
		TRY(MemAlloc, &m->addr, m->bytes ? m->bytes : 16);
		if (m->kind != MEM_INPUT)
			continue;
		void *host = xcalloc(1, m->bytes ? m->bytes : 1);
		must(fill_input(b->spec, b->axes, m->index, REGIME_SPEC, key, NULL, host, &e), &e);
		TRY(MemcpyHtoD, m->addr, host, m->bytes);
		free(host);
	}
	for (int i = 0; i < b->spec->ninputs; i++)
		if (b->spec->input[i].scalar)
			must(fill_scalar(b->spec, b->axes, i, REGIME_SPEC, key, &b->scalar[i], &e), &e);
}

static uint64_t at(void *ctx, enum buffer_role role, int index, uint64_t *bytes)
{
	const struct bare *b = ctx;
	const struct mem_buf *m = mem_find(
		&b->layout, role == ROLE_INPUT ? MEM_INPUT : role == ROLE_OUTPUT ? MEM_OUTPUT : MEM_WORKSPACE, index);
	*bytes = m ? m->bytes : 0;
	return m ? m->addr : 0;
}

static void run(struct bare *b)
{
	struct gpu_module module = {0};
	struct gpu_prepared *p = NULL;
	CUstream stream;
	char text[GPU_TEXT] = "";
	uint8_t data[16];
	struct err e;
	int rc = gpu_module_load(&module, buf_str(&b->image), b->image.len, text, &e);
	if (rc == 0)
		rc = gpu_prepare(&p, &b->launches, &module, at, b, text, &e);
	for (int i = 0; i < b->spec->ninputs && rc == 0; i++) {
		enum dtype t = b->spec->input[i].dtype;
		if (!b->spec->input[i].scalar)
			continue;
		dtype_store(t, data, 0, b->scalar[i]);
		gpu_scalar(p, i, data, (int)dtype_size(t));
	}
	if (rc == 0) {
		TRY(StreamCreate, &stream, 1);
		rc = gpu_enqueue(p, stream, text, &e);
	}
	if (rc > 0)
		die(EX_BADINPUT, "%s", text);
	must(rc, &e);
	TRY(StreamSynchronize, stream);
}

static void read_text(const char *dir, const char *name, struct buf *out)
{
	char path[4096];
	struct err e;
	snprintf(path, sizeof path, "%.4000s/%s", dir, name);
	must(file_read(path, 1 << 20, out, &e), &e);
}

static void tiny(struct bare *b, const char *dir, CUdevice device)
{
	struct buf spec = BUF_INIT, plan = BUF_INIT;
	struct err e;
	read_text(dir, "spec.json", &spec);
	read_text(dir, "plan.json", &plan);
	must(spec_parse(buf_str(&spec), spec.len, "spec.json", &b->spec, &e), &e);
	must(plan_parse(buf_str(&plan), plan.len, "plan.json", &b->plan, &e), &e);
	must(plan_check(b->plan, b->spec, &e), &e);
	must(facts_cuda(device, &b->facts, &e), &e);
	facts_cuda_clusters(&b->facts);
	for (int i = 0; i < b->spec->ntiny; i++) {
		struct bare one = *b;
		one.axes = &b->spec->tiny[i].gpu;
		resolve(&one, dir);
		memory(&one);
		run(&one); /* what it took goes with the process */
	}
	buf_free(&spec);
	buf_free(&plan);
}

int main(int argc, char **argv)
{
	static struct bare b;
	CUdevice device;
	struct err e;
	prog_name("bare");
	if (argc == 2 && strcmp(argv[1], "-h") == 0) {
		fputs(HELP, stdout);
		return fflush(stdout) ? EX_SYS : EX_DONE;
	}
	if (argc != 3) {
		fputs(HELP, stderr);
		return EX_BADUSE;
	}
	if (strcmp(argv[1], "--tiny") == 0) {
		must(cuda_start(&device, &e), &e);
		tiny(&b, argv[2], device);
		return EX_DONE;
	}
	if (!trial_id_ok(argv[1]))
		die(EX_BADUSE, "'%.20s' is no trial", argv[1]);
	load(&b, argv[1], argv[2]);
	must(cuda_start(&device, &e), &e);
	resolve(&b, NULL);
	memory(&b);
	run(&b);
	return EX_DONE;
}
