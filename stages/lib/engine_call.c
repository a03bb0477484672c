/*
 * engine_call.c - see engine_call.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_call.h"

#include "../engine/engine_protocol.h"
#include "engine_cage.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { END_S = 10 };

const char *engine_outcome_name(enum engine_outcome o)
{
	static const char *const NAME[] = {"ok", "died", "timeout", "early", "extra", "garbage", "range"};
	return (size_t)o < sizeof NAME / sizeof *NAME ? NAME[o] : "?";
}

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int left_ms(int64_t until)
{
	int64_t ms = (until - now_ns() + 999999) / 1000000;
	return ms < 0 ? 0 : ms > INT_MAX ? INT_MAX : (int)ms;
}

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* 1: n more bytes are in p; 0: not all by then, *o says why. */
static int take(struct engine *g, void *p, size_t n, int64_t until, enum engine_outcome *o)
{
	for (size_t at = 0; at < n;) {
		struct pollfd f = {.fd = g->from, .events = POLLIN};
		int k = poll(&f, 1, left_ms(until));
		if (k < 0 && errno == EINTR)
			continue;
		if (k == 0) {
			*o = ENGINE_TIMEOUT;
			return 0;
		}
		ssize_t r = read(g->from, (char *)p + at, n - at);
		if (r < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (r <= 0) {
			*o = ENGINE_DIED;
			return 0;
		}
		at += (size_t)r;
	}
	return 1;
}

/* Is there anything to read, now? */
static int speaks(const struct engine *g)
{
	struct pollfd f = {.fd = g->from, .events = POLLIN};
	return poll(&f, 1, 0) > 0 && (f.revents & POLLIN);
}

/* ---- start ---- */

static int launch(const struct engine_start *q, struct engine *g, const int to[2], const int from[2], struct err *e)
{
	static struct engine_cage cage;
	const char *const argv[] = {q->program, q->model_dir, NULL};
	const struct spawn_fd fds[] = {{to[0], 0}, {from[1], 1}};
	if (engine_cage_make(&cage, q->program, q->model_dir, q->gpu, q->memory, e))
		return -1;
	const struct spawn_request s = {
		.argv = argv, .env = cage.env, .cwd = "/", .fds = fds, .fd_count = 2,
		.err = SPAWN_SPILL, .err_cap = ENGINE_CAGE_LOG, .confine = &cage.confine,
	};
	if (q->gpu)
		engine_memory_begin();
	return spawn_start(&s, &g->proc, e);
}

int engine_open(const struct engine_start *q, struct engine *g, enum engine_outcome *o, struct err *e)
{
	int to[2] = {-1, -1}, from[2] = {-1, -1};
	int32_t word = 0;
	*g = (struct engine){.to = -1, .from = -1, .vocab = q->vocab, .on_gpu = q->gpu != NULL};
	*o = ENGINE_OK;
	signal(SIGPIPE, SIG_IGN);
	int64_t began = now_ns();
	int rc = pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC) ? err_sys(e, "cannot make pipes for an engine") : 0;
	if (rc == 0)
		rc = launch(q, g, to, from, e);
	shut(&to[0]);
	shut(&from[1]);
	g->to = to[1];
	g->from = from[0];
	if (rc) {
		shut(&g->to);
		shut(&g->from);
		return rc;
	}
	snprintf(g->isolation, sizeof g->isolation, "%s", g->proc.layers);
	if (fcntl(g->to, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(e, "cannot set up a pipe to an engine");
	if (take(g, &word, sizeof word, began + (int64_t)((q->load_s > 0 ? q->load_s : 120) * 1e9), o) && word != ENGINE_READY)
		*o = ENGINE_GARBAGE;
	g->ready_ns = now_ns() - began;
	if (g->on_gpu)
		engine_memory_look(&g->gpu);
	return 0;
}

/* ---- a batch ---- */

/* The request, while nothing may come back: whoever answers before the last prompt is sent has not read it. */
static int send_all(struct engine *g, const void *p, size_t n, int64_t until, enum engine_outcome *o)
{
	for (size_t at = 0; at < n;) {
		struct pollfd f[2] = {{.fd = g->to, .events = POLLOUT}, {.fd = g->from, .events = POLLIN}};
		int k = poll(f, 2, left_ms(until));
		if (k < 0 && errno == EINTR)
			continue;
		if (k == 0) {
			*o = ENGINE_TIMEOUT;
			return 0;
		}
		if (f[1].revents & POLLIN) {
			*o = ENGINE_EARLY;
			return 0;
		}
		ssize_t w = write(g->to, (const char *)p + at, n - at);
		if (w < 0 && errno != EINTR && errno != EAGAIN) {
			*o = ENGINE_DIED;
			return 0;
		}
		at += w > 0 ? (size_t)w : 0;
	}
	return 1;
}

static int in_range(const struct engine *g, const int32_t *id, int n)
{
	for (int i = 0; i < n; i++)
		if (id[i] < 0 || id[i] >= g->vocab)
			return 0;
	return 1;
}

int engine_ask(struct engine *g, struct engine_batch *b, enum engine_outcome *o, struct err *e)
{
	const size_t ids = (size_t)b->batch * (size_t)b->prompt;
	int32_t step[ENGINE_BATCH_MOST];
	*o = ENGINE_OK;
	if (b->batch < 1 || b->batch > ENGINE_BATCH_MOST || b->prompt < 1 || b->steps < 1 ||
	    (int64_t)b->batch * ((int64_t)b->prompt + b->steps) > ENGINE_TOKENS_MOST)
		return err_set(e, EX_HARNESS, "a batch of %d x %d + %d is beyond the protocol", b->batch, b->prompt, b->steps);
	int32_t *q = xmalloc((4 + ids) * sizeof *q);
	const int32_t head[4] = {ENGINE_REQUEST, b->batch, b->prompt, b->steps};
	memcpy(q, head, sizeof head);
	memcpy(q + 4, b->ids, ids * sizeof *q);
	if (speaks(g))
		*o = ENGINE_EARLY;
	if (g->on_gpu)
		engine_memory_begin();
	const int64_t began = now_ns(), until = began + (int64_t)(b->limit_s * 1e9);
	int going = *o == ENGINE_OK && send_all(g, q, (4 + ids) * sizeof *q, until, o);
	free(q);
	b->sent_ns = now_ns() - began;
	for (int t = 0; t < b->steps && going; t++) {
		going = take(g, step, (size_t)b->batch * sizeof *step, until, o);
		b->stamp[t] = now_ns() - began;
		if (going && !in_range(g, step, b->batch)) {
			*o = ENGINE_RANGE;
			going = 0;
		}
		for (int i = 0; i < b->batch && going; i++)
			b->out[(size_t)i * (size_t)b->steps + (size_t)t] = step[i];
		if (g->on_gpu && (b->watch || t == b->steps - 1))
			engine_memory_look(&g->gpu);
	}
	if (going && speaks(g))
		*o = ENGINE_EXTRA;
	return 0;
}

/* ---- end ---- */

int engine_close(struct engine *g, enum engine_outcome *o, struct engine_end *end, struct err *e)
{
	struct spawn_result r = {0};
	char byte;
	*end = (struct engine_end){0};
	if (!g->proc.pid)
		return 0;
	shut(&g->to);
	if (*o == ENGINE_OK) {
		const int64_t until = now_ns() + (int64_t)END_S * 1000000000;
		enum engine_outcome last = ENGINE_OK;
		if (take(g, &byte, 1, until, &last))
			*o = ENGINE_EXTRA;
		else if (last == ENGINE_TIMEOUT)
			*o = ENGINE_TIMEOUT;
	}
	shut(&g->from);
	int rc = spawn_wait(&g->proc, *o == ENGINE_OK ? END_S : 0, &r, e);
	if (rc == 1) {
		if (*o == ENGINE_OK)
			*o = ENGINE_TIMEOUT;
		spawn_kill(&g->proc);
		rc = spawn_wait(&g->proc, -1, &r, e);
	}
	if (rc)
		return -1;
	if (*o == ENGINE_OK && r.code != 0)
		*o = ENGINE_DIED;
	end->code = r.code;
	spawn_words(&r, end->words);
	end->user_s = r.user_s;
	end->sys_s = r.sys_s;
	end->max_rss = r.max_rss;
	end->gpu_bytes = g->on_gpu && g->gpu.known ? g->gpu.peak : -1;
	end->log = r.err;
	r.err = (struct buf)BUF_INIT;
	spawn_result_free(&r);
	return 0;
}

void engine_end_free(struct engine_end *end)
{
	buf_free(&end->log);
}
