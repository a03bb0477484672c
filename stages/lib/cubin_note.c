/*
 * cubin_note.c - see cubin.h: what the box says of an artefact, behind its ELF.
 *
 * JSON, then a footer of 16 bytes: the mark and the length of the JSON. Only the box writes it, after
 * the compiler has ended; what a compiler might leave there is refused when the note is added.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cubin_part.h"

#include "json.h"
#include "jsonw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char MARK[] = "TSCUBIN1";
enum { FOOTER = 16, NOTE_MAX = 1 << 20 };

struct cubin_note {
	cJSON *json;
	const cJSON *symbols, *spill, *live; /* object, object, array of names in order */
	int nlive;
	const char **names;
};

static uint32_t length_of(const uint8_t *footer)
{
	return (uint32_t)footer[8] | (uint32_t)footer[9] << 8 | (uint32_t)footer[10] << 16 |
	       (uint32_t)footer[11] << 24;
}

static int members(struct cubin_note *n, struct err *e)
{
	static const char *const keys[] = {"schema", "symbols", "spill", "live", NULL};
	const cJSON *x;
	if (json_only(n->json, keys, "note of a module", e) ||
	    !(n->symbols = json_obj(n->json, "symbols", "note of a module", e)) ||
	    !(n->spill = json_obj(n->json, "spill", "note of a module", e)) ||
	    !(n->live = json_arr(n->json, "live", "note of a module", e)))
		return -1;
	n->names = xcalloc((size_t)cJSON_GetArraySize(n->live) + 1, sizeof *n->names);
	cJSON_ArrayForEach(x, n->live)
	{
		if (!cJSON_IsString(x) || (n->nlive && strcmp(n->names[n->nlive - 1], x->valuestring) >= 0))
			return err_set(e, EX_BADINPUT, "note of a module: live: names in order are expected");
		n->names[n->nlive++] = x->valuestring;
	}
	return 0;
}

int cubin_note_read(const void *data, size_t len, size_t *elf_len, struct cubin_note **out, struct err *e)
{
	const struct json_limits lim = {.bytes = NOTE_MAX, .depth = 4};
	const uint8_t *bytes = data;
	*out = NULL;
	*elf_len = len;
	if (len < FOOTER || memcmp(bytes + len - FOOTER, MARK, 8))
		return 0;
	uint32_t n = length_of(bytes + len - FOOTER);
	if (n > NOTE_MAX || n > len - FOOTER)
		return err_set(e, EX_BADINPUT, "note of a module: its length is wrong");
	*elf_len = len - FOOTER - n;
	struct cubin_note *note = xcalloc(1, sizeof *note);
	note->json = json_parse((const char *)bytes + *elf_len, n, &lim, "note of a module", e);
	if (!note->json || members(note, e)) {
		cubin_note_free(note);
		return -1;
	}
	*out = note;
	return 0;
}

static int by_text(const void *key, const void *item)
{
	return strcmp(key, *(const char *const *)item);
}

int cubin_note_live(const struct cubin_note *n, const char *global)
{
	return n->nlive && bsearch(global, n->names, (size_t)n->nlive, sizeof *n->names, by_text) != NULL;
}

void cubin_note_apply(const struct cubin_note *n, struct cubin *c)
{
	for (int i = 0; i < c->nentries; i++) {
		struct cubin_entry *k = &c->entry[i];
		const cJSON *x;
		double spill = json_get_num(n->spill, k->name, 0);
		k->spill_bytes = spill > 0 && spill < 1e9 ? (int64_t)spill : 0;
		cJSON_ArrayForEach(x, n->symbols) if (cJSON_IsString(x) && !strcmp(x->valuestring, k->name))
		    snprintf(k->entry, sizeof k->entry, "%.*s", CUBIN_NAME - 1, x->string);
	}
}

void cubin_note_free(struct cubin_note *n)
{
	if (!n)
		return;
	free(n->names);
	cJSON_Delete(n->json);
	free(n);
}

/* ---- writing ---- */

/* ptxas -v: "Function properties for NAME", then "... N bytes spill stores, ...". A source may forge
 * such lines; these figures are only shown. */
static void spills(struct jsonw *w, const char *log, char *const *symbol, size_t n)
{
	static const char HEAD[] = "Function properties for ";
	jw_obj(w, "spill");
	for (size_t i = 0; i < n && log; i++) {
		char *head = xasprintf("%s%s\n", HEAD, symbol[i]);
		const char *at = strstr(log, head), *line = at ? at + strlen(head) : NULL;
		const char *end = line ? strchr(line, '\n') : NULL,
			   *word = line ? strstr(line, "bytes stack frame, ") : NULL;
		if (word && (!end || word < end))
			jw_int(w, symbol[i], strtol(word + strlen("bytes stack frame, "), NULL, 10));
		free(head);
	}
	jw_end(w);
}

int cubin_note_add(struct buf *cubin, const char *ptx, size_t len, const char *const *entry,
		   char *const *symbol, size_t n, const char *log, struct err *e)
{
	uint8_t footer[FOOTER] = {0};
	struct jsonw w = {0};
	if (cubin->len >= FOOTER && !memcmp(cubin->data + cubin->len - FOOTER, MARK, 8))
		return err_set(e, EX_BADINPUT, "the compiler's module ends in a note");
	jw_obj(&w, NULL);
	jw_str(&w, "schema", "touchstone/cubin/1");
	jw_obj(&w, "symbols");
	for (size_t i = 0; i < n; i++)
		jw_str(&w, entry[i], symbol[i]);
	jw_end(&w);
	spills(&w, log, symbol, n);
	cJSON *live = ptx_live_globals(ptx, len);
	jw_item(&w, "live", live);
	cJSON_Delete(live);
	jw_end(&w);
	int rc = w.out.len > NOTE_MAX ? err_set(e, EX_BADINPUT, "the module has too many names") : 0;
	memcpy(footer, MARK, 8);
	for (int i = 0; i < 4; i++)
		footer[8 + i] = (uint8_t)(w.out.len >> 8 * i);
	if (rc == 0) {
		buf_add(cubin, w.out.data, w.out.len);
		buf_add(cubin, footer, sizeof footer);
	}
	jw_free(&w);
	return rc;
}
