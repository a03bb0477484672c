/*
 * fuzz_playbook.c - any bytes as a playbook.
 *
 * What is accepted has whole items with names of their own, needs point back, and is told in printable lines.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "playbook.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct playbook b;
	struct err e = {0};
	struct buf out = BUF_INIT;
	if (playbook_parse(&b, (const char *)data, size, "p", &e)) {
		MUST(e.code == EX_BADINPUT && e.text[0] && !strchr(e.text, '\n'));
		playbook_free(&b);
		return 0;
	}
	MUST(b.n > 0 && b.n <= PLAYBOOK_ITEMS);
	for (int i = 0; i < b.n; i++) {
		const struct playbook_item *t = &b.item[i];
		MUST(playbook_id_ok(t->id) && t->title.len && playbook_named(&b, t->id) == t);
		for (int k = 0; k < PLAYBOOK_PARTS; k++)
			MUST(t->part[k].len);
		for (int k = 0; k < t->nneeds; k++)
			MUST(t->need[k] >= 0 && t->need[k] < i);
	}
	playbook_tell(&b, &out);
	for (size_t i = 0; i < out.len; i++)
		MUST(out.data[i] == '\n' || (out.data[i] >= ' ' && out.data[i] <= '~'));
	buf_free(&out);
	playbook_free(&b);
	return 0;
}
