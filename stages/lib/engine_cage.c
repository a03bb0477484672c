/*
 * engine_cage.c - see engine_cage.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_cage.h"

#include "buf.h"
#include "engine_cuda.h"
#include "gpu.h"
#include "spawn.h"
#include "worker_cage.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROBE_S = 60 };

/* ---- paths ---- */

static int add(struct engine_cage *c, const char *path, enum confine_access access, struct err *e)
{
	if (c->n == ENGINE_CAGE_PATHS || strlen(path) >= sizeof c->text[0])
		return err_set(e, EX_BADINPUT, "the model's folder has too many links that lead out of it");
	snprintf(c->text[c->n], sizeof c->text[0], "%s", path);
	c->path[c->n] = (struct confine_path){c->text[c->n], NULL, access, 0};
	c->n++;
	return 0;
}

/* What links of the folder point to, by its own name: a link is followed where the engine opens it. */
static int add_links(struct engine_cage *c, const char *dir, struct err *e)
{
	const size_t n = strlen(dir);
	struct dirent *f;
	int rc = 0;
	DIR *d = opendir(dir);
	if (!d)
		return err_set(e, EX_BADINPUT, "cannot open the model's folder '%s' (%s)", dir, strerror(errno));
	while (!rc && (f = readdir(d))) {
		char path[2 * PATH_MAX], to[PATH_MAX];
		if (f->d_type != DT_LNK && f->d_type != DT_UNKNOWN)
			continue;
		snprintf(path, sizeof path, "%s/%s", dir, f->d_name);
		if (realpath(path, to) && f->d_name[0] != '.' && (strncmp(to, dir, n) != 0 || to[n] != '/'))
			rc = add(c, to, CONFINE_READ, e);
	}
	closedir(d);
	return rc;
}

/* Where the libraries of every system are: in view anyway. */
static int is_system(const char *path)
{
	static const char *const IN[] = {"/usr/lib", "/usr/lib64", "/lib", "/lib64"};
	for (size_t i = 0; i < sizeof IN / sizeof *IN; i++) {
		const size_t n = strlen(IN[i]);
		if (strncmp(path, IN[i], n) == 0 && (path[n] == '/' || path[n] == '\0'))
			return 1;
	}
	return 0;
}

/* A folder of libraries, into the view and the search path. Links are resolved: inside there may be none. */
static int add_folder(struct engine_cage *c, const char *path, struct buf *list, struct err *e)
{
	char real[PATH_MAX];
	if (path[0] != '/' || !realpath(path, real) || strcmp(real, "/") == 0)
		return 0;
	buf_addf(list, "%s%s", list->len ? ":" : "", real);
	return is_system(real) ? 0 : add(c, real, CONFINE_EXEC, e);
}

/* Folders that the operator named for libraries: a driver may lie in one. */
static int add_folders(struct engine_cage *c, const char *own, struct buf *list, struct err *e)
{
	int rc = 0;
	for (const char *at = own; at && *at && rc == 0;) {
		const size_t n = strcspn(at, ":");
		char path[PATH_MAX];
		snprintf(path, sizeof path, "%.*s", (int)n, at);
		rc = add_folder(c, path, list, e);
		at += n + (at[n] == ':');
	}
	return rc;
}

/* ---- on a GPU ---- */

static int set_environment(struct engine_cage *c, const char *gpu, struct err *e)
{
	char libraries[PATH_MAX];
	struct buf list = BUF_INIT;
	int rc = engine_cuda_libraries(libraries, e) || add_folder(c, libraries, &list, e) ||
		 add_folders(c, getenv("LD_LIBRARY_PATH"), &list, e) ? -1 : 0;
	if (rc == 0 && list.len >= sizeof c->variable[0] - 32)
		rc = err_set(e, EX_BADUSE, "LD_LIBRARY_PATH is too long for an engine");
	snprintf(c->variable[0], sizeof c->variable[0], "LD_LIBRARY_PATH=%s", buf_str(&list));
	snprintf(c->variable[1], sizeof c->variable[1], "CUDA_VISIBLE_DEVICES=%s", gpu);
	c->env[1] = c->variable[0];
	c->env[2] = c->variable[1];
	c->env[3] = "CUDA_CACHE_DISABLE=1";
	buf_free(&list);
	return rc;
}

/* Does the driver start in it, for a program of ours? 1, 0, or -1. */
static int driver_starts(const struct engine_cage *c, const struct confine *f, const char *probe, struct err *e)
{
	static struct gpu g[GPU_MAX];
	const struct spawn_request q = {
		.argv = (const char *const[]){probe, "devices", NULL}, .env = c->env, .cwd = "/", .out = SPAWN_CAPTURE,
		.err = SPAWN_CAPTURE, .wall_s = PROBE_S, .confine = f,
	};
	struct spawn_result r;
	struct err bad;
	char why[GPU_WHY];
	int n = 0;
	if (spawn_run(&q, &r, e))
		return -1;
	const int yes = r.code == 0 && confine_minimum(r.layers) &&
			gpu_list_parse(buf_str(&r.out), r.out.len, g, &n, why, &bad) == 0 && n > 0 && g[0].usable;
	spawn_result_free(&r);
	return yes;
}

static int find_cage(struct engine_cage *c, int *cage, struct err *e)
{
	static int known = -1;
	char probe[PATH_MAX];
	if (known < 0 && spawn_tool("probe", probe, sizeof probe, e))
		return -1;
	for (int i = WORKER_CAGE_VIEW; known < 0 && i <= WORKER_CAGE_NET; i++) {
		struct confine_path own[ENGINE_CAGE_PATHS + 1];
		struct confine f;
		memcpy(own, c->path, c->n * sizeof *own);
		own[c->n] = (struct confine_path){probe, NULL, CONFINE_EXEC, 0};
		worker_cage_around(i, own, c->n + 1, &f);
		const int rc = driver_starts(c, &f, probe, e);
		if (rc < 0)
			return -1;
		if (rc)
			known = i;
	}
	if (known < 0)
		return err_set(e, EX_NOENV, "the GPU's driver does not start where an engine is confined: without that none is run here");
	*cage = known;
	return 0;
}

static int for_gpu(struct engine_cage *c, const char *gpu, uint64_t memory, struct err *e)
{
	int cage;
	if (set_environment(c, gpu, e) || find_cage(c, &cage, e))
		return -1;
	worker_cage_around(cage, c->path, c->n, &c->confine);
	/* Drivers write files of their own (/dev/shm), so the log has no tighter limit than they. */
	c->confine.limits.memory = memory;
	c->confine.limits.file_bytes = 256u << 20;
	c->confine.limits.processes = 4096;
	return 0;
}

/* ---- on the processor ---- */

static int for_host(struct engine_cage *c, uint64_t memory, struct err *e)
{
	static const char *const LIBRARIES[] = {"/lib", "/lib64", "/usr/lib", "/usr/lib64"};
	for (size_t i = 0; i < sizeof LIBRARIES / sizeof *LIBRARIES; i++)
		if (add(c, LIBRARIES[i], CONFINE_EXEC, e))
			return -1;
	if (add(c, "/etc/ld.so.cache", CONFINE_READ, e))
		return -1;
	c->confine = (struct confine){
		.calls = CONFINE_CALLS_COMMAND, .paths = c->path, .path_count = c->n, .proc = 1, .namespaces = CONFINE_NS_ALL,
		.limits = {.memory = memory, .file_bytes = ENGINE_CAGE_LOG, .files = 256, .processes = 256},
	};
	return 0;
}

int engine_cage_make(struct engine_cage *c, const char *program, const char *model_dir, const char *gpu, uint64_t memory,
		     struct err *e)
{
	memset(c, 0, sizeof *c);
	c->env[0] = "LC_ALL=C";
	/* By their own names: without a mount namespace there are no others. */
	if (add(c, program, CONFINE_EXEC, e) || add(c, model_dir, CONFINE_READ, e) || add_links(c, model_dir, e))
		return -1;
	return gpu ? for_gpu(c, gpu, memory, e) : for_host(c, memory, e);
}
