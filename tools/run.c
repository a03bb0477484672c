/*
 * run.c - the recipe wrapper: every step of the pipeline is `run trials/NNNN/STEP.json`.
 *
 * Starts the program of the step with an allow-list environment, a death signal and a wall limit,
 * checks that the promised verdict is really there, waits and repeats on exit 75, ends a trial
 * that fails twice in the same way, prints one line and updates the run's status.json. Writes the
 * skip verdicts of the steps that follow and do not apply, which saves starting them. A run that names
 * a runner (RUN_GPU) has its steps from guard to confirm done there, and taken back here. Decides
 * nothing about a candidate; nothing a candidate or a model printed reaches the line.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../stages/lib/facts.h"
#include "../stages/lib/failure.h"
#include "../stages/lib/file.h"
#include "../stages/lib/json.h"
#include "../stages/lib/jsonw.h"
#include "../stages/lib/ledger.h"
#include "../stages/lib/lock.h"
#include "../stages/lib/minutes.h"
#include "../stages/lib/run.h"
#include "../stages/lib/runner.h"
#include "../stages/lib/spawn.h"
#include "../stages/lib/tavily.h"
#include "../stages/lib/stage.h"
#include "../stages/lib/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char HELP[] =
	"usage: run trials/NNNN/STEP.json\n"
	"\n"
	"Run one step of a trial; make does this, one recipe per step. STEP is a0/propose, a0/guard,\n"
	"a0/unittest, the same under a1 and a2, tune, judge, bench, confirm or promote.\n"
	"\n"
	"environment\n"
	"  TS_BIN       folder of the stage programs (default: the one this program is in)\n"
	"  TS_LAST      number of the run's last trial, for the progress line\n"
	"  TS_RETRIES   how often exit 75 is tried again (default 6, waiting 0.5 s, 1 s, 2 s, ...)\n"
	"\n"
	"exit: 0 verdict written, else the code of the step: 2 usage, 3 malformed input, 4 something\n"
	"      is missing, 70 our fault, 75 try again, 111 a system call failed\n";

struct job {
	const char *target;
	char id[TRIAL_ID];
	enum step step;
	const struct step_info *info;
	char program[512];
	struct verdict_in done;   /* the verdict, once written */
	int on_gpu;
	int timed; /* a step that begins or closes a trial, in a run with max_minutes */
	char run[TRIAL_ID];
	char runner[RUNNER_COMMAND]; /* "": the step is done here */
	int code;                 /* of the last try: exit code, or 128 + signal */
	char text[160];           /* how it failed */
};

/* Longest that a step may take by the clock, in seconds. The stages have tighter limits of
 * their own for each thing they start; this one is for a stage that hangs. */
static double wall_limit(const struct step_info *info)
{
	if (strcmp(info->stage, "propose") == 0)
		return 1800;
	if (strcmp(info->stage, "guard") == 0)
		return 900;
	return strcmp(info->stage, "promote") == 0 ? 600 : 3600;
}

/* What a stage may know of the caller's environment. Only propose, whose child the client is,
 * gets the variable that holds the API key. */
static const char *const allowed[] = {
	"PATH", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH",
	"CUDA_VISIBLE_DEVICES", "ASAN_OPTIONS", "UBSAN_OPTIONS", "CC", "CXX", "MAKEFLAGS",
	"COMPUTE_SANITIZER", "TS_BIN", "TS_FAULT", "TS_FAULT_AT", "FAKE_CALLS", "FAKE_DO", "FAKE_TRIAL",
};
static const char *const allowed_net[] = {
	"HOME", "PROPOSER_COMMAND", "PROPOSER_PATHS", "PROPOSER_ENV", "OPENAI_BASE_URL", "OPENAI_MODEL",
	"http_proxy", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "SSL_CERT_FILE",
	"CURL_CA_BUNDLE",
};

enum { ENV_MAX = 40 };

static size_t pass(const char **env, size_t n, const char *name)
{
	const char *v = getenv(name);
	if (v && n < ENV_MAX - 1)
		env[n++] = xasprintf("%s=%s", name, v);
	return n;
}

/* The variables that PROPOSER_ENV names are for the user's own proposer command. */
static size_t pass_named(const char **env, size_t n)
{
	char *list = xstrdup(getenv("PROPOSER_ENV") ? getenv("PROPOSER_ENV") : ""), *at;
	for (char *name = strtok_r(list, ",", &at); name; name = strtok_r(NULL, ",", &at))
		n = pass(env, n, name);
	free(list);
	return n;
}

static void make_env(const struct job *j, const char **env)
{
	size_t n = 0;
	env[n++] = "LC_ALL=C";
	for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
		n = pass(env, n, allowed[i]);
	const char *preload = getenv("TS_PRELOAD"); /* tests: failing write, fsync, rename */
	if (preload)
		env[n++] = xasprintf("LD_PRELOAD=%s", preload);
	if (strcmp(j->info->stage, "propose") == 0) {
		struct run r;
		for (size_t i = 0; i < sizeof allowed_net / sizeof *allowed_net; i++)
			n = pass(env, n, allowed_net[i]);
		n = pass_named(env, n);
		if (run_read(j->run, &r, NULL) == 0) {
			const char *key = run_str(&r, "key_env", "");
			if (*key)
				n = pass(env, n, key);
			if (run_num(&r, "research", 0) > 0)
				n = pass(env, n, TAVILY_KEY);
			run_free(&r);
		}
	}
	env[n] = NULL;
}

static int find_program(struct job *j, struct err *e)
{
	const char *dir = getenv("TS_BIN");
	if (!dir || !*dir)
		return spawn_tool(j->info->program, j->program, sizeof j->program, e);
	snprintf(j->program, sizeof j->program, "%s/%s", dir, j->info->program);
	return 0;
}

static int have_verdict(struct job *j, struct err *e)
{
	return verdict_read(j->id, j->step, &j->done, e) == 0;
}

/* Line for a step that died without being able to note it itself. */
static void note_death(const struct job *j, const char *who)
{
	struct verdict_in up = {0};
	char tool[HASH_HEX] = "";
	if (j->step > 0 && verdict_read(j->id, j->step - 1, &up, NULL))
		up.sha[0] = '\0';
	tool_hash(j->program, tool, NULL);
	struct failure f = {who, up.sha, tool, j->code, j->text};
	failure_note(j->id, j->step, &f);
	verdict_in_free(&up);
}

/* A code that a stage ends with on purpose, after noting the failure. */
static int is_exit_code(int code)
{
	return code == EX_BADUSE || code == EX_BADINPUT || code == EX_NOENV || code == EX_HARNESS ||
	       code == EX_AGAIN || code == EX_SYS;
}

/* The same through a runner: sent, done there, checked and taken back whole. The lock is the stage's own,
 * so that nobody does the step here meanwhile. */
static int try_far(struct job *j, struct err *e)
{
	struct trial t = {0};
	struct run r = {0};
	struct lock lock = {.fd = -1};
	struct runner_failure f = {.who = "world"};
	char name[32];
	snprintf(name, sizeof name, "trial-%s", j->id);
	int rc = trial_read(j->id, &t, e) || run_read(j->run, &r, e) ||
		 lock_take(&lock, name, LOCK_ALONE, 0, e) ? -1 : 0;
	if (!rc && !have_verdict(j, e)) { /* else an orphan of a killed make finished it meanwhile */
		rc = runner_step(j->runner, &t, &r, j->step, &f, e);
		if (!rc)
			rc = have_verdict(j, e) ? 0 : -1;
	}
	lock_drop(&lock);
	run_free(&r);
	trial_free(&t);
	if (!rc)
		return 0;
	j->code = e->code ? e->code : EX_HARNESS;
	snprintf(j->text, sizeof j->text, "%.150s", e->text);
	warn("%s", e->text);
	note_death(j, f.who);
	return -1;
}

/* One try. 0 when the verdict is there. */
static int try_once(struct job *j, struct err *e)
{
	if (*j->runner)
		return try_far(j, e);
	const char *argv[] = {j->program, j->info->arg ? j->info->arg : j->target,
			      j->info->arg ? j->target : NULL, NULL};
	static const char *env[ENV_MAX]; /* built once; its strings live as long as we do */
	struct spawn_request q = {
		.argv = argv, .env = env, .out = SPAWN_NULL, .err = SPAWN_KEEP,
		.wall_s = wall_limit(j->info), .flags = SPAWN_SAME_SESSION,
		.limits = {.file_bytes = (uint64_t)8 << 30}, /* a runaway log must not fill the disk */
	};
	struct spawn_result r;
	if (!env[0])
		make_env(j, env);
	if (spawn_run(&q, &r, e)) {
		j->code = e->code;
		snprintf(j->text, sizeof j->text, "%.150s", e->text);
		return -1;
	}
	j->code = r.code >= 0 ? r.code : 128 + r.signal;
	spawn_words(&r, j->text);
	int outside = r.outside;
	spawn_result_free(&r);
	if (j->code == 0 && have_verdict(j, e))
		return 0;
	if (j->code == 0) {
		snprintf(j->text, sizeof j->text, "exit 0, but %.120s", e->text);
		j->code = EX_HARNESS;
		note_death(j, "ours");
	} else if (!is_exit_code(j->code)) { /* a signal, or a run time that ended it */
		note_death(j, outside ? "world" : "ours"); /* kill -9 twice is no poison */
		j->code = EX_HARNESS;
	}
	return -1;
}

/* Is the machine well? Then a step that failed twice will fail a third time. Room on the disk for as much
 * as a step writes, a file that syncs, and a program that starts. */
static int canary(const struct job *j)
{
	enum { ROOM = 4 << 20 };
	char path[TRIAL_PATH], *block = xmalloc(ROOM);
	const char *argv[] = {j->program, "-h", NULL};
	struct spawn_request q = {.argv = argv, .out = SPAWN_NULL, .err = SPAWN_NULL, .wall_s = 20};
	struct spawn_result r;
	struct err e;
	memset(block, 'c', ROOM);
	trial_path(path, j->id, "canary.tmp.0");
	int ok = file_write(path, block, ROOM, 0644, &e) == 0;
	unlink(path);
	free(block);
	if (!ok || spawn_run(&q, &r, &e))
		return 0;
	ok = r.code == 0;
	spawn_result_free(&r);
	return ok;
}

/* Two failures with the same inputs: write the verdict that ends the trial. 1 if written. */
static int end_poisoned(struct job *j)
{
	struct verdict_in up = {0};
	struct err e;
	char tool[HASH_HEX], last[480] = "", text[600];
	int child, n;
	if (j->step == STEP_PROMOTE || tool_hash(j->program, tool, NULL))
		return 0;
	if (j->step > 0 && verdict_read(j->id, j->step - 1, &up, NULL))
		return 0;
	n = failure_count(j->id, j->step, up.sha, tool, &child, last);
	verdict_in_free(&up);
	if (n < 2 || !canary(j))
		return 0;
	snprintf(text, sizeof text, "failed %d times with the same inputs, last: %s", n, last);
	if (stage_close(j->id, j->step, child ? V_REJECT : V_INVALID,
			child ? "run.child_died" : "run.harness", text, &e)) {
		warn("%s", e.text);
		return 0;
	}
	return have_verdict(j, &e);
}

/* --- seconds of a GPU --- */

/* A step may hold a GPU's lane as long as it must: how long is known afterwards, by its verdict. Reserved
 * is the median of such steps of the run so far, so that a run ends at most one unusual step over its
 * max_gpu_s. A step that dies stays charged as reserved. 1: this step uses one, under `id` of the ledger. */
static int gpu_begin(const struct job *j, struct run *r, struct ledger_amount *most, char id[LEDGER_ID], struct err *e)
{
	if (!j->on_gpu || run_read(j->run, r, e))
		return j->on_gpu ? -1 : 0;
	if (ledger_usual_gpu_s(r, j->info->name, &most->gpu_s, e) == 0 &&
	    ledger_reserve(r, j->id, j->info->name, most, id, e) == 0)
		return 1;
	run_free(r);
	return -1;
}

static void gpu_end(const struct job *j, struct run *r, const struct ledger_amount *most, const char *id)
{
	const cJSON *lane = j->done.json ? json_get(j->done.data, "lane") : NULL;
	struct ledger_amount spent = {.gpu_s = j->done.json ? 0 : most->gpu_s};
	struct err e;
	double from = json_get_num(lane, "from_us", 0), to = json_get_num(lane, "to_us", 0);
	if (to > from && strcmp(json_get_str(lane, "mode", ""), "exclusive") == 0)
		spent.gpu_s = (to - from) / 1e6;
	if (ledger_settle(r, j->id, j->info->name, id, most, &spent, &e))
		warn("%s", e.text);
	run_free(r);
}

static void pause_ms(long ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	nanosleep(&t, NULL);
}

static int try_until(struct job *j, struct err *e)
{
	const char *s = getenv("TS_RETRIES");
	long left = s && *s ? strtol(s, NULL, 10) : 6, wait = 500;
	while (try_once(j, e)) {
		if (j->code == EX_AGAIN && left-- > 0) {
			pause_ms(wait);
			wait *= 2;
			continue;
		}
		if (end_poisoned(j))
			return 0;
		return -1;
	}
	return 0;
}

/* Wall minutes: reserved before a trial is proposed, settled when it is closed. */
static int minutes(const struct job *j, struct err *e)
{
	const int closed = j->step == STEP_PROMOTE && j->done.json;
	if (!j->timed || (j->step == STEP_PROMOTE && !closed))
		return 0;
	return minutes_step(j->run, j->id, closed, e);
}

static int run_step(struct job *j, struct err *e)
{
	if (!file_exists(j->target) && stage_skip(j->id, j->step, NULL) == 1 && have_verdict(j, e))
		return 0;
	struct run r;
	struct ledger_amount most = {0};
	char id[LEDGER_ID];
	int charged = minutes(j, e) ? -1 : gpu_begin(j, &r, &most, id, e);
	if (charged < 0) {
		j->code = e->code;
		snprintf(j->text, sizeof j->text, "%.150s", e->text);
		return -1;
	}
	int rc = try_until(j, e);
	if (charged)
		gpu_end(j, &r, &most, id);
	if (!rc && j->step == STEP_PROMOTE && minutes(j, e))
		warn("%s", e->text);
	return rc;
}
/* status.json is a convenience: replaced whole, not synced. */
static void write_status(const struct job *j)
{
	char path[TRIAL_PATH], tmp[TRIAL_PATH + 32], now[32];
	struct jsonw w = {.pretty = 1};
	if (!run_name_ok(j->run))
		return;
	run_path(path, j->run, "status.json");
	snprintf(tmp, sizeof tmp, "%s.tmp.%ld", path, (long)getpid());
	verdict_now(now);
	jw_obj(&w, NULL);
	jw_str(&w, "schema", "touchstone/status/1");
	jw_str(&w, "t", now);
	jw_str(&w, "trial", j->id);
	jw_str(&w, "step", j->info->name);
	jw_str(&w, "verdict", j->done.json ? verdict_kind_name(j->done.kind) : NULL);
	jw_str(&w, "code", j->done.json ? j->done.code : NULL);
	jw_int(&w, "exit", j->done.json ? 0 : j->code);
	const cJSON *after = j->done.json ? json_get(j->done.data, "after") : NULL;
	if (after)
		jw_item(&w, "closed", json_get(after, "closed"));
	jw_end(&w);
	int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd >= 0) {
		int ok = write(fd, w.out.data, w.out.len) == (ssize_t)w.out.len;
		close(fd);
		if (!ok || rename(tmp, path))
			unlink(tmp);
	}
	jw_free(&w);
}

static void put_line(const struct job *j)
{
	char line[512];
	const char *last = getenv("TS_LAST"), *kind = "failed", *more = j->text;
	if (j->done.json) {
		if (j->done.kind == V_SKIP)
			return;
		kind = verdict_kind_name(j->done.kind);
		more = json_get_str(j->done.json, "headline", "");
		if (j->done.kind != V_PASS && !*more)
			more = j->done.code;
	}
	const char *device = "";
	if (j->done.json && json_get_num(j->done.data, "ratio", 0) > 0)
		device = cJSON_IsTrue(json_get(j->done.json, "simulated")) ? " sim"
		       : cJSON_IsTrue(json_get(j->done.json, "emulated")) ? " emu" : "";
	int n = snprintf(line, sizeof line - 1, "[%s%s%s] %-11s %s%s%.200s%s", j->id,
			 last && trial_id_ok(last) ? "/" : "", last && trial_id_ok(last) ? last : "",
			 j->info->name, kind, *more ? " " : "", more, device);
	if (n > (int)sizeof line - 2)
		n = sizeof line - 2;
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return; /* nobody is listening; the verdict stands */
}

/* We die with make. Its death before this call shows as another parent. */
static void die_with_parent(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		die(EX_AGAIN, "make is gone");
}

static int make_folder(const char *id, enum step step, struct err *e)
{
	char dir[TRIAL_PATH];
	trial_step_path(dir, id, step);
	*strrchr(dir, '/') = '\0';
	return mkdir(dir, 0777) && errno != EEXIST ? err_sys(e, "cannot make '%s'", dir) : 0;
}

/* The steps after this one that only have to say that they do not apply: an attempt that is not
 * needed, what follows a rejection. A process for each costs more than all that they do; the recipe
 * sees that their verdicts are there. What goes wrong here is met again by the step itself. */
static void skip_ahead(const struct job *j)
{
	for (int s = (int)j->step + 1; s < STEP_PROMOTE; s++)
		if (make_folder(j->id, (enum step)s, NULL) || stage_skip(j->id, (enum step)s, NULL) != 1)
			break;
}

static int prepare(struct job *j, struct err *e)
{
	struct trial t;
	if (trial_target(j->target, j->id, &j->step, e) || trial_read(j->id, &t, e))
		return -1;
	memcpy(j->run, t.run, sizeof j->run);
	j->info = step_info(j->step);
	j->on_gpu = device_class_of(t.device) == DEVICE_CUDA && j->step != STEP_PROMOTE &&
		    strcmp(j->info->stage, "propose") != 0 && strcmp(j->info->stage, "guard") != 0;
	trial_free(&t);
	struct run r;
	if (run_read(j->run, &r, NULL) == 0) { /* a run that cannot be read is the stage's to report */
		int rc = runner_of(&r, j->step, j->runner, e);
		j->timed = run_num(&r, "max_minutes", 0) > 0 && !file_exists(j->target) &&
			   (j->step == STEP_A0_PROPOSE || j->step == STEP_PROMOTE);
		run_free(&r);
		if (rc)
			return -1;
	}
	return make_folder(j->id, j->step, e) || find_program(j, e) ? -1 : 0;
}

int main(int argc, char **argv)
{
	struct job j = {0};
	struct err e = {0};
	pid_t parent = getppid();
	prog_name(argv[0]);
	if (argc == 2 && strcmp(argv[1], "-h") == 0) {
		fputs(HELP, stdout);
		return fflush(stdout) ? EX_SYS : EX_DONE;
	}
	if (argc != 2)
		die(EX_BADUSE, "wants one target, like trials/0001/a0/guard.json; -h for help");
	die_with_parent(parent);
	j.target = argv[1];
	if (prepare(&j, &e))
		die_err(&e);
	int rc = run_step(&j, &e);
	put_line(&j);
	write_status(&j);
	if (!rc)
		skip_ahead(&j);
	int code = rc ? j.code : EX_DONE;
	verdict_in_free(&j.done);
	return code;
}
