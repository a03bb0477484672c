/*
 * fuzz_lexer.c - any bytes as kernel.cu: tokens, comment stripping, source rules.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "lexer.h"
#include "reason.h"
#include "source.h"

#include <string.h>

static size_t count_lines(const char *s, size_t n)
{
	size_t lines = 0;
	for (size_t i = 0; i < n; i++)
		lines += s[i] == '\n';
	return lines;
}

static void tokens(const char *text, size_t size, int keep)
{
	struct lexer *x = lex_open(text, size, keep);
	struct lex_token t;
	size_t count = 0, lines = count_lines(text, size);
	while (lex_next(x, &t)) {
		MUST(t.len > 0 && t.line >= 1 && (size_t)t.line <= lines + 1);
		lex_reserved(t.text, t.len);
		MUST(++count <= size);
	}
	lex_close(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct source_rules rules = {.asm_ok = 0};
	struct source_finding f;
	struct buf once = BUF_INIT, twice = BUF_INIT;
	if (size > 1 << 16)
		return 0;
	tokens(text, size, 0);
	tokens(text, size, 1);
	source_ascii("kernel.cu", text, size, 65536, &f);
	source_credential("kernel.cu", text, size, &f);
	int bad = source_check(text, size, &rules, &f);
	MUST(reason_find(f.code) && (bad || !strcmp(f.code, "ok")));
	for (const char *c = f.message; *c; c++)
		MUST(source_ascii("m", c, 1, 1, &(struct source_finding){0}) == 0 || bad);
	bad = source_expanded(text, size, &(struct source_finding){0});
	MUST(bad == 0 || bad == 1);
	lex_strip_comments(text, size, &once);
	MUST(once.len <= size);
	if (strcmp(f.code, "guard.lexical")) { /* well-formed: nothing is left to strip, no line is lost */
		lex_strip_comments(buf_str(&once), once.len, &twice);
		MUST(once.len == twice.len && !memcmp(buf_str(&once), buf_str(&twice), once.len));
		MUST(count_lines(buf_str(&once), once.len) == count_lines(text, size));
	}
	buf_free(&once);
	buf_free(&twice);
	return 0;
}
