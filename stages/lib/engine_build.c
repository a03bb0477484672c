/*
 * engine_build.c - see engine_build.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_build.h"

#include "engine_build_part.h"
#include "engine_files.h"
#include "file.h"
#include "spawn.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROGRAM_MOST = 64 << 20, LOG_MOST = 16 << 10 };

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

/* The folder of the programs of this build, with a slash. */
static int bin_dir(char dir[PATH_MAX], struct err *e)
{
	if (spawn_tool("bench", dir, PATH_MAX, e))
		return -1;
	strrchr(dir, '/')[1] = '\0';
	return 0;
}

static int protocol_path(char path[2 * PATH_MAX], struct err *e)
{
	char bin[PATH_MAX];
	if (bin_dir(bin, e))
		return -1;
	snprintf(path, 2 * PATH_MAX, "%s../../stages/engine/engine_protocol.h", bin);
	return 0;
}

/* DIR/src: ours, for reading. DIR/out: the compiler's. */
static int folder_fill(const char *dir, const struct engine_file *file, int n, struct err *e)
{
	char path[PATH_MAX], from[2 * PATH_MAX];
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
	snprintf(path, sizeof path, "%s/src/engine_protocol.h", dir);
	return protocol_path(from, e) ? -1 : file_copy(from, path, e);
}

static void refuse(const struct engine_job *j, struct engine_built *b, const struct spawn_result *r)
{
	const char *code = "compile.error", *text = "the compiler rejects the engine";
	if (r->timed_out || r->user_s + r->sys_s >= 0.5 * (double)j->cpu_s)
		code = "compile.timeout", text = "the compiler used up its time";
	else if (r->max_rss >= j->memory / 5 * 2)
		code = "compile.limit", text = "the compiler ran out of memory";
	else if (r->signal || r->code == j->crash)
		code = "compile.crash", text = "the compiler crashed";
	snprintf(b->code, sizeof b->code, "%s", code);
	snprintf(b->message, sizeof b->message, "%s", text);
}

/* `said` without a folder and the slash behind it. */
static void without(struct buf *said, const char *folder)
{
	const size_t n = strlen(folder);
	struct buf out = BUF_INIT;
	const char *at = buf_str(said), *end = at + said->len, *hit;
	while ((hit = memmem(at, (size_t)(end - at), folder, n))) {
		buf_add(&out, at, (size_t)(hit - at));
		at = hit + n + (hit + n < end && hit[n] == '/');
	}
	buf_add(&out, at, (size_t)(end - at));
	buf_free(said);
	*said = out;
}

/* The compiler's words without the folders it worked in, which are others each time. */
static void take_log(struct engine_built *b, const struct engine_job *j, struct buf *said)
{
	without(said, j->src);
	without(said, j->out);
	b->log = *said;
	*said = (struct buf)BUF_INIT;
}

/* ---- C ---- */

#define SANITIZE_UNIT "sanitize.c" /* no name that an engine's file can have */

/* Its memory is its own until it ends, and a leak is told by looking at other processes' memory: not where it runs. Shadow
 * memory bears no limit on address space, so the runtime looks at what is resident, ten times a second. */
static int sanitize_unit(const char *dir, struct err *e)
{
	static const char text[] = "const char *__asan_default_options(void);\n"
				   "const char *__asan_default_options(void) { return \"detect_leaks=0:exitcode=77:"
				   "hard_rss_limit_mb=4096\"; }\n";
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/src/" SANITIZE_UNIT, dir);
	return file_write(path, text, sizeof text - 1, 0644, e);
}

static void job_c(struct engine_job *j, const struct engine_file *file, int n, int sanitize)
{
	static const char *const FLAGS[] = {"gcc", "-o", "OUT", "-std=gnu11", "-march=native", "-ffp-contract=fast",
					    "-frandom-seed=0"};
	/* unaligned vectors are no fault on the machines that these run on */
	static const char *const WATCHED[] = {"-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined",
					      "-fno-sanitize=alignment", "-fno-sanitize-recover=all", "-static-libasan",
					      "-static-libubsan"};
	for (size_t i = 0; i < sizeof FLAGS / sizeof *FLAGS; i++)
		engine_job_arg(j, "%s", i == 2 ? j->program : FLAGS[i]);
	for (size_t i = 0; sanitize && i < sizeof WATCHED / sizeof *WATCHED; i++)
		engine_job_arg(j, "%s", WATCHED[i]);
	if (sanitize)
		engine_job_arg(j, "%s/" SANITIZE_UNIT, j->src);
	else
		engine_job_arg(j, "-O3");
	engine_job_arg(j, "-ffile-prefix-map=%s=/src", j->src); /* the same bytes wherever this lies */
	engine_job_arg(j, "-I%s", j->src);
	engine_job_units(j, file, n, ".c");
	engine_job_arg(j, "-lm");
	engine_job_arg(j, "-lpthread");
	j->memory = UINT64_C(4) << 30;
	j->cpu_s = 120;
	j->crash = 4; /* of gcc's internal errors */
}

/* ---- one compile ---- */

void engine_job_arg(struct engine_job *j, const char *format, ...)
{
	va_list v;
	va_start(v, format);
	vsnprintf(j->text[j->argc], sizeof j->text[0], format, v);
	va_end(v);
	j->argv[j->argc] = j->text[j->argc];
	if (j->argc < ENGINE_JOB_ARGS - 1)
		j->argc++;
	j->argv[j->argc] = NULL;
}

/* Whole: inside, the working folder is another. */
void engine_job_units(struct engine_job *j, const struct engine_file *file, int n, const char *tail)
{
	for (int i = 0; i < n; i++)
		if (strcmp(file[i].name + strlen(file[i].name) - strlen(tail), tail) == 0)
			engine_job_arg(j, "%s/%s", j->src, file[i].name);
}

static int run_job(const struct engine_job *j, struct engine_built *b, struct err *e)
{
	char tmp[PATH_MAX + 8];
	/* /usr holds no home and no secret; by their own names, so that there is one command line with namespaces and without */
	const struct confine_path paths[] = {
		{"/usr", NULL, CONFINE_EXEC, 0}, {"/lib", NULL, CONFINE_EXEC, 0}, {"/lib64", NULL, CONFINE_EXEC, 0},
		{"/bin", NULL, CONFINE_EXEC, 0}, {"/etc/ld.so.cache", NULL, CONFINE_READ, 0},
		{"/etc/alternatives", NULL, CONFINE_READ, 0}, {"/dev/null", NULL, CONFINE_WRITE, 0},
		{j->src, NULL, CONFINE_READ, 0}, {j->out, NULL, CONFINE_WRITE, 0}, {j->tools, NULL, CONFINE_EXEC, 0},
	};
	const size_t n = sizeof paths / sizeof *paths;
	const struct confine f = {
		.calls = CONFINE_CALLS_BOX, .paths = paths, .path_count = j->tools[0] ? n : n - 1, .namespaces = CONFINE_NS_ALL,
		.limits = {.space = j->memory, .cpu_s = j->cpu_s, .file_bytes = PROGRAM_MOST, .files = 256, .processes = 512,
			   .stack = 64u << 20},
	};
	const struct spawn_request q = {
		.argv = j->argv, .env = (const char *const[]){"PATH=" SPAWN_PATH, "LC_ALL=C", tmp, NULL}, .cwd = "/",
		.out = SPAWN_NULL, .err = SPAWN_CAPTURE, .err_cap = LOG_MOST, .wall_s = 2.0 * (double)j->cpu_s, .confine = &f,
	};
	struct spawn_result r;
	snprintf(tmp, sizeof tmp, "TMPDIR=%s", j->out);
	if (spawn_run(&q, &r, e))
		return -1;
	b->ok = r.code == 0;
	if (!b->ok)
		refuse(j, b, &r);
	snprintf(b->isolation, sizeof b->isolation, "%s", r.layers);
	take_log(b, j, &r.err);
	spawn_result_free(&r);
	return 0;
}

static int compile(const char *dir, const struct engine_file *file, int n, const struct toolkit *t, const char *arch, int sanitize,
		   struct engine_built *b, struct err *e)
{
	static struct engine_job j;
	memset(&j, 0, sizeof j);
	snprintf(j.src, sizeof j.src, "%s/src", dir);
	snprintf(j.out, sizeof j.out, "%s/out", dir);
	snprintf(j.program, sizeof j.program, "%s/out/engine", dir);
	if (t)
		engine_job_cuda(&j, t, arch, file, n);
	else
		job_c(&j, file, n, sanitize);
	return run_job(&j, b, e);
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

/* BUILD/engines/KEY of a program that is there, whole and by its hash. 1, or 0. */
static int known(const char *key, struct engine_built *b)
{
	char bin[PATH_MAX], path[2 * PATH_MAX];
	struct buf sha = BUF_INIT;
	struct err none;
	if (bin_dir(bin, &none))
		return 0;
	snprintf(path, sizeof path, "%s../engines/%s/sha256", bin, key);
	int yes = file_exists(path) && file_read(path, 4096, &sha, &none) == 0 && sha.len > HASH_HEX;
	snprintf(path, sizeof path, "%s../engines/%s/engine", bin, key);
	yes = yes && realpath(path, b->path) && hash_file(b->path, b->sha, &none) == 0 &&
	      strncmp(buf_str(&sha), b->sha, HASH_HEX - 1) == 0;
	if (yes)
		snprintf(b->isolation, sizeof b->isolation, "%.*s", (int)(sha.len - HASH_HEX), buf_str(&sha) + HASH_HEX);
	else
		b->path[0] = '\0';
	buf_free(&sha);
	return yes;
}

/* Last: who finds it finds the program it is of. */
static int remember(const struct engine_built *b, struct err *e)
{
	char *path = xasprintf("%.*s/sha256", (int)(strrchr(b->path, '/') - b->path), b->path);
	char *text = xasprintf("%s %s", b->sha, b->isolation);
	const int rc = file_write(path, text, strlen(text), 0644, e);
	free(path);
	free(text);
	return rc;
}

static int make(struct engine_file *file, int n, const struct toolkit *t, const char *arch, int sanitize, const char *key,
		struct engine_built *b, struct err *e)
{
	char dir[PATH_MAX - 128];
	const char *tmp = getenv("TMPDIR");
	struct err other;
	snprintf(dir, sizeof dir, "%s/ts-engine-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
	if (!mkdtemp(dir))
		return err_sys(e, "cannot make a folder for an engine");
	int rc = folder_fill(dir, file, n, e);
	if (rc == 0 && sanitize)
		rc = sanitize_unit(dir, e);
	if (rc == 0)
		rc = compile(dir, file, n, t, arch, sanitize, b, e);
	if (rc == 0 && b->ok)
		rc = take(dir, key, b, e);
	dir_remove(dir, &other);
	return rc;
}

/* *b empty, and the candidate's hash. */
static int begin(struct engine_file *file, int n, char key[HASH_HEX], struct engine_built *b, struct err *e)
{
	*b = (struct engine_built){.code = "ok"};
	for (int i = 0; i < n; i++)
		if (!engine_file_name_ok(file[i].name))
			return err_set(e, EX_BADINPUT, "'%.60s' is no name of an engine's file", file[i].name);
	if (n < 1 || n > ENGINE_FILES)
		return err_set(e, EX_BADINPUT, "an engine of %d files", n);
	engine_files_sha(file, n, key);
	return 0;
}

int engine_build_sanitized(struct engine_file *file, int n, struct engine_built *b, struct err *e)
{
	char key[HASH_HEX], name[HASH_HEX + 16];
	if (begin(file, n, key, b, e))
		return -1;
	snprintf(name, sizeof name, "%s-sanitize", key);
	return make(file, n, NULL, NULL, 1, name, b, e);
}

int engine_build(struct engine_file *file, int n, const char *arch, struct engine_built *b, struct err *e)
{
	char key[HASH_HEX], protocol[2 * PATH_MAX];
	struct toolkit t;
	if (begin(file, n, key, b, e))
		return -1;
	if (!arch)
		return make(file, n, NULL, NULL, 0, key, b, e);
	if (toolkit_find(&t, e) || protocol_path(protocol, e) || engine_cuda_key(&t, arch, protocol, key, e))
		return -1;
	if (known(key, b)) {
		b->ok = 1;
		return 0;
	}
	int rc = make(file, n, &t, arch, 0, key, b, e);
	return rc == 0 && b->ok ? remember(b, e) : rc;
}

void engine_built_free(struct engine_built *b)
{
	buf_free(&b->log);
}
