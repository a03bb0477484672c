/*
 * sanitizer_run.c - compute-sanitizer in a process of its own. See sanitizer.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sanitizer.h"

#include "file.h"
#include "spawn.h"
#include "utf8.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WALL_S = 90, OUT_MAX = 256 << 10, PATHS = 24, GPUS = 16, CAGES = 2 };

int sanitizer_find(char out[4096])
{
	static const char *const where[] = {"/usr/local/cuda/bin/compute-sanitizer", "/opt/cuda/bin/compute-sanitizer",
					    "/usr/bin/compute-sanitizer"};
	const char *own = getenv("COMPUTE_SANITIZER"), *path = getenv("PATH");

	if (own && *own)
		return access(own, X_OK) == 0 && realpath(own, out) != NULL;
	char *copy = xstrdup(path ? path : ""), *rest = NULL;
	int found = 0;
	for (char *p = strtok_r(copy, ":", &rest); p && !found; p = strtok_r(NULL, ":", &rest)) {
		char *file = xasprintf("%s/compute-sanitizer", p);
		found = *p == '/' && access(file, X_OK) == 0 && realpath(file, out);
		free(file);
	}
	free(copy);
	for (size_t i = 0; i < sizeof where / sizeof *where && !found; i++)
		found = access(where[i], X_OK) == 0 && realpath(where[i], out);
	return found;
}

/* Spec, plan and images, readable for the uid that it runs as. */
static int lay_out(const struct sanitizer_job *j, const char *dir, struct err *e)
{
	char *spec = xasprintf("%s/spec.json", dir), *plan = xasprintf("%s/plan.json", dir);
	int rc = chmod(dir, 0755) ? err_sys(e, "cannot open up '%s'", dir) : 0;

	if (rc == 0)
		rc = file_write(spec, j->spec, j->spec_len, 0644, e) || file_write(plan, j->plan, j->plan_len, 0644, e);
	for (int i = 0; i < j->set->n && rc == 0; i++) {
		struct buf b = BUF_INIT;
		char *to = xasprintf("%s/cuda-%d", dir, i);
		rc = file_read(j->set->path[i], 64u << 20, &b, e) || file_write(to, b.data, b.len, 0644, e);
		buf_free(&b);
		free(to);
	}
	free(spec);
	free(plan);
	return rc ? -1 : 0;
}

struct cage {
	struct confine c;
	struct confine_path path[PATHS];
	char tool[PATH_MAX], bare[PATH_MAX], device[GPUS][24];
	char *driver;
};

static void place(struct cage *g, const char *path, enum confine_access access, uint64_t bytes)
{
	if (path && *path && g->c.path_count < PATHS)
		g->path[g->c.path_count++] = (struct confine_path){.path = path, .access = access, .bytes = bytes};
}

static void folder_of(char out[PATH_MAX], const char *file, int up)
{
	snprintf(out, PATH_MAX, "%s", file);
	for (int i = 0; i < up; i++) {
		char *slash = strrchr(out, '/');
		if (slash && slash != out)
			*slash = 0;
	}
}

/* 0: with a file view and no network; 1: where the driver does not start in that, as workers' last cage. */
static void cage_fill(struct cage *g, int loose, const char *dir, const char *program, const char *bare)
{
	static const char *const dev[] = {"/dev/null", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
					  "/dev/nvidia-caps"};
	memset(g, 0, sizeof *g);
	g->c = (struct confine){.calls = CONFINE_CALLS_COMMAND, .paths = g->path, .proc = 2,
				.limits = {.cpu_s = WALL_S, .file_bytes = 64u << 20, .files = 1024}};
	if (loose) {
		g->c.all_files = g->c.network = 1;
		return;
	}
	g->c.namespaces = CONFINE_NS_ALL;
	place(g, "/tmp", CONFINE_PRIVATE, 256u << 20);
	place(g, "/dev/shm", CONFINE_PRIVATE, 64u << 20);
	place(g, "/usr", CONFINE_EXEC, 0);
	place(g, "/bin", CONFINE_EXEC, 0);
	place(g, "/lib", CONFINE_EXEC, 0);
	place(g, "/lib64", CONFINE_EXEC, 0);
	place(g, "/etc/ld.so.cache", CONFINE_READ, 0);
	place(g, "/sys", CONFINE_READ, 0);
	folder_of(g->tool, program, 1);
	folder_of(g->bare, bare, 1);
	place(g, g->tool, CONFINE_EXEC, 0);
	place(g, g->bare, CONFINE_EXEC, 0);
	place(g, dir, CONFINE_READ, 0);
	if (getenv("LD_LIBRARY_PATH")) { /* the first folder: a driver beside the system's */
		g->driver = xasprintf("%.*s", (int)strcspn(getenv("LD_LIBRARY_PATH"), ":"), getenv("LD_LIBRARY_PATH"));
		place(g, g->driver, CONFINE_EXEC, 0);
	}
	for (size_t i = 0; i < sizeof dev / sizeof *dev; i++)
		place(g, dev[i], CONFINE_DEVICE, 0);
	for (int i = 0; i < GPUS && g->c.path_count < PATHS; i++) {
		struct stat st;
		snprintf(g->device[i], sizeof g->device[i], "/dev/nvidia%d", i);
		if (stat(g->device[i], &st) == 0)
			place(g, g->device[i], CONFINE_DEVICE, 0);
	}
}

static int once(const struct sanitizer_job *j, const char *dir, const char *bare, int loose, struct sanitizer_report *r,
		char why[SANITIZER_TEXT])
{
	struct cage g;
	struct spawn_result s;
	struct err no;
	char words[96], said[SANITIZER_TEXT] = "";
	char *gpu = xasprintf("CUDA_VISIBLE_DEVICES=%s", j->gpu);
	char *libs = xasprintf("LD_LIBRARY_PATH=%s", getenv("LD_LIBRARY_PATH") ? getenv("LD_LIBRARY_PATH") : "");
	const char *env[] = {"LC_ALL=C", "PATH=" SPAWN_PATH, "HOME=/tmp", "TMPDIR=/tmp", gpu, libs, NULL};
	const char *argv[] = {j->program, "--tool", j->tool, "--print-limit", "10", "--target-processes", "all", bare, "--tiny",
			      dir, NULL};
	cage_fill(&g, loose, dir, j->program, bare);
	struct spawn_request q = {.argv = argv, .env = env, .cwd = "/", .out = SPAWN_CAPTURE, .flags = SPAWN_STDOUT_TOO,
				  .out_cap = OUT_MAX, .wall_s = WALL_S, .confine = &g.c, .namespaces = g.c.namespaces};
	int rc = spawn_run(&q, &s, &no);
	if (rc) { /* not to be started here: no trouble of ours, this is an extra */
		snprintf(said, sizeof said, "%.*s", SANITIZER_TEXT - 1, no.text);
		rc = 1;
	} else {
		sanitizer_parse(buf_str(&s.out), s.out.len, r);
		if (!r->done) {
			struct buf line = BUF_INIT;
			const char *text = buf_str(&s.out);
			utf8_line(&line, text, strcspn(text, "\n"), 80);
			snprintf(said, sizeof said, "%s ended with %s: %.80s", j->tool, spawn_words(&s, words), buf_str(&line));
			buf_free(&line);
			rc = 1;
		}
		spawn_result_free(&s);
	}
	if (rc && !why[0]) /* of the first cage: the next one says less */
		memcpy(why, said, sizeof said);
	free(g.driver);
	free(libs);
	free(gpu);
	return rc;
}

int sanitizer_run(const struct sanitizer_job *j, struct sanitizer_report *r, char why[SANITIZER_TEXT], struct err *e)
{
	static int loose; /* what worked last: a driver that does not start in one cage will not start in it again */
	const char *tmp = getenv("TMPDIR");
	char *dir = xasprintf("%s/touchstone-san.XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp"), bare[PATH_MAX];
	int rc = spawn_tool("bare", bare, sizeof bare, e);

	if (rc == 0 && !mkdtemp(dir))
		rc = err_sys(e, "cannot make '%s'", dir);
	if (rc) {
		free(dir);
		return -1;
	}
	rc = lay_out(j, dir, e);
	if (rc == 0) {
		rc = 1;
		why[0] = 0;
		for (int cage = loose; cage < CAGES && rc == 1; cage++) {
			rc = once(j, dir, bare, cage, r, why);
			if (rc == 0) {
				loose = cage;
				why[0] = 0;
			}
		}
	}
	struct err no;
	dir_remove(dir, &no);
	free(dir);
	return rc;
}
