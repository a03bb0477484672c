/*
 * engine_cuda.c - see engine_build_part.h, and engine_cuda.h: nvcc's command line, and where engines in CUDA find libraries.
 *
 * The path of the source folder and nvcc's own temporary names get into a program, so two builds of the same sources differ in
 * bytes that no one runs. That is why a build is kept, by a key of everything that decides about it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_cuda.h"

#include "buf.h"
#include "engine_build_part.h"
#include "file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void nvcc_path(const struct toolkit *t, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/bin/nvcc", t->root);
}

int engine_cuda_key(const struct toolkit *t, const char *arch, const char *protocol, char key[HASH_HEX], struct err *e)
{
	char nvcc[PATH_MAX], sha[HASH_HEX], header[HASH_HEX];
	struct buf all = BUF_INIT;
	nvcc_path(t, nvcc);
	if (access(nvcc, X_OK))
		return err_set(e, EX_NOENV, "the CUDA toolkit in %s has no bin/nvcc: engines in CUDA need it", t->root);
	if (hash_file(nvcc, sha, e) || hash_file(protocol, header, e))
		return -1;
	buf_addf(&all, "%s\n%s\n%s\n%s\n%s\n%s\n", key, header, ENGINE_CUDA_OPTIONS, arch, t->id, sha);
	hash_hex(buf_str(&all), all.len, key);
	buf_free(&all);
	return 0;
}

void engine_job_cuda(struct engine_job *j, const struct toolkit *t, const char *arch, const struct engine_file *file, int n)
{
	static const char *const FLAGS[] = {"-O3", "-std=c++17", "-lineinfo", "-cudart", "static"};
	static const char *const LIBRARIES[] = {"-lcublas", "-lcublasLt", "-lcuda", "-lpthread"};
	char nvcc[PATH_MAX];
	nvcc_path(t, nvcc);
	engine_job_arg(j, "%s", nvcc);
	engine_job_arg(j, "-o");
	engine_job_arg(j, "%s", j->program);
	for (size_t i = 0; i < sizeof FLAGS / sizeof *FLAGS; i++)
		engine_job_arg(j, "%s", FLAGS[i]);
	engine_job_arg(j, "-arch=%s", arch);
	engine_job_arg(j, "-I%s", j->src);
	engine_job_units(j, file, n, ".cu");
	for (const char *const *d = TOOLKIT_LIB_DIRS; *d; d++) {
		char dir[PATH_MAX];
		if (snprintf(dir, sizeof dir, "%s/%s/stubs", t->root, *d) >= PATH_MAX || access(dir, R_OK))
			continue;
		/* libcuda.so of a machine without a driver: the real one is found when the engine starts */
		engine_job_arg(j, "-L%s", dir);
		engine_job_arg(j, "-L%s/%s", t->root, *d);
	}
	for (size_t i = 0; i < sizeof LIBRARIES / sizeof *LIBRARIES; i++)
		engine_job_arg(j, "%s", LIBRARIES[i]);
	if (strcmp(t->root, "/usr") != 0 && strncmp(t->root, "/usr/", 5) != 0)
		snprintf(j->tools, sizeof j->tools, "%s", t->root);
	j->memory = UINT64_C(16) << 30;
	j->cpu_s = 300;
	j->crash = -1;
}

int engine_cuda_libraries(char out[PATH_MAX], struct err *e)
{
	struct toolkit t;
	out[0] = '\0';
	if (toolkit_find(&t, e))
		return -1;
	for (const char *const *d = TOOLKIT_LIB_DIRS; *d; d++) {
		char path[PATH_MAX + 32];
		snprintf(path, sizeof path, "%s/%s/libcublas.so", t.root, *d);
		if (access(path, R_OK))
			continue;
		snprintf(path, sizeof path, "%s/%s", t.root, *d);
		if (realpath(path, out))
			return 0;
	}
	return err_set(e, EX_NOENV, "the CUDA toolkit in %s has no libcublas: engines in CUDA are linked with it", t.root);
}
