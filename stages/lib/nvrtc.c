/*
 * nvrtc.c - see nvrtc.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "nvrtc.h"

#include "buf.h"
#include "cubin.h"
#include "file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void *program;

/* NVRTC 12.4 and later */
#define CALLS(X) \
	X(Version, int, (int *, int *)) \
	X(CreateProgram, int, (program *, const char *, const char *, int, const char *const *, const char *const *)) \
	X(AddNameExpression, int, (program, const char *)) \
	X(CompileProgram, int, (program, int, const char *const *)) \
	X(GetLoweredName, int, (program, const char *, const char **)) \
	X(GetCUBINSize, int, (program, size_t *)) \
	X(GetCUBIN, int, (program, char *)) \
	X(GetPTXSize, int, (program, size_t *)) \
	X(GetPTX, int, (program, char *)) \
	X(GetProgramLogSize, int, (program, size_t *)) \
	X(GetProgramLog, int, (program, char *)) \
	X(GetErrorString, const char *, (int))

static struct {
#define X(name, type, args) type (*name) args;
	CALLS(X)
#undef X
} rtc;

enum { RTC_OK = 0, RTC_OUT_OF_MEMORY = 1, RTC_INVALID_OPTION = 5, RTC_COMPILATION = 6, RTC_NAMES = 10 };

static int open_library(const char *path, int *major, int *minor)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		return -1;
	}
#define X(name, type, args) \
	if (!(*(void **)&rtc.name = dlsym(lib, "nvrtc" #name))) \
		return -1;
	CALLS(X)
#undef X
	if (rtc.Version(major, minor))
		return -1;
	return *major > 12 || (*major == 12 && *minor >= 4) ? 0 : -1;
}

static void print_log(program p)
{
	size_t n = 0;
	if (rtc.GetProgramLogSize(p, &n) || n < 2 || n > (64u << 20))
		return;
	char *log = xcalloc(n + 1, 1);
	if (!rtc.GetProgramLog(p, log))
		fputs(log, stderr);
	free(log);
}

/* One output of the library into OUT.SUFFIX. */
static int save(program p, const char *out, const char *suffix, int (*size)(program, size_t *),
		int (*get)(program, char *))
{
	size_t n = 0;
	struct err e;
	if (size(p, &n) || n == 0 || n > (256u << 20))
		return -1;
	char *data = xcalloc(n + 1, 1), *path = xasprintf("%s.%s", out, suffix);
	int rc = get(p, data) ? -1 : 0;
	FILE *f = rc ? NULL : fopen(path, "wxe");
	/* a text comes with its NUL */
	size_t keep = n - (strcmp(suffix, "ptx") == 0 && data[n - 1] == '\0');
	if (!f || fwrite(data, 1, keep, f) != keep)
		rc = err_sys(&e, "cannot write '%s'", path);
	if (f && fclose(f))
		rc = -1;
	free(path);
	free(data);
	return rc;
}

static int results(program p, const char *out, char **names, int n, int major, int minor)
{
	printf("NVRTC %d.%d\n", major, minor);
	for (int i = 0; i < n; i++) {
		const char *symbol = NULL;
		if (rtc.GetLoweredName(p, names[i], &symbol) || !symbol)
			return -1;
		printf("%s\n", symbol);
	}
	if (save(p, out, "ptx", rtc.GetPTXSize, rtc.GetPTX))
		return -1;
	/* a compile to PTX alone (for its line table) has none */
	size_t size = 0;
	if (rtc.GetCUBINSize(p, &size) == 0 && size > 0)
		return save(p, out, "cubin", rtc.GetCUBINSize, rtc.GetCUBIN);
	return 0;
}

static int compile(program p, char **names, int n, char **options, int count)
{
	int rc = 0;
	for (int i = 0; i < n && rc == 0; i++)
		rc = rtc.AddNameExpression(p, names[i]);
	if (rc == 0)
		rc = rtc.CompileProgram(p, count, (const char *const *)options);
	print_log(p);
	if (rc == RTC_OK)
		return NVRTC_DONE;
	if (rc == RTC_COMPILATION)
		return NVRTC_REFUSED;
	fprintf(stderr, "NVRTC: %s\n", rtc.GetErrorString(rc));
	return rc == RTC_INVALID_OPTION ? NVRTC_ARCH : rc == RTC_NAMES ? NVRTC_REFUSED : NVRTC_BROKEN;
}

struct job {
	const char *library, *out, *source;
	char **names, **options;
	int name_count, option_count;
};

static int one(const struct job *j)
{
	program p;
	int major, minor;
	if (open_library(j->library, &major, &minor)) {
		fprintf(stderr, "cannot use '%s': NVRTC 12.4 or later is needed\n", j->library);
		return NVRTC_MISSING;
	}
	if (rtc.CreateProgram(&p, j->source, "kernel.cu", nvrtc_header_count, nvrtc_header_texts, nvrtc_header_names))
		return NVRTC_BROKEN;
	int rc = compile(p, j->names, j->name_count, j->options, j->option_count);
	if (rc == NVRTC_DONE && results(p, j->out, j->names, j->name_count, major, minor))
		rc = NVRTC_BROKEN;
	return fflush(stdout) ? NVRTC_SYS : rc;
}

/* The same source with line information, at the same time and in silence: whether it is wanted shows
 * only when the first compile is done, and to begin then would double the wait. */
static pid_t beside(const struct job *first, char **options, int count)
{
	struct job j = *first;
	j.out = "L";
	j.options = options;
	j.option_count = count;
	fflush(NULL);
	pid_t pid = fork();
	if (pid)
		return pid;
	int null = open("/dev/null", O_WRONLY);
	if (null < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
		_exit(NVRTC_SYS);
	_exit(one(&j));
}

/* Its result if the module reads a clock; else, or if the first compile failed, its end. */
static void beside_end(pid_t pid, const char *out, int rc)
{
	struct buf ptx = BUF_INIT;
	struct err e;
	char *path = xasprintf("%s.ptx", out);
	int wanted = rc == NVRTC_DONE && !file_read(path, 256u << 20, &ptx, &e) && ptx_clocks(buf_str(&ptx), ptx.len);
	if (!wanted)
		kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	buf_free(&ptx);
	free(path);
}

static int find_mark(int argc, char **argv, int from)
{
	while (from < argc && strcmp(argv[from], "--"))
		from++;
	return from;
}

int nvrtc_main(int argc, char **argv)
{
	struct buf source = BUF_INIT;
	struct err e;
	int end = find_mark(argc, argv, 4), second = end < argc ? find_mark(argc, argv, end + 1) : argc;
	if (end >= argc || file_read("source", 1u << 20, &source, &e))
		return NVRTC_SYS;
	/* results of earlier compiles, kept where a driver is installed, would be state between candidates */
	setenv("CUDA_CACHE_DISABLE", "1", 1);
	const struct job j = {.library = argv[2], .out = argv[3], .source = buf_str(&source), .names = argv + 4,
			      .options = argv + end + 1, .name_count = end - 4, .option_count = second - end - 1};
	pid_t pid = second < argc ? beside(&j, argv + second + 1, argc - second - 1) : -1;
	int rc = one(&j);
	if (pid > 0)
		beside_end(pid, argv[3], rc);
	buf_free(&source);
	return rc;
}
