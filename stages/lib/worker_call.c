/*
 * worker_call.c - the stage's side of the worker. See worker_call.h. The start is in worker_start.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "worker_part.h"

#include "buf.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

/* Loading and mapping are the driver's work; one that is silent for longer is broken. */
enum { SLOW_S = 120 };

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

const char *worker_outcome_name(enum worker_outcome o)
{
	static const char *const name[] = {"ok", "refused", "fault", "timeout", "died"};

	return o <= WORKER_DIED ? name[o] : "?";
}

int worker_alive(const struct worker *w)
{
	return !w->dead;
}

const char *worker_isolation(const struct worker *w)
{
	return w->isolation;
}

/* ---- packets ---- */

static int send_all(struct worker *w, const int *fd, int nfds)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(WORKER_FDS * sizeof(int))];
	} control;
	struct iovec v = {&w->q, sizeof w->q};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	size_t bytes = (size_t)nfds * sizeof *fd;
	ssize_t n;

	if (nfds > 0) {
		memset(&control, 0, sizeof control);
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(bytes);
		control.h.cmsg_level = SOL_SOCKET;
		control.h.cmsg_type = SCM_RIGHTS;
		control.h.cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(&control.h), fd, bytes);
	}
	while ((n = sendmsg(w->fd, &m, MSG_NOSIGNAL)) < 0 && errno == EINTR)
		;
	return n == (ssize_t)sizeof w->q ? 0 : -1;
}

enum worker_got worker_receive(struct worker *w, int64_t timeout_ns)
{
	int64_t deadline = now_ns() + timeout_ns;

	for (;;) {
		int64_t left = deadline - now_ns();
		struct pollfd p = {.fd = w->fd, .events = POLLIN};
		/* looked at once more when the time is up: we may have been stopped, and not the worker late */
		int k = poll(&p, 1, left <= 0 ? 0 : left / 1000000 > 100000 ? 100000 : (int)(left / 1000000 + 1));
		if (k < 0 && errno != EINTR)
			return WORKER_GONE;
		if (k > 0)
			break;
		if (left <= 0)
			return WORKER_SILENT;
	}
	ssize_t n = recv(w->fd, &w->r, sizeof w->r, 0);
	return n == (ssize_t)sizeof w->r && w->r.magic == WORKER_MAGIC ? WORKER_REPLIED : WORKER_GONE;
}

/* Reap it; 1 when somebody else killed it. Its end may take the driver a moment. */
static int bury(struct worker *w, int kill_it)
{
	struct spawn_result r = {0};
	struct err e;
	int killed = 0;

	w->dead = 1;
	if (w->proc.pid <= 0)
		return 0;
	if (kill_it)
		spawn_kill(&w->proc);
	int rc = spawn_wait(&w->proc, kill_it ? -1 : 5, &r, &e);
	if (rc == 1) {
		spawn_kill(&w->proc);
		rc = spawn_wait(&w->proc, -1, &r, &e);
	}
	if (rc == 0) {
		killed = r.outside;
		spawn_words(&r, w->end);
		spawn_result_free(&r);
	}
	return killed;
}

/* One request and its reply. 0 with w->r; 1: no reply, res->outcome says why; -1 its own trouble. */
static int ask(struct worker *w, enum worker_op op, const int *fd, int nfds, int64_t timeout_ns,
	       struct worker_result *res, struct err *e)
{
	int64_t start = now_ns();

	memset(res, 0, sizeof *res);
	if (w->dead)
		return err_set(e, EX_HARNESS, "request to a worker that has ended");
	w->q.magic = WORKER_MAGIC;
	w->q.op = op;
	enum worker_got got = send_all(w, fd, nfds) ? WORKER_GONE : worker_receive(w, timeout_ns);
	res->wall_ns = now_ns() - start;
	if (got == WORKER_SILENT && spawn_stopped(&w->proc)) {
		bury(w, 1);
		res->killed = 1; /* not by the candidate, which has no code in this process but on the GPU */
		res->outcome = WORKER_DIED;
		snprintf(res->text, sizeof res->text, "somebody stopped the worker");
		return 1;
	}
	if (got == WORKER_SILENT) {
		bury(w, 1);
		res->outcome = WORKER_TIMEOUT;
		snprintf(res->text, sizeof res->text, "no end within %.1f s", (double)timeout_ns * 1e-9);
		return 1;
	}
	if (got == WORKER_GONE) {
		res->killed = bury(w, 0);
		res->outcome = WORKER_DIED;
		snprintf(res->text, sizeof res->text, "the worker ended: %s", w->end);
		return 1;
	}
	if (w->r.code) {
		/* its context may be of no use any more */
		bury(w, 1);
		return err_set(e, w->r.code, "%s", w->r.text);
	}
	res->outcome = (enum worker_outcome)w->r.outcome;
	res->elapsed_ns = w->r.elapsed_ns;
	res->rebuilt = w->r.rebuilt;
	w->r.text[sizeof w->r.text - 1] = 0;
	snprintf(res->text, sizeof res->text, "%.*s", (int)sizeof res->text - 1, w->r.text);
	if (res->outcome == WORKER_FAULT)
		bury(w, 0);
	return 0;
}

/* Requests that only our own code can fail. */
int worker_ask_plain(struct worker *w, enum worker_op op, const int *fd, int nfds, struct err *e)
{
	struct worker_result r;
	int rc = ask(w, op, fd, nfds, SLOW_S * SECOND, &r, e);

	if (rc == 1)
		return err_set(e, r.killed || r.outcome == WORKER_TIMEOUT ? EX_AGAIN : EX_HARNESS, "%s", r.text);
	if (rc == 0 && r.outcome != WORKER_OK)
		return err_set(e, EX_HARNESS, "%s", r.text);
	return rc;
}

void worker_stop(struct worker *w)
{
	if (!w)
		return;
	if (w->fd >= 0)
		close(w->fd); /* end of file ends it */
	w->fd = -1;
	if (!w->dead)
		bury(w, 0);
	free(w);
}

int worker_memfd(const char *name, const void *data, size_t len, struct err *e)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "cannot create memfd '%s'", name);
	for (size_t at = 0; at < len;) {
		ssize_t n = write(fd, (const char *)data + at, len - at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			close(fd);
			return err_sys(e, "cannot fill memfd '%s'", name);
		}
		at += (size_t)n;
	}
	return fd;
}

/* ---- what it can do ---- */

static void request_new(struct worker *w)
{
	memset(&w->q, 0, sizeof w->q);
}

int worker_map(struct worker *w, int mem, const struct mem_layout *l, const int *fd, struct err *e)
{
	request_new(w);
	w->q.mem = mem;
	w->q.layout = *l;
	if (l->n > WORKER_FDS)
		return err_set(e, EX_HARNESS, "too many buffers");
	return worker_ask_plain(w, WORKER_OP_MAP, fd, (int)l->n, e);
}

int worker_unmap(struct worker *w, int mem, struct err *e)
{
	request_new(w);
	w->q.mem = mem;
	return worker_ask_plain(w, WORKER_OP_UNMAP, NULL, 0, e);
}

int worker_load(struct worker *w, int slot, const void *cubin, size_t len, const struct launches *l,
		const struct spec *spec, int windows, const int *mem, struct worker_result *r, struct err *e)
{
	struct buf b = BUF_INIT;
	int fd[2], rc = -1;

	memset(r, 0, sizeof *r);
	if (windows < 1 || windows > WORKER_WINDOWS || slot < 0 || slot >= WORKER_SLOTS)
		return err_set(e, EX_HARNESS, "%d windows in slot %d", windows, slot);
	request_new(w);
	w->windows[slot] = windows;
	w->q.slot = slot;
	w->q.windows = windows;
	memcpy(w->q.mems, mem, (size_t)windows * sizeof *mem);
	for (int i = 0; spec && i < spec->ninputs && i < CHECKER_SCALARS; i++)
		w->q.scalar_type[i] = spec->input[i].scalar ? (int32_t)spec->input[i].dtype : DT_NONE;
	wire_launches_put(&b, l);
	w->q.cubin_len = len;
	w->q.launches_len = b.len;
	fd[0] = worker_memfd("artefact", cubin, len, e);
	fd[1] = fd[0] < 0 ? -1 : worker_memfd("launches", b.data, b.len, e);
	if (fd[1] >= 0)
		rc = ask(w, WORKER_OP_LOAD, fd, 2, SLOW_S * SECOND, r, e);
	for (int i = 0; i < 2; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	buf_free(&b);
	return rc < 0 ? -1 : 0;
}

int worker_unload(struct worker *w, int slot, struct err *e)
{
	request_new(w);
	w->q.slot = slot;
	return worker_ask_plain(w, WORKER_OP_UNLOAD, NULL, 0, e);
}

int worker_run(struct worker *w, int slot, const struct worker_run *q, struct worker_result *r,
	       struct err *e)
{
	int64_t limit = q->timeout_ns > 0 ? q->timeout_ns : w->timeout_ns;

	/* the layout, most of a request, is not looked at */
	if (slot < 0 || slot >= WORKER_SLOTS)
		return err_set(e, EX_HARNESS, "no slot %d", slot);
	memset(&w->q, 0, offsetof(struct worker_request, layout));
	w->q.slot = slot;
	w->q.scrub_seed = q->scrub_seed;
	w->q.untimed = q->untimed;
	w->q.drain = q->drain;
	w->q.look = q->look;
	w->q.scalars_set = q->scalars != NULL;
	if (q->scalars)
		memcpy(w->q.scalars, q->scalars, (size_t)w->windows[slot] * sizeof *q->scalars);
	return ask(w, WORKER_OP_RUN, NULL, 0, limit, r, e) < 0 ? -1 : 0;
}

int worker_figures(struct worker *w, struct worker_figures *f, struct err *e)
{
	request_new(w);
	if (worker_ask_plain(w, WORKER_OP_FIGURES, NULL, 0, e))
		return -1;
	*f = w->r.figures;
	return 0;
}

int worker_ceilings(struct worker *w, struct worker_ceilings *c, struct err *e)
{
	request_new(w);
	if (worker_ask_plain(w, WORKER_OP_CEILINGS, NULL, 0, e))
		return -1;
	*c = w->r.ceilings;
	return 0;
}
