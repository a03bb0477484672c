/*
 * box - the only program that runs a compiler.
 *
 * Reads a request (JSON) on stdin and source text on descriptor 3; confines itself; compiles,
 * scans and links as stages/emu/build_plan.h says; writes a result (JSON) to descriptor 4 and
 * the artefact to descriptor 5 (its PTX to 6). Sees the toolchain and DIR/kit read-only, a private folder, and
 * nothing else: no repository, home, network or other process. In mode "cuda" it compiles with NVRTC
 * (nvrtc.h) and gates what came out (box_cuda.c). Never runs what it compiled
 * (nothing it writes can be executed) and never decides from what the compiler prints.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../emu/build_plan.h"
#include "box_part.h"
#include "confine.h"
#include "json.h"
#include "nvrtc.h"
#include "source.h"
#include "spawn.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
	"usage: box DIR <request.json 3<source 4>result 5>artefact\n"
	"\n"
	"Compile untrusted text in confinement. Started by guard and others through box_call.h.\n"
	"DIR/kit holds the emulation headers and run time, DIR/tmp is the box's own.\n"
	"In mode \"cuda\" it opens NVRTC, in a process of its own, and reads the toolkit's folder instead.\n"
	"Exit: 0 result written, 2 usage, 3 bad request, 4 no compiler, 70 our fault, 111 system call failed.\n";

enum { LIST_MAX = 256, LOG_CAP = 256 << 10 };

struct box {
	cJSON *request;
	struct buf source;
	enum emu_mode mode;
	int runtime;       /* 1: compile the run time, not a candidate */
	int cuda;          /* 1: by NVRTC; `runtime` and `mode` mean nothing */
	struct buf log;    /* of the last step that ended well */
	int code;          /* exit code of the last step */
	int fast_math;
	int64_t memory, cpu_s;
	char kit[PATH_MAX], tmp[PATH_MAX];
	const char *entries[LIST_MAX];
	size_t entry_count;
	char *flags[LIST_MAX + 8]; /* -DNAME=value, then flags that make builds repeatable */
	size_t flag_count, macro_count;
	double started;
	struct box_result r;
};

/* --- request --- */

static int mode_find(struct box *b, const char *mode, struct err *e)
{
	b->cuda = strcmp(mode, "cuda") == 0;
	if (b->cuda)
		return 0;
	b->runtime = strncmp(mode, BOX_RUNTIME, strlen(BOX_RUNTIME)) == 0;
	const char *name = mode + (b->runtime ? strlen(BOX_RUNTIME) : 4);
	for (int i = 0; i < EMU_MODES; i++)
		if ((b->runtime || strncmp(mode, "emu-", 4) == 0) && strcmp(name, emu_mode_names[i]) == 0) {
			b->mode = (enum emu_mode)i;
			return 0;
		}
	return err_set(e, EX_BADINPUT, "request: no such mode '%.40s'", mode);
}

static int lists_read(struct box *b, struct err *e)
{
	const cJSON *entries = json_arr(b->request, "entries", "request", e), *x;
	const cJSON *macros = entries ? json_arr(b->request, "macros", "request", e) : NULL;
	if (!macros)
		return -1;
	cJSON_ArrayForEach(x, entries) {
		if (!cJSON_IsString(x) || !box_plain(x->valuestring, ":<>, ") || b->entry_count == LIST_MAX)
			return err_set(e, EX_BADINPUT, "request: bad entry");
		b->entries[b->entry_count++] = x->valuestring;
	}
	cJSON_ArrayForEach(x, macros) {
		if (!cJSON_IsString(x) || !box_plain(x->valuestring, "=-") || b->flag_count == LIST_MAX)
			return err_set(e, EX_BADINPUT, "request: bad macro");
		b->flags[b->flag_count++] = xasprintf("-D%s", x->valuestring);
	}
	return 0;
}

static int request_read(struct box *b, struct err *e)
{
	const struct json_limits lim = {.bytes = 1 << 20, .depth = 4};
	struct buf text = BUF_INIT;
	if (box_fd_read(0, lim.bytes, &text, e) || box_fd_read(BOX_FD_SOURCE, BOX_SOURCE_MAX, &b->source, e))
		return -1;
	b->request = json_parse(buf_str(&text), text.len, &lim, "request", e);
	buf_free(&text);
	if (!b->request)
		return -1;
	const char *mode = json_str(b->request, "mode", "request", e);
	if (!mode || mode_find(b, mode, e) || json_bool(b->request, "fast_math", &b->fast_math, "request", e) ||
	    json_int(b->request, "memory", &b->memory, "request", e) ||
	    json_int(b->request, "cpu_s", &b->cpu_s, "request", e))
		return -1;
	return lists_read(b, e);
}

/* --- confinement --- */

static int confine(struct box *b, const char *dir, struct err *e)
{
	char kit[PATH_MAX], tmp[PATH_MAX];
	if (snprintf(kit, sizeof kit, "%s/kit", dir) >= PATH_MAX ||
	    snprintf(tmp, sizeof tmp, "%s/tmp", dir) >= PATH_MAX)
		return err_set(e, EX_BADUSE, "path too long");
	/* /usr holds no home and no secret; the rest is what the loader and the drivers look at */
	struct confine_path paths[9 + LIST_MAX] = {
		{"/usr", NULL, CONFINE_EXEC, 0},   {"/lib", NULL, CONFINE_EXEC, 0},
		{"/lib64", NULL, CONFINE_EXEC, 0}, {"/bin", NULL, CONFINE_EXEC, 0},
		{"/etc/ld.so.cache", NULL, CONFINE_READ, 0}, {"/etc/alternatives", NULL, CONFINE_READ, 0},
		{"/dev/null", NULL, CONFINE_WRITE, 0}, {kit, "/kit", CONFINE_EXEC, 0},
		{tmp, "/tmp", CONFINE_PRIVATE, BOX_TMP_BYTES},
	};
	size_t n = 9;
	/* a toolkit outside /usr, and the header trees that the spec declares */
	const cJSON *x, *more = b->cuda ? json_arr(b->request, "read", "request", e) : NULL;
	if (b->cuda && !more)
		return -1;
	cJSON_ArrayForEach(x, more)
		if (n < 9 + LIST_MAX && cJSON_IsString(x) && strcmp(x->valuestring, "/usr") != 0 &&
		    strncmp(x->valuestring, "/usr/", 5) != 0)
			paths[n++] = (struct confine_path){x->valuestring, NULL, CONFINE_EXEC, 0};
	const struct confine c = {
		.calls = CONFINE_CALLS_BOX, .paths = paths, .path_count = n,
		.limits = {.files = 256, .file_bytes = BOX_TMP_BYTES, .processes = 512},
	};
	struct confine_report r;
	if (confine_apply(&c, confine_ns_parse(getenv("TS_NAMESPACES")), &r, e))
		return -1;
	snprintf(b->r.isolation, sizeof b->r.isolation, "%s", r.layers);
	snprintf(b->kit, sizeof b->kit, "%s", r.view ? "/kit" : kit);
	snprintf(b->tmp, sizeof b->tmp, "%s", r.view ? "/tmp" : tmp);
	return chdir(b->tmp) ? err_sys(e, "cannot enter '%s'", b->tmp) : 0;
}

/* The same text must give the same bytes wherever the folder lies. */
static void flags_finish(struct box *b)
{
	b->flags[b->flag_count++] = xasprintf("-ffile-prefix-map=%s=/tmp", b->tmp);
	b->flags[b->flag_count++] = xasprintf("-ffile-prefix-map=%s=/kit", b->kit);
	b->flags[b->flag_count++] = xstrdup("-frandom-seed=0");
	/* no file names made up by the driver in messages */
	b->flags[b->flag_count++] = xstrdup("-pipe");
	b->flags[b->flag_count] = NULL;
}

/* --- steps --- */

static void refuse(struct box *b, const char *code, const char *message, const struct buf *log)
{
	b->r.ok = 0;
	snprintf(b->r.code, sizeof b->r.code, "%s", code);
	snprintf(b->r.message, sizeof b->r.message, "%s", message);
	if (log)
		box_log_scrub(buf_str(log), log->len, b->r.log);
}

/* Why a tool failed, from what it used and not from what it printed (threats.md P07). */
static void refuse_step(struct box *b, const struct spawn_result *s, const char *what)
{
	char text[200];
	/* the limit counts ticks, which on a busy machine run ahead of the time reported */
	if (s->user_s + s->sys_s >= 0.5 * (double)b->cpu_s)
		refuse(b, "compile.timeout", "the compiler used up its processor time", &s->err);
	else if (s->max_rss >= (uint64_t)b->memory / 5 * 2)
		refuse(b, "compile.limit", "the compiler ran out of memory", &s->err);
	else if (s->signal || s->code == 4) /* of gcc's internal errors, and NVRTC_BROKEN */
		refuse(b, "compile.crash", "the compiler crashed", &s->err);
	else {
		snprintf(text, sizeof text, "%s fails", what);
		refuse(b, "compile.error", text, &s->err);
	}
}

/* In a sanitizer build our own tool, elfscan, needs address space for its shadow. */
#ifdef __SANITIZE_ADDRESS__
#define STEP_SPACE(tool, memory) ((tool)[0] == '/' ? 0 : (memory))
#else
#define STEP_SPACE(tool, memory) (memory)
#endif

/* 0: done, stdout in *out if wanted; 1: it failed, the result says so; -1: error. */
static int step(struct box *b, const char *const *argv, const char *what, struct buf *out, struct err *e)
{
	struct spawn_result s;
	char tmp[PATH_MAX + 8];
	snprintf(tmp, sizeof tmp, "TMPDIR=%s", b->tmp);
	const struct spawn_request q = {
		.argv = argv, .env = (const char *const[]){"PATH=" SPAWN_PATH, "LC_ALL=C", tmp, NULL},
		.out = SPAWN_CAPTURE, .out_cap = BOX_RESULT_MAX / 2, .err = SPAWN_CAPTURE, .err_cap = LOG_CAP,
		.limits = {.space = STEP_SPACE(argv[0], (uint64_t)b->memory), .cpu_s = (uint64_t)b->cpu_s,
			   .stack = 64u << 20 /* deep templates recurse */},
		.flags = SPAWN_SAME_SESSION};
	if (spawn_run(&q, &s, e))
		return -1;
	int rc = 0;
	b->code = s.code;
	if (s.signal || s.code != 0) {
		refuse_step(b, &s, what);
		rc = 1;
	} else {
		buf_clear(&b->log);
		buf_add(&b->log, s.err.data, s.err.len);
		if (out)
			buf_add(out, s.out.data, s.out.len);
	}
	spawn_result_free(&s);
	return rc;
}

static int version_ask(struct box *b, struct err *e)
{
	struct buf out = BUF_INIT;
	int rc = step(b, (const char *const[]){"g++", "--version", NULL}, "g++ --version", &out, e);
	if (rc > 0)
		rc = err_set(e, EX_NOENV, "g++ does not tell its version");
	snprintf(b->r.compiler, sizeof b->r.compiler, "%.*s", (int)strcspn(buf_str(&out), "\n"), buf_str(&out));
	buf_free(&out);
	return rc;
}

static int file_give(const char *name, struct err *e)
{
	struct buf data = BUF_INIT;
	int rc = box_file_read(name, &data, e);
	if (rc == 0)
		rc = box_fd_give(BOX_FD_ARTEFACT, data.data, data.len, e);
	buf_free(&data);
	return rc;
}

/* --- a candidate --- */

static int wrapper_write(const struct box *b, struct err *e)
{
	FILE *f = fopen("wrapper.cu.cc", "wxe");
	if (!f)
		return err_sys(e, "cannot create the wrapper");
	int rc = emu_plan_wrapper(f, buf_str(&b->source), b->source.len, b->entries, b->entry_count);
	if (fclose(f) || rc)
		return err_sys(e, "cannot write the wrapper");
	return 0;
}

static int scan(struct box *b, struct err *e)
{
	const struct json_limits lim = {.bytes = BOX_RESULT_MAX, .depth = 6};
	char tool[PATH_MAX + 16];
	struct buf out = BUF_INIT;
	snprintf(tool, sizeof tool, "%s/elfscan", b->kit);
	int rc = step(b, (const char *const[]){tool, "--patch", "kernel.o", NULL}, "elfscan", &out, e);
	if (rc == 0) {
		b->r.facts = json_parse(buf_str(&out), out.len, &lim, "elfscan", e);
		rc = b->r.facts ? 0 : -1;
	}
	buf_free(&out);
	return rc ? rc : b->mode == EMU_MODE_FAST ? box_gate(&b->r) : 0;
}

/* The text once more as the preprocessor leaves it: a word put together from pieces is whole now. */
static int expanded(struct box *b, struct emu_plan p, struct err *e)
{
	const char *argv[EMU_PLAN_MAX];
	struct buf text = BUF_INIT;
	struct source_finding f;
	p.object = "expanded";
	int n = emu_plan_compile(&p, argv);
	for (int i = 0; i < n; i++)
		if (strcmp(argv[i], "-c") == 0)
			argv[i] = "-E";
	int rc = step(b, argv, "the preprocessor", NULL, e);
	if (rc == 0 && box_file_read("expanded", &text, e))
		rc = -1;
	if (rc == 0 && source_expanded(text.data, text.len, &f)) {
		refuse(b, f.code, f.message, NULL);
		rc = 1;
	}
	buf_free(&text);
	return rc;
}

static int candidate(struct box *b, struct err *e)
{
	const char *argv[EMU_PLAN_MAX];
	static char names[32][512];
	char include[PATH_MAX + 16], archive[PATH_MAX + 16];
	snprintf(include, sizeof include, "%s/include", b->kit);
	snprintf(archive, sizeof archive, "%s/" BOX_RUNTIME_FILE, b->kit);
	const struct emu_plan p = {
		.cxx = "g++", .cc = "gcc", .mode = b->mode, .fast_math = b->fast_math, .include_dir = include,
		.defines = (const char *const *)b->flags, .runtime_dir = "rt", .source = "wrapper.cu.cc",
		.object = "kernel.o", .image = "image"};
	if (wrapper_write(b, e))
		return -1;
	if (!emu_plan_compile(&p, argv))
		return err_set(e, EX_BADINPUT, "too many macros for one command line");
	int rc = b->mode == EMU_MODE_FAST ? expanded(b, p, e) : 0;
	if (rc == 0)
		rc = step(b, argv, "the compiler", NULL, e);
	if (rc == 0)
		rc = scan(b, e);
	if (rc)
		return rc;
	if (mkdir("rt", 0700))
		return err_sys(e, "cannot make a folder");
	rc = step(b, (const char *const[]){"ar", "x", "--output=rt", archive, NULL}, "ar", NULL, e);
	if (rc == 0 && !emu_plan_link(&p, argv, names, sizeof names / sizeof *names))
		rc = err_set(e, EX_HARNESS, "the link command does not fit");
	if (rc == 0)
		rc = step(b, argv, "the linker", NULL, e);
	return rc ? rc : file_give("image", e);
}

/* --- the run time --- */

static int one_object(struct box *b, const char *name, char object[80], struct err *e)
{
	const char *argv[EMU_PLAN_MAX];
	char source[PATH_MAX + 80];
	snprintf(source, sizeof source, "%s/rt/%s.c", b->kit, name);
	snprintf(object, 80, "%s.o", name);
	const struct emu_plan p = {.cxx = "g++", .cc = "gcc", .mode = b->mode, .source = source, .object = object};
	int n = emu_plan_runtime(&p, argv);
	for (size_t i = 0; n && i < b->flag_count; i++)
		argv[n++] = b->flags[i];
	argv[n] = NULL;
	return n ? step(b, argv, name, NULL, e) : err_set(e, EX_HARNESS, "a run time command does not fit");
}

static int runtime(struct box *b, struct err *e)
{
	static const char *const ends[] = {"tls_begin", "tls_end", NULL};
	const char *const *lists[] = {ends, emu_runtime_common, emu_runtime_mode[b->mode]};
	static char objects[32][80];
	const char *ar[40] = {"ar", "rcD", "runtime"};
	int n = 3;
	for (size_t l = 0; l < 3; l++)
		for (const char *const *s = lists[l]; *s && n < 35; s++) {
			int rc = one_object(b, *s, objects[n - 3], e);
			if (rc)
				return rc;
			ar[n] = objects[n - 3];
			n++;
		}
	int rc = step(b, ar, "ar", NULL, e);
	return rc ? rc : file_give("runtime", e);
}

/* --- a GPU --- */

/* One compile: A.cubin and A.ptx; `lines`: with line information beside it, L.ptx. */
static int nvrtc(struct box *b, const char *name, const char *options, int lines, struct buf *out, struct err *e)
{
	const char *argv[3 * LIST_MAX + 256];
	char self[PATH_MAX + 8];
	const char *library = json_str(b->request, "library", "request", e);
	int n = 0;
	if (!library)
		return -1;
	snprintf(self, sizeof self, "%s/box", b->kit);
	argv[n++] = self;
	argv[n++] = "--nvrtc";
	argv[n++] = library;
	argv[n++] = name;
	for (size_t i = 0; i < b->entry_count; i++)
		argv[n++] = b->entries[i];
	n = box_cuda_options(b->request, options, b->flags, b->macro_count, argv, n, e);
	if (n >= 0 && lines)
		n = box_cuda_options(b->request, "line_options", b->flags, b->macro_count, argv, n, e);
	if (n < 0)
		return -1;
	argv[n] = NULL;
	int rc = step(b, argv, "the compiler", out, e);
	if (rc > 0 && b->code == NVRTC_MISSING)
		return err_set(e, EX_NOENV, "cannot use '%s': NVRTC 12.4 or later is needed", library);
	if (rc > 0 && b->code == NVRTC_ARCH)
		return err_set(e, EX_NOENV, "this CUDA toolkit refuses our options or does not know this GPU: %.200s", b->r.log);
	return rc;
}

static int cuda(struct box *b, struct err *e)
{
	struct buf out = BUF_INIT, cubin = BUF_INIT, ptx = BUF_INIT, lines = BUF_INIT, log = BUF_INIT;
	int trusted, rc = json_bool(b->request, "trusted", &trusted, "request", e);
	FILE *f = rc ? NULL : fopen("source", "wxe");
	if (rc || !f || fwrite(b->source.data, 1, b->source.len, f) != b->source.len || fclose(f))
		return rc ? rc : err_sys(e, "cannot write the source");
	rc = nvrtc(b, "A", "options", !trusted && box_cuda_may_wait(&b->source), &out, e);
	if (rc == 0)
		rc = box_file_read("A.cubin", &cubin, e) || box_file_read("A.ptx", &ptx, e) ? -1 : 0;
	buf_add(&log, b->log.data, b->log.len);
	if (rc == 0 && !trusted && box_cuda_clocks(&ptx)) {
		rc = access("L.ptx", R_OK) ? nvrtc(b, "L", "line_options", 0, NULL, e) : 0;
		if (rc == 0)
			rc = box_file_read("L.ptx", &lines, e);
	}
	if (rc == 0)
		rc = box_cuda_finish(&cubin, &ptx, &lines, &out, &log, b->entries, b->entry_count, trusted, &b->r, e);
	if (rc == 0)
		rc = box_fd_give(BOX_FD_ARTEFACT, cubin.data, cubin.len, e) || box_fd_give(BOX_FD_PTX, ptx.data, ptx.len, e) ? -1 : 0;
	if (log.len)
		box_cuda_log(&log, b->r.log);
	struct buf *all[] = {&out, &cubin, &ptx, &lines, &log};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		buf_free(all[i]);
	return rc;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int work(struct box *b, const char *dir, struct err *e)
{
	b->started = now();
	if (request_read(b, e) || confine(b, dir, e))
		return -1;
	b->macro_count = b->flag_count;
	if (!b->cuda)
		flags_finish(b);
	if (!b->cuda && version_ask(b, e))
		return -1;
	int rc = b->cuda ? cuda(b, e) : b->runtime ? runtime(b, e) : candidate(b, e);
	if (rc < 0)
		return -1;
	if (rc == 0) {
		b->r.ok = 1;
		snprintf(b->r.code, sizeof b->r.code, "ok");
	}
	b->r.seconds = now() - b->started;
	struct buf out = BUF_INIT;
	box_result_json(&b->r, &out);
	rc = box_fd_give(BOX_FD_RESULT, out.data, out.len, e);
	buf_free(&out);
	return rc;
}

static void box_free(struct box *b)
{
	cJSON_Delete(b->request);
	buf_free(&b->source);
	buf_free(&b->log);
	for (size_t i = 0; i < b->flag_count; i++)
		free(b->flags[i]);
	box_result_free(&b->r);
}

#ifdef __SANITIZE_ADDRESS__
/* The leak check traces its own process by /proc: both are out of reach in here. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

int main(int argc, char **argv)
{
	static struct box b;
	struct err e = {0};
	prog_name(argv[0]);
	if (argc == 2 && strcmp(argv[1], "-h") == 0) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc > 4 && strcmp(argv[1], "--nvrtc") == 0)
		return nvrtc_main(argc, argv);
	if (argc != 2 || argv[1][0] != '/') {
		fputs(usage, stderr);
		return EX_BADUSE;
	}
	int rc = work(&b, argv[1], &e);
	box_free(&b);
	if (rc)
		die_err(&e);
	return 0;
}
