/*
 * script.c - see script.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "script.h"

#include "../../stages/lib/file.h"
#include "../../stages/lib/json.h"
#include "../../stages/lib/jsonw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const struct json_limits LIMITS = {.bytes = (size_t)64 << 20, .depth = 64};

static void sleep_ms(double ms)
{
	struct timespec t = {(time_t)(ms / 1000), (long)((long)ms % 1000) * 1000000L};

	if (ms > 0)
		nanosleep(&t, NULL);
}

static int send_all(int fd, const char *s, size_t n)
{
	while (n) {
		ssize_t k = send(fd, s, n, MSG_NOSIGNAL);
		if (k <= 0)
			return -1;
		s += k;
		n -= (size_t)k;
	}
	return 0;
}

static int flag(const cJSON *r, const char *key, int fallback)
{
	const cJSON *v = json_get(r, key);

	return cJSON_IsBool(v) ? cJSON_IsTrue(v) : fallback;
}

static void put_usage(struct jsonw *w, const cJSON *r)
{
	const cJSON *u = cJSON_GetObjectItemCaseSensitive(r, "usage");

	if (u) {
		jw_item(w, "usage", u);
		return;
	}
	jw_obj(w, "usage");
	jw_int(w, "prompt_tokens", 100);
	jw_int(w, "completion_tokens", 50);
	jw_int(w, "total_tokens", 150);
	jw_end(w);
}

static void put_head(struct jsonw *w, const cJSON *r, const char *object)
{
	jw_obj(w, NULL);
	jw_str(w, "id", "chatcmpl-test");
	jw_str(w, "object", object);
	jw_int(w, "created", 1700000000);
	jw_str(w, "model", json_get_str(r, "model_name", "scripted"));
}

static const char *finish(const cJSON *r)
{
	return json_get_str(r, "finish_reason", "stop");
}

static void completion(const cJSON *r, const char *text, struct buf *out)
{
	struct jsonw w = {0};
	const char *why = json_get_str(r, "reasoning", NULL);

	put_head(&w, r, "chat.completion");
	jw_arr(&w, "choices");
	jw_obj(&w, NULL);
	jw_int(&w, "index", 0);
	jw_obj(&w, "message");
	jw_str(&w, "role", "assistant");
	jw_str(&w, "content", text);
	if (why)
		jw_str(&w, json_get_str(r, "reasoning_field", "reasoning_content"), why);
	if (json_get_str(r, "refusal", NULL))
		jw_str(&w, "refusal", json_get_str(r, "refusal", NULL));
	if (flag(r, "tool_calls", 0)) {
		jw_arr(&w, "tool_calls");
		jw_obj(&w, NULL);
		jw_str(&w, "type", "function");
		jw_end(&w);
		jw_end(&w);
	}
	jw_end(&w);
	jw_str(&w, "finish_reason", finish(r));
	jw_end(&w);
	jw_end(&w);
	put_usage(&w, r);
	jw_end(&w);
	buf_add(out, w.out.data, w.out.len);
	jw_free(&w);
}

static void event(struct buf *out, struct jsonw *w)
{
	buf_addf(out, "data: %s\n\n", buf_str(&w->out));
	jw_free(w);
	*w = (struct jsonw){0};
}

static void delta(const cJSON *r, const char *key, const char *s, size_t n, const char *fin, struct buf *out)
{
	struct jsonw w = {0};

	put_head(&w, r, "chat.completion.chunk");
	jw_arr(&w, "choices");
	jw_obj(&w, NULL);
	jw_int(&w, "index", 0);
	jw_obj(&w, "delta");
	if (key)
		jw_strn(&w, key, s, n);
	jw_end(&w);
	jw_str(&w, "finish_reason", fin);
	jw_end(&w);
	jw_end(&w);
	jw_str(&w, "obfuscation", "xyz");
	jw_end(&w);
	event(out, &w);
}

static void stream(const cJSON *r, const char *text, struct buf *out)
{
	const char *why = json_get_str(r, "reasoning", NULL);
	size_t len = text ? strlen(text) : 0, step = len / 40 + 7;
	struct jsonw w = {0};

	if (why)
		delta(r, json_get_str(r, "reasoning_field", "reasoning_content"), why, strlen(why), NULL, out);
	for (size_t i = 0; i < len; i += step) {
		if (flag(r, "keepalive", 0))
			buf_adds(out, ": keep-alive\n\n");
		delta(r, "content", text + i, len - i < step ? len - i : step, NULL, out);
	}
	if (!flag(r, "done", 1))
		return;
	delta(r, NULL, NULL, 0, finish(r), out);
	if (flag(r, "usage_chunk", 1)) {
		put_head(&w, r, "chat.completion.chunk");
		jw_arr(&w, "choices");
		jw_end(&w);
		put_usage(&w, r);
		jw_end(&w);
		event(out, &w);
	}
	buf_adds(out, "data: [DONE]\n\n");
}

static int make_body(const cJSON *r, const struct buf *request, struct buf *out, struct err *e)
{
	const char *body = json_get_str(r, "body", NULL), *hex = json_get_str(r, "hex", NULL);
	const char *file = json_get_str(r, "body_file", NULL), *text = json_get_str(r, "text", NULL);
	struct buf made = BUF_INIT;

	if (body) {
		buf_adds(out, body);
	} else if (file) {
		return file_read(file, (size_t)64 << 20, out, e);
	} else if (hex) {
		for (; hex[0] && hex[1]; hex += 2) {
			unsigned v = 0;
			sscanf(hex, "%2x", &v);
			buf_addc(out, (char)v);
		}
	} else {
		if (flag(r, "model", 0)) {
			if (model_reply(request, &made, e))
				return -1;
			text = buf_str(&made);
		}
		if (flag(r, "stream", 0))
			stream(r, text, out);
		else
			completion(r, text, out);
		buf_free(&made);
	}
	return 0;
}

static int send_body(int fd, const cJSON *r, const struct buf *body)
{
	size_t cut = (size_t)json_get_num(r, "cut", (double)body->len);
	size_t n = cut < body->len ? cut : body->len, step = n ? n : 1, i = 0, k;
	double ms = json_get_num(r, "chunk_delay_ms", 0);
	int chunked = flag(r, "chunked", 0);
	char head[32];

	if (ms > 0 || chunked)
		step = n / 10 + 1;
	for (; i < n; i += k) {
		k = n - i < step ? n - i : step;
		snprintf(head, sizeof head, "%zx\r\n", k);
		if ((chunked && send_all(fd, head, strlen(head))) || send_all(fd, body->data + i, k) ||
		    (chunked && send_all(fd, "\r\n", 2)))
			return -1;
		sleep_ms(ms);
	}
	if (chunked && n == body->len)
		return send_all(fd, "0\r\n\r\n", 5);
	return 0;
}

static int send_reply(int fd, const cJSON *r, const struct buf *body)
{
	struct buf head = BUF_INIT;
	const cJSON *h;
	int rc, status = (int)json_get_num(r, "status", 200);

	buf_addf(&head, "HTTP/1.1 %d %s\r\n", status, status == 200 ? "OK" : "Scripted");
	if (!json_get(json_get(r, "headers"), "Content-Type"))
		buf_addf(&head, "Content-Type: %s\r\n",
			 flag(r, "stream", 0) ? "text/event-stream" : "application/json");
	cJSON_ArrayForEach(h, json_get(r, "headers")) {
		if (cJSON_IsString(h))
			buf_addf(&head, "%s: %s\r\n", h->string, h->valuestring);
	}
	if (flag(r, "chunked", 0))
		buf_adds(&head, "Transfer-Encoding: chunked\r\n");
	else if (!flag(r, "no_length", 0))
		buf_addf(&head, "Content-Length: %zu\r\n", body->len);
	buf_adds(&head, "Connection: close\r\n\r\n");
	rc = send_all(fd, head.data, head.len);
	buf_free(&head);
	return rc ? rc : send_body(fd, r, body);
}

int script_answer(int fd, const char *script, int model, int n, const struct buf *request, struct err *e)
{
	cJSON *j = script ? json_read(script, &LIMITS, NULL, e) : NULL;
	const cJSON *list = json_get(j, "replies"), *r;
	struct buf body = BUF_INIT;
	cJSON *own = NULL;
	int count = cJSON_GetArraySize(list), rc = 0;

	if (script && !j)
		return -1;
	if (n > count && model) {
		own = cJSON_CreateObject();
		cJSON_AddTrueToObject(own, "model");
	}
	r = own ? own : cJSON_GetArrayItem(list, n > count ? count - 1 : n - 1);
	sleep_ms(json_get_num(r, "delay_ms", 0));
	if (flag(r, "reset", 0)) {
		struct linger l = {1, 0};
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
	} else if (!flag(r, "drop", 0)) {
		rc = make_body(r, request, &body, e);
		if (!rc)
			send_reply(fd, r, &body); /* a client that left is no trouble of ours */
	}
	buf_free(&body);
	cJSON_Delete(own);
	cJSON_Delete(j);
	return rc;
}
