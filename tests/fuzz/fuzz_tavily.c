/*
 * fuzz_tavily.c - any bytes as the answer of a search: what is kept are clean lines and whole addresses.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "tavily.h"
#include "utf8.h"

#include <string.h>

static void line(const char *s, size_t size)
{
	MUST(strlen(s) < size);
	MUST(utf8_valid(s, strlen(s)));
	MUST(!strpbrk(s, "\r\n\t\033`"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tavily t;
	struct err e = {0};

	if (tavily_parse((const char *)data, size, &t, &e)) {
		MUST(e.text[0] && t.n == 0);
		return 0;
	}
	MUST(t.n >= 0 && t.n <= TAVILY_RESULTS);
	for (int i = 0; i < t.n; i++) {
		line(t.of[i].title, sizeof t.of[i].title);
		line(t.of[i].url, sizeof t.of[i].url);
		line(t.of[i].text, sizeof t.of[i].text);
		MUST(!strncmp(t.of[i].url, "http", 4) && !strchr(t.of[i].url, ' ') && t.of[i].text[0]);
	}
	return 0;
}
