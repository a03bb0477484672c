/*
 * engine_build.c - see engine_build.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_build.h"

#include "engine_files.h"
#include "file.h"
#include "spawn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROGRAM_MOST = 64 << 20, LOG_MOST = 16 << 10, CPU_S = 120 };
#define MEMORY (UINT64_C(4) << 30)

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct engine_file *)a)->name, ((const struct engine_file *)b)->name);
}

void engine_files_sha(struct engine_file *file, int n, char out[HASH_HEX])
{
	struct buf all = BUF_INIT;
	char sha[HASH_HEX];
	qsort(file, (size_t)n, sizeof *file, by_name);
	for (int i = 0; i < n; i++) {
		hash_hex(buf_str(&file[i].text), file[i].text.len, sha);
		buf_add(&all, file[i].name, strlen(file[i].name) + 1);
		buf_add(&all, sha, strlen(sha));
		buf_addc(&all, '\n');
	}
	hash_hex(buf_str(&all), all.len, out);
	buf_free(&all);
}

static int is_unit(const char *name)
{
	return strcmp(name + strlen(name) - 2, ".c") == 0;
}

/* The folder of the programs of this build, with a slash. */
static int bin_dir(char dir[PATH_MAX], struct err *e)
{
	if (spawn_tool("bench", dir, PATH_MAX, e))
		return -1;
	strrchr(dir, '/')[1] = '\0';
	return 0;
}

/* DIR/src: ours, for reading. DIR/out: the compiler's. */
static int folder_fill(const char *dir, const struct engine_file *file, int n, struct err *e)
{
	char path[PATH_MAX], from[2 * PATH_MAX], bin[PATH_MAX];
	static const char *const FOLDER[] = {"src", "src/kernels", "out"};
	chmod(dir, 0711); /* the compiler may be another user and has to pass through */
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, FOLDER[i]);
		if (mkdir(path, 0755) || chmod(path, i == 2 ? 0700 : 0755))
			return err_sys(e, "cannot make '%s'", path);
	}
	if (geteuid() == 0 && chown(path, CONFINE_UID, CONFINE_UID) && errno != EPERM)
		return err_sys(e, "cannot give '%s' to another user", path);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof path, "%s/src/%s", dir, file[i].name);
		if (file_write(path, buf_str(&file[i].text), file[i].text.len, 0644, e))
			return -1;
	}
	if (bin_dir(bin, e))
		return -1;
	snprintf(from, sizeof from, "%s../../stages/engine/engine_protocol.h", bin);
	snprintf(path, sizeof path, "%s/src/engine_protocol.h", dir);
	return file_copy(from, path, e);
}

static void refuse(struct engine_built *b, const struct spawn_result *r)
{
	const char *code = "compile.error", *text = "the compiler rejects the engine";
	if (r->timed_out || r->user_s + r->sys_s >= 0.5 * CPU_S)
		code = "compile.timeout", text = "the compiler used up its time";
	else if (r->max_rss >= MEMORY / 5 * 2)
		code = "compile.limit", text = "the compiler ran out of memory";
	else if (r->signal || r->code == 4) /* of gcc's internal errors */
		code = "compile.crash", text = "the compiler crashed";
	snprintf(b->code, sizeof b->code, "%s", code);
	snprintf(b->message, sizeof b->message, "%s", text);
}

/* The compiler's words without the folder it worked in, which is another each time. */
static void take_log(struct engine_built *b, const char *src, struct buf *said)
{
	const size_t n = strlen(src);
	const char *at = buf_str(said), *end = at + said->len, *hit;
	while ((hit = memmem(at, (size_t)(end - at), src, n))) {
		buf_add(&b->log, at, (size_t)(hit - at));
		at = hit + n + (hit + n < end && hit[n] == '/');
	}
	buf_add(&b->log, at, (size_t)(end - at));
	buf_free(said);
}

static int compile(const char *dir, const struct engine_file *file, int n, struct engine_built *b, struct err *e)
{
	const char *argv[ENGINE_FILES + 24] = {"gcc", "-o"};
	static char unit[ENGINE_FILES][PATH_MAX]; /* whole: inside, the working folder is another */
	char src[PATH_MAX - 80], out[PATH_MAX], program[PATH_MAX], tmp[PATH_MAX + 8], map[PATH_MAX + 32], include[PATH_MAX];
	int k = 3;
	snprintf(src, sizeof src, "%s/src", dir);
	snprintf(out, sizeof out, "%s/out", dir);
	snprintf(program, sizeof program, "%s/out/engine", dir);
	snprintf(tmp, sizeof tmp, "TMPDIR=%s", out);
	snprintf(map, sizeof map, "-ffile-prefix-map=%s=/src", src); /* the same bytes wherever this lies */
	snprintf(include, sizeof include, "-I%s", src);
	argv[2] = program;
	const char *const flags[] = {"-std=gnu11", "-O3", "-march=native", "-ffp-contract=fast", "-frandom-seed=0", map, include};
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
		argv[k++] = flags[i];
	for (int i = 0; i < n; i++)
		if (is_unit(file[i].name)) {
			snprintf(unit[i], sizeof unit[i], "%s/%s", src, file[i].name);
			argv[k++] = unit[i];
		}
	argv[k++] = "-lm";
	argv[k++] = "-lpthread";
	/* /usr holds no home and no secret; by their own names, so that there is one command line with namespaces and without */
	const struct confine_path paths[] = {
		{"/usr", NULL, CONFINE_EXEC, 0}, {"/lib", NULL, CONFINE_EXEC, 0}, {"/lib64", NULL, CONFINE_EXEC, 0},
		{"/bin", NULL, CONFINE_EXEC, 0}, {"/etc/ld.so.cache", NULL, CONFINE_READ, 0},
		{"/etc/alternatives", NULL, CONFINE_READ, 0}, {"/dev/null", NULL, CONFINE_WRITE, 0},
		{src, NULL, CONFINE_READ, 0}, {out, NULL, CONFINE_WRITE, 0},
	};
	const struct confine f = {
		.calls = CONFINE_CALLS_BOX, .paths = paths, .path_count = sizeof paths / sizeof *paths, .namespaces = CONFINE_NS_ALL,
		.limits = {.space = MEMORY, .cpu_s = CPU_S, .file_bytes = PROGRAM_MOST, .files = 256, .processes = 512,
			   .stack = 64u << 20},
	};
	const struct spawn_request q = {
		.argv = argv, .env = (const char *const[]){"PATH=" SPAWN_PATH, "LC_ALL=C", tmp, NULL}, .cwd = "/",
		.err = SPAWN_CAPTURE, .err_cap = LOG_MOST, .wall_s = 2.0 * CPU_S, .confine = &f,
	};
	struct spawn_result r;
	if (spawn_run(&q, &r, e))
		return -1;
	b->ok = r.code == 0;
	if (!b->ok)
		refuse(b, &r);
	snprintf(b->isolation, sizeof b->isolation, "%s", r.layers);
	take_log(b, src, &r.err);
	r.err = (struct buf)BUF_INIT;
	spawn_result_free(&r);
	return 0;
}

/* What the compiler left is not to be trusted to be a file. */
static int take(const char *dir, const char *key, struct engine_built *b, struct err *e)
{
	char from[2 * PATH_MAX], bin[PATH_MAX], folder[2 * PATH_MAX - 16];
	struct buf program = BUF_INIT;
	struct stat st;
	snprintf(from, sizeof from, "%s/out/engine", dir);
	if (lstat(from, &st) || !S_ISREG(st.st_mode))
		return err_set(e, EX_HARNESS, "the compiler made no program");
	if (bin_dir(bin, e))
		return -1;
	snprintf(folder, sizeof folder, "%s../engines/%s", bin, key);
	int rc = dir_make(folder, e) || file_read(from, PROGRAM_MOST, &program, e) ? -1 : 0;
	if (rc == 0) {
		snprintf(from, sizeof from, "%s/engine", folder);
		rc = file_write(from, buf_str(&program), program.len, 0755, e);
	}
	if (rc == 0 && !realpath(from, b->path))
		rc = err_sys(e, "cannot find '%s'", from);
	hash_hex(buf_str(&program), program.len, b->sha);
	buf_free(&program);
	return rc;
}

int engine_build(struct engine_file *file, int n, struct engine_built *b, struct err *e)
{
	char dir[PATH_MAX - 128], key[HASH_HEX];
	const char *t = getenv("TMPDIR");
	struct err other;
	*b = (struct engine_built){.code = "ok"};
	for (int i = 0; i < n; i++)
		if (!engine_file_name_ok(file[i].name))
			return err_set(e, EX_BADINPUT, "'%.60s' is no name of an engine's file", file[i].name);
	if (n < 1 || n > ENGINE_FILES)
		return err_set(e, EX_BADINPUT, "an engine of %d files", n);
	engine_files_sha(file, n, key);
	snprintf(dir, sizeof dir, "%s/ts-engine-XXXXXX", t && t[0] == '/' ? t : "/tmp");
	if (!mkdtemp(dir))
		return err_sys(e, "cannot make a folder for an engine");
	int rc = folder_fill(dir, file, n, e);
	if (rc == 0)
		rc = compile(dir, file, n, b, e);
	if (rc == 0 && b->ok)
		rc = take(dir, key, b, e);
	dir_remove(dir, &other);
	return rc;
}

void engine_built_free(struct engine_built *b)
{
	buf_free(&b->log);
}
