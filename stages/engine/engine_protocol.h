/*
 * engine_protocol.h - how an engine is talked to. Given to every candidate of an engine problem; C11 and CUDA C++.
 *
 * An engine is started as `engine MODEL_DIR`. It loads the model, then:
 *
 *   engine_ready();                                 once, when it can answer
 *   while (engine_next(&q)) {                       waits for a batch of prompts; 0 at the end: exit with 0
 *           ... q.batch prompts of q.prompt ids each, q.ids[b * q.prompt + i]; q.steps ids wanted of each
 *           for (int t = 0; t < q.steps; t++)
 *                   engine_step(&q, ids);           ids[batch]: the t-th id of each sequence, as soon as all are known
 *   }
 *
 * Greedy decoding: each id is the argmax of the model's own logits, the lowest id at a tie. The end-of-text id is an
 * ordinary token: exactly batch x steps ids, no more, no less. The parent stamps the time at which the last byte of
 * a step arrives; the clock of a batch starts before the first byte of its prompts is written. Nothing else may be
 * written to standard output; standard error is kept for you (64 KiB).
 *
 * On the wire, all int32 little-endian: ready: ENGINE_READY. A request: ENGINE_REQUEST, batch, prompt, steps, then
 * batch x prompt ids. A step: batch ids. The end: end of file.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ENGINE_PROTOCOL_H
#define ENGINE_PROTOCOL_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define ENGINE_READY 0x31594452   /* "RDY1" */
#define ENGINE_REQUEST 0x31514552 /* "REQ1" */
#define ENGINE_BATCH_MOST 256
#define ENGINE_TOKENS_MOST (1 << 22) /* batch x (prompt + steps) */

struct engine_request {
	int32_t batch, prompt, steps;
	int32_t *ids; /* [batch, prompt]; valid until the next engine_next */
};

static inline int engine_read_(void *to, size_t n, int may_end)
{
	char *p = (char *)to;
	size_t at = 0;
	while (at < n) {
		ssize_t k = read(0, p + at, n - at);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0) {
			if (k == 0 && at == 0 && may_end)
				return 0;
			_exit(3);
		}
		at += (size_t)k;
	}
	return 1;
}

static inline void engine_write_(const void *from, size_t n)
{
	const char *p = (const char *)from;
	while (n > 0) {
		ssize_t k = write(1, p, n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			_exit(3);
		p += k;
		n -= (size_t)k;
	}
}

static inline void engine_ready(void)
{
	const int32_t word = ENGINE_READY;
	engine_write_(&word, sizeof word);
}

static inline int engine_next(struct engine_request *q)
{
	static int32_t *ids;
	int32_t head[4];
	if (!engine_read_(head, sizeof head, 1))
		return 0;
	if (head[0] != ENGINE_REQUEST || head[1] < 1 || head[1] > ENGINE_BATCH_MOST || head[2] < 1 || head[3] < 1 ||
	    (int64_t)head[1] * ((int64_t)head[2] + head[3]) > ENGINE_TOKENS_MOST)
		_exit(3);
	const size_t bytes = (size_t)head[1] * (size_t)head[2] * sizeof *ids;
	ids = (int32_t *)realloc(ids, bytes);
	if (!ids)
		_exit(3);
	engine_read_(ids, bytes, 0);
	q->batch = head[1];
	q->prompt = head[2];
	q->steps = head[3];
	q->ids = ids;
	return 1;
}

static inline void engine_step(const struct engine_request *q, const int32_t *ids)
{
	engine_write_(ids, (size_t)q->batch * sizeof *ids);
}

#endif
