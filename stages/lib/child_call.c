/*
 * child_call.c - see child_call.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "child_call.h"

#include "defence.h"
#include "file.h"
#include "hash.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x10u /* wanted by kernels from 6.3 on, unknown to older ones */
#endif

enum { FDS_MAX = 12, ARGS_MAX = 16 };
#define MEMORY_DEFAULT (4ull << 30)
#define CPU_DEFAULT 60u

static int memory_fill(int fd, const struct buf *image, struct err *e)
{
	for (size_t done = 0; done < image->len;) {
		ssize_t n = write(fd, image->data + done, image->len - done);
		if (n <= 0)
			return err_sys(e, "cannot copy an image to memory");
		done += (size_t)n;
	}
	if (fchmod(fd, 0111))
		return err_sys(e, "cannot set the mode of an image");
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
		return err_sys(e, "cannot seal an image");
	return 0;
}

/* What is hashed is what runs: one read, then a sealed copy. Without the right to read its own
 * image the child is not dumpable, so not even another child of the same uid can look inside. */
static int image_seal(const struct child_request *q, struct err *e)
{
	struct buf image = BUF_INIT;
	char sha[HASH_HEX];
	if (file_read(q->image, CHILD_IMAGE_MAX, &image, e))
		return -1;
	hash_hex(image.data, image.len, sha);
	int fd = -1;
	if (strcmp(sha, q->sha256) != 0 && DEFENCE("child.sha256")) {
		err_set(e, EX_BADINPUT, "'%s' is not the artefact of its verdict: its sha256 differs", q->image);
	} else {
		fd = memfd_create("image", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
		if (fd < 0)
			fd = memfd_create("image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (fd < 0)
			err_sys(e, "cannot make a memory file for '%s'", q->image);
		else if (memory_fill(fd, &image, e)) {
			close(fd);
			fd = -1;
		}
	}
	buf_free(&image);
	return fd;
}

/* "ok LAYERS", then, if exec failed, "err CODE TEXT". */
static int report_parse(const struct child_request *q, struct child *c, char *text, struct err *e)
{
	char *line = text, *next;
	for (; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (strncmp(line, "ok ", 3) == 0)
			snprintf(c->isolation, sizeof c->isolation, "%s", line + 3);
		if (strncmp(line, "err ", 4) == 0) {
			char *rest;
			long code = strtol(line + 4, &rest, 10);
			return err_set(e, (int)code, "cannot run '%s': %s", q->image, rest + (*rest == ' '));
		}
	}
	if (!c->isolation[0])
		return err_set(e, EX_HARNESS, "cannot run '%s': the child said nothing", q->image);
	return 0;
}

static int report_read(const struct child_request *q, struct child *c, int fd, struct err *e)
{
	char text[2048];
	size_t len = 0;
	for (;;) {
		ssize_t n = read(fd, text + len, sizeof text - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	text[len] = '\0';
	return report_parse(q, c, text, e);
}

struct pipes {
	int to[2], from[2], report[2];
};

static void ends_close(int *ends)
{
	for (int i = 0; i < 2; i++)
		if (ends[i] >= 0)
			close(ends[i]);
	ends[0] = ends[1] = -1;
}

static int launcher_start(const struct child_request *q, struct child *c, int image,
			  const struct pipes *p, struct err *e)
{
	char path[PATH_MAX], cpu[16], memory[24], cpu_s[24];
	if (spawn_tool("child", path, sizeof path, e))
		return -1;
	struct spawn_fd fds[FDS_MAX] = {
		{p->to[0], 3}, {p->from[1], 4}, {image, CHILD_FD_IMAGE}, {p->report[1], CHILD_FD_REPORT}};
	size_t n = 4;
	for (size_t i = 0; i < q->fd_count; i++) {
		if (n == FDS_MAX || q->fds[i].child < 5 || q->fds[i].child >= CHILD_FILES)
			return err_set(e, EX_HARNESS, "not a descriptor for a child: %d", q->fds[i].child);
		fds[n++] = q->fds[i];
	}
	snprintf(cpu, sizeof cpu, "%d", q->cpu);
	snprintf(memory, sizeof memory, "%llu", (unsigned long long)c->memory);
	snprintf(cpu_s, sizeof cpu_s, "%llu", (unsigned long long)c->cpu_s);
	const char *argv[ARGS_MAX] = {path, q->sanitize ? "sanitize" : "fast", cpu, memory, cpu_s};
	size_t k = 5;
	for (const char *const *a = q->args; a && *a; a++) {
		if (k == ARGS_MAX - 1)
			return err_set(e, EX_HARNESS, "too many arguments for a child");
		argv[k++] = *a;
	}
	struct spawn_request s = {
		.argv = argv, .env = (const char *const[]){NULL}, .cwd = "/", .fds = fds, .fd_count = n,
		.err = SPAWN_SPILL, .err_cap = CHILD_LOG_MAX, .wall_s = q->wall_s,
		.namespaces = CONFINE_NS_ALL};
	return spawn_start(&s, &c->proc, e);
}

static int pipes_make(struct pipes *p, struct err *e)
{
	if (pipe2(p->to, O_CLOEXEC) || pipe2(p->from, O_CLOEXEC) || pipe2(p->report, O_CLOEXEC))
		return err_sys(e, "cannot make pipes for a child");
	return 0;
}

int child_start(const struct child_request *q, struct child *c, struct err *e)
{
	struct pipes p = {{-1, -1}, {-1, -1}, {-1, -1}};
	memset(c, 0, sizeof *c);
	c->to = c->from = -1;
	c->memory = q->memory ? q->memory : MEMORY_DEFAULT;
	c->cpu_s = q->cpu_s ? q->cpu_s : CPU_DEFAULT;
	c->sanitize = q->sanitize;
	signal(SIGPIPE, SIG_IGN);
	int image = image_seal(q, e);
	if (image < 0)
		return -1;
	int rc = pipes_make(&p, e);
	if (rc == 0)
		rc = launcher_start(q, c, image, &p, e);
	close(image);
	if (rc == 0) {
		/* our copies of its ends, or we would never see it go */
		close(p.report[1]);
		close(p.to[0]);
		close(p.from[1]);
		p.report[1] = p.to[0] = p.from[1] = -1;
		rc = report_read(q, c, p.report[0], e);
		if (rc) {
			struct child_end end;
			if (child_wait(c, 1, &end, NULL) == 1) {
				child_kill(c);
				child_wait(c, -1, &end, NULL);
			}
			if (!c->isolation[0] && end.outside)
				err_set(e, EX_AGAIN, "the child was killed before it ran anything");
			child_end_free(&end);
		} else {
			c->to = p.to[1];
			c->from = p.from[0];
			p.to[1] = p.from[0] = -1;
		}
	}
	ends_close(p.to);
	ends_close(p.from);
	ends_close(p.report);
	return rc;
}

void child_kill(struct child *c)
{
	spawn_kill(&c->proc);
}

/* The kernel counts ticks against this limit but reports time that it measured: on a busy machine
 * one second of the limit may be 0.7 s of use. A kill that is not ours leaves little else. */
static int cpu_over(const struct child *c, const struct spawn_result *r)
{
	return r->signal == SIGXCPU || (r->signal == SIGKILL && !c->proc.killed &&
					r->user_s + r->sys_s >= 0.5 * (double)c->cpu_s);
}

static void end_words(const struct child *c, struct child_end *end, const struct spawn_result *r)
{
	char words[96];
	end->forbidden = r->signal == SIGSYS;
	if (c->over_memory)
		snprintf(end->words, sizeof end->words, "memory limit");
	else if (end->forbidden)
		snprintf(end->words, sizeof end->words, "forbidden system call");
	else if (cpu_over(c, r))
		snprintf(end->words, sizeof end->words, "processor time limit");
	else
		snprintf(end->words, sizeof end->words, "%s", spawn_words(r, words));
}

static int killed;

int child_was_killed(void)
{
	return killed;
}

int child_wait(struct child *c, double timeout_s, struct child_end *end, struct err *e)
{
	struct spawn_result r;
	memset(end, 0, sizeof *end);
	int rc = spawn_wait(&c->proc, timeout_s, &r, e);
	if (rc == 1)
		return 1;
	if (c->to >= 0)
		close(c->to);
	if (c->from >= 0)
		close(c->from);
	c->to = c->from = -1;
	if (rc)
		return rc;
	end->code = r.code;
	end->signal = r.signal;
	end->timed_out = r.timed_out;
	end->outside = r.outside;
	killed |= r.outside;
	end->user_s = r.user_s;
	end->sys_s = r.sys_s;
	end->max_rss = r.max_rss;
	end_words(c, end, &r);
	end->log = r.err;
	r.err = (struct buf)BUF_INIT;
	spawn_result_free(&r);
	return 0;
}

void child_end_free(struct child_end *end)
{
	buf_free(&end->log);
}

int child_cpu(const struct child *c, double *out)
{
	clockid_t clock;
	struct timespec t;
	if (c->proc.pid <= 0 || clock_getcpuclockid(c->proc.pid, &clock) || clock_gettime(clock, &t))
		return -1;
	*out = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
	return 0;
}

static uint64_t resident(pid_t pid)
{
	char path[64];
	unsigned long long total = 0, pages = 0;
	snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%llu %llu", &total, &pages) != 2)
		pages = 0;
	fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

int child_over(struct child *c)
{
	struct timespec t;
	if (c->proc.pid <= 0 || c->proc.done)
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &t);
	double now = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
	if (c->proc.deadline > 0 && now >= c->proc.deadline)
		c->proc.timed_out = 1;
	else if (resident(c->proc.pid) > c->memory)
		c->over_memory = 1;
	else
		return 0;
	child_kill(c);
	return 1;
}
