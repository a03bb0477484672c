/*
 * freeze.c - the champion of an engine problem, judged and timed once more and put into a folder of its own (make freeze).
 *
 * Reads champion/SPEC/DEVICE, the trial it names, its run's pinned problem and checkpoint. Writes OUT alone, whole or not at
 * all: the engine's files as they are and FREEZE.json with what was measured, on what and of which files. Pushes nothing
 * anywhere.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../stages/lib/buf.h"
#include "../stages/lib/device.h"
#include "../stages/lib/engine_build.h"
#include "../stages/lib/engine_files.h"
#include "../stages/lib/engine_freeze.h"
#include "../stages/lib/file.h"
#include "../stages/lib/gpu.h"
#include "../stages/lib/json.h"
#include "../stages/lib/jsonw.h"
#include "../stages/lib/lane.h"
#include "../stages/lib/run.h"
#include "../stages/lib/spawn.h"
#include "../stages/lib/tool.h"
#include "../stages/lib/toolkit.h"
#include "../stages/lib/verdict.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static const char HELP[] =
	"usage: freeze --SPEC=NAME --OUT=folder [--DEVICE=name] [--MODEL_DIR=folder]\n"
	"\n"
	"Judge the champion of an engine problem again and time it again, beside the native baseline, five samples at\n"
	"every workload (public, proxy and odd); then copy it to OUT with FREEZE.json: hashes, environment,\n"
	"figures. OUT must be empty or not there. Nothing is pushed anywhere.\n"
	"  DEVICE      whose champion; default: emu (this processor), or the best GPU for engines in CUDA\n"
	"  MODEL_DIR   where the checkpoint of then is now, if it was moved\n"
	"\n"
	"Refused: a champion or problem whose files are not those that were judged, or that change\n"
	"meanwhile; a champion that the judge no longer passes.\n"
	"\n"
	"exit: 0 frozen, 2 usage, 3 refused, 4 not installed or not this device, 70 our fault, 111 system call\n";

struct freeze {
	const char *spec_name, *out, *model_dir;
	char device[TRIAL_NAME];
	char trial[TRIAL_ID];
	struct trial claim;
	struct run run;
	struct verdict_in promote;
	struct engine_spec *spec;
	struct engine_files own, native;
	struct engine_built built[2];
	struct engine_model model;
	struct gpu gpu;
	struct lane lane;
	struct engine_freeze z;
};

/* ---- what is frozen ---- */

static int out_is_free(const char *out, struct err *e)
{
	DIR *d = opendir(out);
	struct dirent *at;
	int rc = 0;
	if (!d)
		return errno == ENOENT ? 0 : err_set(e, EX_BADUSE, "OUT=%s: %s", out, strerror(errno));
	while (rc == 0 && (at = readdir(d)))
		if (strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0)
			rc = err_set(e, EX_BADUSE, "OUT=%s is not empty ('%s' is in it)", out, at->d_name);
	closedir(d);
	return rc;
}

/* The trial that champion/SPEC/DEVICE points at now: .v/DEVICE-NNNN. */
static int champion_now(const struct freeze *f, char id[TRIAL_ID], struct err *e)
{
	char link[TRIAL_PATH], target[TRIAL_PATH];
	snprintf(link, sizeof link, "champion/%.64s/%.64s", f->spec_name, f->device);
	const ssize_t n = readlink(link, target, sizeof target - 1);
	if (n <= 0)
		return err_set(e, EX_BADUSE, "'%s' has no champion on %s: nothing to freeze", f->spec_name, f->device);
	target[n] = '\0';
	const char *dash = strrchr(target, '-');
	if (!dash || !trial_id_ok(dash + 1))
		return err_set(e, EX_BADINPUT, "'%s' names no trial", link);
	snprintf(id, TRIAL_ID, "%s", dash + 1);
	return 0;
}

static int read_record(struct freeze *f, struct err *e)
{
	if (champion_now(f, f->trial, e) || trial_read(f->trial, &f->claim, e) || run_read(f->claim.run, &f->run, e) ||
	    verdict_read(f->trial, STEP_PROMOTE, &f->promote, e))
		return -1;
	if (f->promote.kind != V_PASS)
		return err_set(e, EX_BADINPUT, "trial %s was not kept", f->trial);
	struct buf text = BUF_INIT;
	int rc = run_spec_read(&f->run, "spec.json", 1 << 20, &text, NULL, e);
	if (rc == 0)
		rc = engine_spec_parse(buf_str(&text), text.len, "spec.json", &f->spec, e);
	buf_free(&text);
	return rc;
}

/* Is everything still what was judged? The engine in the record and in the champion's folder, and the problem; `files` gets
 * the engine. Asked before and after. */
static int unchanged(const struct freeze *f, struct engine_files *files, struct err *e)
{
	const char *want = json_get_str(f->promote.data, "candidate_sha256", "");
	const cJSON *pins = json_get(json_get(f->run.json, "pins"), "spec");
	char path[TRIAL_PATH], id[TRIAL_ID], sha[HASH_HEX];
	if (champion_now(f, id, e))
		return -1;
	if (strcmp(id, f->trial) != 0)
		return err_set(e, EX_BADINPUT, "trial %s has become champion meanwhile", id);
	trial_path(path, f->trial, "candidate");
	if (engine_files_folder(path, files, e))
		return -1;
	if (strcmp(files->sha, want) != 0)
		return err_set(e, EX_BADINPUT, "'%s' has changed since it was judged", path);
	for (int i = 0; i < files->n; i++) {
		char one[HASH_HEX];
		snprintf(path, sizeof path, "champion/%.64s/%.64s/%s", f->spec_name, f->device, files->file[i].name);
		hash_hex(buf_str(&files->file[i].text), files->file[i].text.len, one);
		if (hash_file(path, sha, e))
			return -1;
		if (strcmp(sha, one) != 0)
			return err_set(e, EX_BADINPUT, "'%s' has changed since it was judged", path);
	}
	for (const cJSON *pin = pins ? pins->child : NULL; pin; pin = pin->next) {
		snprintf(path, sizeof path, "specs/%.64s/%.150s", f->spec_name, pin->string);
		if (!strcmp(pin->string, "README.md"))
			continue;
		if (hash_file(path, sha, e))
			return -1;
		if (!cJSON_IsString(pin) || strcmp(sha, pin->valuestring) != 0)
			return err_set(e, EX_BADINPUT, "'%s' has changed since trial %s was judged", path, f->trial);
	}
	return 0;
}

/* ---- the machine ---- */

static int build(struct freeze *f, struct engine_files *files, int arm, struct err *e)
{
	static const char *const what[] = {"champion", "native baseline"};
	struct engine_built *b = &f->built[arm];
	int rc = engine_build(files->file, files->n, f->spec->cuda ? f->gpu.arch : NULL, b, e);
	if (rc == 0 && !b->ok)
		rc = err_set(e, EX_BADINPUT, "the %s does not compile: %.200s", what[arm], b->message);
	f->z.program[arm] = b->path;
	return rc;
}

static int prepare(struct freeze *f, struct err *e)
{
	const struct engine_spec *p = f->spec;
	const char *dir = f->model_dir ? f->model_dir : run_str(&f->run, "model_dir", NULL);
	char *baseline = xasprintf("specs/%s/baseline", f->spec_name);
	int rc = engine_files_folder(baseline, &f->native, e);
	free(baseline);
	if (rc || (p->cuda && gpu_find(f->device, &f->gpu, e)) || build(f, &f->own, FREEZE_OWN, e) ||
	    build(f, &f->native, FREEZE_NATIVE, e) ||
	    engine_model_open(&f->model, dir, p->shape, p->seed, run_str(&f->run, "model_sha256", NULL), e))
		return -1;
	if (p->cuda && engine_model_gpu(&f->model, f->gpu.uuid, e))
		return -1;
	f->z.spec = p;
	f->z.model = &f->model;
	f->z.gpu = p->cuda ? f->gpu.uuid : NULL;
	if (getrandom(f->z.key, sizeof f->z.key, 0) != (ssize_t)sizeof f->z.key)
		return err_sys(e, "cannot read the system's entropy");
	return 0;
}

/* The first line that PROGRAM --version prints; "" without it. */
static void version_of(const char *program, char out[128])
{
	const char *const argv[] = {program, "--version", NULL};
	const struct spawn_request q = {.argv = argv, .out = SPAWN_CAPTURE, .wall_s = 10};
	struct spawn_result r;
	struct err e;
	*out = '\0';
	if (spawn_run(&q, &r, &e))
		return;
	snprintf(out, 128, "%.*s", (int)strcspn(buf_str(&r.out), "\n"), buf_str(&r.out));
	spawn_result_free(&r);
}

static void cpu_name(char out[128])
{
	char line[512];
	FILE *in = fopen("/proc/cpuinfo", "r");
	*out = '\0';
	while (in && fgets(line, sizeof line, in)) {
		const char *colon = strchr(line, ':');
		if (strncmp(line, "model name", 10) != 0 || !colon)
			continue;
		snprintf(out, 128, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
		break;
	}
	if (in)
		fclose(in);
}

/* ---- FREEZE.json ---- */

static void put_environment(const struct freeze *f, struct jsonw *w)
{
	struct utsname u;
	struct toolkit kit;
	struct err none;
	char cpu[128], compiler[128], version[32];
	cpu_name(cpu);
	version_of("gcc", compiler);
	jw_obj(w, "environment");
	if (uname(&u) == 0) {
		jw_str(w, "system", u.sysname);
		jw_str(w, "kernel", u.release);
		jw_str(w, "machine", u.machine);
	}
	jw_str(w, "cpu", cpu);
	jw_int(w, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
	jw_str(w, "compiler", compiler);
	jw_str(w, "options", f->spec->cuda ? ENGINE_CUDA_OPTIONS : ENGINE_BUILD_OPTIONS);
	if (f->spec->cuda) {
		jw_str(w, "gpu", f->gpu.facts.name);
		jw_str(w, "arch", f->gpu.arch);
		jw_str(w, "driver", f->gpu.driver_version);
		if (toolkit_find(&kit, &none) == 0) {
			snprintf(version, sizeof version, "%d.%d", kit.major, kit.minor);
			jw_str(w, "toolkit", version);
		}
	}
	jw_str(w, "isolation", f->z.report.isolation);
	jw_end(w);
}

static void put_files(const struct freeze *f, struct jsonw *w)
{
	char sha[HASH_HEX];
	jw_obj(w, "files");
	for (int i = 0; i < f->own.n; i++) {
		hash_hex(buf_str(&f->own.file[i].text), f->own.file[i].text.len, sha);
		jw_str(w, f->own.file[i].name, sha);
	}
	jw_end(w);
}

static void put_hashes(const struct freeze *f, const char *tool, struct jsonw *w)
{
	jw_obj(w, "sha256");
	jw_str(w, "candidate", f->own.sha);
	jw_str(w, "native", f->native.sha);
	jw_str(w, "spec", f->run.spec_sha256);
	jw_str(w, "model", f->model.sha);
	jw_str(w, "artefact", f->built[FREEZE_OWN].sha);
	jw_str(w, "native_artefact", f->built[FREEZE_NATIVE].sha);
	jw_str(w, "promote", f->promote.sha);
	jw_str(w, "tool", tool);
	jw_end(w);
}

static int put(const struct freeze *f, struct jsonw *w, struct err *e)
{
	static const char *const ratio[] = {"ratio", "ratio_lo95", "ratio_hi95", "ratio_baseline", "ratio_baseline_lo95",
					    "ratio_baseline_hi95"};
	char tool[HASH_HEX], now[32];
	const time_t t = time(NULL);
	struct tm tm;
	if (tool_hash_self(tool, e))
		return -1;
	strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
	jw_obj(w, NULL);
	jw_str(w, "schema", "touchstone/freeze/1");
	jw_str(w, "frozen", now);
	jw_str(w, "spec", f->spec_name);
	jw_str(w, "device", f->device);
	jw_str(w, "trial", f->trial);
	jw_str(w, "run", f->run.name);
	put_files(f, w);
	put_hashes(f, tool, w);
	put_environment(f, w);
	jw_obj(w, "recorded"); /* what it was kept on */
	for (size_t i = 0; i < sizeof ratio / sizeof *ratio; i++) {
		const cJSON *x = json_get(f->promote.data, ratio[i]);
		if (x)
			jw_item(w, ratio[i], x);
	}
	jw_end(w);
	engine_freeze_write(&f->z, w);
	jw_end(w);
	buf_addc(&w->out, '\n');
	return 0;
}

/* Whole or not at all: a folder beside OUT, renamed into its place. */
static int write_out(const struct freeze *f, struct err *e)
{
	struct jsonw w = {.pretty = 1};
	char *tmp = xasprintf("%s.tmp.%ld", f->out, (long)getpid()), *json = xasprintf("%s/FREEZE.json", tmp);
	struct err other;
	int rc = put(f, &w, e);
	if (rc == 0)
		rc = engine_files_write(tmp, &f->own, e);
	if (rc == 0)
		rc = file_write(json, w.out.data, w.out.len, 0644, e);
	if (rc == 0)
		rc = file_sync_dir(tmp, e);
	if (rc == 0 && rename(tmp, f->out))
		rc = err_sys(e, "cannot put the folder at '%s'", f->out);
	if (rc)
		dir_remove(tmp, &other);
	jw_free(&w);
	free(tmp);
	free(json);
	return rc;
}

/* ---- */

static void tell(const struct freeze *f)
{
	const double own = engine_freeze_score(&f->z, FREEZE_OWN), native = engine_freeze_score(&f->z, FREEZE_NATIVE);
	printf("%s on %s: trial %s, %.12s\n", f->spec_name, f->device, f->trial, f->own.sha);
	printf("judge      ok: %zu ids, and %zu that were timed, worst regret %.3g of %.3g allowed\n", f->z.report.all.tokens,
	       f->z.timed.tokens, f->z.timed.worst, f->z.report.honest.gates.margin);
	printf("times      %.4g tokens/s, native %.4g: %.3fx (medians of %d, geometric mean over workloads)\n", own, native,
	       own / native, FREEZE_SAMPLES);
	printf("frozen     %s\n", f->out);
}

static int freeze(struct freeze *f, struct err *e)
{
	struct engine_files after;
	if (out_is_free(f->out, e) || read_record(f, e) || unchanged(f, &f->own, e) || prepare(f, e) ||
	    lane_exclusive(&f->lane, f->device, e))
		return -1;
	int rc = engine_freeze_run(&f->z, e);
	lane_drop(&f->lane);
	if (rc)
		return -1;
	if (strcmp(f->z.word, "ok") != 0)
		return err_set(e, EX_BADINPUT, "trial %s is not right (any more): %s: %.300s; nothing is frozen", f->trial, f->z.word,
			       f->z.why);
	if (unchanged(f, &after, e))
		return -1;
	engine_files_free(&after);
	if (out_is_free(f->out, e) || write_out(f, e))
		return -1;
	tell(f);
	return 0;
}

/* Engine problems alone, and the device their champion is on. */
static int choose(struct freeze *f, const char *device, struct err *e)
{
	char why[DEVICE_WHY];
	struct buf text = BUF_INIT;
	enum spec_kind kind = SPEC_KERNEL;
	struct engine_spec *now;
	char *path = xasprintf("specs/%s/spec.json", f->spec_name);
	int rc = !file_exists(path) ? err_set(e, EX_BADUSE, "no problem 'specs/%s'", f->spec_name)
		: file_read(path, 1 << 20, &text, e) || spec_kind(buf_str(&text), text.len, &kind, e) ? -1 : 0;
	if (rc == 0 && kind == SPEC_KERNEL)
		rc = err_set(e, EX_BADUSE, "'%s' is a kernel problem: make ship puts its champion into a folder with its evidence, make "
			     "replay and make recheck prove it again", f->spec_name);
	if (rc == 0)
		rc = engine_spec_parse(buf_str(&text), text.len, path, &now, e);
	if (rc == 0) {
		if (now->cuda || device)
			rc = device_resolve(device ? device : "cuda", f->device, why, e);
		else
			snprintf(f->device, sizeof f->device, "emu");
		engine_spec_free(now);
	}
	buf_free(&text);
	free(path);
	return rc;
}

int main(int argc, char **argv)
{
	static struct freeze f = {.lane = LANE_INIT};
	const char *device = NULL;
	struct err e = {0};
	prog_name(argv[0]);
	if (argc == 2 && strcmp(argv[1], "-h") == 0) {
		fputs(HELP, stdout);
		return fflush(stdout) ? EX_SYS : EX_DONE;
	}
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--SPEC=", 7) == 0)
			f.spec_name = argv[i] + 7;
		else if (strncmp(argv[i], "--OUT=", 6) == 0 && argv[i][6])
			f.out = argv[i] + 6;
		else if (strncmp(argv[i], "--DEVICE=", 9) == 0 && argv[i][9])
			device = argv[i] + 9;
		else if (strncmp(argv[i], "--MODEL_DIR=", 12) == 0 && argv[i][12])
			f.model_dir = argv[i] + 12;
		else
			die(EX_BADUSE, "'%s' is no option (freeze -h explains)", argv[i]);
	}
	if (!f.spec_name || !trial_name_ok(f.spec_name) || !f.out)
		die(EX_BADUSE, "freeze what, and where to? make freeze SPEC=qwen3-tiny OUT=folder");
	if (choose(&f, device, &e) || freeze(&f, &e))
		die_err(&e);
	return EX_DONE;
}
