/*
 * chat.c - see chat.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "chat.h"

#include "json.h"
#include "utf8.h"

#include <stdio.h>
#include <string.h>

/* Replies may carry long texts and vendor fields; still bounded. */
static const struct json_limits CHAT_LIMITS = {.bytes = (size_t)32 << 20, .depth = 64};

static void take_usage(struct chat *c, const cJSON *root)
{
	const cJSON *u = json_get(root, "usage");
	const cJSON *d;

	if (!cJSON_IsObject(u))
		return;
	struct {
		const char *key;
		int64_t *to;
	} plain[] = {{"prompt_tokens", &c->usage.prompt},
		     {"completion_tokens", &c->usage.completion},
		     {"total_tokens", &c->usage.total}};
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
		int64_t v;
		const cJSON *n = json_get(u, plain[i].key);
		if (n && !json_is_int(n, &v) && v >= 0)
			*plain[i].to = v;
	}
	int64_t v;
	d = json_get(json_get(u, "prompt_tokens_details"), "cached_tokens");
	if (d && !json_is_int(d, &v) && v >= 0)
		c->usage.cached = v;
	d = json_get(json_get(u, "completion_tokens_details"), "reasoning_tokens");
	if (d && !json_is_int(d, &v) && v >= 0)
		c->usage.reasoning = v;
}

static void take_text(struct buf *to, const cJSON *item)
{
	const cJSON *part;

	if (cJSON_IsString(item)) {
		buf_adds(to, item->valuestring);
		return;
	}
	/* Some servers answer in parts, as the request may. */
	if (cJSON_IsArray(item))
		cJSON_ArrayForEach(part, item) {
			const char *t = json_get_str(part, "text", NULL);
			if (t)
				buf_adds(to, t);
		}
}

static void take_message(struct chat *c, const cJSON *m)
{
	const cJSON *r, *calls;

	if (!cJSON_IsObject(m))
		return;
	take_text(&c->text, json_get(m, "content"));
	take_text(&c->refusal, json_get(m, "refusal"));
	r = json_get(m, "reasoning_content");
	if (!r)
		r = json_get(m, "reasoning");
	take_text(&c->reasoning, r);
	calls = json_get(m, "tool_calls");
	if (cJSON_IsArray(calls) && calls->child)
		c->tool_calls = 1;
}

static void take_error(struct chat *c, const cJSON *root)
{
	const cJSON *er = json_get(root, "error");
	const cJSON *code;
	int64_t v;

	if (!er || c->error.len)
		return;
	if (cJSON_IsString(er)) {
		utf8_line(&c->error, er->valuestring, strlen(er->valuestring), 300);
	} else if (cJSON_IsObject(er)) {
		const char *m = json_get_str(er, "message", "no message");
		utf8_line(&c->error, m, strlen(m), 300);
		code = json_get(er, "code");
		if (code && !json_is_int(code, &v) && v >= 100 && v < 600)
			c->error_code = (int)v;
	}
	if (!c->error.len)
		buf_adds(&c->error, "error without a message");
}

/* One completion object or one chunk; `part` is "message" or "delta". */
static void take_object(struct chat *c, const cJSON *root, const char *part)
{
	const cJSON *choices = json_get(root, "choices");
	const cJSON *ch, *idx;
	const char *s;
	int64_t v;

	take_error(c, root);
	take_usage(c, root);
	s = json_get_str(root, "model", NULL);
	if (s && !c->model[0]) {
		struct buf line = BUF_INIT;
		utf8_line(&line, s, strlen(s), sizeof c->model - 1);
		snprintf(c->model, sizeof c->model, "%s", buf_str(&line));
		buf_free(&line);
	}
	if (!cJSON_IsArray(choices))
		return;
	cJSON_ArrayForEach(ch, choices) {
		idx = json_get(ch, "index");
		if (idx && (json_is_int(idx, &v) || v != 0))
			continue; /* only one answer is ever asked for */
		take_message(c, json_get(ch, part));
		s = json_get_str(ch, "finish_reason", NULL);
		if (s && s[0]) {
			snprintf(c->finish, sizeof c->finish, "%.31s", s);
			c->complete = 1;
		} else if (!strcmp(part, "message")) {
			c->complete = 1; /* old servers leave it null; the object is whole */
		}
		if (!idx)
			break;
	}
}

/* One event: the joined data lines. Returns 1 at [DONE]. */
static int take_event(struct chat *c, struct buf *data, const char *what, struct err *e)
{
	cJSON *root;

	if (!data->len)
		return 0;
	if (!strcmp(data->data, "[DONE]")) {
		c->complete = 1;
		return 1;
	}
	root = json_parse(data->data, data->len, &CHAT_LIMITS, what, e);
	buf_clear(data);
	if (!root)
		return -1;
	take_object(c, root, "delta");
	cJSON_Delete(root);
	return 0;
}

static int parse_stream(struct chat *c, const char *s, size_t len, const char *what, struct err *e)
{
	struct buf data = BUF_INIT;
	size_t i = 0, n;
	int rc = 0;

	c->streamed = 1;
	while (i < len && rc == 0) {
		n = strcspn(s + i, "\r\n");
		if (i + n >= len)
			break; /* a last line without its end is cut, not an event */
		if (n == 0) {
			rc = take_event(c, &data, what, e);
		} else if (n >= 5 && !memcmp(s + i, "data:", 5)) {
			size_t skip = s[i + 5] == ' ' ? 6 : 5;
			if (data.len)
				buf_addc(&data, '\n');
			buf_add(&data, s + i + skip, n > skip ? n - skip : 0);
		} /* comments, event:, id:, retry: carry nothing for us */
		i += n;
		i += s[i] == '\r' && i + 1 < len && s[i + 1] == '\n' ? 2 : 1;
	}
	/* Some servers close after the last data line without the blank line. */
	if (rc == 0 && data.len)
		rc = take_event(c, &data, what, e);
	buf_free(&data);
	if (rc < 0 && c->complete)
		rc = 0; /* what came after the end does not matter */
	return rc < 0 ? -1 : 0;
}

int chat_parse(const char *body, size_t len, struct chat *out, const char *what, struct err *e)
{
	struct buf clean = BUF_INIT;
	cJSON *root = NULL;
	size_t i = 0;
	int rc;

	utf8_repair(&clean, body, len);
	if (clean.len >= 3 && !memcmp(clean.data, "\xef\xbb\xbf", 3))
		i = 3;
	while (i < clean.len && strchr(" \t\r\n", clean.data[i]) && clean.data[i])
		i++;
	if (i == clean.len) {
		rc = err_set(e, EX_BADINPUT, "%s: empty body", what);
	} else if (clean.data[i] == '{') {
		root = json_parse(clean.data + i, clean.len - i, &CHAT_LIMITS, what, e);
		rc = root ? 0 : -1;
		if (root)
			take_object(out, root, "message");
	} else if (clean.data[i] == ':' || !strncmp(clean.data + i, "data:", 5) ||
		   !strncmp(clean.data + i, "event:", 6) || !strncmp(clean.data + i, "id:", 3) ||
		   !strncmp(clean.data + i, "retry:", 6)) {
		rc = parse_stream(out, clean.data + i, clean.len - i, what, e);
	} else {
		rc = err_set(e, EX_BADINPUT, "%s: neither a JSON object nor an event stream%s", what,
			     clean.data[i] == '<' ? " (an HTML page?)" : "");
	}
	cJSON_Delete(root);
	buf_free(&clean);
	return rc;
}

void chat_free(struct chat *c)
{
	buf_free(&c->text);
	buf_free(&c->reasoning);
	buf_free(&c->refusal);
	buf_free(&c->error);
	memset(c, 0, sizeof *c);
}

void chat_error_line(const char *body, size_t len, struct buf *out)
{
	struct chat er = CHAT_INIT;

	if (!chat_parse(body, len, &er, "error", NULL) && er.error.len)
		utf8_line(out, er.error.data, er.error.len, 200);
	else
		utf8_line(out, body, len, 160);
	if (!out->len)
		buf_adds(out, "empty body");
	chat_free(&er);
}

void chat_usage_write(const struct chat_usage *u, struct jsonw *w, const char *key)
{
	const struct {
		const char *key;
		int64_t v;
	} f[] = {{"prompt_tokens", u->prompt}, {"completion_tokens", u->completion},
		 {"total_tokens", u->total}, {"cached_tokens", u->cached},
		 {"reasoning_tokens", u->reasoning}};

	jw_obj(w, key);
	for (size_t i = 0; i < sizeof f / sizeof *f; i++) {
		if (f[i].v < 0)
			jw_null(w, f[i].key);
		else
			jw_int(w, f[i].key, f[i].v);
	}
	jw_end(w);
}
