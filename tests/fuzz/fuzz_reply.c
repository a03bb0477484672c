/*
 * fuzz_reply.c - any bytes as a model's reply, for a kernel and for an engine in either language: a known code, the
 * same answer twice, and files only in a form that the rest of the pipeline can rely on.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "engine_files.h"
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

static void file(const struct reply *r, int slot, const struct reply_rules *rules)
{
	const struct buf *b = &r->file[slot];

	if (rules) {
		MUST(engine_file_of(r->name[slot], rules->cuda));
		for (int i = 0; i < slot; i++)
			MUST(strcmp(r->name[i], r->name[slot]));
	}
	MUST(r->has[slot] || !b->len);
	MUST(!r->has[slot] || b->len || (rules && !strncmp(r->name[slot], "kernels/", 8)));
	if (!b->len)
		return;
	MUST(b->len <= REPLY_MAX_FILE + 1 && b->data[b->len - 1] == '\n');
	MUST(!memchr(b->data, '\r', b->len) && !memchr(b->data, '\0', b->len));
}

static void one(const char *text, size_t size, const struct reply_rules *rules)
{
	struct reply r, again;
	int any = 0;

	reply_parse_engine(text, size, rules, &r);
	reply_parse_engine(text, size, rules, &again);
	MUST(r.code && reason_find(r.code));
	MUST(strcmp(r.code, "ok") ? r.message[0] : !r.message[0]);
	MUST(!strcmp(r.code, again.code) && !strcmp(r.message, again.message));
	MUST(r.n == again.n && r.n <= (rules ? (int)rules->files : REPLY_SLOTS));
	for (int i = 0; i < r.n; i++) {
		file(&r, i, rules);
		any |= r.has[i];
		MUST(r.file[i].len == again.file[i].len);
		MUST(!r.file[i].len || !memcmp(r.file[i].data, again.file[i].data, r.file[i].len));
	}
	MUST(strcmp(r.code, "ok") || any);
	words(&r.words.item, 120);
	words(&r.words.hypothesis, 800);
	words(&r.words.expected_effect, 300);
	words(&r.words.risk, 400);
	words(&r.words.reasoning, 4000);
	reply_free(&r);
	reply_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct reply_rules c = {.cuda = 0, .files = 16}, cuda = {.cuda = 1, .files = 3};

	one((const char *)data, size, NULL);
	one((const char *)data, size, &c);
	one((const char *)data, size, &cuda);
	return 0;
}
