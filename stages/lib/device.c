/*
 * device.c - see device.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "device.h"

#include "gpu.h"
#include "toolkit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int have_compiler(void)
{
	return access("/usr/bin/g++", X_OK) == 0 || access("/usr/local/bin/g++", X_OK) == 0;
}

/* Something to compile with for this GPU. A toolkit of a newer major version makes code that the
 * driver refuses. */
static int compiles(const struct gpu *g, struct err *e)
{
	struct toolkit t;
	if (toolkit_find(&t, e))
		return -1;
	if (t.major > g->cuda / 1000)
		return err_set(e, EX_NOENV, "the toolkit is CUDA %d.%d, the driver of %s is for CUDA %d.%d", t.major,
			       t.minor, g->facts.name, g->cuda / 1000, g->cuda % 1000 / 10);
	return 0;
}

static int find_gpu(const char *device, struct gpu *g, struct err *e)
{
	return gpu_find(device, g, e) || compiles(g, e) ? -1 : 0;
}

int device_check(const char *name, struct err *e)
{
	struct gpu g;
	if (strcmp(name, "sim") == 0)
		return 0;
	if (strcmp(name, "emu") == 0)
		return have_compiler() ? 0
			: err_set(e, EX_NOENV, "device emu needs g++; tools/install-deps brings it");
	if (!trial_name_ok(name))
		return err_set(e, EX_BADUSE, "no device '%.40s': emu, sim, cuda or the name of a GPU as `make devices` "
			       "gives it", name);
	return find_gpu(name, &g, e);
}

static int resolve_gpu(const char *given, const char *reason, char name[TRIAL_NAME], char why[DEVICE_WHY],
		       struct err *e)
{
	struct gpu g;
	if (find_gpu(given, &g, e))
		return -1;
	snprintf(name, TRIAL_NAME, "%s", g.facts.slug);
	snprintf(why, DEVICE_WHY, "%s (%s, driver %s, CUDA %d.%d): %s", g.facts.name, g.arch, g.driver_version,
		 g.cuda / 1000, g.cuda % 1000 / 10, reason);
	return 0;
}

int device_resolve(const char *given, char name[TRIAL_NAME], char why[DEVICE_WHY], struct err *e)
{
	struct err no = {0};
	if (given && device_class_of(given) != DEVICE_CUDA) {
		snprintf(name, TRIAL_NAME, "%s", given);
		snprintf(why, DEVICE_WHY, "as asked");
		return device_check(given, e);
	}
	if (given)
		return device_check(given, e) || resolve_gpu(given, "as asked", name, why, e) ? -1 : 0;
	if (resolve_gpu("cuda", "the best that works here", name, why, &no) == 0)
		return 0;
	snprintf(name, TRIAL_NAME, "%s", have_compiler() ? "emu" : "sim");
	snprintf(why, DEVICE_WHY, "no GPU is used: %.280s", no.text);
	return 0;
}

const char *device_default(void)
{
	static char name[TRIAL_NAME], why[DEVICE_WHY];
	if (!*name)
		device_resolve(NULL, name, why, NULL);
	return name;
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
