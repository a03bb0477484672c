/*
 * checker_call.c - the stage's side of the checker. See checker_call.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "checker_call.h"
#include "buf.h"
#include "checker_wire.h"
#include "spawn.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A reference may be slow; a checker that is silent for longer is broken. One that somebody stopped is not
 * waited for: a GPU's lane may be held meanwhile. */
enum { REPLY_MS = 300000, LOOK_MS = 1000, STOPPED_MS = 5000 };

struct checker {
	struct spawn_proc proc;
	int fd, gpu;
	struct checker_request q;
	struct checker_reply r;
};

static int start(struct checker *c, const struct checker_opts *o, int theirs, struct err *e)
{
	char path[4096];
	const char *argv[16], *env[8] = {"PATH=" SPAWN_PATH, "LC_ALL=C"};
	const char *libraries = getenv("LD_LIBRARY_PATH");
	char *visible = o->gpu ? xasprintf("CUDA_VISIBLE_DEVICES=%s", o->gpu) : NULL;
	char *path_env = o->gpu && libraries ? xasprintf("LD_LIBRARY_PATH=%s", libraries) : NULL;
	int n = 0;
	struct spawn_fd fds[] = {{theirs, CHECKER_FD}};

	/* The driver may lie where only the operator's environment says. */
	env[2] = visible;
	env[3] = path_env;
	int r = spawn_tool("checker", path, sizeof path, e);
	argv[n++] = path;
	argv[n++] = "--device";
	argv[n++] = o->device ? o->device : "emu";
	argv[n++] = "--trial";
	argv[n++] = o->trial;
	argv[n++] = "--stage";
	argv[n++] = o->stage;
	if (o->run_dir) {
		argv[n++] = "--run";
		argv[n++] = o->run_dir;
	}
	if (o->spec_dir) {
		argv[n++] = "--spec";
		argv[n++] = o->spec_dir;
	}
	argv[n] = NULL;
	struct spawn_request q = {.argv = argv, .env = o->gpu ? env : NULL, .fds = fds, .fd_count = 1,
				  .err = SPAWN_KEEP};
	if (r == 0)
		r = spawn_start(&q, &c->proc, e);
	free(visible);
	free(path_env);
	return r;
}

int checker_start(struct checker **out, const struct checker_opts *o, struct err *e)
{
	struct checker *c = xcalloc(1, sizeof *c);
	int pair[2] = {-1, -1};

	*out = NULL;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		err_sys(e, "cannot make a socket pair");
		free(c);
		return -1;
	}
	int r = start(c, o, pair[1], e);
	close(pair[1]);
	c->fd = pair[0];
	c->gpu = o->gpu != NULL;
	if (r < 0) {
		close(pair[0]);
		free(c);
		return -1;
	}
	*out = c;
	return 0;
}

/* It hung up. One that somebody killed says nothing about the trial. */
static int died(struct checker *c, struct err *e)
{
	struct spawn_result r;

	if (c->proc.pid > 0 && spawn_wait(&c->proc, 5, &r, e) == 0) {
		int killed = r.outside;
		spawn_result_free(&r);
		if (killed)
			return err_set(e, EX_AGAIN, "the checker was killed");
	}
	return err_set(e, EX_HARNESS, "the checker died (its message stands above)");
}

void checker_stop(struct checker *c)
{
	struct spawn_result r = {0};
	struct err e;

	if (!c)
		return;
	close(c->fd); /* end of file ends it */
	if (c->proc.pid > 0 && spawn_wait(&c->proc, 5, &r, &e) == 1) {
		spawn_kill(&c->proc);
		spawn_wait(&c->proc, -1, &r, &e);
	}
	spawn_result_free(&r);
	free(c);
}

/* Descriptors that came with a reply. */
struct taken {
	int n, fd[MEM_MAX];
};

static void take_fds(struct msghdr *m, struct taken *t)
{
	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		size_t bytes = h->cmsg_len - CMSG_LEN(0);
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS || bytes > sizeof t->fd)
			continue;
		memcpy(t->fd, CMSG_DATA(h), bytes);
		t->n = (int)(bytes / sizeof(int));
	}
}

static void drop_fds(struct taken *t)
{
	for (int i = 0; i < t->n; i++)
		close(t->fd[i]);
	t->n = 0;
}

static int wait_reply(struct checker *c, struct err *e)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};
	int k, stopped = 0;

	for (int ms = 0; ms < REPLY_MS; ms += LOOK_MS) {
		while ((k = poll(&p, 1, LOOK_MS)) < 0 && errno == EINTR)
			;
		if (k)
			return 0; /* what is there, recvmsg tells */
		stopped = spawn_stopped(&c->proc) ? stopped + LOOK_MS : 0;
		if (stopped < STOPPED_MS)
			continue;
		spawn_kill(&c->proc);
		return err_set(e, EX_AGAIN, "somebody stopped the checker");
	}
	return err_set(e, EX_HARNESS, "the checker does not answer");
}

static int receive(struct checker *c, struct taken *t, struct err *e)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(MEM_MAX * sizeof(int))];
	} control;
	struct iovec v = {&c->r, sizeof c->r};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control,
			   .msg_controllen = sizeof control};

	if (wait_reply(c, e) < 0)
		return -1;
	ssize_t n = recvmsg(c->fd, &m, MSG_CMSG_CLOEXEC);
	if (n != (ssize_t)sizeof c->r || c->r.magic != CHECKER_MAGIC)
		return died(c, e);
	take_fds(&m, t);
	if (c->r.code)
		return err_set(e, c->r.code, "%s", c->r.text);
	return 0;
}

static int ask(struct checker *c, enum checker_op op, struct taken *t, struct err *e)
{
	struct taken none = {0};

	c->q.magic = CHECKER_MAGIC;
	c->q.op = op;
	if (send(c->fd, &c->q, sizeof c->q, MSG_NOSIGNAL) != (ssize_t)sizeof c->q)
		return died(c, e);
	int r = receive(c, t ? t : &none, e);
	drop_fds(&none);
	return r;
}

int checker_draw(struct checker *c, enum checker_mode mode, uint32_t index, int emu,
		 struct axes *out, struct err *e)
{
	memset(&c->q, 0, sizeof c->q);
	c->q.open.mode = mode;
	c->q.open.index = index;
	c->q.open.emu = emu;
	if (ask(c, CHECKER_OP_DRAW, NULL, e) < 0)
		return -1;
	*out = c->r.axes;
	return 0;
}

int checker_open(struct checker *c, const struct checker_open *o, struct checker_work *w,
		 struct err *e)
{
	struct taken t = {0};

	memset(&c->q, 0, sizeof c->q);
	memset(w, 0, sizeof *w);
	w->in_fd = w->rw_fd = -1;
	c->q.open = *o;
	int r = ask(c, CHECKER_OP_OPEN, &t, e);
	if (r == 0 && t.n != (c->gpu ? (int)c->r.layout.n : 2))
		r = err_set(e, EX_HARNESS, "the checker handed over no memory");
	if (r < 0) {
		drop_fds(&t);
		return -1;
	}
	if (c->gpu) {
		w->nfds = t.n;
		memcpy(w->fd, t.fd, sizeof w->fd);
	} else {
		w->in_fd = t.fd[0];
		w->rw_fd = t.fd[1];
	}
	w->id = c->r.work;
	w->open = 1;
	w->ref_ns = c->r.ref_ns;
	w->axes = c->r.axes;
	w->layout = c->r.layout;
	w->regimes = c->r.regimes;
	return 0;
}

void checker_close(struct checker *c, struct checker_work *w)
{
	if (!w->open)
		return;
	if (w->in_fd >= 0)
		close(w->in_fd);
	if (w->rw_fd >= 0)
		close(w->rw_fd);
	for (int i = 0; i < w->nfds; i++)
		close(w->fd[i]);
	w->in_fd = w->rw_fd = -1;
	w->nfds = w->open = 0;
	memset(&c->q, 0, sizeof c->q);
	c->q.work = w->id;
	ask(c, CHECKER_OP_CLOSE, NULL, NULL);
}

int checker_prepare(struct checker *c, const struct checker_work *w, const struct checker_prep *p,
		    double scalars[CHECKER_SCALARS], struct err *e)
{
	memset(&c->q, 0, sizeof c->q);
	c->q.work = w->id;
	c->q.prep = *p;
	if (ask(c, CHECKER_OP_PREPARE, NULL, e) < 0)
		return -1;
	memcpy(scalars, c->r.scalars, sizeof c->r.scalars);
	return 0;
}

int checker_verify(struct checker *c, const struct checker_work *w, struct compare_result *out,
		   struct err *e)
{
	memset(&c->q, 0, sizeof c->q);
	c->q.work = w->id;
	if (ask(c, CHECKER_OP_VERIFY, NULL, e) < 0)
		return -1;
	*out = c->r.result;
	return 0;
}

int checker_again(struct checker *c, const struct checker_work *w, int *same, struct err *e)
{
	memset(&c->q, 0, sizeof c->q);
	c->q.work = w->id;
	if (ask(c, CHECKER_OP_AGAIN, NULL, e) < 0)
		return -1;
	*same = c->r.same;
	return 0;
}

int checker_copy(struct checker *c, const struct checker_work *w, enum checker_way way, int *in_fd,
		 int *rw_fd, struct err *e)
{
	struct taken t = {0};

	memset(&c->q, 0, sizeof c->q);
	c->q.work = w->id;
	c->q.way = way;
	int r = ask(c, CHECKER_OP_COPY, &t, e);
	if (r == 0 && in_fd && t.n != 2)
		r = err_set(e, EX_HARNESS, "the checker handed over no copies");
	if (r < 0 || !in_fd) {
		drop_fds(&t);
		return r;
	}
	*in_fd = t.fd[0];
	*rw_fd = t.fd[1];
	return 0;
}

int checker_touch(struct checker *c, const struct checker_work *w, enum checker_way way, uint32_t buffer,
		  int64_t at, struct err *e)
{
	memset(&c->q, 0, sizeof c->q);
	c->q.work = w->id;
	c->q.way = way;
	c->q.buffer = buffer;
	c->q.at = at;
	return ask(c, CHECKER_OP_COPY, NULL, e);
}

int checker_mac(struct checker *c, const void *data, size_t len, char out[HASH_HEX], struct err *e)
{
	memset(&c->q, 0, sizeof c->q);
	hash_bytes(data, len, c->q.digest);
	if (ask(c, CHECKER_OP_MAC, NULL, e) < 0)
		return -1;
	memcpy(out, c->r.hex, HASH_HEX);
	return 0;
}

int checker_mac_fn(void *c, const void *data, size_t len, char out[HASH_HEX], struct err *e)
{
	return checker_mac(c, data, len, out, e);
}

int checker_mac_ok(struct checker *c, const void *data, size_t len, const char *mac, int *ok,
		   struct err *e)
{
	char want[HASH_HEX];

	if (checker_mac(c, data, len, want, e) < 0)
		return -1;
	*ok = hash_is_hex(mac) && hash_equal(mac, want, HASH_HEX - 1);
	return 0;
}

int checker_subkey(struct checker *c, char out[HASH_HEX], struct err *e)
{
	memset(&c->q, 0, sizeof c->q);
	if (ask(c, CHECKER_OP_SUBKEY, NULL, e) < 0)
		return -1;
	memcpy(out, c->r.hex, HASH_HEX);
	return 0;
}
