/*
 * engine_model.c - see engine_model.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_model.h"

#include "buf.h"
#include "file.h"
#include "lock.h"
#include "spawn.h"
#include "tool.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES = 256 };

/* ---- made by us ---- */

static int make(const char *tool, const char *dir, const char *shape, uint64_t seed, struct err *e)
{
	char number[24];
	snprintf(number, sizeof number, "%llu", (unsigned long long)seed);
	const char *const argv[] = {tool, shape, dir, "--seed", number, NULL};
	const struct spawn_request q = {.argv = argv, .err = SPAWN_CAPTURE, .wall_s = 3600};
	struct spawn_result r;
	char words[96];
	if (spawn_run(&q, &r, e))
		return -1;
	int rc = r.code == 0 ? 0
		: err_set(e, r.code > 0 ? r.code : EX_HARNESS, "make-checkpoint %s: %s: %.200s", shape, spawn_words(&r, words),
			  buf_str(&r.err));
	spawn_result_free(&r);
	return rc;
}

/* BUILD/models, made if it is not there; `tool`: make-checkpoint beside it. */
static int models_dir(char dir[PATH_MAX], char tool[PATH_MAX], struct err *e)
{
	if (spawn_tool("make-checkpoint", tool, PATH_MAX, e))
		return -1;
	const int n = snprintf(dir, PATH_MAX, "%.*s/../models", (int)(strrchr(tool, '/') - tool), tool);
	if (n >= PATH_MAX - 64)
		return err_set(e, EX_BADINPUT, "the path of this program is too long");
	return dir_make(dir, e);
}

/* BUILD/models/SHAPE-seedN, made if it is not there. */
static int made(char dir[PATH_MAX], const char *shape, uint64_t seed, struct err *e)
{
	char tool[PATH_MAX], name[64];
	struct lock lock = LOCK_INIT;
	if (strcmp(shape, "any") == 0)
		return err_set(e, EX_NOENV, "this problem has no checkpoint of its own: MODEL_DIR= names a folder with one");
	if (models_dir(dir, tool, e))
		return -1;
	const size_t n = strlen(dir);
	snprintf(name, sizeof name, "%s-seed%llu", shape, (unsigned long long)seed);
	snprintf(dir + n, PATH_MAX - n, "/%s", name);
	if (file_exists(dir))
		return 0;
	snprintf(name, sizeof name, "model-%s-seed%llu", shape, (unsigned long long)seed);
	if (lock_take(&lock, name, LOCK_ALONE, -1, e))
		return -1;
	int rc = file_exists(dir) ? 0 : make(tool, dir, shape, seed, e);
	lock_drop(&lock);
	/* Another tree with the same build folder has locks of its own: who was first has made the same bytes. */
	return rc && file_exists(dir) ? 0 : rc;
}

/* ---- its hash ---- */

static int ends(const char *name, const char *tail)
{
	size_t n = strlen(name), k = strlen(tail);
	return n > k && strcmp(name + n - k, tail) == 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list(const char *dir, char *name[FILES], int *n, struct err *e)
{
	DIR *d = opendir(dir);
	struct dirent *at;
	if (!d)
		return err_set(e, EX_BADINPUT, "cannot open the model's folder '%s' (%s)", dir, strerror(errno));
	while ((at = readdir(d)) && *n < FILES)
		if (!strcmp(at->d_name, "config.json") || ends(at->d_name, ".safetensors") ||
		    ends(at->d_name, ".safetensors.index.json"))
			name[(*n)++] = xstrdup(at->d_name);
	closedir(d);
	if (*n == FILES)
		return err_set(e, EX_BADINPUT, "'%s' holds too many files for a model", dir);
	qsort(name, (size_t)*n, sizeof *name, by_name);
	return 0;
}

static int hash(const char *dir, int ours, char sha[HASH_HEX], struct err *e)
{
	char *name[FILES], path[PATH_MAX], one[HASH_HEX], models[PATH_MAX], tool[PATH_MAX];
	struct buf all = BUF_INIT;
	struct err none;
	/* a program outside of a build folder has no place to remember hashes in */
	const int remembers = !ours && models_dir(models, tool, &none) == 0;
	int n = 0, rc = list(dir, name, &n, e);
	for (int i = 0; i < n && rc == 0; i++) {
		char *file = xasprintf("%s/%s", dir, name[i]);
		if (!realpath(file, path))
			rc = err_set(e, EX_BADINPUT, "cannot read '%s' (%s)", file, strerror(errno));
		else
			rc = ours || remembers ? tool_hash_in(ours ? NULL : models, path, one, e) : hash_file(path, one, e);
		free(file);
		if (rc == 0) {
			buf_add(&all, name[i], strlen(name[i]) + 1);
			buf_addf(&all, "%s\n", one);
		}
	}
	for (int i = 0; i < n; i++)
		free(name[i]);
	hash_hex(buf_str(&all), all.len, sha);
	buf_free(&all);
	return rc;
}

int engine_model_open(struct engine_model *m, const char *dir, const char *shape, uint64_t seed, const char *expect,
		      struct err *e)
{
	char where[PATH_MAX];
	const int ours = !dir || !*dir;
	memset(m, 0, sizeof *m);
	if (ours && made(where, shape, seed, e))
		return -1;
	if (!realpath(ours ? where : dir, m->dir))
		return err_set(e, EX_BADINPUT, "cannot find the model's folder '%s' (%s)", ours ? where : dir, strerror(errno));
	if (hash(m->dir, ours, m->sha, e))
		return -1;
	if (expect && strcmp(expect, m->sha) != 0)
		return err_set(e, EX_BADINPUT, "'%s' is not the model that was recorded", m->dir);
	return qwen3_open(&m->model, m->dir, e);
}

void engine_model_close(struct engine_model *m)
{
	if (m->gpu)
		m->gpu_close(m->gpu);
	m->gpu = NULL;
	qwen3_close(&m->model);
}
