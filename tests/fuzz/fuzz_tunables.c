/*
 * fuzz_tunables.c - any text as an engine.c with tunables: what is read can be written, and reads the same again.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "engine_tunables.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct engine_tunables t, again;
	struct err e = {0};
	struct buf out = BUF_INIT;
	int choice[TUNABLES_MOST];
	if (engine_tunables_parse(text, size, &t, &e)) {
		MUST(e.text[0]);
		return 0;
	}
	MUST(t.n >= 0 && t.n <= TUNABLES_MOST && t.space >= 1 && t.space <= TUNABLES_SPACE);
	engine_tunables_at(&t, engine_tunables_current(&t), choice);
	engine_tunables_text(text, size, &t, choice, &out);
	MUST(out.len == size && (!size || !memcmp(buf_str(&out), text, size)));
	buf_clear(&out);
	engine_tunables_at(&t, t.space - 1, choice);
	engine_tunables_text(text, size, &t, choice, &out);
	MUST(!engine_tunables_parse(buf_str(&out), out.len, &again, &e) && again.n == t.n && again.space == t.space);
	MUST(engine_tunables_current(&again) == t.space - 1);
	buf_free(&out);
	return 0;
}
