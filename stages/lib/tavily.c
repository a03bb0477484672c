/*
 * tavily.c - see tavily.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tavily.h"

#include "json.h"
#include "jsonw.h"
#include "utf8.h"

#include <stdio.h>
#include <string.h>

static const struct json_limits LIMITS = {.bytes = (size_t)8 << 20, .depth = 24};

void tavily_body(const char *query, struct buf *out)
{
	struct jsonw w = {0};

	jw_obj(&w, NULL);
	jw_str(&w, "query", query);
	jw_str(&w, "search_depth", "basic");
	jw_str(&w, "topic", "general");
	jw_int(&w, "max_results", TAVILY_RESULTS);
	jw_end(&w);
	buf_add(out, w.out.data, w.out.len);
	jw_free(&w);
}

static void clean(char *to, size_t size, const char *s)
{
	struct buf b = BUF_INIT;

	utf8_line(&b, s, strlen(s), size - 1);
	snprintf(to, size, "%s", buf_str(&b));
	buf_free(&b);
	for (char *p = to; (p = strchr(p, '`')) != NULL;)
		*p = '\'';
}

/* An address that can stand in a line: http or https, printable, whole. */
static int url_ok(const char *s)
{
	if (strncmp(s, "http://", 7) && strncmp(s, "https://", 8))
		return 0;
	for (const char *p = s; *p; p++)
		if (*p <= ' ' || *p > '~' || *p == '`' || *p == '"' || *p == '<' || *p == '>')
			return 0;
	return strlen(s) < sizeof ((struct tavily_result *)0)->url;
}

int tavily_parse(const char *body, size_t len, struct tavily *out, struct err *e)
{
	cJSON *j = json_parse(body, len, &LIMITS, "the answer of the search", e);
	const cJSON *list = j ? json_arr(j, "results", "the answer of the search", e) : NULL, *r;

	memset(out, 0, sizeof *out);
	if (!list) {
		cJSON_Delete(j);
		return -1;
	}
	cJSON_ArrayForEach(r, list) {
		const char *url = cJSON_IsObject(r) ? json_get_str(r, "url", "") : "";
		const char *text = cJSON_IsObject(r) ? json_get_str(r, "content", "") : "";
		struct tavily_result *to = &out->of[out->n];
		if (out->n == TAVILY_RESULTS)
			break;
		if (!url_ok(url) || !*text)
			continue;
		snprintf(to->url, sizeof to->url, "%s", url);
		clean(to->title, sizeof to->title, json_get_str(r, "title", ""));
		clean(to->text, sizeof to->text, text);
		out->n += *to->text != '\0';
	}
	cJSON_Delete(j);
	return 0;
}
