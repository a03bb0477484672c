/*
 * worker_cage.c - see worker_cage.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "worker_cage.h"

#include "cuda_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { GPUS = 16, PATHS = 64, SHM_BYTES = 64 << 20 };

struct places {
	struct confine_path path[PATHS];
	size_t n;
	char name[GPUS][24], driver[4096];
};

static void place_add(struct places *p, const char *path, enum confine_access access)
{
	if (p->n < PATHS)
		p->path[p->n++] = (struct confine_path){.path = path, .access = access};
}

/* The driver's library loads others from its own folder. */
static void driver_folder(struct places *p, int engine)
{
	Dl_info info;
	void *f;

	memcpy(&f, &cu.Init, sizeof f);
	if (!f || !dladdr(f, &info) || !info.dli_fname || !realpath(info.dli_fname, p->driver))
		return;
	char *slash = strrchr(p->driver, '/');
	if (slash && slash != p->driver) {
		*slash = 0;
		if (engine || strncmp(p->driver, "/usr/", 5) != 0)
			place_add(p, p->driver, CONFINE_EXEC);
	}
}

static void devices_add(struct places *p)
{
	static const char *const rest[] = {"/dev/null", "/dev/nvidiactl", "/dev/nvidia-uvm",
					   "/dev/nvidia-uvm-tools", "/dev/nvidia-caps", "/dev/dxg"};

	for (int i = 0; i < GPUS; i++) {
		struct stat st;
		snprintf(p->name[i], sizeof p->name[i], "/dev/nvidia%d", i);
		if (stat(p->name[i], &st) == 0)
			place_add(p, p->name[i], CONFINE_DEVICE);
	}
	for (size_t i = 0; i < sizeof rest / sizeof *rest && p->n < PATHS - 2; i++)
		place_add(p, rest[i], CONFINE_DEVICE);
}

/* What a program of ours may open is a candidate's to run as well, so of /usr it gets the libraries alone. */
static void system_add(struct places *p, int engine)
{
	static const char *const libraries[] = {"/usr/lib", "/usr/lib64", "/usr/local/lib"};
	for (size_t i = 0; engine && i < sizeof libraries / sizeof *libraries; i++)
		place_add(p, libraries[i], CONFINE_EXEC);
	if (engine)
		place_add(p, "/usr/share/nvidia", CONFINE_READ);
	else
		place_add(p, "/usr", CONFINE_EXEC);
}

static void places_fill(struct places *p, int cage, int engine)
{
	static const char *const proc[] = {"/proc/driver", "/proc/devices", "/proc/modules", "/proc/sys",
					   "/proc/cpuinfo", "/proc/meminfo", "/proc/version"};

	/* some drivers keep a file of their own there; without a view it would be everybody's; before the
	 * driver's folder, which may lie below it */
	if (cage == WORKER_CAGE_VIEW)
		p->path[p->n++] = (struct confine_path){.path = "/dev/shm", .access = CONFINE_PRIVATE, .bytes = SHM_BYTES};
	if (cage == WORKER_CAGE_DEVICES)
		place_add(p, "/", CONFINE_READ);
	if (cage < WORKER_CAGE_DEVICES) {
		system_add(p, engine);
		place_add(p, "/lib", CONFINE_EXEC);
		place_add(p, "/lib64", CONFINE_EXEC);
		place_add(p, "/etc/ld.so.cache", CONFINE_READ);
		place_add(p, "/sys", CONFINE_READ);
		driver_folder(p, engine);
	}
	for (size_t i = 0; cage == WORKER_CAGE_NET && i < sizeof proc / sizeof *proc; i++)
		place_add(p, proc[i], CONFINE_READ);
	devices_add(p);
}

int worker_cage_enter(int cage, unsigned got, struct confine_report *r, struct err *e)
{
	static struct places p;
	struct confine c = {.calls = CONFINE_CALLS_GPU, .proc = 2, .limits = {.files = 65536}};

	places_fill(&p, cage, 0);
	c.paths = p.path;
	c.path_count = p.n;
	c.all_files = cage == WORKER_CAGE_PLAIN;
	if (confine_apply(&c, got, r, e))
		return -1;
	/* the last one says what held, and promote decides */
	if (cage != WORKER_CAGE_PLAIN && !confine_minimum(r->layers))
		return err_set(e, EX_NOENV, "a worker cannot confine itself here: only %s", r->layers);
	return 0;
}

void worker_cage_around(int cage, const struct confine_path *more, size_t n, struct confine *c)
{
	static struct places p;
	memset(&p, 0, sizeof p);
	places_fill(&p, cage, 1);
	for (size_t i = 0; i < n && p.n < PATHS; i++)
		p.path[p.n++] = more[i];
	*c = (struct confine){.calls = CONFINE_CALLS_ENGINE, .proc = 2, .limits = {.files = 65536}, .paths = p.path,
			      .path_count = p.n, .namespaces = worker_cage_namespaces(cage)};
}

unsigned worker_cage_namespaces(int cage)
{
	return cage == WORKER_CAGE_VIEW ? CONFINE_NS_ALL : cage == WORKER_CAGE_NET ? CONFINE_NS_NET : 0;
}
