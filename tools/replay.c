/*
 * replay.c - rebuild a closed trial from its record and judge it again.
 *
 * Reads the trial's record and the spec its run pinned; of a shipped record (--FROM), the problem of this
 * repository, whose files must be the pinned ones. Works in a scratch folder: a run of one
 * trial whose proposal is the recorded candidate, stepped through guard, unittest, tune and judge,
 * the judge with the stage key that the recorded verdict published, so with the same inputs.
 * Writes nothing outside the scratch folder and never opens a run key. Timing is not repeated:
 * tools/recheck recomputes it from the raw samples.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../stages/lib/buf.h"
#include "../stages/lib/engine_files.h"
#include "../stages/lib/engine_spec.h"
#include "../stages/lib/file.h"
#include "../stages/lib/gpu.h"
#include "../stages/lib/json.h"
#include "../stages/lib/run.h"
#include "../stages/lib/runs.h"
#include "../stages/lib/spawn.h"
#include "../stages/lib/tool.h"
#include "../stages/lib/verdict.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char HELP[] =
	"usage: replay --TRIAL=NNNN\n"
	"       replay --FROM=champion/shipped/DEVICE/SPEC [--TRIAL=NNNN]\n"
	"\n"
	"Build the candidate of a closed trial again from its record and judge it again, with the\n"
	"inputs of then. Prints one line per step: same, or what differs. A trial of a GPU is judged again\n"
	"on a GPU of the same model only; another driver is said and accepted. An engine is asked the prompts of\n"
	"then, with the checkpoint of then (the run's MODEL_DIR, or the problem's own).\n"
	"  --FROM   a record from elsewhere: a folder with trials/, or with record/trials/. Its problem is that\n"
	"           of specs/, whose files must be those of then. TRIAL: the newest kept one there\n"
	"\n"
	"environment\n"
	"  KEEP=1   keep the scratch folder and say where it is\n"
	"\n"
	"exit: 0 agrees, 1 differs, 2 usage, 3 malformed record, 4 not the GPU, else the code of the step\n"
	"that failed\n";

struct replay {
	struct trial trial;
	struct run run;
	int attempt;              /* the final one */
	char dir[8];              /* folder of the candidate: "" or "a0", ... */
	const char *stage_key;    /* of the recorded judge, or NULL */
	int engine;               /* an engine problem: the candidate is its files */
	struct verdict_in was[STEP_COUNT];
	char root[PATH_MAX];      /* the repository */
	char from[PATH_MAX];      /* the tree with the record: root, or below --FROM */
	char scratch[PATH_MAX], bin[PATH_MAX];
	int differs;
};

static int read_record(struct replay *r, const char *id, struct err *e)
{
	if (trial_read(id, &r->trial, e) || run_read(r->trial.run, &r->run, e))
		return -1;
	for (int i = 0; i < STEP_COUNT; i++)
		if (verdict_read(id, (enum step)i, &r->was[i], e))
			return -1;
	for (int k = 0; k < TRIAL_ATTEMPTS; k++)
		if (r->was[3 * k].kind != V_SKIP)
			r->attempt = k;
	snprintf(r->dir, sizeof r->dir, "%.7s",
		 json_get_str(r->was[STEP_PROMOTE].data, "candidate_dir", "a0"));
	r->stage_key = json_get_str(r->was[STEP_JUDGE].data, "stage_key", NULL);
	if (!json_get_str(r->was[STEP_PROMOTE].data, "candidate_sha256", NULL))
		return err_set(e, EX_BADUSE, "trial %s never had a candidate: %s", id,
			       r->was[STEP_PROMOTE].code);
	return 0;
}

static int link_in(const char *dir, const char *from, const char *name, struct err *e)
{
	char target[PATH_MAX + 128];
	snprintf(target, sizeof target, "%s/%s", dir, from);
	return symlink(target, name) ? err_sys(e, "cannot link '%s'", name) : 0;
}

/* What a judge reads decides; a page for people, or the kernel a search starts from, does not. */
static int only_words(const char *file)
{
	const char *slash = strrchr(file, '/');
	return !strcmp(slash ? slash + 1 : file, "README.md") || !strncmp(file, "start/", 6);
}

/* Is specs/NAME the problem that the run pinned? The working directory is the repository. */
static int same_problem(const struct replay *r, struct err *e)
{
	const cJSON *pins = json_get(r->run.json, "pins"), *spec = pins ? json_get(pins, "spec") : NULL;
	char path[PATH_MAX], sha[HASH_HEX];
	for (const cJSON *pin = spec ? spec->child : NULL; pin; pin = pin->next) {
		struct err none;
		snprintf(path, sizeof path, "specs/%.64s/%.200s", r->run.spec, pin->string);
		if (only_words(pin->string) ||
		    (cJSON_IsString(pin) && !hash_file(path, sha, &none) && !strcmp(sha, pin->valuestring)))
			continue;
		return err_set(e, EX_BADINPUT, "'%s' is not the file that trial %s was judged with: the problem "
			       "has changed since; take the repository as it was then", path, r->trial.id);
	}
	return 0;
}

/* The scratch tree; from here on the working directory is there. */
static int make_scratch(struct replay *r, struct err *e)
{
	char spec[TRIAL_PATH], name[TRIAL_PATH];
	const char *tmp = getenv("TMPDIR");
	snprintf(r->scratch, sizeof r->scratch, "%s/touchstone-replay.XXXXXX", tmp ? tmp : "/tmp");
	run_path(spec, r->run.name, "spec");
	int pinned = file_exists(spec);
	if (chdir(r->root))
		return err_sys(e, "cannot go back to '%s'", r->root);
	if (!pinned && same_problem(r, e))
		return -1;
	if (!mkdtemp(r->scratch) || chdir(r->scratch))
		return err_sys(e, "cannot make a scratch folder '%s'", r->scratch);
	snprintf(name, sizeof name, "specs/%s", r->run.spec);
	return dir_make("specs", e) || link_in(pinned ? r->from : r->root, pinned ? spec : name, name, e) ||
	       link_in(r->root, "stages", "stages", e) || link_in(r->root, "prompts", "prompts", e) ? -1 : 0;
}

/* The problem's kind, and of an engine's run what it was held to. The working directory is the scratch tree. */
static int read_kind(struct replay *r, cJSON *more, struct err *e)
{
	static const char *const keys[] = {"model_dir", "model_sha256"};
	char path[TRIAL_PATH];
	struct buf text = BUF_INIT;
	enum spec_kind kind = SPEC_KERNEL;
	snprintf(path, sizeof path, "specs/%.64s/spec.json", r->run.spec);
	int rc = file_read(path, 1 << 20, &text, e) || spec_kind(buf_str(&text), text.len, &kind, e) ? -1 : 0;
	buf_free(&text);
	r->engine = kind == SPEC_ENGINE;
	for (int i = 0; i < 2 && r->engine; i++) {
		const char *value = run_str(&r->run, keys[i], NULL);
		if (value)
			cJSON_AddStringToObject(more, keys[i], value);
	}
	return rc;
}

static int make_run(struct replay *r, char name[TRIAL_ID], struct err *e)
{
	cJSON *more = cJSON_CreateObject();
	struct run_plan plan = {
		.spec = r->run.spec, .device = r->run.device, .proposer = "sweep", .n = 1, .width = 1,
		.seed = r->run.seed, .allow_weak = r->run.allow_weak, .replay = 1, .bin = r->bin,
		.more = more,
	};
	struct run fresh;
	char path[TRIAL_PATH];
	int rc = read_kind(r, more, e) || runs_make(&plan, name, e) || run_read(name, &fresh, e) ? -1 : 0;
	cJSON_Delete(more);
	if (rc)
		return -1;
	rc = runs_claim(&fresh, e);
	run_free(&fresh);
	run_path(path, name, "stage_key.judge");
	if (!rc && r->stage_key)
		rc = file_write(path, r->stage_key, 64, 0600, e);
	return rc;
}

/* The two files of a kernel, copied, and what they are together. */
static int copy_kernel(const char *from, struct verdict *v, char sha[HASH_HEX], struct err *e)
{
	static const char *const slots[] = {"kernel.cu", "plan.json"};
	char path[PATH_MAX + 160], to[TRIAL_PATH], file[64], part[2][HASH_HEX];
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/%s", from, slots[i]);
		snprintf(file, sizeof file, "a0/candidate/%s", slots[i]);
		trial_path(to, "0001", file);
		if (file_copy(path, to, e) || hash_file(to, part[i], e))
			return -1;
		verdict_output_sha(v, file, part[i]);
	}
	trial_candidate_sha(part[0], part[1], sha);
	return 0;
}

static int copy_engine(const char *from, struct verdict *v, char sha[HASH_HEX], struct err *e)
{
	struct engine_files f;
	char file[ENGINE_FILE_NAME + 16], one[HASH_HEX];
	if (engine_files_folder(from, &f, e))
		return -1;
	int rc = engine_files_write("trials/0001/a0/candidate", &f, e);
	for (int i = 0; i < f.n; i++) {
		snprintf(file, sizeof file, "a0/candidate/%s", f.file[i].name);
		hash_hex(buf_str(&f.file[i].text), f.file[i].text.len, one);
		verdict_output_sha(v, file, one);
	}
	memcpy(sha, f.sha, HASH_HEX);
	engine_files_free(&f);
	return rc;
}

/* a0/propose of the scratch trial: the recorded candidate, its hashes checked on the way in. */
static int write_proposal(struct replay *r, const char *run, struct err *e)
{
	char from[PATH_MAX + 128], sha[HASH_HEX] = "";
	struct verdict v;
	struct trial t;
	struct run fresh;
	if (trial_read("0001", &t, e) || run_read(run, &fresh, e) ||
	    dir_make("trials/0001/a0/candidate", e))
		return -1;
	verdict_init(&v, run, "0001", STEP_A0_PROPOSE);
	snprintf(from, sizeof from, "%s/trials/%s/%s%scandidate", r->from, r->trial.id, r->dir, *r->dir ? "/" : "");
	int rc = r->engine ? copy_engine(from, &v, sha, e) : copy_kernel(from, &v, sha, e);
	if (!rc) {
		verdict_input(&v, "trial", t.sha);
		verdict_input(&v, "spec", fresh.spec_sha256);
		verdict_input(&v, "key", fresh.key_sha256);
		verdict_input(&v, "candidate", sha);
		verdict_set(&v, V_PASS, "ok", "recorded candidate of trial %s", r->trial.id);
		v.proposer = cJSON_CreateObject();
		cJSON_AddStringToObject(v.proposer, "kind", "sweep");
		snprintf(v.device_name, sizeof v.device_name, "%s", t.device);
		snprintf(v.tool, sizeof v.tool, "replay");
		rc = tool_hash_self(v.tool_sha, e) || verdict_write(&v, e) ? -1 : 0;
	}
	const char *want = json_get_str(r->was[STEP_PROMOTE].data, "candidate_sha256", "");
	if (!rc && strcmp(want, sha) != 0) {
		printf("%-11s DIFFERS: the sources are not those of the verdict\n", "candidate");
		r->differs = 1;
	}
	verdict_free(&v);
	trial_free(&t);
	run_free(&fresh);
	return rc;
}

static int run_step(const struct replay *r, enum step step, struct err *e)
{
	char target[TRIAL_PATH], program[PATH_MAX + 8], words[96];
	trial_step_path(target, "0001", step);
	snprintf(program, sizeof program, "%s/run", r->bin);
	const char *argv[] = {program, target, NULL};
	extern char **environ;
	struct spawn_request q = {.argv = argv, .env = (const char *const *)environ,
				  .out = SPAWN_NULL, .err = SPAWN_CAPTURE};
	struct spawn_result res;
	if (spawn_run(&q, &res, e))
		return -1;
	int rc = res.code == 0 ? 0
		: err_set(e, res.code > 0 ? res.code : EX_HARNESS, "%s: %s: %.300s",
			  step_info(step)->name, spawn_words(&res, words), buf_str(&res.err));
	spawn_result_free(&res);
	return rc;
}

static void compare(struct replay *r, enum step step, const struct verdict_in *was,
		    const struct verdict_in *now)
{
	const char *name = step_info(step)->stage;
	if (was->kind != now->kind || strcmp(was->code, now->code) != 0) {
		printf("%-11s DIFFERS: recorded %s %s, now %s %s: %s\n", name,
		       verdict_kind_name(was->kind), was->code, verdict_kind_name(now->kind),
		       now->code, now->message);
		r->differs = 1;
		return;
	}
	printf("%-11s same: %s %s\n", name, verdict_kind_name(now->kind), now->code);
}

/* The same program text, built again: another compiler may build it otherwise, so only a note. */
static void compare_artefacts(const struct verdict_in *was, const struct verdict_in *now, int attempt)
{
	for (const cJSON *o = now->outputs->child; o; o = o->next) {
		char old[256];
		if (strncmp(o->string, "a0/artefact/", 12) != 0)
			continue;
		snprintf(old, sizeof old, "a%d/%.200s", attempt, o->string + 3);
		const char *sha = verdict_in_output(was, old);
		if (sha)
			printf("%-11s %s: %s\n", "", o->string + 12,
			       strcmp(sha, o->valuestring) == 0 ? "the same bytes" : "built differently");
	}
}

/* An engine's judge: the prompts of then are told by what honest ways cost on them; the ids by their regrets. Another
 * processor or mathematical library may round otherwise, so this is only a note. */
static void compare_figures(const struct verdict_in *was, const struct verdict_in *now)
{
	static const char *const key[] = {"honest", "regret"}, *const what[] = {"prompts and gates", "ids"};
	for (int i = 0; i < 2; i++) {
		const cJSON *a = json_get(was->data, key[i]), *b = json_get(now->data, key[i]);
		if (a && b)
			printf("%-11s %s: %s\n", "", what[i], cJSON_Compare(a, b, 1) ? "the same figures" : "other figures");
	}
}

static int steps(struct replay *r, struct err *e)
{
	for (int i = STEP_A0_GUARD; i <= STEP_JUDGE; i++) {
		enum step old = i <= STEP_A0_UNITTEST ? (enum step)(3 * r->attempt + i) : (enum step)i;
		struct verdict_in now;
		if (run_step(r, (enum step)i, e) || verdict_read("0001", (enum step)i, &now, e))
			return -1;
		int attempt_step = i > STEP_A0_UNITTEST && i < STEP_TUNE;
		/* A chosen configuration is the candidate here: tune has nothing left to do. */
		if (!attempt_step && i != STEP_TUNE && r->was[old].kind != V_SKIP)
			compare(r, (enum step)i, &r->was[old], &now);
		if (i == STEP_A0_GUARD && (*r->dir || r->was[STEP_TUNE].kind == V_NA))
			compare_artefacts(&r->was[old], &now, r->attempt);
		if (i == STEP_JUDGE && r->engine)
			compare_figures(&r->was[old], &now);
		verdict_in_free(&now);
	}
	return 0;
}

/* A verdict of another model would say nothing about this record. Looked at before the working
 * directory changes. */
static int same_device(const struct replay *r, struct err *e)
{
	struct gpu *was, *now;
	struct err why = {0};
	if (device_class_of(r->run.device) != DEVICE_CUDA)
		return 0;
	was = xcalloc(2, sizeof *was);
	now = was + 1;
	int rc = gpu_of_run(&r->run, was, e);
	if (!rc && gpu_find(r->run.device, now, &why))
		rc = err_set(e, EX_NOENV, "trial %s was judged on a %s: %.200s", r->trial.id,
			     was->facts.name, why.text);
	if (!rc && (strcmp(was->arch, now->arch) || was->facts.sm_count != now->facts.sm_count))
		rc = err_set(e, EX_NOENV, "trial %s was judged on a %s with %lld SMs (%s), this one has %lld (%s)",
			     r->trial.id, was->facts.name, (long long)was->facts.sm_count, was->arch,
			     (long long)now->facts.sm_count, now->arch);
	if (!rc && strcmp(was->driver_version, now->driver_version))
		printf("%-11s driver %s then, %s now\n", "device", was->driver_version, now->driver_version);
	else if (!rc)
		printf("%-11s same: %s, driver %s\n", "device", now->facts.name, now->driver_version);
	free(was);
	return rc;
}

static int replay(struct replay *r, const char *id, struct err *e)
{
	char name[TRIAL_ID];
	return read_record(r, id, e) || same_device(r, e) || make_scratch(r, e) || make_run(r, name, e) ||
	       write_proposal(r, name, e) || steps(r, e) ? -1 : 0;
}

/* The newest kept trial of the record: of a shipped one, the champion. The newest closed one where none was
 * kept. */
static int newest(char id[TRIAL_ID], struct err *e)
{
	long best = 0, kept = 0;
	DIR *d = opendir("trials");
	if (!d)
		return err_sys(e, "cannot list 'trials'");
	for (struct dirent *f; (f = readdir(d));) {
		struct verdict_in in;
		struct err none;
		long n = trial_id_ok(f->d_name) ? trial_number(f->d_name) : 0;
		if (n < 1 || verdict_read(f->d_name, STEP_PROMOTE, &in, &none))
			continue;
		best = n > best ? n : best;
		kept = in.kind == V_PASS && n > kept ? n : kept;
		verdict_in_free(&in);
	}
	closedir(d);
	if (!best)
		return err_set(e, EX_BADUSE, "there is no closed trial in it");
	trial_id(id, kept ? kept : best);
	return 0;
}

/* Go where the record is, and find which trial is meant. */
static int enter(struct replay *r, const char *from, const char *trial, char id[TRIAL_ID], struct err *e)
{
	char path[PATH_MAX];
	if (!getcwd(r->root, sizeof r->root))
		return err_sys(e, "cannot name the working directory");
	if (from) {
		snprintf(path, sizeof path, "%s/record/trials", from);
		int inside = file_exists(path);
		snprintf(path, sizeof path, "%s%s", from, inside ? "/record" : "");
		if (chdir(path))
			return err_sys(e, "cannot go to '%s'", path);
		if (!file_exists("trials"))
			return err_set(e, EX_BADUSE, "'%s' holds no record: no trials/ in it", from);
	}
	if (!getcwd(r->from, sizeof r->from))
		return err_sys(e, "cannot name '%s'", from);
	if (!trial && newest(id, e))
		return -1;
	if (trial)
		snprintf(id, TRIAL_ID, "%s", trial);
	trial_path(path, id, "trial.json");
	return file_exists(path) ? 0 : err_set(e, EX_BADUSE, "there is no trial %s", id);
}

int main(int argc, char **argv)
{
	static struct replay r;
	struct err e = {0};
	const char *trial = NULL, *from = NULL;
	char id[TRIAL_ID];
	prog_name(argv[0]);
	if (argc == 2 && strcmp(argv[1], "-h") == 0) {
		fputs(HELP, stdout);
		return fflush(stdout) ? EX_SYS : EX_DONE;
	}
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--TRIAL=", 8) == 0 && trial_id_ok(argv[i] + 8))
			trial = argv[i] + 8;
		else if (strncmp(argv[i], "--FROM=", 7) == 0 && argv[i][7])
			from = argv[i] + 7;
		else
			die(EX_BADUSE, "'%s' is no option, or no trial's number (replay -h explains)", argv[i]);
	}
	if (!trial && !from)
		die(EX_BADUSE, "replay which trial? --TRIAL=0042 (make replay TRIAL=0042)");
	const char *bin = getenv("TS_BIN");
	if (bin && *bin)
		snprintf(r.bin, sizeof r.bin, "%s", bin);
	else if (spawn_tool("run", r.bin, sizeof r.bin, &e))
		die_err(&e);
	else
		*strrchr(r.bin, '/') = '\0';
	int rc = enter(&r, from, trial, id, &e) || replay(&r, id, &e);
	if (getenv("KEEP"))
		printf("# scratch folder: %s\n", r.scratch);
	else if (*r.root && *r.scratch && (chdir(r.root) || dir_remove(r.scratch, NULL)))
		warn("cannot remove '%s'", r.scratch);
	if (rc)
		die_err(&e);
	puts(r.differs ? "differs" : "agrees");
	return r.differs ? 1 : EX_DONE;
}
