/*
 * worker_start.c - start a worker: the cage, the kernels around a rep, the canary. See worker_call.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "worker_part.h"

#include "box_call.h"
#include "file.h"
#include "worker_cage.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define START_NS 60000000000LL
#define RUN_NS 10000000000LL

/* The cage that worked last: a driver that does not start in one will not start in it again. */
static int cage_known;

/* Ours to compile: near the worker's own program. */
static int rep_source(struct buf *text, struct err *e)
{
	static const char *const up[] = {"/../../stages/gpu/rep.cu", "/../../../stages/gpu/rep.cu"};
	char worker[PATH_MAX], path[PATH_MAX];

	if (spawn_tool("worker", worker, sizeof worker, e))
		return -1;
	char *slash = strrchr(worker, '/');
	if (slash)
		*slash = 0;
	for (size_t i = 0; i < sizeof up / sizeof *up; i++)
		if (snprintf(path, sizeof path, "%s%s", worker, up[i]) < PATH_MAX && file_exists(path))
			return file_read(path, 1 << 20, text, e);
	return err_set(e, EX_NOENV, "cannot find stages/gpu/rep.cu near '%s'", worker);
}

static int rep_compile(const char *arch, struct buf *cubin, struct err *e)
{
	struct buf text = BUF_INIT;
	static struct box_result r;

	if (rep_source(&text, e))
		return -1;
	struct box_request q = {.mode = "cuda", .source = buf_str(&text), .source_len = text.len, .arch = arch,
				.trusted = 1};
	memset(&r, 0, sizeof r);
	int rc = box_compile(&q, &r, e);
	if (rc == 0 && !r.ok)
		rc = err_set(e, EX_HARNESS, "stages/gpu/rep.cu does not compile for %s: %.300s", arch, r.message);
	if (rc == 0)
		rc = file_read(r.path, 64 << 20, cubin, e);
	box_result_free(&r);
	buf_free(&text);
	return rc;
}

/* Compiled once for each kind of GPU that this process uses. */
static int rep_cubin(const int32_t capability[2], const struct buf **out, struct err *e)
{
	static struct buf cubin = BUF_INIT;
	static char have[16];
	char arch[16];

	/* from 9.0 on tensor cores need the instructions of that very model */
	snprintf(arch, sizeof arch, "sm_%d%d%s", capability[0] % 100, capability[1] % 10,
		 capability[0] >= 9 ? "a" : "");
	if (strcmp(have, arch)) {
		have[0] = 0;
		buf_clear(&cubin);
		if (rep_compile(arch, &cubin, e))
			return -1;
		snprintf(have, sizeof have, "%s", arch);
	}
	*out = &cubin;
	return 0;
}

static int process_start(struct worker *w, const char *gpu, int cage, struct err *e)
{
	char path[PATH_MAX], number[8];
	int pair[2];
	const char *libraries = getenv("LD_LIBRARY_PATH");

	if (spawn_tool("worker", path, sizeof path, e))
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "cannot make a socket pair");
	snprintf(number, sizeof number, "%d", cage);
	char *visible = xasprintf("CUDA_VISIBLE_DEVICES=%s", gpu ? gpu : "");
	/* the driver may lie where only the operator's environment says */
	char *where = libraries ? xasprintf("LD_LIBRARY_PATH=%s", libraries) : NULL;
	const char *argv[] = {path, number, NULL};
	const char *env[] = {"PATH=" SPAWN_PATH, "LC_ALL=C", visible, where, NULL};
	struct spawn_fd fds[] = {{pair[1], WORKER_FD}};
	struct spawn_request q = {.argv = argv, .env = env, .cwd = "/", .fds = fds, .fd_count = 1,
				  .err = SPAWN_KEEP, .namespaces = worker_cage_namespaces(cage)};
	int rc = spawn_start(&q, &w->proc, e);
	free(visible);
	free(where);
	close(pair[1]);
	w->fd = pair[0];
	return rc;
}

/* 0; 1: the driver does not start in this cage; -1. */
static int hello(struct worker *w, const char *gpu, int cage, struct err *e)
{
	if (process_start(w, gpu, cage, e))
		return -1;
	enum worker_got got = worker_receive(w, START_NS);
	if (got == WORKER_REPLIED && w->r.code == 0) {
		snprintf(w->isolation, sizeof w->isolation, "%s", w->r.layers);
		return 0;
	}
	if (got == WORKER_REPLIED)
		err_set(e, w->r.code, "%s", w->r.text);
	else
		err_set(e, EX_AGAIN, "the worker %s", got == WORKER_SILENT ? "does not start" : "ended at its start");
	/* no driver, or a GPU that is busy: another cage would not help */
	return got == WORKER_REPLIED && (!w->r.driver || w->r.code == EX_AGAIN) ? -1 : 1;
}

static struct worker *worker_new(const struct worker_opts *o)
{
	struct worker *w = xcalloc(1, sizeof *w);

	w->fd = -1;
	w->timeout_ns = o->timeout_ns > 0 ? o->timeout_ns : RUN_NS;
	return w;
}

static int kernels_send(struct worker *w, struct err *e)
{
	const struct buf *cubin;

	if (rep_cubin(w->r.capability, &cubin, e))
		return -1;
	int fd = worker_memfd("rep", cubin->data, cubin->len, e);
	if (fd < 0)
		return -1;
	memset(&w->q, 0, sizeof w->q);
	w->q.cubin_len = cubin->len;
	int rc = worker_ask_plain(w, WORKER_OP_START, &fd, 1, e);
	close(fd);
	return rc;
}

int worker_start(struct worker **out, const struct worker_opts *o, struct err *e)
{
	*out = NULL;
	for (int cage = cage_known; cage < WORKER_CAGES; cage++) {
		struct worker *w = worker_new(o);
		int rc = hello(w, o->gpu, cage, e);
		if (rc == 0) {
			cage_known = cage;
			if (kernels_send(w, e) == 0) {
				*out = w;
				return 0;
			}
			rc = -1;
		}
		worker_stop(w);
		if (rc < 0)
			return -1;
	}
	return -1;
}
