/*
 * fuzz_page.c - any lines as trials/log.jsonl, through render to a page: no text of a record is markup.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#define main render_main
#include "../../stages/render.c"
#undef main

/* Tags of ours that a record could bring as well begin with these when they are not escaped. */
static void harmless(const struct buf *page)
{
	static const char *const never[] = {"<img", "<iframe", "<object", "<embed", "<link", "<base", "<form", "<FUZZ"};
	for (size_t i = 0; i < sizeof never / sizeof *never; i++)
		MUST(!memmem(page->data, page->len, never[i], strlen(never[i])));
	MUST(page->len == strlen(page->data));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct log log = {0};
	struct options o = {.out = "none"};
	struct buf out = BUF_INIT, text = BUF_INIT;
	size_t at = 1;
	buf_add(&text, data, size);
	for (char *line = text.data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
		struct err e = {0};
		if (log_line(&log, "input", "fuzz-no-such-folder/", line, (size_t)(end - line), at++, &e))
			MUST(e.code == EX_BADINPUT && e.text[0]);
	}
	struct page_state s = {.title = "fuzz", .now = "now", .from = "input"};
	page_begin(&out, &s);
	groups_write(&out, &o, &log);
	page_end(&out, &s);
	harmless(&out);
	buf_free(&out);
	buf_free(&text);
	log_free(&log);
	return 0;
}
