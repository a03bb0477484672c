/*
 * worker.c - runs candidate code on a GPU; answers a stage's requests.
 *
 * Holds one CUDA context, the memory of the rep now in work (inputs read-only) and nothing else: no
 * key, no reference, no other input set, no file of the repository. It confines itself before the
 * driver starts, as tightly as its argument says (stages/lib/worker_cage.h), and reports the layers that
 * hold. Single-threaded, but for the driver's threads. After a fault it answers once more and ends.
 * Requests come over descriptor 3. Its deadline is kept by who asks, and kills.
 *
 * SPDX-License-Identifier: MIT
 */
#include "worker_cage.h"
#include "worker_slot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const char HELP[] =
	"worker - runs candidate code on a GPU; started by judge, bench, unittest, tune, check\n"
	"\n"
	"usage: worker CAGE\n"
	"\n"
	"  CAGE   how tightly to confine itself: 0 (most) to 3\n"
	"\n"
	"Speaks on descriptor 3 only. Not for people.\n";

enum { CUBIN_MOST = 256 << 20, ATTR_MAJOR = 75, ATTR_MINOR = 76 };

static struct rep rep;
static CUdevice dev;
static int started;

/* ---- requests ---- */

static const void *fd_map(int fd, uint64_t len, struct err *e)
{
	struct stat st;

	if (len == 0 || len > CUBIN_MOST || fstat(fd, &st) || st.st_size < (off_t)len) {
		err_set(e, EX_HARNESS, "a memory file does not fit its request");
		return NULL;
	}
	void *p = mmap(NULL, (size_t)len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED) {
		err_sys(e, "cannot map a memory file");
		return NULL;
	}
	return p;
}

static int do_start(const struct worker_request *q, const int *fd, int nfds, struct err *e)
{
	const void *cubin = nfds == 1 && !started ? fd_map(fd[0], q->cubin_len, e) : NULL;

	if (!cubin)
		return nfds == 1 && !started ? -1 : err_set(e, EX_HARNESS, "not a start");
	int rc = rep_open(&rep, dev, cubin, e);
	munmap((void *)(uintptr_t)cubin, (size_t)q->cubin_len);
	started = rc == 0;
	return rc;
}

static int do_load(const struct worker_request *q, const int *fd, int nfds, struct worker_reply *r,
		   struct err *e)
{
	struct launches l = {0};

	if (nfds != 2)
		return err_set(e, EX_HARNESS, "a load without its files");
	const void *cubin = fd_map(fd[0], q->cubin_len, e);
	const void *text = cubin ? fd_map(fd[1], q->launches_len, e) : NULL;
	int rc = text ? wire_launches_get(text, (size_t)q->launches_len, &l, e) : -1;
	if (rc == 0)
		rc = slot_load(q, cubin, &l, r, e);
	launches_free(&l);
	if (text)
		munmap((void *)(uintptr_t)text, (size_t)q->launches_len);
	if (cubin)
		munmap((void *)(uintptr_t)cubin, (size_t)q->cubin_len);
	return rc;
}

static int serve(const struct worker_request *q, const int *fd, int nfds, struct worker_reply *r,
		 struct err *e)
{
	if (!started && q->op != WORKER_OP_START)
		return err_set(e, EX_HARNESS, "the worker was not started");
	switch (q->op) {
	case WORKER_OP_START: return do_start(q, fd, nfds, e);
	case WORKER_OP_MAP: return slot_map(q, fd, nfds, e);
	case WORKER_OP_UNMAP: return slot_unmap(q, e);
	case WORKER_OP_LOAD: return do_load(q, fd, nfds, r, e);
	case WORKER_OP_UNLOAD: return slot_unload(q, e);
	case WORKER_OP_RUN: return slot_run(&rep, q, r, e);
	case WORKER_OP_FIGURES: return rep_figures(&rep, &r->figures, e);
	case WORKER_OP_CEILINGS: return rep_ceilings(&rep, &r->ceilings, e);
	default: return err_set(e, EX_HARNESS, "unknown request %u", q->op);
	}
}

/* ---- the socket ---- */

static ssize_t receive(struct worker_request *q, int fd[WORKER_FDS], int *nfds)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(WORKER_FDS * sizeof(int))];
	} control;
	struct iovec v = {q, sizeof *q};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control,
			   .msg_controllen = sizeof control};
	ssize_t n;

	*nfds = 0;
	while ((n = recvmsg(WORKER_FD, &m, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		;
	for (struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&m) : NULL; h; h = CMSG_NXTHDR(&m, h)) {
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		size_t bytes = h->cmsg_len - CMSG_LEN(0);
		*nfds = (int)(bytes / sizeof(int));
		memcpy(fd, CMSG_DATA(h), bytes);
	}
	return n;
}

static int answer(struct worker_reply *r)
{
	r->magic = WORKER_MAGIC;
	return send(WORKER_FD, r, sizeof *r, MSG_NOSIGNAL) == (ssize_t)sizeof *r ? 0 : -1;
}

static void failed(struct worker_reply *r, const struct err *e)
{
	r->code = e->code ? e->code : EX_HARNESS;
	snprintf(r->text, sizeof r->text, "%s", e->text);
}

static int loop(void)
{
	static struct worker_request q;
	static struct worker_reply r;
	int fd[WORKER_FDS], nfds;

	for (;;) {
		struct err e = {0};
		ssize_t n = receive(&q, fd, &nfds);
		if (n == 0)
			return EX_DONE; /* the stage is done */
		if (n != (ssize_t)sizeof q || q.magic != WORKER_MAGIC)
			die(EX_HARNESS, "malformed request");
		memset(&r, 0, sizeof r);
		if (serve(&q, fd, nfds, &r, &e) < 0)
			failed(&r, &e);
		for (int i = 0; i < nfds; i++)
			close(fd[i]);
		if (answer(&r) < 0 || r.outcome == WORKER_FAULT)
			return EX_DONE;
	}
}

static int hello(int cage, struct worker_reply *r, struct err *e)
{
	struct confine_report report = {0};

	if (cuda_open(e) < 0)
		return -1;
	r->driver = 1;
	if (worker_cage_enter(cage, confine_ns_parse(getenv("TS_NAMESPACES")), &report, e) < 0 || cuda_start(&dev, e) < 0)
		return -1;
	snprintf(r->layers, sizeof r->layers, "%s", report.layers);
	cu.DeviceGetAttribute(&r->capability[0], ATTR_MAJOR, dev);
	cu.DeviceGetAttribute(&r->capability[1], ATTR_MINOR, dev);
	return 0;
}

int main(int argc, char **argv)
{
	static struct worker_reply r;
	struct err e = {0};

	prog_name("worker");
	if (argc == 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
		fputs(HELP, stdout);
		return EX_DONE;
	}
	int cage = argc == 2 ? atoi(argv[1]) : -1;
	if (cage < 0 || cage >= WORKER_CAGES)
		die(EX_BADUSE, "wants a cage from 0 to %d; -h for help", WORKER_CAGES - 1);
	int rc = hello(cage, &r, &e);
	if (rc < 0)
		failed(&r, &e);
	if (answer(&r) < 0 || rc < 0)
		_exit(rc < 0 ? r.code : EX_DONE);
	/* no clean-up of the context: its end takes the driver 60 ms, the process's end as well */
	_exit(loop());
}
