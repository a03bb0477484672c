/*
 * profile.c - what Nsight Compute says of a kept candidate: a dozen metrics for each of its launches.
 *
 * Starts `ncu bare TRIAL WORKLOAD` for every public workload, under the lane of a GPU, and writes
 * trials/NNNN/profile.json; a copy goes beside the evidence of the champion that it is. No verdict rests on it: the proposer
 * reads it. Where there is no ncu, or it may not read counters, the file says so, and that is no failure.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../stages/lib/file.h"
#include "../stages/lib/gpu.h"
#include "../stages/lib/json.h"
#include "../stages/lib/lane.h"
#include "../stages/lib/ncu.h"
#include "../stages/lib/spawn.h"
#include "../stages/lib/utf8.h"
#include "../stages/lib/verdict.h"

#include <glob.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char HELP[] =
	"usage: profile --TRIAL=NNNN\n"
	"\n"
	"Profile a trial's candidate with Nsight Compute (ncu), into trials/NNNN/profile.json, which the\n"
	"next prompts show when the trial is the champion. Its launches run once for each public\n"
	"workload, without confinement: only what was kept, on this GPU, is taken.\n"
	"\n"
	"environment: NCU, the program, where it is not in PATH or the toolkit\n"
	"exit: 0 also when there is no profile to be had (the reason is printed and recorded); 2 usage;\n"
	"      3 the trial was not kept, or its record is malformed; 4 no such GPU here\n";

enum { LIMIT_S = 120, CSV_MAX = 8 << 20, ENV_MAX = 10 };

struct profile {
	const char *id;
	struct trial trial;
	struct run run;
	struct spec *spec;
	struct lane lane;
	struct gpu gpu;
	char ncu[PATH_MAX], bare[PATH_MAX], why[NCU_WHY * 2];
	struct ncu_report *report; /* one for each public workload */
};

static int usable(const char *path, char out[PATH_MAX])
{
	return access(path, X_OK) == 0 && snprintf(out, PATH_MAX, "%s", path) < PATH_MAX;
}

/* PATH, the toolkit, the profiler's own folder: its newest version. */
static int find_ncu(char out[PATH_MAX])
{
	static const char *const where[] = {"/usr/local/cuda/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu",
					    "/usr/local/cuda-*/bin/ncu", "/usr/bin/ncu"};
	const char *own = getenv("NCU"), *path = getenv("PATH");
	if (own && *own)
		return usable(own, out);
	char *copy = xstrdup(path ? path : ""), *rest = NULL;
	int found = 0;
	for (char *p = strtok_r(copy, ":", &rest); p && !found; p = strtok_r(NULL, ":", &rest)) {
		char *file = xasprintf("%s/ncu", p);
		found = *p == '/' && usable(file, out);
		free(file);
	}
	free(copy);
	for (size_t i = 0; i < sizeof where / sizeof *where && !found; i++) {
		glob_t g;
		if (glob(where[i], 0, NULL, &g) == 0) {
			found = usable(g.gl_pathv[g.gl_pathc - 1], out);
			globfree(&g);
		}
	}
	return found;
}

/* ---- one workload ---- */

static char *metrics(void)
{
	struct buf b = BUF_INIT;
	for (int i = 0; i < NCU_METRICS; i++)
		buf_addf(&b, "%s%s", i ? "," : "", NCU_METRIC[i].ask);
	return b.data;
}

static int start(const struct profile *p, const char *workload, const char *log, struct spawn_result *r,
		 struct err *e)
{
	static const char *const passed[] = {"LD_LIBRARY_PATH", "HOME", "TMPDIR", "PATH"};
	char *asked = metrics(), *own[ENV_MAX];
	const char *env[ENV_MAX + 2] = {"LC_ALL=C"};
	int n = 0;
	const char *argv[] = {p->ncu, "--target-processes", "all", "--csv", "--page", "raw", "--print-units", "base",
			      "--print-fp", "--clock-control", "none", "--launch-count", "32", "--metrics", asked,
			      "--log-file", log, p->bare, p->id, workload, NULL};
	own[n++] = xasprintf("CUDA_VISIBLE_DEVICES=%s", p->gpu.uuid);
	for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
		if (getenv(passed[i]))
			own[n++] = xasprintf("%s=%s", passed[i], getenv(passed[i]));
	for (int i = 0; i < n; i++)
		env[i + 1] = own[i];
	struct spawn_request q = {.argv = argv, .env = env, .out = SPAWN_CAPTURE, .err = SPAWN_CAPTURE,
				  .wall_s = LIMIT_S};
	int rc = spawn_run(&q, r, e);
	while (n)
		free(own[--n]);
	free(asked);
	return rc;
}

static void first_line(const struct buf *text, char out[NCU_WHY])
{
	struct buf line = BUF_INIT;
	utf8_line(&line, buf_str(text), strcspn(buf_str(text), "\n"), NCU_WHY - 1);
	snprintf(out, NCU_WHY, "%s", buf_str(&line));
	buf_free(&line);
}

/* 1: no profile, p->why says why. */
static int one(struct profile *p, int i, const char *log, struct err *e)
{
	struct spawn_result r;
	struct buf csv = BUF_INIT;
	struct err no = {0};
	char words[96], said[NCU_WHY];
	if (start(p, p->spec->public[i].name, log, &r, e))
		return -1;
	int rc = !file_exists(log) || file_read(log, CSV_MAX, &csv, &no) ||
		 ncu_parse(buf_str(&csv), csv.len, &p->report[i], &no);
	if (rc) {
		first_line(r.err.len ? &r.err : &r.out, said);
		if (r.timed_out)
			snprintf(p->why, sizeof p->why, "ncu did not end within %d s", LIMIT_S);
		else if (no.text[0])
			snprintf(p->why, sizeof p->why, "%.*s", NCU_WHY, no.text);
		else
			snprintf(p->why, sizeof p->why, "ncu ended with %s: %s", spawn_words(&r, words), said);
	}
	buf_free(&csv);
	spawn_result_free(&r);
	return rc;
}

static int measure(struct profile *p, struct err *e)
{
	const char *tmp = getenv("TMPDIR");
	char *dir = xasprintf("%s/touchstone-ncu.XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
	if (!find_ncu(p->ncu)) {
		snprintf(p->why, sizeof p->why, "Nsight Compute (ncu) is not installed");
		free(dir);
		return 1;
	}
	int rc = mkdtemp(dir) ? 0 : err_sys(e, "cannot make '%s'", dir);
	if (rc == 0)
		rc = spawn_tool("bare", p->bare, sizeof p->bare, e) || gpu_take(&p->run, &p->lane, &p->gpu, e) ? -1 : 0;
	for (int i = 0; i < p->spec->npublic && rc == 0; i++) {
		char *log = xasprintf("%s/%d.csv", dir, i);
		rc = one(p, i, log, e);
		free(log);
	}
	lane_drop(&p->lane);
	struct err no;
	if (file_exists(dir))
		dir_remove(dir, &no);
	free(dir);
	return rc;
}

/* ---- the record ---- */

static int load(struct profile *p, struct err *e)
{
	struct verdict_in in;
	char path[TRIAL_PATH];
	if (trial_read(p->id, &p->trial, e) || run_read(p->trial.run, &p->run, e) ||
	    verdict_read(p->id, STEP_PROMOTE, &in, e))
		return -1;
	int kept = cJSON_IsTrue(json_get(in.data, "kept"));
	verdict_in_free(&in);
	if (!kept)
		return err_set(e, EX_BADINPUT, "trial %s was not kept: only champions are run without confinement", p->id);
	if (device_class_of(p->trial.device) != DEVICE_CUDA)
		return err_set(e, EX_BADINPUT, "trial %s is for device %s: ncu looks at GPUs", p->id, p->trial.device);
	run_path(path, p->trial.run, "spec");
	return spec_load(path, &p->spec, e);
}

static void text_of(const struct profile *p, int have, struct jsonw *w)
{
	w->pretty = 1;
	jw_obj(w, NULL);
	jw_str(w, "schema", "touchstone/profile/1");
	jw_str(w, "trial", p->id);
	jw_bool(w, "available", have);
	jw_str(w, "why", p->why);
	jw_str(w, "gpu", have ? p->gpu.uuid : NULL);
	jw_arr(w, "workloads");
	for (int i = 0; i < p->spec->npublic && have; i++) {
		jw_obj(w, NULL);
		jw_str(w, "name", p->spec->public[i].name);
		ncu_write(&p->report[i], w, "launches");
		jw_end(w);
	}
	jw_end(w);
	jw_end(w);
	buf_addc(&w->out, '\n');
}

static int keep(const struct profile *p, int have, struct err *e)
{
	char path[TRIAL_PATH];
	struct jsonw w = {0};
	text_of(p, have, &w);
	trial_path(path, p->id, "profile.json");
	int rc = file_write(path, buf_str(&w.out), w.out.len, 0644, e);
	char *beside = xasprintf("champion/%s/.v/%s-%s/evidence", p->trial.spec, p->trial.device, p->id);
	char *copy = xasprintf("%s/profile.json", beside);
	if (rc == 0 && file_exists(beside))
		rc = file_write(copy, buf_str(&w.out), w.out.len, 0644, e);
	free(copy);
	free(beside);
	jw_free(&w);
	return rc;
}

static void show(const struct profile *p, int have)
{
	struct jsonw w = {0};
	struct buf out = BUF_INIT;
	struct err e;
	if (!have) {
		printf("profile unavailable: %s\n", p->why);
		return;
	}
	text_of(p, 1, &w);
	cJSON *j = json_parse(buf_str(&w.out), w.out.len, &JSON_OURS, "profile", &e);
	const cJSON *k;
	cJSON_ArrayForEach(k, json_get(j, "workloads")) {
		buf_addf(&out, "%s\n", json_get_str(k, "name", "?"));
		ncu_tell(json_get(k, "launches"), &out);
	}
	fputs(buf_str(&out), stdout);
	buf_free(&out);
	cJSON_Delete(j);
	jw_free(&w);
}

int main(int argc, char **argv)
{
	static struct profile p = {.lane = LANE_INIT};
	struct err e;
	prog_name("profile");
	if (argc == 2 && strcmp(argv[1], "-h") == 0) {
		fputs(HELP, stdout);
		return fflush(stdout) ? EX_SYS : EX_DONE;
	}
	if (argc != 2 || strncmp(argv[1], "--TRIAL=", 8) != 0 || !trial_id_ok(argv[1] + 8))
		die(EX_BADUSE, "which trial? --TRIAL=NNNN; -h for help");
	p.id = argv[1] + 8;
	if (load(&p, &e))
		die_err(&e);
	p.report = xcalloc((size_t)(p.spec->npublic > 0 ? p.spec->npublic : 1), sizeof *p.report);
	int rc = measure(&p, &e);
	if (rc < 0 || keep(&p, rc == 0, &e))
		die_err(&e);
	show(&p, rc == 0);
	free(p.report);
	return EX_DONE;
}
