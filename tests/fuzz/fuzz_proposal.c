/*
 * fuzz_proposal.c - any bytes as the body of a chat completion, and what its text is taken for.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "chat.h"
#include "reason.h"
#include "reply.h"
#include "utf8.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct chat c = CHAT_INIT;
	struct err e = {0};
	struct reply r;
	struct buf line = BUF_INIT;

	if (chat_parse((const char *)data, size, &c, "fuzz", &e) == 0) {
		MUST(utf8_valid(buf_str(&c.text), c.text.len));
		MUST(strlen(c.finish) < sizeof c.finish && strlen(c.model) < sizeof c.model);
		MUST(c.usage.prompt >= -1 && c.usage.completion >= -1 && c.usage.total >= -1);
		reply_parse(buf_str(&c.text), c.text.len, &r);
		MUST(reason_find(r.code));
		reply_free(&r);
	} else {
		MUST(e.code && e.text[0]);
	}
	chat_free(&c);
	chat_error_line((const char *)data, size, &line);
	MUST(line.len && line.len <= 200 && utf8_valid(line.data, line.len));
	buf_free(&line);
	return 0;
}
