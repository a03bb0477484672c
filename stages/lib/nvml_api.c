/*
 * nvml_api.c - see nvml_api.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "nvml_api.h"

#include <dlfcn.h>
#include <stddef.h>

struct nvml_api nvml;

int nvml_open(struct err *e)
{
	static void *lib;
	if (lib)
		return 0;
	lib = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return err_set(e, EX_NOENV, "no NVML here (libnvidia-ml.so.1 comes with the NVIDIA driver)");
	/* POSIX lets dlsym's pointer become a function pointer; ISO C wants the detour. */
#define X(name, symbol, args) *(void **)&nvml.name = dlsym(lib, #symbol);
	NVML_CALLS(X)
#undef X
	int rc = nvml.Init ? nvml.Init() : NVML_NOT_FOUND;
	if (rc == NVML_OK)
		return 0;
	lib = NULL; /* stays loaded; the next call tries again */
	return err_set(e, EX_NOENV, "NVML does not start (error %d)", rc);
}
