/*
 * box_gate.c - see box_part.h: what no emulated image may contain, by what elfscan found in it.
 *
 * guard says much of it earlier and with more words; this is read from the artefact and holds for everybody.
 *
 * SPDX-License-Identifier: MIT
 */
#include "box_part.h"

#include "defence.h"

#include <stdio.h>

int box_gate(struct box_result *r)
{
	static const struct {
		const char *list, *code, *message;
	} gates[] = {
		{"undefined", "guard.undefined_symbol", "needs"},
		{"init", "guard.init_code", "runs code before its kernels:"},
		{"ifunc", "guard.init_code", "chooses functions at load time:"},
		{"writable", "guard.module_state", "keeps data across launches:"},
		{"tls_init", "guard.module_state", "has initialised shared memory:"},
		{"defined", "guard.reserved", "defines a name that is not its own:"},
	};
	for (size_t i = 0; i < sizeof gates / sizeof *gates; i++) {
		const cJSON *list = json_get(r->facts, gates[i].list);
		const cJSON *first = cJSON_IsArray(list) ? cJSON_GetArrayItem(list, 0) : NULL;
		if (!first || !DEFENCE(gates[i].code))
			continue;
		r->ok = 0;
		snprintf(r->code, sizeof r->code, "%s", gates[i].code);
		snprintf(r->message, sizeof r->message, "the compiled module %s '%.100s'", gates[i].message,
			 cJSON_IsString(first) ? first->valuestring : "?");
		return 1;
	}
	return 0;
}
