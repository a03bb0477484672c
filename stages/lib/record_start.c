/*
 * record_start.c - which trial was start/ as it is shipped. See record.h.
 *
 * The log is only looked through for lines that may be it; the trial's own verdicts decide.
 *
 * SPDX-License-Identifier: MIT
 */
#include "record.h"

#include "file.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

enum { LOG_MAX = 1 << 30 };
static const char LOG[] = "trials/log.jsonl", UNCHANGED[] = "tunables: no change";

static int is_start(const struct closed *c, const char *id, struct closed *out)
{
	struct verdict_in in;
	struct err none;
	if (!trial_id_ok(id) || verdict_read(id, STEP_A0_PROPOSE, &in, &none))
		return 0;
	int yes = strcmp(json_get_str(in.data, "parent_from", ""), "start") == 0 &&
		  strcmp(json_get_str(in.data, "item", ""), UNCHANGED) == 0;
	verdict_in_free(&in);
	if (!yes || closed_read(id, out, &none))
		return 0;
	if (strcmp(out->trial.spec, c->trial.spec) == 0 && strcmp(out->trial.device, c->trial.device) == 0)
		return 1;
	closed_free(out);
	return 0;
}

int record_start(const struct closed *c, struct closed *out)
{
	struct buf text = BUF_INIT;
	struct err none;
	int found = 0;
	if (file_read(LOG, LOG_MAX, &text, &none)) {
		buf_free(&text);
		return 0;
	}
	for (char *line = text.data, *end; !found && line && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		cJSON *j = strstr(line, UNCHANGED) ? json_parse(line, (size_t)(end - line), &JSON_OURS, LOG, &none) : NULL;
		found = j && is_start(c, json_get_str(j, "trial", ""), out);
		cJSON_Delete(j);
	}
	buf_free(&text);
	return found;
}
