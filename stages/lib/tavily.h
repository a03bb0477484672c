/*
 * tavily.h - a search at Tavily: the body of a question, and what is taken of an answer.
 *
 * Answers are pages of strangers. What is kept of one: at most TAVILY_RESULTS results, each a title, an http address and the
 * beginning of its text, as one line of clean UTF-8 without back-ticks (threats.md J01).
 *
 * Life cycle: tavily_parse into a zeroed struct; nothing to free.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_TAVILY_H
#define TS_TAVILY_H

#include "buf.h"
#include "err.h"

#include <stddef.h>

#define TAVILY_URL "https://api.tavily.com"
#define TAVILY_KEY "TAVILY_API_KEY"
#define TAVILY_KEY_FILE "~/.config/touchstone/tavily.key"
#define TAVILY_RESULTS 4

struct tavily {
	int n;
	struct tavily_result {
		char title[120], url[200], text[600];
	} of[TAVILY_RESULTS];
};

void tavily_body(const char *query, struct buf *out);
/* -1: no answer of the promised form. Results that lack something are left out. */
int tavily_parse(const char *body, size_t len, struct tavily *out, struct err *e);

#endif
