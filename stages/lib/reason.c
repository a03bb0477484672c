/*
 * reason.c - see reason.h. Keep the table sorted by code: it is searched by halves.
 *
 * SPDX-License-Identifier: MIT
 */
#include "reason.h"

#include <stdlib.h>
#include <string.h>

static const struct reason table[] = {
	{"ok", "nothing wrong"},
	{"promote.chain", "a file of the evidence is missing or is not the one recorded"},
	{"promote.isolation", "too few isolation layers were active to trust the evidence"},
	{"promote.mac", "a verdict does not carry the checker's signature"},
	{"promote.stale_champion", "confirmed against another champion than the present one"},
	{"run.child_died", "the confined process died twice at this step"},
	{"run.harness", "our own code failed twice at this step with the same inputs"},
	{"skip.passed", "the last attempt passed its tests: no repair needed"},
	{"skip.repair_off", "no repair turn was asked for"},
	{"skip.upstream", "the trial was closed by an earlier step"},
};

static int by_code(const void *key, const void *item)
{
	return strcmp(key, ((const struct reason *)item)->code);
}

const struct reason *reason_find(const char *code)
{
	return bsearch(code, table, sizeof table / sizeof table[0], sizeof table[0], by_code);
}

const char *reason_text(const char *code)
{
	const struct reason *r = reason_find(code);
	return r ? r->text : "unknown reason";
}

const struct reason *reason_list(size_t *count)
{
	*count = sizeof table / sizeof table[0];
	return table;
}
