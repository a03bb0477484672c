/*
 * nvrtc.h - a cubin for a unit test, straight from NVRTC where that is installed. Included once.
 *
 * if (nvrtc_open()) cubin = cubin_of("tests/fake/cuda/kernels/add.cu", &len); what does not compile ends
 * the test with NVRTC's words.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FAKE_NVRTC_H
#define FAKE_NVRTC_H

#include "file.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const nvrtc_places[] = {"libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so.13",
					   "/usr/local/cuda/lib64/libnvrtc.so.12"};

typedef struct program_st *program;
#define NVRTC_CALLS(X) \
	X(nvrtcCreateProgram, (program *, const char *, const char *, int, const char **, const char **)) \
	X(nvrtcCompileProgram, (program, int, const char **)) \
	X(nvrtcGetCUBINSize, (program, size_t *)) \
	X(nvrtcGetCUBIN, (program, char *)) \
	X(nvrtcGetProgramLogSize, (program, size_t *)) \
	X(nvrtcGetProgramLog, (program, char *))
#define X(name, args) static int (*name) args;
NVRTC_CALLS(X)
#undef X

static int nvrtc_open(void)
{
	void *lib = NULL, *p;
	for (size_t i = 0; !lib && i < sizeof nvrtc_places / sizeof *nvrtc_places; i++)
		lib = dlopen(nvrtc_places[i], RTLD_NOW | RTLD_LOCAL);
#define X(name, args) \
	if (!lib || !(p = dlsym(lib, #name))) \
		return 0; \
	memcpy(&name, &p, sizeof p);
	NVRTC_CALLS(X)
#undef X
	return 1;
}

static char *cubin_of(const char *path, size_t *len)
{
	struct buf text = {0};
	struct err e = {0};
	program it = NULL;
	const char *options[] = {"--gpu-architecture=sm_90a", "-I", "stages/gpu"};
	size_t n = 0;
	if (file_read(path, 1 << 20, &text, &e) || nvrtcCreateProgram(&it, text.data, path, 0, NULL, NULL))
		exit(111);
	if (nvrtcCompileProgram(it, (int)(sizeof options / sizeof *options), options)) {
		nvrtcGetProgramLogSize(it, &n);
		char *log = calloc(1, n + 1);
		nvrtcGetProgramLog(it, log);
		fprintf(stderr, "%s\n", log);
		exit(1);
	}
	nvrtcGetCUBINSize(it, len);
	char *out = malloc(*len);
	if (!out || nvrtcGetCUBIN(it, out))
		exit(1);
	buf_free(&text);
	return out;
}

#endif
