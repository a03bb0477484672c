/*
 * clusters.c - see clusters.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "clusters.h"

#include "trial.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Bytes of the number at s: 0x1f, 1.5e-3, 12,345. */
static size_t number(const char *s)
{
	size_t n = 1;

	while (is_word(s[n]) || ((s[n] == '.' || s[n] == ',') && is_digit(s[n + 1])) ||
	       ((s[n] == '-' || s[n] == '+') && (s[n - 1] == 'e' || s[n - 1] == 'E') && is_digit(s[n + 1])))
		n++;
	return n;
}

/* "judge: " and "a0/guard: " are places, no causes. */
static const char *after_step(const char *s)
{
	for (int i = 0; i < STEP_COUNT; i++) {
		const char *name = step_info((enum step)i)->name;
		size_t n = strlen(name);
		if (!strncmp(s, name, n) && !strncmp(s + n, ": ", 2))
			return s + n + 2;
	}
	return s;
}

void clusters_key(const char *message, char out[CLUSTER_TEXT])
{
	const char *s = after_step(message);
	size_t at = 0;

	for (const char *p = s; *p && at < CLUSTER_TEXT - 1;) {
		int inside = p > s && is_word(p[-1]); /* a digit of a name is no number; an apostrophe no quote */
		const char *end = *p == '\'' || *p == '"' ? strchr(p + 1, *p) : NULL;
		if (end && !inside) {
			out[at++] = '*';
			p = end + 1;
		} else if (is_digit(*p) && !inside) {
			out[at++] = '#';
			p += number(p);
		} else {
			out[at++] = *p++;
		}
	}
	out[at] = '\0';
}

static void shown(const char *message, char out[CLUSTER_TEXT])
{
	struct buf b = BUF_INIT;
	const char *s = after_step(message);

	utf8_line(&b, s, strlen(s), CLUSTER_TEXT - 8);
	snprintf(out, CLUSTER_TEXT, "%s", buf_str(&b));
	buf_free(&b);
}

void clusters_add(struct clusters *k, const char *code, const char *message)
{
	char key[CLUSTER_TEXT];
	struct cluster *c;

	clusters_key(message, key);
	k->total++;
	for (int i = 0; i < k->n; i++)
		if (!strcmp(k->c[i].code, code) && !strcmp(k->c[i].key, key)) {
			k->c[i].n++;
			return;
		}
	if (k->n == CLUSTERS_MAX) {
		k->other++;
		return;
	}
	c = &k->c[k->n++];
	c->n = 1;
	snprintf(c->code, sizeof c->code, "%s", code);
	memcpy(c->key, key, sizeof key);
	shown(message, c->message);
}

void clusters_sort(struct clusters *k)
{
	for (int i = 1; i < k->n; i++) /* few; and equals keep their order */
		for (int j = i; j > 0 && k->c[j].n > k->c[j - 1].n; j--) {
			struct cluster t = k->c[j];
			k->c[j] = k->c[j - 1];
			k->c[j - 1] = t;
		}
}

void clusters_tell(const struct clusters *k, int of, int least, int most, struct buf *out)
{
	for (int i = 0; i < k->n && i < most && k->c[i].n >= least; i++)
		buf_addf(out, "- %d of the last %d: %s: %s\n", k->c[i].n, of, k->c[i].code, k->c[i].message);
}
