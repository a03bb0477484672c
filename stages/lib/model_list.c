/*
 * model_list.c - see model_list.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "model_list.h"

#include "json.h"
#include "utf8.h"

#include <stdio.h>
#include <string.h>

static const struct json_limits LIMITS = {.bytes = (size_t)8 << 20, .depth = 16};

/* Ollama gives "name:latest" for what is asked for as "name". */
static int same_model(const char *id, const char *model)
{
	size_t n = strlen(model);

	return !strncmp(id, model, n) && (!id[n] || !strcmp(id + n, ":latest"));
}

int model_list_parse(const char *body, size_t len, const char *model, struct model_list *out, struct err *e)
{
	cJSON *j = json_parse(body, len, &LIMITS, "the list of models", e);
	const cJSON *data, *m;

	memset(out, 0, sizeof *out);
	if (!j)
		return -1;
	data = json_arr(j, "data", "the list of models", e);
	if (!data) {
		cJSON_Delete(j);
		return -1;
	}
	cJSON_ArrayForEach(m, data) {
		const char *id = cJSON_IsObject(m) ? json_get_str(m, "id", "") : "";
		struct buf line = BUF_INIT;
		if (!*id)
			continue;
		utf8_line(&line, id, strlen(id), MODEL_LIST_NAME - 1);
		if (!out->n++)
			snprintf(out->first, sizeof out->first, "%s", buf_str(&line));
		out->there |= model && same_model(id, model);
		buf_free(&line);
	}
	cJSON_Delete(j);
	return 0;
}
