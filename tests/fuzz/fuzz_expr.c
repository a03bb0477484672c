/*
 * fuzz_expr.c - any text as an expression, evaluated with names of edge values.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "expr.h"

#include <string.h>

static int name(void *ctx, const char *n, int64_t *out)
{
	(void)ctx;
	static const int64_t edge[] = {0, 1, -1, 2, 64, INT64_MAX, INT64_MIN, 4096};
	*out = edge[(unsigned char)n[0] % 8];
	return n[0] == 'z' ? -1 : 0;
}

static int call(void *ctx, enum expr_call c, const char *entry, int64_t *out, struct err *e)
{
	(void)ctx;
	(void)e;
	*out = (entry[0] & 3) + 4 * (int)c;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct expr_env env = {name, call, NULL};
	struct err e = {0};
	int64_t a = 0, b = 0;
	char *text = malloc(size + 1);
	MUST(text);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	struct expr *x = expr_parse(text, "f", "p", &e);
	if (!x) {
		MUST(e.text[0] && e.code == EX_BADINPUT);
	} else {
		int bad = expr_eval(x, &env, &a, &e);
		MUST(expr_eval(x, &env, &b, NULL) == bad && (bad || a == b));
		for (int i = 0; expr_name_used(x, i); i++)
			MUST(expr_is_identifier(expr_name_used(x, i)));
		MUST(!strcmp(expr_text(x), text));
	}
	expr_free(x);
	free(text);
	return 0;
}
