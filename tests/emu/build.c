/* Builds one emulated kernel, or the runtime of a mode, by the commands of build_plan.h.
 *
 * SPDX-License-Identifier: MIT
 *
 *     build runtime EMU_DIR MODE OUT_DIR
 *     build image EMU_DIR MODE RUNTIME_DIR KERNEL.cu OUT_PREFIX ENTRY...
 *
 * The second writes OUT_PREFIX.cc, .o, .json (what elfscan says) and the image OUT_PREFIX.
 * ELFSCAN names the elfscan program. Exit codes: 0 done, 1 the candidate does not compile or
 * link, 2 usage, 111 system call failed.
 */
#include "../../stages/emu/build_plan.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int run(const char **argv, const char *to)
{
	pid_t pid = fork();
	if (pid < 0)
		exit(111);
	if (!pid) {
		if (to) {
			int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0644);
			if (fd < 0 || dup2(fd, 1) < 0)
				_exit(111);
		}
		execvp(argv[0], (char *const *)(size_t)argv);
		_exit(127);
	}
	int status;
	if (waitpid(pid, &status, 0) != pid)
		exit(111);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int mode_of(const char *name)
{
	for (int m = 0; m < EMU_MODES; m++)
		if (!strcmp(name, emu_mode_names[m]))
			return m;
	fprintf(stderr, "build: unknown mode '%s'\n", name);
	exit(2);
}

static const char *env_or(const char *name, const char *other)
{
	const char *v = getenv(name);
	return v && *v ? v : other;
}

static int runtime(struct emu_plan p, const char *emu, const char *out)
{
	static const char *const ends[] = {"tls_begin", "tls_end", NULL};
	const char *const *lists[] = {ends, emu_runtime_common, emu_runtime_mode[p.mode]};
	for (int l = 0; l < 3; l++)
		for (const char *const *s = lists[l]; *s; s++) {
			char source[512], object[512];
			const char *argv[EMU_PLAN_MAX];
			snprintf(source, sizeof source, "%s/rt/%s.c", emu, *s);
			snprintf(object, sizeof object, "%s/%s.o", out, *s);
			p.source = source;
			p.object = object;
			if (!emu_plan_runtime(&p, argv) || run(argv, NULL))
				return 1;
		}
	return 0;
}

static int image(struct emu_plan p, const char *cu, const char *prefix, const char *const *entries,
		 size_t n)
{
	static char text[1 << 20], paths[24][512];
	char source[512], object[512], json[512];
	const char *argv[EMU_PLAN_MAX];
	FILE *in = fopen(cu, "r");
	if (!in)
		return 111;
	size_t bytes = fread(text, 1, sizeof text, in);
	fclose(in);
	snprintf(source, sizeof source, "%s.cc", prefix);
	snprintf(object, sizeof object, "%s.o", prefix);
	snprintf(json, sizeof json, "%s.json", prefix);
	FILE *out = fopen(source, "w");
	if (!out || emu_plan_wrapper(out, text, bytes, entries, n) || fclose(out))
		return 111;
	p.source = source;
	p.object = object;
	p.image = prefix;
	if (!emu_plan_compile(&p, argv) || run(argv, NULL))
		return 1;
	const char *scan[] = {env_or("ELFSCAN", "elfscan"), "--patch", object, NULL};
	if (run(scan, json))
		return 1;
	if (!emu_plan_link(&p, argv, paths, 24) || run(argv, NULL))
		return 1;
	return 0;
}

int main(int argc, char **argv)
{
	static char include[512];
	if (argc < 5)
		return 2;
	snprintf(include, sizeof include, "%s/include", argv[2]);
	struct emu_plan p = {.cxx = env_or("CXX", "g++"),
			     .cc = env_or("CC", "gcc"),
			     .mode = (enum emu_mode)mode_of(argv[3]),
			     .march = getenv("EMU_MARCH"),
			     .fast_math = getenv("EMU_FAST_MATH") != NULL,
			     .include_dir = include};
	if (!strcmp(argv[1], "runtime") && argc == 5)
		return runtime(p, argv[2], argv[4]);
	p.runtime_dir = argv[4];
	if (!strcmp(argv[1], "image") && argc >= 8)
		return image(p, argv[5], argv[6], (const char *const *)(size_t)(argv + 7),
			     (size_t)argc - 7);
	return 2;
}
