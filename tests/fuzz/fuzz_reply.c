/*
 * fuzz_reply.c - any bytes as a model's reply: a known code, the same answer twice, and files only
 * in a form that the rest of the pipeline can rely on.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "reason.h"
#include "reply.h"
#include "utf8.h"

#include <string.h>

static void words(const struct buf *b, size_t max)
{
	MUST(b->len <= max);
	MUST(!b->len || (!memchr(b->data, '\n', b->len) && !memchr(b->data, '\0', b->len)));
	MUST(utf8_valid(buf_str(b), b->len));
}

static void file(const struct reply *r, int slot)
{
	const struct buf *b = &r->file[slot];

	MUST(r->has[slot] == (b->len > 0));
	if (!b->len)
		return;
	MUST(b->len <= REPLY_MAX_FILE + 1 && b->data[b->len - 1] == '\n');
	MUST(!memchr(b->data, '\r', b->len) && !memchr(b->data, '\0', b->len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reply r, again;

	reply_parse((const char *)data, size, &r);
	reply_parse((const char *)data, size, &again);
	MUST(r.code && reason_find(r.code));
	MUST(strcmp(r.code, "ok") ? r.message[0] : !r.message[0]);
	MUST(strcmp(r.code, "ok") || r.has[REPLY_KERNEL] || r.has[REPLY_PLAN]);
	MUST(!strcmp(r.code, again.code) && !strcmp(r.message, again.message));
	for (int i = 0; i < REPLY_SLOTS; i++) {
		file(&r, i);
		MUST(r.file[i].len == again.file[i].len);
		MUST(!r.file[i].len || !memcmp(r.file[i].data, again.file[i].data, r.file[i].len));
	}
	words(&r.words.item, 120);
	words(&r.words.hypothesis, 800);
	words(&r.words.expected_effect, 300);
	words(&r.words.risk, 400);
	words(&r.words.reasoning, 4000);
	reply_free(&r);
	reply_free(&again);
	return 0;
}
