/*
 * iterate.c - a run: make it or take it up again, put the record right, start make over its trials.
 *
 * Takes the run lock for its life, repairs what killed programs left, pins programs and spec,
 * claims trial ids, starts one make with tools/make/trials.mk, and says at the end how it went.
 * Writes below trials/ and champion/ only. Opens the run key once, to create it. Spends nothing
 * itself, and nothing at all under make -n or -q.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../stages/lib/device.h"
#include "../stages/lib/engine_given.h"
#include "../stages/lib/engine_run.h"
#include "../stages/lib/file.h"
#include "../stages/lib/gpu.h"
#include "../stages/lib/json.h"
#include "../stages/lib/ledger.h"
#include "../stages/lib/lock.h"
#include "../stages/lib/minutes.h"
#include "../stages/lib/profile.h"
#include "../stages/lib/record.h"
#include "../stages/lib/repair.h"
#include "../stages/lib/research.h"
#include "../stages/lib/tavily.h"
#include "../stages/lib/run.h"
#include "../stages/lib/runner.h"
#include "../stages/lib/run_single.h"
#include "../stages/lib/runs.h"
#include "../stages/lib/selftest_record.h"
#include "../stages/lib/spawn.h"
#include "../stages/lib/spec.h"
#include "../stages/lib/stage.h"
#include "../stages/lib/summary.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char HELP[] =
	"usage: iterate [mode] [--NAME=value...]\n"
	"\n"
	"Run the trials of a problem, or go on with a run that was interrupted. `make iterate` calls\n"
	"this with the settings given to make.\n"
	"\n"
	"modes\n"
	"  (none)     go on with the unfinished run, else make a new one\n"
	"  --resume   go on with the unfinished run; nothing to do without one\n"
	"  --try      one trial of KERNEL and PLAN, two files of mine; of an engine problem, KERNEL is a folder\n"
	"  --redo     one trial of the reply of TRIAL\n"
	"  --adopt    one trial of what FROM holds: a trial's record, a champion, or kernel.cu and plan.json, or engine.c\n"
	"  --tidy     only put the record right and remove leftovers\n"
	"\n"
	"settings of a new run\n"
	"  SPEC N DEVICE PROPOSER PROFILE MODEL COMMAND REPLY WIDTH SEED ALLOW_WEAK\n"
	"  REPAIRS PLATEAU RESEARCH MAX_TOKENS MAX_USD MAX_CALLS MAX_GPU_S MAX_GPU_MINUTES MAX_MINUTES\n"
	"  MAX_WALL_S SIM_SECONDS UNITTEST_DEVICE SANITIZER\n"
	"  RUN_GPU RUN_UNITTEST MODEL_DIR\n"
	"             MAX_WALL_S bounds each make, the others the whole run\n"
	"  NEW=1      give up the unfinished run first\n"
	"\n"
	"exit: 0 done, 2 usage, 4 something is missing, 75 another make is at work, else the code of\n"
	"      the step that stopped the run\n";

enum mode { ITERATE, RESUME, TRY, REDO, ADOPT, TIDY };

static const char *const names[] = {
	"SPEC", "N", "DEVICE", "PROPOSER", "PROFILE", "MODEL", "WIDTH", "SEED", "ALLOW_WEAK", "NEW",
	"COMMAND", "REPLY", "REPAIRS", "MAX_TOKENS", "MAX_USD", "MAX_CALLS", "MAX_GPU_S", "MAX_WALL_S",
	"MAX_MINUTES", "MAX_GPU_MINUTES", "PLATEAU", "RESEARCH", "SIM_SECONDS", "UNITTEST_DEVICE", "SANITIZER", "KERNEL", "PLAN", "TRIAL",
	"FROM", "RUN_GPU", "RUN_UNITTEST", "MODEL_DIR",
};
enum { NAMES = sizeof names / sizeof *names };
static const char *values[NAMES];

static volatile sig_atomic_t stopped;
static volatile pid_t make_pid;
static const char *over = ": MAX_WALL_S is over"; /* what an alarm means */

static const char *given(const char *name)
{
	for (int i = 0; i < NAMES; i++)
		if (strcmp(names[i], name) == 0)
			return values[i] && *values[i] ? values[i] : NULL;
	return NULL;
}

static int take_setting(const char *arg)
{
	for (int i = 0; i < NAMES; i++) {
		size_t n = strlen(names[i]);
		if (strncmp(arg, names[i], n) == 0 && arg[n] == '=') {
			values[i] = arg + n + 1;
			return 0;
		}
	}
	return -1;
}

static enum mode parse(int argc, char **argv)
{
	static const char *const modes[] = {NULL, "--resume", "--try", "--redo", "--adopt",
		"--tidy"};
	enum mode mode = ITERATE;
	for (int i = 1; i < argc; i++) {
		int m = RESUME;
		while (m <= TIDY && strcmp(argv[i], modes[m]) != 0)
			m++;
		if (m <= TIDY)
			mode = (enum mode)m;
		else if (strncmp(argv[i], "--", 2) != 0 || take_setting(argv[i] + 2))
			die(EX_BADUSE, "'%s' is no option; -h for help", argv[i]);
	}
	return mode;
}

static int64_t number(const char *name, int64_t least, int64_t most, int64_t fallback)
{
	const char *s = given(name);
	char *end;
	if (!s)
		return fallback;
	long long v = strtoll(s, &end, 10);
	if (*end || v < least || v > most)
		die(EX_BADUSE, "%s must be a whole number from %lld to %lld, not '%s'", name,
		    (long long)least, (long long)most, s);
	return v;
}

/* --- a new run --- */

static const char *default_spec(void)
{
	if (!file_exists("specs/vector_add/spec.json"))
		die(EX_BADUSE, "which problem? SPEC=NAME, one of the folders in specs/");
	return "vector_add";
}

static void add_limits(cJSON *more)
{
	static const char *const keys[][2] = {
		{"MAX_TOKENS", "max_tokens"}, {"MAX_USD", "max_usd"}, {"MAX_CALLS", "max_calls"},
		{"MAX_GPU_S", "max_gpu_s"}, {"MAX_WALL_S", "max_wall_s"}, {"MAX_MINUTES", "max_minutes"},
		{"MAX_GPU_MINUTES", "max_gpu_s"},
		{"SIM_SECONDS", "sim_seconds"},
	};
	if (given("MAX_GPU_S") && given("MAX_GPU_MINUTES"))
		die(EX_BADUSE, "MAX_GPU_S and MAX_GPU_MINUTES are one budget: give one of them");
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		const char *s = given(keys[i][0]);
		char *end;
		double v = s ? strtod(s, &end) : 0;
		if (s && (*end || !(v > 0) || v > 1e15))
			die(EX_BADUSE, "%s must be a number above 0, not '%s'", keys[i][0], s);
		if (s)
			cJSON_AddNumberToObject(more, keys[i][1], strcmp(keys[i][0], "MAX_GPU_MINUTES") ? v : 60 * v);
	}
}

static void add_texts(cJSON *more)
{
	if (given("COMMAND"))
		cJSON_AddStringToObject(more, "command", given("COMMAND"));
	if (given("REPLY"))
		cJSON_AddStringToObject(more, "reply", given("REPLY"));
	const char *tests = given("UNITTEST_DEVICE");
	if (tests && strcmp(tests, "emu") && strcmp(tests, "none"))
		die(EX_BADUSE, "UNITTEST_DEVICE is emu or none, or not given");
	if (tests)
		cJSON_AddStringToObject(more, "unittest_device", tests);
	const char *sanitizer = given("SANITIZER");
	if (sanitizer && strcmp(sanitizer, "1"))
		die(EX_BADUSE, "SANITIZER is 1, or not given");
	if (sanitizer)
		cJSON_AddStringToObject(more, "sanitizer", sanitizer);
	char name[TRIAL_NAME];
	if (given("RUN_GPU") || given("RUN_UNITTEST")) {
		runner_name(given("RUN_GPU") ? given("RUN_GPU") : given("RUN_UNITTEST"), name);
		cJSON_AddStringToObject(more, "runner", name);
	}
}

/* Turns are told in every run whose proposer can take them. */
static void add_repairs(cJSON *more, const char *proposer, int engine)
{
	/* an engine problem's replay has no further replies */
	int most = engine && strcmp(proposer, "replay") == 0 ? 0 : repair_default(proposer);
	int64_t turns = number("REPAIRS", 0, REPAIR_MOST, most);
	if (turns && !most)
		die(EX_BADUSE, "REPAIRS: the proposer %s cannot answer to an error", proposer);
	if (most)
		cJSON_AddNumberToObject(more, "repairs", (double)turns);
}

/* Web searches: where a key is, unless told otherwise, and for proposers that read prompts alone. */
static void add_research(cJSON *more, const char *proposer)
{
	const int reads = strcmp(proposer, "openai") == 0 || strcmp(proposer, "command") == 0;
	const int64_t k = number("RESEARCH", 0, RESEARCH_MOST, reads && research_ready() ? 3 : 0);
	const char *url = getenv("TAVILY_BASE_URL");
	if (k && !reads)
		die(EX_BADUSE, "RESEARCH: the proposer %s reads no prompts", proposer);
	if (!k)
		return;
	cJSON_AddNumberToObject(more, "research", (double)k);
	if (url && *url && !strchr(url, '@'))
		cJSON_AddStringToObject(more, "research_url", url);
}

/* The model's settings as they are now: a resumed run keeps them whatever the environment says. */
static void add_profile(cJSON *more, const char *profile)
{
	struct profile p;
	struct err e;
	if (profile_load(profile, given("MODEL"), NULL, &p, &e))
		die_err(&e);
	cJSON_AddStringToObject(more, "profile", profile);
	if (p.model)
		cJSON_AddStringToObject(more, "model", p.model);
	if (p.base_url && !strchr(p.base_url, '@'))
		cJSON_AddStringToObject(more, "base_url", p.base_url);
	if (p.key_env)
		cJSON_AddStringToObject(more, "key_env", p.key_env);
	profile_free(&p);
}

static const char *default_proposer(void)
{
	if (given("COMMAND"))
		return "command";
	if (given("REPLY"))
		return "replay";
	if (given("PROFILE") || given("MODEL"))
		return "openai";
	return profile_ready("openai") ? "openai" : "sweep";
}

static void plan_single(struct run_plan *p, enum mode mode)
{
	struct err e;
	const int spec = given("SPEC") != NULL;
	char path[TRIAL_PATH];
	snprintf(path, sizeof path, "specs/%.64s/spec.json", p->spec);
	const int engine = mode == TRY && file_exists(path) ? engine_run_kind(p->spec, &e) : 0;
	if (engine < 0)
		die_err(&e);
	if (mode == REDO   ? run_redo(p, given("TRIAL"), spec, given("DEVICE") != NULL, &e)
	    : mode == TRY  ? run_try(p, given("KERNEL"), given("PLAN"), engine, &e)
			   : run_adopt(p, given("FROM"), spec, &e))
		die_err(&e);
	p->n = 1;
	p->width = 1;
}

/* The device: of this machine, or as the runner says what is there. */
static void plan_device(struct run_plan *p)
{
	static char device[TRIAL_NAME], why[DEVICE_WHY];
	const struct runner_hello *h;
	struct err e;
	if (given("RUN_GPU")) {
		if (runner_hello(given("RUN_GPU"), p->device, &h, &e))
			die_err(&e);
		snprintf(device, sizeof device, "%s", h->device);
		snprintf(why, sizeof why, "%.300s", h->why);
		p->device_json = &h->device_json;
		p->gpus = h->gpus;
	} else if (device_resolve(p->device, device, why, &e)) {
		die_err(&e);
	}
	p->device = device;
	cJSON_AddStringToObject(p->more, "device_why", why);
}

/* A problem that cannot be read must not become a run. */
static void plan_problem(struct run_plan *p)
{
	struct spec *spec;
	struct err e;
	const int engine = engine_run_device(p->spec, &p->device, &e);
	const int own = strcmp(p->proposer, "manual") == 0; /* files of somebody's own */
	if (engine < 0 || (engine && !own && engine_run_proposer(p->proposer, &e)))
		die_err(&e);
	if (own && engine != (p->given[0][1] && strncmp(p->given[0][1], ENGINE_GIVEN, strlen(ENGINE_GIVEN)) == 0))
		die(EX_BADUSE, "'%s' is %s problem, and these files are not for one (SPEC= names another)", p->spec,
		    engine ? "an engine" : "a kernel");
	if (engine && (given("RUN_GPU") || given("RUN_UNITTEST")))
		die(EX_BADUSE, "engine problems run here: no RUN_GPU or RUN_UNITTEST");
	plan_device(p);
	if ((engine || given("MODEL_DIR")) && engine_run_model(p->spec, given("MODEL_DIR"), p->more, &e))
		die_err(&e);
	if (engine)
		return;
	char *path = xasprintf("specs/%s", p->spec);
	if (spec_load(path, &spec, &e) || device_takes(p->device, spec, &e))
		die_err(&e);
	spec_free(spec);
	free(path);
}

static void plan_run(struct run_plan *p, enum mode mode, const char *bin)
{
	char path[TRIAL_PATH];
	const char *weak = given("ALLOW_WEAK");
	p->bin = bin;
	p->spec = given("SPEC") ? given("SPEC") : default_spec();
	p->device = given("DEVICE");
	p->n = number("N", 1, 100000, 10);
	p->width = number("WIDTH", 1, 64, 1);
	p->seed = number("SEED", 0, (int64_t)1 << 53, 1);
	p->allow_weak = weak && strcmp(weak, "0") != 0;
	p->more = cJSON_CreateObject();
	if (mode != ITERATE)
		plan_single(p, mode);
	else
		p->proposer = given("PROPOSER") ? given("PROPOSER") : default_proposer();
	if (!trial_name_ok(p->spec) || !trial_name_ok(p->proposer))
		die(EX_BADUSE, "SPEC and PROPOSER are names: a-z 0-9 _ -");
	snprintf(path, sizeof path, "specs/%s/spec.json", p->spec);
	if (!file_exists(path))
		die(EX_BADUSE, "no problem 'specs/%s'", p->spec);
	p->run_gpu = given("RUN_GPU");
	p->run_unittest = given("RUN_UNITTEST");
	plan_problem(p);
	if (strcmp(p->proposer, "openai") == 0)
		add_profile(p->more, given("PROFILE") ? given("PROFILE") : "openai");
	add_texts(p->more);
	add_limits(p->more);
	if (mode == ITERATE && given("PLATEAU"))
		cJSON_AddNumberToObject(p->more, "plateau", (double)number("PLATEAU", 1, 100000, 0));
	if (mode == ITERATE) {
		add_repairs(p->more, p->proposer, cJSON_GetObjectItemCaseSensitive(p->more, "model_sha256") != NULL);
		add_research(p->more, p->proposer);
	}
}

/* --- an unfinished run --- */

static void agree(const struct run *r, const char *name, const char *want)
{
	const char *s = given(name);
	if (s && strcmp(s, want) != 0)
		die(EX_BADUSE, "run %s is unfinished and has %s=%s, not %s; `make resume` goes on "
		    "with it, NEW=1 gives it up and starts a new one", r->name, name, want, s);
}

static void agree_number(const struct run *r, const char *name, int64_t want)
{
	char text[32];
	snprintf(text, sizeof text, "%lld", (long long)want);
	agree(r, name, text);
}

static void must_agree(const struct run *r)
{
	agree(r, "SPEC", r->spec);
	if (!given("DEVICE") || strcmp(given("DEVICE"), "cuda") != 0 ||
	    device_class_of(r->device) != DEVICE_CUDA)
		agree(r, "DEVICE", r->device);
	agree(r, "PROPOSER", r->proposer);
	agree(r, "PROFILE", run_str(r, "profile", ""));
	agree(r, "MODEL", run_str(r, "model", ""));
	agree_number(r, "N", r->n);
	agree_number(r, "WIDTH", r->width);
	agree_number(r, "SEED", r->seed);
	agree_number(r, "REPAIRS", run_int(r, "repairs", 0));
	agree_number(r, "PLATEAU", run_int(r, "plateau", 0));
	agree_number(r, "RESEARCH", run_int(r, "research", 0));
}

static void resume(const struct run *r, const char *bin, int moved)
{
	struct err e;
	char next[TRIAL_ID];
	int marked, fresh;
	if (ledger_interrupt(r, &marked, &e))
		die_err(&e);
	fresh = runs_pin_tools(r, bin, &e);
	if (fresh < 0)
		die_err(&e);
	int done = runs_closed(r, next);
	printf("resuming: %d of %lld trials done, %lld to go (run %s)\n", done, (long long)r->n,
	       (long long)r->n - done, r->name);
	if (moved)
		printf("  repaired  %d damaged file%s moved to bad/\n", moved, moved > 1 ? "s" : "");
	if (marked)
		printf("  charged   %d interrupted call%s, in full unless the reply is still stored\n", marked,
		       marked > 1 ? "s" : "");
	if (fresh)
		puts("  programs  rebuilt since the run began; the new ones are pinned as well");
}

/* --- make --- */

static void on_signal(int sig)
{
	stopped = sig;
	if (sig != SIGINT && make_pid > 0)
		kill(make_pid, SIGTERM);
}

static void catch_signals(void)
{
	static const int which[] = {SIGINT, SIGTERM, SIGHUP, SIGALRM};
	struct sigaction a = {.sa_handler = on_signal};
	for (int i = 0; i < 4; i++)
		sigaction(which[i], &a, NULL);
}

/* The sooner of two ends: of this make, and of the run's minutes over all its makes. */
static void set_alarm(const struct run *r)
{
	double wall = run_num(r, "max_wall_s", 0), left;
	struct err e;
	if (minutes_begin(r, &left, &e))
		die_err(&e);
	if (left > 0 && (wall <= 0 || left < wall)) {
		over = ": MAX_MINUTES is over";
		wall = left < 1 ? 1 : left;
	}
	alarm((unsigned)wall); /* 0: none */
}

/* The exit code of the step that stopped the run, from its status file. */
static int stop_code(const struct run *r)
{
	char path[TRIAL_PATH];
	run_path(path, r->name, "status.json");
	cJSON *j = json_read(path, &JSON_OURS, NULL, NULL);
	int code = j ? (int)json_get_int(j, "exit", EX_HARNESS) : EX_HARNESS;
	cJSON_Delete(j);
	return code ? code : EX_HARNESS;
}

static int finish(const struct run *r, int made, const char *bin)
{
	char next[TRIAL_ID];
	struct err e;
	int rolled, done = runs_closed(r, next);
	if (minutes_end(r, &e))
		warn("%s", e.text);
	if (*next ? record_catch_up(&rolled, &e) : recover_end(r, &e))
		die_err(&e);
	if (*next)
		summary_page(bin, NULL, &e); /* it no longer says that the run is on; a failure stops nothing */
	if (*next && stopped) {
		fflush(stdout);
		printf("stopped%s; `make iterate` continues at %s\n",
		       stopped == SIGALRM ? over : "", next);
		return stopped == SIGALRM ? EX_AGAIN : 128 + (int)stopped;
	}
	if (*next) {
		int code = made ? stop_code(r) : EX_HARNESS;
		printf("run %s stopped at trial %s with exit %d after %d of %lld trials; `make iterate` "
		       "continues there\n", r->name, next, code, done, (long long)r->n);
		return code;
	}
	if (runs_finish(r->name, "finished", &e))
		die_err(&e);
	return summary_print(r, bin, &e) ? (warn("%s", e.text), EX_DONE) : EX_DONE;
}

/* Our own path below the working directory when it is there: it appears in make's output. */
static const char *short_path(const char *path)
{
	char cwd[512];
	if (!getcwd(cwd, sizeof cwd - 1))
		return path;
	size_t n = strlen(cwd);
	return strncmp(path, cwd, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

/* One trial of somebody's own is a run: there is no place for it inside another. */
static int refuse(const char *name, enum mode mode, struct err *e)
{
	static const char *const word[] = {"iterate", "resume", "try", "redo", "adopt", "tidy"};
	struct run r;
	char next[TRIAL_ID];
	if (run_read(name, &r, e))
		return -1;
	int done = runs_closed(&r, next);
	err_set(e, EX_BADUSE, "run %s (%s on %s) is unfinished, %d of %lld trials done: finish it first "
		"with `make resume`, or give it up by adding NEW=1 to `make %s`", name, r.spec, r.device,
		done, (long long)r.n, word[mode]);
	run_free(&r);
	return -1;
}

/* The run to work on; 0 when there is nothing to do. */
static int choose(enum mode mode, const char *bin, char name[TRIAL_ID], struct err *e)
{
	struct run r;
	static struct run_plan plan; /* its strings live as long as we do */
	int rolled;
	if (runs_newest(name, e))
		return -1;
	int open = *name && !runs_finished(name);
	if (open && mode != ITERATE && mode != RESUME && mode != TIDY && !given("NEW"))
		return refuse(name, mode, e);
	if (open) {
		if (run_read(name, &r, e))
			return -1;
		if (run_is_replay(&r))
			return err_set(e, EX_BADINPUT, "run %s is a replay's scratch run: no trials are run in it",
				       name);
		int moved;
		int rc = recover_run(&r, &moved, e) || recover_record(&rolled, e) ? -1 : 0;
		if (!rc && !given("NEW") && mode != TIDY) {
			must_agree(&r);
			resume(&r, bin, moved);
		}
		run_free(&r);
		if (rc || !given("NEW"))
			return rc ? rc : mode != TIDY;
		if (runs_finish(name, "given_up", e))
			return -1;
	} else if (recover_record(&rolled, e)) {
		return -1;
	}
	if (mode == TIDY || mode == RESUME)
		return puts(mode == TIDY ? "tidy" : "nothing to resume: every run is finished") < 0;
	plan_run(&plan, mode, bin);
	return runs_make(&plan, name, e) ? -1 : 1;
}

/* The GPU that the run is for, here or where its runner leads. A resumed run may be given another one:
 * whether that will do is looked at. */
static int admit(const struct run *r, struct err *e)
{
	char gpu[RUNNER_COMMAND] = "", tests[RUNNER_COMMAND] = "", dir[TRIAL_PATH];
	const char *new_gpu = given("RUN_GPU"), *new_tests = given("RUN_UNITTEST");
	int rc = runner_read(r, gpu, tests, new_gpu ? NULL : e);
	if (rc && !new_gpu)
		return -1;
	if ((new_gpu && strcmp(new_gpu, gpu) != 0) || (new_tests && strcmp(new_tests, tests) != 0)) {
		run_path(dir, r->name, "");
		if (runner_save(dir, new_gpu ? new_gpu : gpu, new_tests ? new_tests : tests, e))
			return -1;
	}
	if (!new_gpu && !*gpu && gpu_admit(r, e))
		return -1;
	return runner_admit(r, e);
}

/* The judge, here or where the runner leads, is tried before it judges anything of this run. */
static int try_judge(const struct run *r, const char *bin, char words[160], struct err *e)
{
	char gpu[RUNNER_COMMAND] = "", tests[RUNNER_COMMAND] = "";
	const struct runner_hello *h = NULL;
	if (runner_read(r, gpu, tests, e) || (*gpu && runner_hello(gpu, r->device, &h, e)))
		return -1;
	struct selftest_where w = {.bin = bin, .command = h ? gpu : NULL, .tools = h ? h->tools : NULL};
	return selftest_admit(r, &w, words, e);
}

int main(int argc, char **argv)
{
	struct err e = {0};
	struct lock lock;
	struct run r;
	char path[512], name[TRIAL_ID], tried[160];
	prog_name(argv[0]);
	if (argc == 2 && strcmp(argv[1], "-h") == 0) {
		fputs(HELP, stdout);
		return fflush(stdout) ? EX_SYS : EX_DONE;
	}
	enum mode mode = parse(argc, argv);
	if (stage_dry_make()) {
		puts("iterate: would start or continue a run; make -n, -q and -t start nothing");
		return EX_DONE;
	}
	if (!file_exists("specs") || !file_exists("tools/make/trials.mk"))
		die(EX_BADUSE, "start me in the root of Touchstone");
	const char *bin = getenv("TS_BIN");
	if (!bin || !*bin) {
		if (spawn_tool("run", path, sizeof path, &e))
			die_err(&e);
		*strrchr(path, '/') = '\0';
		bin = short_path(path);
	}
	if (lock_take(&lock, "run", LOCK_ALONE, 0, &e))
		die(EX_AGAIN, "another make is at work: %s", e.text);
	int what = choose(mode, bin, name, &e);
	if (what < 0)
		die_err(&e);
	if (!what)
		return EX_DONE;
	if (run_read(name, &r, &e) || admit(&r, &e) || try_judge(&r, bin, tried, &e) || runs_claim(&r, &e))
		die_err(&e);
	summary_banner(&r, tried);
	catch_signals();
	set_alarm(&r);
	int made = runs_drive(&r, bin, &make_pid, &e);
	if (made < 0)
		die_err(&e);
	int code = finish(&r, made, bin);
	run_free(&r);
	lock_drop(&lock);
	return code;
}
