/*
 * failure.c - see failure.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "failure.h"

#include "file.h"
#include "json.h"
#include "jsonw.h"
#include "verdict.h"

#include <stdio.h>
#include <string.h>

void failure_note(const char *id, enum step step, const struct failure *f)
{
	char path[TRIAL_PATH], now[32];
	struct jsonw w = {0};
	verdict_now(now);
	jw_obj(&w, NULL);
	jw_str(&w, "t", now);
	jw_str(&w, "step", step_info(step)->name);
	jw_int(&w, "exit", f->code);
	jw_str(&w, "who", f->who);
	jw_str(&w, "upstream", f->upstream);
	jw_str(&w, "tool", f->tool);
	jw_str(&w, "message", f->message);
	jw_end(&w);
	trial_path(path, id, "failures.jsonl");
	if (file_append(path, buf_str(&w.out), NULL))
		warn("cannot note the failure in '%s'", path);
	jw_free(&w);
}

static int matches(const cJSON *j, enum step step, const char *upstream, const char *tool)
{
	return strcmp(json_get_str(j, "step", ""), step_info(step)->name) == 0 &&
	       strcmp(json_get_str(j, "upstream", ""), upstream) == 0 &&
	       strcmp(json_get_str(j, "tool", ""), tool) == 0 &&
	       strcmp(json_get_str(j, "who", ""), "world") != 0;
}

int failure_count(const char *id, enum step step, const char *upstream, const char *tool,
		  int *child, char message[480])
{
	char path[TRIAL_PATH];
	struct buf text = BUF_INIT;
	int n = 0;
	*child = 0;
	trial_path(path, id, "failures.jsonl");
	if (file_read(path, (size_t)16 << 20, &text, NULL)) {
		buf_free(&text);
		return 0;
	}
	char *line = text.data, *end;
	for (; line && (end = strchr(line, '\n')); line = end + 1) {
		cJSON *j = json_parse(line, (size_t)(end - line), &JSON_OURS, path, NULL);
		if (j && matches(j, step, upstream, tool)) {
			n++;
			*child = strcmp(json_get_str(j, "who", ""), "child") == 0;
			if (message)
				snprintf(message, 480, "%s", json_get_str(j, "message", ""));
		}
		cJSON_Delete(j);
	}
	buf_free(&text);
	return n;
}
