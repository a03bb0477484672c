/*
 * device.c - see device.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "device.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

static int have_compiler(void)
{
	return access("/usr/bin/g++", X_OK) == 0 || access("/usr/local/bin/g++", X_OK) == 0;
}

const char *device_default(void)
{
	return have_compiler() ? "emu" : "sim";
}

int device_check(const char *name, struct err *e)
{
	if (strcmp(name, "sim") == 0)
		return 0;
	if (strcmp(name, "emu") == 0)
		return have_compiler() ? 0
			: err_set(e, EX_NOENV, "device emu needs g++; tools/install-deps brings it");
	if (strcmp(name, "cuda") == 0)
		return err_set(e, EX_NOENV, "device cuda is not in this version; emu and sim are");
	return err_set(e, EX_BADUSE, "no device '%.40s': emu, sim or cuda", name);
}

const char *device_note(const char *name)
{
	if (strcmp(name, "sim") == 0)
		return "simulated: synthetic figures";
	return strcmp(name, "emu") == 0 ? "emulated: not a GPU speed" : "";
}

int device_takes(const char *name, const struct spec *s, struct err *e)
{
	/* The emulator has its own headers; a tree such as CUTLASS needs the real compiler. */
	if (s->nheaders && strcmp(name, "emu") == 0)
		return err_set(e, EX_NOENV, "'%s' needs the header tree '%s', which device emu does not take",
			       s->name, s->header[0]);
	return 0;
}

int device_gpus(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	int n = 0;
	if (!lib)
		return 0;
	/* POSIX lets dlsym's pointer become a function pointer; ISO C wants the detour. */
	int (*init)(unsigned) = NULL, (*count)(int *) = NULL;
	*(void **)&init = dlsym(lib, "cuInit");
	*(void **)&count = dlsym(lib, "cuDeviceGetCount");
	if (!init || !count || init(0) || count(&n) || n < 0)
		n = 0;
	return n; /* the driver stays loaded: it does not like to be unloaded */
}
