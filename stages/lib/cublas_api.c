/*
 * cublas_api.c - see cublas_api.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cublas_api.h"

#include "toolkit.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

struct cublas_api cublas;

static const char *const NAMES[] = {"libcublas.so.13", "libcublas.so.12"};

static void *from_toolkit(void)
{
	static const char *const dirs[] = {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib",
					   "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"};
	char path[PATH_MAX];
	struct toolkit t;
	struct err none;
	void *lib = NULL;
	if (toolkit_find(&t, &none))
		return NULL;
	for (size_t n = 0; n < sizeof NAMES / sizeof *NAMES; n++)
		for (size_t d = 0; !lib && d < sizeof dirs / sizeof *dirs; d++)
			if (snprintf(path, sizeof path, "%s/%s/%s", t.root, dirs[d], NAMES[n]) < PATH_MAX)
				lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	return lib;
}

/* dlsym returns an object pointer; ISO C has no cast from it to a function. */
static int take(void *lib, const char *symbol, void *to)
{
	void *f = dlsym(lib, symbol);
	memcpy(to, &f, sizeof f);
	return f != NULL;
}

int cublas_open(struct err *e)
{
	static int open;
	void *lib = NULL;
	if (open)
		return 0;
	for (size_t n = 0; !lib && n < sizeof NAMES / sizeof *NAMES; n++)
		lib = dlopen(NAMES[n], RTLD_NOW | RTLD_LOCAL);
	if (!lib && !(lib = from_toolkit()))
		return err_set(e, EX_NOENV,
			       "no cuBLAS here: libcublas.so.13 or .12 is looked for by the loader and in the CUDA toolkit");
#define X(name, symbol, type, args) \
	if (!take(lib, #symbol, &cublas.name)) \
		return err_set(e, EX_NOENV, "cuBLAS is too old: it has no %s", #symbol);
	CUBLAS_CALLS(X)
#undef X
	open = 1;
	return 0;
}

int cublas_fail(struct err *e, const char *call, int status)
{
	const char *word = cublas.GetStatusName ? cublas.GetStatusName(status) : NULL;
	return err_set(e, status == CUBLAS_ALLOC_FAILED ? EX_AGAIN : EX_HARNESS, "%s: %s", call, word ? word : "unknown status");
}
