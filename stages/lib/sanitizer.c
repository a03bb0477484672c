/*
 * sanitizer.c - what compute-sanitizer wrote. See sanitizer.h.
 *
 * Every line of its own begins with "========= ". A finding about an access begins with its kind ("Invalid __global__ write
 * of size 4 bytes"), and names the kernel ("    at add(float*)+0x50") and the thread ("    by thread (0,0,0) in ...") on
 * lines of its own below; the last line of all is "ERROR SUMMARY: 1 error" or "RACECHECK SUMMARY: 2 hazards ...".
 *
 * SPDX-License-Identifier: MIT
 */
#include "sanitizer.h"

#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK "========= "

static int begins(const char *s, size_t n, const char *with)
{
	return n >= strlen(with) && !memcmp(s, with, strlen(with));
}

/* How an access that a kernel made is called. */
static int access_line(const char *s, size_t n)
{
	static const char *const kinds[] = {"Invalid __", "Misaligned ", "Out-of-range ", "Invalid shared", "Invalid local"};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (begins(s, n, kinds[i]))
			return 1;
	return 0;
}

static int summary(const char *s, size_t n, long *figure)
{
	static const char *const ends[] = {"ERROR SUMMARY: ", "RACECHECK SUMMARY: "};
	char text[24];

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		size_t skip = strlen(ends[i]), rest = n > skip ? n - skip : 0;
		if (!begins(s, n, ends[i]) || rest == 0 || s[skip] < '0' || s[skip] > '9')
			continue;
		snprintf(text, sizeof text, "%.*s", (int)(rest > 18 ? 18 : rest), s + skip);
		*figure = strtol(text, NULL, 10);
		return 1;
	}
	return 0;
}

static void take(char out[SANITIZER_TEXT], const char *s, size_t n)
{
	struct buf b = BUF_INIT;

	utf8_line(&b, s, n, SANITIZER_TEXT - 1);
	snprintf(out, SANITIZER_TEXT, "%s", buf_str(&b));
	buf_free(&b);
}

/* The finding at `s` with where it was, until the next one or an empty line. 1: by a thread. */
static int where(const char *s, const char *end, char out[SANITIZER_TEXT])
{
	const char *head = s;
	size_t first = strcspn(s, "\n"), at = 0;
	const char *place = NULL;
	int thread = 0;

	for (int line = 0; line < 6 && s < end; line++) {
		size_t n = strcspn(s, "\n");
		const char *text = s + strlen(MARK);
		size_t len = n > strlen(MARK) ? n - strlen(MARK) : 0;
		if (!begins(s, n, MARK))
			break;
		while (line && len && *text == ' ')
			text++, len--;
		if (line && !place && begins(text, len, "at "))
			place = text, at = len;
		thread |= line && begins(text, len, "by thread (");
		s += n + (s + n < end);
	}
	struct buf b = BUF_INIT;
	buf_add(&b, head + strlen(MARK), first - strlen(MARK));
	if (place) {
		buf_addc(&b, ' ');
		buf_add(&b, place, at);
	}
	take(out, buf_str(&b), b.len);
	buf_free(&b);
	return thread;
}

void sanitizer_parse(const char *text, size_t len, struct sanitizer_report *r)
{
	struct buf copy = BUF_INIT; /* ends with a zero byte; those inside end a line */
	char said[SANITIZER_TEXT];

	memset(r, 0, sizeof *r);
	buf_add(&copy, text, len);
	buf_addc(&copy, '\n');
	for (size_t i = 0; i < copy.len; i++)
		if (!copy.data[i])
			copy.data[i] = '\n';
	const char *s = buf_str(&copy), *end = s + copy.len;
	while (s < end) {
		size_t n = strcspn(s, "\n"), skip = strlen(MARK);
		const char *line = s + skip;
		if (begins(s, n, MARK) && n > skip && *line != ' ') {
			if (summary(line, n - skip, &r->findings)) {
				r->done = 1;
			} else if (access_line(line, n - skip) && where(s, end, said)) {
				if (!r->accesses++)
					memcpy(r->first, said, sizeof said);
			} else if (!r->first[0] && !begins(line, n - skip, "COMPUTE-SANITIZER")) {
				where(s, end, r->first);
			}
		}
		s += n + 1;
	}
	buf_free(&copy);
}
