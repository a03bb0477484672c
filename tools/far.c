/*
 * far.c - the far side of a runner: an archive in, one step of one trial done, an archive out.
 *
 * Reads standard input to its end, writes standard output once, at the end. Works in a folder of its own,
 * trials/.far/step.XXXXXX, which is a record with one trial in it and goes when the step is done; the
 * stage there is the very program that runs at home. Needs no network, no git, no key of the run: two keys
 * of this step come along (tools/runners/README.md). Timing lanes are those of the folder it is started in.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../stages/lib/buf.h"
#include "../stages/lib/device.h"
#include "../stages/lib/file.h"
#include "../stages/lib/gpu.h"
#include "../stages/lib/json.h"
#include "../stages/lib/jsonw.h"
#include "../stages/lib/lock.h"
#include "../stages/lib/runner.h"
#include "../stages/lib/selftest_record.h"
#include "../stages/lib/spawn.h"
#include "../stages/lib/tool.h"
#include "../stages/lib/verdict.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char HELP[] =
	"usage: far <archive >archive\n"
	"\n"
	"Do what a runner asks of this machine. Started by a runner in a folder of Touchstone, where\n"
	"`make all` was run; not for people. The archive (ustar) has request.json: what to do, and what\n"
	"that needs. Either to say which programs and which device are here, or to do a step of a trial.\n"
	"\n"
	"exit: 0 the archive holds the answer, 2 usage, 3 malformed request, 4 something is missing,\n"
	"      70 our fault, 75 try again, 111 a system call failed; then failure.json says more\n";

static const char FOLDER[] = RUNNER_FAR;

struct far {
	struct buf in, out;
	struct tar tar;
	cJSON *request;
	char root[PATH_MAX], scratch[TRIAL_PATH];
	const char *who;              /* whose fault a failure is: failure.h */
	char id[TRIAL_ID], run[TRIAL_ID];
	enum step step;
};

static int read_all(struct far *f, struct err *e)
{
	ssize_t n;
	do {
		if (f->in.len > RUNNER_MOST)
			return err_set(e, EX_BADINPUT, "the request is larger than 1 GiB");
		buf_room(&f->in, 1 << 20);
		n = read(0, f->in.data + f->in.len, 1 << 20);
		if (n > 0)
			f->in.len += (size_t)n;
	} while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 ? err_sys(e, "cannot read the request") : 0;
}

static int write_all(const struct buf *b)
{
	for (size_t at = 0; at < b->len;) {
		ssize_t n = write(1, b->data + at, b->len - at);
		if (n < 0 && errno != EINTR)
			return -1;
		at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int parse(struct far *f, struct err *e)
{
	if (tar_parse(f->in.data, f->in.len, &f->tar, e))
		return -1;
	const struct tar_file *q = tar_find(&f->tar, RUNNER_REQUEST);
	if (!q)
		return err_set(e, EX_BADINPUT, "the archive has no %s", RUNNER_REQUEST);
	f->request = json_parse(q->data, q->len, &JSON_OURS, RUNNER_REQUEST, e);
	if (f->request && strcmp(json_get_str(f->request, "schema", ""), RUNNER_SCHEMA) != 0)
		return err_set(e, EX_BADINPUT, "the request is of another version of this program");
	return f->request ? 0 : -1;
}

/* --- a folder of our own --- */

/* Held while its maker lives, on whichever machine that is: the folder may be shared. */
static int busy(const char *dir, int cmd)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[TRIAL_PATH + 8];
	snprintf(path, sizeof path, "%s/busy", dir);
	int fd = open(path, O_RDWR | O_CLOEXEC | (cmd == F_SETLK ? O_CREAT | O_EXCL : 0), 0600);
	if (fd < 0)
		return cmd == F_SETLK ? -1 : 0;
	int rc = fcntl(fd, cmd, &l);
	if (cmd == F_SETLK)
		return rc; /* stays open, and goes with us */
	close(fd);
	return rc == 0 && l.l_type != F_UNLCK;
}

/* Those of killed ones. */
static void sweep(void)
{
	DIR *d = opendir(FOLDER);
	struct dirent *f;
	while (d && (f = readdir(d))) {
		char path[TRIAL_PATH];
		if (strncmp(f->d_name, "step.", 5) != 0 || strlen(f->d_name) > 100)
			continue;
		snprintf(path, sizeof path, "%s/%.100s", FOLDER, f->d_name);
		if (!busy(path, F_GETLK))
			dir_remove(path, NULL);
	}
	if (d)
		closedir(d);
}

static int make_scratch(struct far *f, struct err *e)
{
	char path[TRIAL_PATH + 32], to[PATH_MAX + 32];
	struct lock lock;
	if (!getcwd(f->root, sizeof f->root))
		return err_sys(e, "cannot find my own folder");
	if (dir_make("trials/.lock", e) || dir_make(FOLDER, e) || lock_take(&lock, "far", LOCK_ALONE, 20000, e))
		return -1;
	sweep();
	snprintf(path, sizeof path, "%s/step.XXXXXX", FOLDER);
	int rc = !mkdtemp(path) || chmod(path, 0755) || busy(path, F_SETLK)
		? err_sys(e, "cannot make a folder in '%s'", FOLDER) : 0;
	lock_drop(&lock);
	if (rc)
		return -1;
	snprintf(f->scratch, sizeof f->scratch, "%.100s", path);
	snprintf(path, sizeof path, "%s/trials/.lock", f->scratch);
	if (dir_make(path, e))
		return -1;
	snprintf(path, sizeof path, "%s/trials/.lock/lanes", f->scratch);
	snprintf(to, sizeof to, "%s/trials/.lock", f->root);
	return symlink(to, path) ? err_sys(e, "cannot link '%s'", path) : 0;
}

/* Not synced: it goes at the end. The folders are fresh and ours, the names were checked. */
static int put(const struct far *f, const struct tar_file *t, struct err *e)
{
	char path[TRIAL_PATH + TAR_NAME], *slash;
	snprintf(path, sizeof path, "%s/%s", f->scratch, t->name);
	slash = strrchr(path, '/');
	*slash = '\0';
	if (dir_make(path, e))
		return -1;
	*slash = '/';
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, t->mode & 0755);
	if (fd < 0)
		return err_sys(e, "cannot create '%s'", path);
	size_t at = 0;
	for (ssize_t n; at < t->len; at += (size_t)n)
		if ((n = write(fd, t->data + at, t->len - at)) <= 0)
			break;
	return close(fd) || at < t->len ? err_sys(e, "cannot write '%s'", path) : 0;
}

static int unpack(struct far *f, struct err *e)
{
	for (size_t i = 0; i < f->tar.n; i++) {
		const struct tar_file *t = &f->tar.file[i];
		if (strcmp(t->name, RUNNER_REQUEST) == 0)
			continue;
		if (strncmp(t->name, "trials/", 7) != 0)
			return err_set(e, EX_BADINPUT, "'%s' is no part of a record", t->name);
		if (put(f, t, e))
			return -1;
	}
	return 0;
}

/* --- a step --- */

/* Whoever sent us here hung up: nobody wants the answer, and the GPU is for others. */
static int nobody_listens(void)
{
	struct pollfd p = {.fd = 1};
	return poll(&p, 1, 0) == 1 && (p.revents & (POLLERR | POLLHUP | POLLNVAL));
}

static void environment(const char **env)
{
	static const char *const names[] = {"PATH", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH",
		"CUDA_VISIBLE_DEVICES", "ASAN_OPTIONS", "UBSAN_OPTIONS", "CC", "CXX", "COMPUTE_SANITIZER",
		"TS_BIN", "TS_FAULT", "TS_FAULT_AT"};
	size_t n = 0;
	env[n++] = "LC_ALL=C";
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (getenv(names[i]))
			env[n++] = xasprintf("%s=%s", names[i], getenv(names[i]));
	env[n] = NULL;
}

static int program_of(const char *name, char path[PATH_MAX], struct err *e)
{
	const char *bin = getenv("TS_BIN");
	if (!bin || !*bin)
		return spawn_tool(name, path, PATH_MAX, e);
	snprintf(path, PATH_MAX, "%s/%s", bin, name);
	return 0;
}

/* What the stage noted of its failure, else how it ended. */
static void explain(struct far *f, const struct spawn_result *r, struct err *e)
{
	char path[TRIAL_PATH * 2], words[96];
	struct buf text = BUF_INIT;
	static char who[16];
	snprintf(path, sizeof path, "%s/trials/%s/failures.jsonl", f->scratch, f->id);
	f->who = r->outside || e->code == EX_AGAIN || e->code == EX_NOENV ? "world" : "ours";
	err_set(e, e->code, "%s: %s", step_info(f->step)->name, spawn_words(r, words));
	if (file_read(path, 1 << 20, &text, NULL) == 0 && text.len) {
		cJSON *j = json_parse(text.data, strcspn(text.data, "\n"), &JSON_OURS, "failure", NULL);
		snprintf(who, sizeof who, "%s", json_get_str(j, "who", f->who));
		f->who = who;
		if (j)
			err_set(e, e->code, "%s", json_get_str(j, "message", ""));
		cJSON_Delete(j);
	}
	buf_free(&text);
}

static int run_stage(struct far *f, const char *target, struct err *e)
{
	const struct step_info *info = step_info(f->step);
	char program[PATH_MAX];
	static const char *env[24]; /* its strings live as long as we do */
	if (program_of(info->program, program, e))
		return -1;
	const char *argv[] = {program, info->arg ? info->arg : target, info->arg ? target : NULL, NULL};
	environment(env);
	struct spawn_request q = {.argv = argv, .env = env, .cwd = f->scratch, .out = SPAWN_NULL, .err = SPAWN_KEEP,
				  .wall_s = 3600, .limits = {.file_bytes = (uint64_t)8 << 30}};
	struct spawn_proc proc;
	struct spawn_result r;
	int gone = 0, rc;
	if (spawn_start(&q, &proc, e))
		return -1;
	while ((rc = spawn_wait(&proc, 0.5, &r, e)) == 1)
		if (nobody_listens() && !gone++)
			spawn_kill(&proc);
	if (rc < 0)
		return -1;
	if (gone)
		rc = err_set(e, EX_AGAIN, "nobody waits for the answer any more");
	else if (r.code != 0) {
		int code = r.code;
		e->code = code == EX_BADUSE || code == EX_BADINPUT || code == EX_NOENV || code == EX_AGAIN ||
			  code == EX_SYS ? code : EX_HARNESS;
		explain(f, &r, e);
		rc = -1;
	}
	spawn_result_free(&r);
	return rc;
}

static int add(struct far *f, const char *file, struct err *e)
{
	char path[TRIAL_PATH * 2];
	struct buf b = BUF_INIT;
	struct stat st;
	snprintf(path, sizeof path, "%s/%s", f->scratch, file);
	int rc = file_read(path, RUNNER_MOST, &b, e);
	if (!rc)
		rc = stat(path, &st) ? err_sys(e, "cannot look at '%s'", path)
				     : tar_add(&f->out, file, buf_str(&b), b.len, st.st_mode & 0777, e);
	buf_free(&b);
	return rc;
}

/* A/A measurements that were made here, not those that came along. */
static int add_aa(struct far *f, struct err *e)
{
	char dir[TRIAL_PATH * 2], file[TRIAL_PATH];
	struct dirent *d;
	int rc = 0;
	snprintf(dir, sizeof dir, "%s/trials/runs/%s", f->scratch, f->run);
	DIR *list = opendir(dir);
	while (list && !rc && (d = readdir(list))) {
		run_path(file, f->run, runner_is_aa(d->d_name) ? d->d_name : "run.json");
		if (runner_is_aa(d->d_name) && !tar_find(&f->tar, file))
			rc = add(f, file, e);
	}
	if (list)
		closedir(list);
	return rc;
}

static int collect(struct far *f, const char *target, struct err *e)
{
	char path[TRIAL_PATH * 2], file[TRIAL_PATH];
	struct verdict_in in;
	struct buf text = BUF_INIT;
	snprintf(path, sizeof path, "%s/%s", f->scratch, target);
	int rc = file_read(path, JSON_OURS.bytes, &text, e) ||
		 verdict_parse(buf_str(&text), text.len, f->id, f->step, &in, e) ? -1 : 0;
	buf_free(&text);
	if (rc)
		return err_set(e, EX_HARNESS, "exit 0, but there is no verdict");
	rc = add(f, target, e);
	for (const cJSON *o = in.outputs->child; o && !rc; o = o->next) {
		trial_path(file, f->id, o->string);
		rc = add(f, file, e);
	}
	verdict_in_free(&in);
	return rc ? rc : add_aa(f, e);
}

static int do_step(struct far *f, struct err *e)
{
	const char *target = json_str(f->request, "target", RUNNER_REQUEST, e);
	const char *run = target ? json_str(f->request, "run", RUNNER_REQUEST, e) : NULL;
	if (!run || trial_target(target, f->id, &f->step, e))
		return -1;
	const char *stage = step_info(f->step)->stage;
	if (!run_name_ok(run) || strcmp(stage, "propose") == 0 || strcmp(stage, "promote") == 0)
		return err_set(e, EX_BADINPUT, "%s is not done on a runner", stage);
	snprintf(f->run, sizeof f->run, "%s", run);
	if (make_scratch(f, e) || unpack(f, e))
		return -1;
	runner_gpus_bring(&f->tar, f->run, f->scratch);
	int rc = run_stage(f, target, e);
	runner_gpus_keep(&f->tar, f->run, f->scratch);
	return rc ? rc : collect(f, target, e);
}

/* --- hello --- */

/* For resume: the run says which, so only that one is described. */
static int describe(struct far *f, const char *device, struct jsonw *w, struct err *e)
{
	char name[TRIAL_NAME], why[DEVICE_WHY], sha[HASH_HEX], path[TRIAL_PATH + 16];
	struct buf b = BUF_INIT;
	int gpus = 1, rc = 0;
	if (device_resolve(device, name, why, e))
		return -1;
	if (device_class_of(name) == DEVICE_CUDA) {
		snprintf(path, sizeof path, "%s/device.json", f->scratch);
		rc = gpu_pin(f->scratch, name, &gpus, sha, e) || file_read(path, 1 << 20, &b, e) ||
		     tar_add(&f->out, RUNNER_DEVICE, buf_str(&b), b.len, 0644, e) ? -1 : 0;
		buf_free(&b);
	}
	jw_str(w, "device", name);
	jw_str(w, "why", why);
	jw_int(w, "gpus", gpus);
	return rc;
}

static int do_hello(struct far *f, struct err *e)
{
	static const char *const tools[] = {"bench", "box", "checker", "child", "guard", "judge", "selftest", "tune",
		"unittest", "worker"};
	struct jsonw w = {0};
	jw_obj(&w, NULL);
	jw_str(&w, "schema", RUNNER_SCHEMA);
	runner_gpus_forget();
	int rc = make_scratch(f, e) || describe(f, json_get_str(f->request, "device", NULL), &w, e) ? -1 : 0;
	jw_obj(&w, "tools");
	for (size_t i = 0; i < sizeof tools / sizeof *tools && !rc; i++) {
		char path[PATH_MAX], sha[HASH_HEX];
		rc = program_of(tools[i], path, e) || tool_hash(path, sha, e) ? -1 : 0;
		if (!rc)
			jw_str(&w, tools[i], sha);
	}
	while (w.depth)
		jw_end(&w);
	if (!rc)
		rc = tar_add(&f->out, RUNNER_HELLO, w.out.data, w.out.len, 0644, e);
	jw_free(&w);
	return rc;
}

/* --- selftest --- */

/* The record is the answer, also when it says that the judge here is broken. */
static int do_selftest(struct far *f, struct err *e)
{
	const char *device = json_str(f->request, "device", RUNNER_REQUEST, e);
	char program[PATH_MAX];
	int code;
	if (!device || make_scratch(f, e) || program_of("selftest", program, e) ||
	    selftest_call(program, device, f->scratch, RUNNER_SELFTEST, &code, e))
		return -1;
	if (code == EX_DONE || code == EX_HARNESS)
		return add(f, RUNNER_SELFTEST, e);
	return err_set(e, code, "the judge's self-test could not be made here");
}

static void fail(struct far *f, const struct err *e)
{
	struct jsonw w = {0};
	buf_clear(&f->out);
	jw_obj(&w, NULL);
	jw_str(&w, "schema", RUNNER_SCHEMA);
	jw_str(&w, "who", f->who ? f->who : e->code == EX_AGAIN || e->code == EX_NOENV ? "world" : "ours");
	jw_str(&w, "message", e->text);
	jw_end(&w);
	tar_add(&f->out, RUNNER_FAILURE, w.out.data, w.out.len, 0644, NULL);
	jw_free(&w);
}

int main(int argc, char **argv)
{
	static struct far f;
	struct err e = {0};
	prog_name(argv[0]);
	if (argc == 2 && strcmp(argv[1], "-h") == 0) {
		fputs(HELP, stdout);
		return fflush(stdout) ? EX_SYS : EX_DONE;
	}
	if (argc != 1 || isatty(0))
		die(EX_BADUSE, "wants an archive on standard input; -h for help");
	signal(SIGPIPE, SIG_IGN);
	int rc = read_all(&f, &e) || parse(&f, &e) ? -1 : 0;
	const char *what = rc ? "" : json_get_str(f.request, "do", "");
	if (!rc)
		rc = strcmp(what, "step") == 0 ? do_step(&f, &e)
		   : strcmp(what, "hello") == 0 ? do_hello(&f, &e)
		   : strcmp(what, "selftest") == 0 ? do_selftest(&f, &e)
		   : err_set(&e, EX_BADINPUT, "the request wants '%.40s', which I cannot", what);
	if (*f.scratch && dir_remove(f.scratch, NULL))
		warn("cannot remove '%s'", f.scratch);
	if (rc)
		fail(&f, &e);
	tar_end(&f.out);
	if (write_all(&f.out))
		return EX_AGAIN;
	return rc ? (e.code ? e.code : EX_HARNESS) : EX_DONE;
}
