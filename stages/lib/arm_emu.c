/*
 * arm_emu.c - an arm on the emulation: a confined child that holds the image. See arm.h.
 *
 * Writes the launch script (stages/emu/protocol.h) into a memfd of its own, starts the image
 * through child_call.h with the two memory files reopened read-only and read-write, and times
 * request and reply. Never parses what a candidate prints beyond handing it on as text.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arm_emu_part.h"
#include "defence.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Put this rep's scalars into the launches. Returns 1 if any differs from what is mapped. */
static int scalars_set(struct arm *a, struct emu *m, const double *v)
{
	int changed = !m->mapped;

	for (int i = 0; v && i < a->spec->ninputs; i++) {
		const struct spec_tensor *t = &a->spec->input[i];
		uint8_t data[8] = {0};

		if (!t->scalar)
			continue;
		if (m->mapped && !memcmp(&v[i], &m->scalar[i], sizeof v[i]))
			continue;
		m->scalar[i] = v[i];
		changed = 1;
		dtype_store(t->dtype, data, 0, v[i]);
		launches_scalar(&a->l, i, data, (int)dtype_size(t->dtype));
	}
	return changed;
}

/* ---- talking ---- */

static int send_all(int fd, const void *data, size_t n)
{
	const char *p = data;

	while (n) {
		ssize_t k = write(fd, p, n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return -1;
		p += k;
		n -= (size_t)k;
	}
	return 0;
}

/* 0 done; 1 deadline or resource limit; -1 end of file. */
static int recv_all(struct emu *m, void *data, size_t n, int64_t deadline)
{
	char *p = data;

	while (n) {
		int64_t left = deadline - arm_now_ns();
		struct pollfd f = {.fd = m->child.from, .events = POLLIN};

		if (left <= 0 || child_over(&m->child))
			return 1;
		int64_t ms = left / 1000000 + 1;
		int k = poll(&f, 1, ms > 100 ? 100 : (int)ms);
		if (k < 0 && errno != EINTR)
			return -1;
		if (k <= 0)
			continue;
		ssize_t got = read(f.fd, p, n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -1;
		p += got;
		n -= (size_t)got;
	}
	return 0;
}

static void add_text(struct arm_result *out, const char *s, size_t n)
{
	size_t have = strlen(out->text), room = sizeof out->text - 1 - have;

	if (n > room)
		n = room;
	/* Untrusted: printable ASCII and newlines only. */
	for (size_t i = 0; i < n; i++)
		out->text[have + i] = (s[i] >= ' ' && s[i] <= '~') || s[i] == '\n' ? s[i] : '?';
	out->text[have + n] = 0;
}

/* The child is beyond use: reap it and say how it ended. */
static void bury(struct emu *m, struct arm_result *out, enum arm_status status)
{
	struct child_end end;
	struct err e;
	/* One that closed its pipe is about to exit by itself: let it, for its exit code. */
	double grace = status == ARM_PROTOCOL || status == ARM_SANITIZER ? 1 : 0.05;

	m->dead = 1;
	if (status == ARM_TIMEOUT)
		child_kill(&m->child);
	int k = child_wait(&m->child, grace, &end, &e);
	if (k == 1) {
		child_kill(&m->child);
		k = child_wait(&m->child, -1, &end, &e);
	}
	m->started = 0;
	if (!out) {
		if (k == 0)
			child_end_free(&end);
		return;
	}
	out->status = status;
	if (k != 0)
		return;
	out->killed = end.outside;
	if (status == ARM_PROTOCOL && (end.signal || end.forbidden))
		out->status = ARM_FAULT;
	if (status == ARM_PROTOCOL && (end.timed_out || end.signal == SIGXCPU))
		out->status = ARM_TIMEOUT;
	if (!out->text[0]) {
		add_text(out, "the kernel's process ended: ", 28);
		add_text(out, end.words, strlen(end.words));
	}
	if (end.log.len) {
		add_text(out, "\n", 1);
		add_text(out, buf_str(&end.log), end.log.len);
	}
	child_end_free(&end);
}

static enum arm_status status_of(uint32_t emu)
{
	switch (emu) {
	case EMU_OK: return ARM_OK;
	case EMU_SANITIZER: return ARM_SANITIZER;
	case EMU_RACE: return ARM_RACE;
	case EMU_BARRIER_DIVERGENCE: return ARM_BARRIER;
	case EMU_DEADLOCK: return ARM_DEADLOCK;
	case EMU_NOT_EMULABLE: return ARM_REFUSED;
	case EMU_TIME_LIMIT: return ARM_TIMEOUT;
	case EMU_FAULT_SEGV:
	case EMU_FAULT_FPE:
	case EMU_BAD_STATE:
	case EMU_TRAP: return ARM_FAULT;
	default: return ARM_PROTOCOL;
	}
}

/* "buffer 2" -> "buffer 'y'": people know names. */
static void name_buffers(const struct emu *m, char *text, size_t size)
{
	char *p = strstr(text, "buffer "), *end;
	char rest[EMU_MAX_TEXT];

	if (!p || p[7] < '0' || p[7] > '9')
		return;
	long n = strtol(p + 7, &end, 10);
	for (uint32_t i = 0; i < m->layout.n; i++) {
		if (m->layout.buf[i].bytes == 0 || n-- != 0)
			continue;
		snprintf(rest, sizeof rest, "%s", end);
		snprintf(p + 7, size - (size_t)(p + 7 - text), "'%s'%s", m->layout.buf[i].name, rest);
		return;
	}
}

/* Between a reply and the next command the child stands still. Who replies before the work is done
 * cannot finish it while the outputs are looked at, and who sees new inputs arrive cannot begin: all
 * that it does lies between two stops, and its CPU clock between them misses nothing. */
static void hold(struct emu *m)
{
	siginfo_t info;

	if (!m->started || m->dead || m->held || !DEFENCE("child.hold") || kill(m->child.proc.pid, SIGSTOP))
		return;
	/* An end is left for child_wait to find. */
	while (waitid(P_PID, (id_t)m->child.proc.pid, &info, WSTOPPED | WEXITED | WNOWAIT) &&
	       errno == EINTR)
		;
	m->held = 1;
}

static void let_go(struct emu *m)
{
	if (m->held)
		kill(m->child.proc.pid, SIGCONT);
	m->held = 0;
}

/* Something to read before anything was asked: its last reply was not its last. */
static int chatters(const struct emu *m)
{
	struct pollfd f = {.fd = m->child.from, .events = POLLIN};

	return poll(&f, 1, 0) > 0 && (f.revents & POLLIN);
}

/* One command and its reply. Fills out->status, text, wall_ns. */
static void talk(struct emu *m, const struct emu_command *c, struct arm_result *out)
{
	struct emu_reply r;
	char skip[EMU_MAX_LOG];

	if (chatters(m)) {
		snprintf(out->text, sizeof out->text, "the kernel's process replied unasked");
		child_kill(&m->child);
		bury(m, out, ARM_PROTOCOL);
		out->status = ARM_PROTOCOL; /* the kill was ours */
		return;
	}
	let_go(m);
	int64_t start = arm_now_ns(), deadline = start + m->timeout_ns;
	int k = send_all(m->child.to, c, sizeof *c) < 0 ? -1 : recv_all(m, &r, sizeof r, deadline);

	out->wall_ns = arm_now_ns() - start;
	if (k == 1) {
		snprintf(out->text, sizeof out->text, "no end within %.1f s, or memory limit reached",
			 (double)m->timeout_ns * 1e-9);
		bury(m, out, ARM_TIMEOUT);
		return;
	}
	if (k < 0 || r.magic != EMU_MAGIC || r.text_bytes > EMU_MAX_TEXT || r.log_bytes > EMU_MAX_LOG) {
		bury(m, out, ARM_PROTOCOL);
		return;
	}
	if (recv_all(m, out->text, r.text_bytes < sizeof out->text ? r.text_bytes : 0, deadline) ||
	    recv_all(m, skip, r.log_bytes, deadline)) {
		bury(m, out, ARM_PROTOCOL);
		return;
	}
	out->text[r.text_bytes < sizeof out->text ? r.text_bytes : 0] = 0;
	name_buffers(m, out->text, sizeof out->text);
	out->status = status_of(r.status);
	if (r.status != EMU_OK) {
		bury(m, out, out->status);
	} else {
		hold(m);
		out->text[0] = 0;
	}
}

/* ---- the arm ---- */

static int reopen(int fd, int flags, struct err *e)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int n = open(path, flags | O_CLOEXEC);
	if (n < 0 && errno == EACCES) /* the checker is not dumpable, so its /proc is not its own */
		n = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return n < 0 ? err_sys(e, "cannot reopen a memory file") : n;
}

static int emu_start(struct arm *a, struct emu *m, const struct arm_opts *o, struct err *e)
{
	int ro = reopen(o->in_fd, DEFENCE("readonly.inputs") ? O_RDONLY : O_RDWR, e), script = -1, r = -1;

	if (ro >= 0)
		script = reopen(m->script_fd, O_RDONLY, e);
	if (script >= 0) {
		struct spawn_fd fds[] = {{ro, EMU_FD_RO}, {o->rw_fd, EMU_FD_RW}, {script, EMU_FD_SCRIPT}};
		struct child_request q = {
			.image = o->artefact, .sha256 = o->artefact_sha, .sanitize = o->sanitize,
			.fds = fds, .fd_count = 3, .cpu_s = 3600, .cpu = -1,
		};
		r = child_start(&q, &m->child, e);
	}
	if (r == 0) {
		m->started = 1;
		snprintf(a->isolation, sizeof a->isolation, "%s", m->child.isolation);
	}
	if (ro >= 0)
		close(ro);
	if (script >= 0)
		close(script);
	return r;
}

static void emu_close(struct arm *a)
{
	struct emu *m = a->impl;

	if (m->started) {
		struct emu_command c = {.magic = EMU_MAGIC, .kind = EMU_CMD_QUIT};
		let_go(m);
		send_all(m->child.to, &c, sizeof c);
		bury(m, NULL, ARM_OK);
	}
	if (m->script_fd >= 0)
		close(m->script_fd);
	buf_free(&m->script);
	free(m);
}

static int emu_open(struct arm *a, const struct arm_opts *o, struct err *e)
{
	struct emu *m = xcalloc(1, sizeof *m);

	a->impl = m;
	signal(SIGPIPE, SIG_IGN); /* a dead child is a result, seen as EPIPE */
	m->sanitize = o->sanitize;
	m->layout = *o->layout;
	m->timeout_ns = o->timeout_ns > 0 ? o->timeout_ns : 10000000000;
	m->cpu_at_reply = -1;
	m->script_fd = memfd_create("script", MFD_CLOEXEC);
	if (m->script_fd < 0)
		err_sys(e, "cannot create memfd 'script'");
	else if (script_make(a, m, o->plan, e) == 0 && emu_start(a, m, o, e) == 0)
		return 0;
	emu_close(a);
	return -1;
}

/* The script with the scalars of now. */
static int script_put(struct arm *a, struct emu *m, struct err *e)
{
	size_t at = m->script.len;

	/* The args stand last, in launch order: write the scalars over what is there. */
	for (int i = a->l.n - 1; i >= 0; i--)
		for (int k = a->l.launch[i].nargs - 1; k >= 0; k--) {
			struct emu_arg o;
			at -= sizeof o;
			if (a->l.launch[i].arg[k].kind != ARG_SCALAR)
				continue;
			if (script_arg(m, &a->l.launch[i].arg[k], &o, e) < 0)
				return -1;
			memcpy(m->script.data + at, &o, sizeof o);
		}
	if (ftruncate(m->script_fd, (off_t)m->script.len) < 0 ||
	    pwrite(m->script_fd, m->script.data, m->script.len, 0) != (ssize_t)m->script.len)
		return err_sys(e, "cannot write the launch script");
	return 0;
}

static int64_t emu_late(struct arm *a)
{
	struct emu *m = a->impl;
	double now;

	if (m->cpu_at_reply < 0 || m->dead || child_cpu(&m->child, &now) < 0)
		return -1;
	return (int64_t)((now - m->cpu_at_reply) * 1e9);
}

static void emu_wipe(struct arm *a, struct arm_result *out)
{
	struct emu *m = a->impl;
	struct emu_command c = {.magic = EMU_MAGIC, .kind = EMU_CMD_WIPE};

	if (m->dead || !m->mapped || !DEFENCE("image.restore"))
		return;
	m->late_at_wipe = emu_late(a);
	talk(m, &c, out);
	if (out->status == ARM_OK && child_cpu(&m->child, &m->cpu_at_reply))
		bury(m, out, ARM_PROTOCOL);
}

static int emu_run(struct arm *a, const struct arm_run_opts *r, struct arm_result *out,
		   struct err *e)
{
	struct emu *m = a->impl;
	double before = 0;
	struct emu_command c = {
		.magic = EMU_MAGIC, .kind = EMU_CMD_RUN, .order = (uint32_t)r->order,
		.order_seed = r->order_seed, .poison_seed = r->scrub_seed,
	};

	if (m->dead)
		return err_set(e, EX_HARNESS, "run on an arm that has failed");
	int64_t late = m->cpu_at_reply < 0 ? 0 : emu_late(a);
	if (late >= 0 && m->late_at_wipe > 0)
		late += m->late_at_wipe;
	m->late_at_wipe = 0;
	int changed = scalars_set(a, m, r->scalars);
	if (changed && script_put(a, m, e) < 0)
		return -1;
	if (!m->mapped) {
		struct emu_command map = {.magic = EMU_MAGIC, .kind = EMU_CMD_MAP};
		talk(m, &map, out);
		m->mapped = out->status == ARM_OK;
	} else if (changed || m->args_moved) { /* a wipe brings those of MAP back */
		m->args_moved = 1;
		c.flags = EMU_COMMAND_ARGS;
	}
	c.flags |= DEFENCE("scrub.shared") ? 0 : EMU_COMMAND_SHARED_AS_IS;
	out->late_ns = late;
	if (out->status != ARM_OK)
		return 0;
	if (child_cpu(&m->child, &before)) {
		bury(m, out, ARM_PROTOCOL); /* gone since its last reply: it has no clock */
		return 0;
	}
	talk(m, &c, out);
	if (out->status != ARM_OK)
		return 0;
	if (child_cpu(&m->child, &m->cpu_at_reply)) {
		bury(m, out, ARM_PROTOCOL);
		return 0;
	}
	out->cpu_ns = out->elapsed_ns = (int64_t)((m->cpu_at_reply - before) * 1e9);
	return 0;
}

static int emu_alive(struct arm *a)
{
	return !((struct emu *)a->impl)->dead;
}

const struct arm_ops ARM_EMU_OPS = {.open = emu_open, .run = emu_run, .close = emu_close, .alive = emu_alive,
				     .late = emu_late, .wipe = emu_wipe};
