/*
 * nvrtc - a kernel.cu to a cubin, by NVRTC as the loop uses it; prints what ptxas says of each entry.
 *
 * A probe for kernels that no GPU is at hand for: registers, spills, shared memory.
 *
 * usage: nvrtc KERNEL OUT [-DNAME=VALUE ...] [other NVRTC options]
 *
 * SPDX-License-Identifier: MIT
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef int (*make_fn)(void **, const char *, const char *, int, const char *const *, const char *const *);
typedef int (*run_fn)(void *, int, const char *const *);
typedef int (*size_fn)(void *, size_t *);
typedef int (*text_fn)(void *, char *);

static void *lib;

static void *want(const char *name)
{
	void *f = dlsym(lib, name);

	if (!f) {
		fprintf(stderr, "nvrtc: libnvrtc has no %s\n", name);
		exit(4);
	}
	return f;
}

static char *slurp(const char *path)
{
	static char text[1 << 20];
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;

	if (!f) {
		perror(path);
		exit(3);
	}
	fclose(f);
	text[n] = '\0';
	return text;
}

static char *piece(void *prog, const char *size, const char *get, size_t *n)
{
	char *out;

	if (((size_fn)want(size))(prog, n))
		exit(70);
	out = calloc(1, *n + 1);
	if (!out || ((text_fn)want(get))(prog, out))
		exit(70);
	return out;
}

int main(int argc, char **argv)
{
	const char *opt[96] = {"--gpu-architecture=sm_90a", "-default-device", "-std=c++17", "--no-cache",
			       "--ptxas-options=-v", "-I/usr/local/cuda/include"};
	int n = 6;
	void *prog;
	size_t len;

	lib = dlopen("libnvrtc.so.13", RTLD_NOW);
	if (!lib)
		lib = dlopen("/usr/local/cuda/lib64/libnvrtc.so", RTLD_NOW);
	if (!lib || argc < 3) {
		fprintf(stderr, lib ? "usage: nvrtc KERNEL OUT [option...]\n" : "nvrtc: no libnvrtc\n");
		return lib ? 2 : 4;
	}
	for (int i = 3; i < argc && n < 96; i++)
		opt[n++] = argv[i];
	if (((make_fn)want("nvrtcCreateProgram"))(&prog, slurp(argv[1]), "kernel.cu", 0, NULL, NULL))
		return 70;
	int rc = ((run_fn)want("nvrtcCompileProgram"))(prog, n, opt);
	fputs(piece(prog, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog", &len), stdout);
	if (rc)
		return 3;
	char *cubin = piece(prog, "nvrtcGetCUBINSize", "nvrtcGetCUBIN", &len);
	FILE *f = fopen(argv[2], "wb");
	return !f || fwrite(cubin, 1, len, f) != len || fclose(f) ? 111 : 0;
}
