/*
 * source_text.c - rules over the bytes of a slot: alphabet, size, things that look like keys.
 *
 * SPDX-License-Identifier: MIT
 */
#include "source.h"

#include "defence.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static int line_at(const char *text, size_t i)
{
	int line = 1;
	for (size_t k = 0; k < i; k++)
		line += text[k] == '\n';
	return line;
}

int source_ascii(const char *name, const char *text, size_t len, size_t max, struct source_finding *f)
{
	*f = (struct source_finding){.code = "ok"};
	if ((len == 0 || len > max) && DEFENCE("guard.size")) {
		f->code = "guard.size";
		snprintf(f->message, sizeof f->message, "%s has %zu bytes, allowed are 1 to %zu", name, len, max);
		return 1;
	}
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		if ((c >= 0x20 && c < 0x7f) || c == '\n' || c == '\t' || !DEFENCE("guard.ascii"))
			continue;
		f->code = "guard.ascii";
		f->line = line_at(text, i);
		snprintf(f->message, sizeof f->message, "%s has the byte 0x%02x in line %d: only printable ASCII, tab "
			 "and newline are accepted", name, c, f->line);
		return 1;
	}
	return 0;
}

static const struct {
	const char *prefix, *what;
	size_t least; /* letters and digits that must follow */
	int mixed;    /* among them a letter and a digit */
	int whole;    /* without separators: names in code (r8_lane_of_warp) have them, these tokens do not */
} SECRETS[] = {
	{"sk-ant-", "an API key", 20, 1, 0},     {"sk-proj-", "an API key", 20, 1, 0},
	{"sk-", "an API key", 20, 1, 0},         {"nvapi-", "an API key", 20, 1, 0},
	{"tvly-", "an API key", 16, 1, 0},       {"hf_", "an access token", 30, 0, 1},
	{"ghp_", "an access token", 30, 1, 1},   {"gho_", "an access token", 30, 1, 1},
	{"ghs_", "an access token", 30, 1, 1},   {"github_pat_", "an access token", 20, 1, 0},
	{"glpat-", "an access token", 18, 1, 0}, {"xoxb-", "an access token", 16, 1, 0},
	{"xoxp-", "an access token", 16, 1, 0},  {"AKIA", "a cloud key", 16, 1, 0},
	{"ASIA", "a cloud key", 16, 1, 0},       {"AIza", "an API key", 30, 1, 0},
	{"gsk_", "an API key", 30, 1, 1},        {"r8_", "an access token", 30, 1, 1},
	{"-----BEGIN ", "a private key", 3, 0, 0}, {"eyJhbGciOi", "a web token", 10, 0, 0},
	{"Bearer ", "an access token", 30, 1, 0}, {"ak-", "an API key", 30, 1, 0},
};

/* Letters and digits from s on, across single - _ . separators unless `whole`. */
static size_t run_length(const char *s, size_t n, int whole, int *mixed)
{
	size_t count = 0;
	int letter = 0, digit = 0;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		if (isalnum(c)) {
			count++;
			letter |= isalpha(c) != 0;
			digit |= isdigit(c) != 0;
		} else if (whole || !strchr("-_.", c) || c == '\0' || (i && !isalnum((unsigned char)s[i - 1]))) {
			break;
		}
	}
	*mixed = letter && digit;
	return count;
}

int source_credential(const char *name, const char *text, size_t len, struct source_finding *f)
{
	*f = (struct source_finding){.code = "ok"};
	for (size_t i = 0; i < len; i++) {
		if (i && isalnum((unsigned char)text[i - 1]) && text[i] != '-')
			continue;
		for (size_t k = 0; k < sizeof SECRETS / sizeof SECRETS[0]; k++) {
			size_t n = strlen(SECRETS[k].prefix);
			int mixed;
			if (text[i] != SECRETS[k].prefix[0] || len - i < n || memcmp(text + i, SECRETS[k].prefix, n) ||
			    run_length(text + i + n, len - i - n, SECRETS[k].whole, &mixed) < SECRETS[k].least ||
			    (SECRETS[k].mixed && !mixed) || !DEFENCE("guard.credential"))
				continue;
			f->code = "guard.credential";
			f->line = line_at(text, i);
			snprintf(f->message, sizeof f->message, "line %d of %s holds what looks like %s", f->line,
				 name, SECRETS[k].what);
			return 1;
		}
	}
	return 0;
}
