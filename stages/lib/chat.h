/*
 * chat.h - the body of an OpenAI-style chat completion: one JSON object, or a stream of
 * server-sent events. Written for what servers really send: keep-alive comments, CR LF, missing
 * usage, null content, `reasoning` or `reasoning_content`, an error object under HTTP 200.
 *
 * Life cycle: struct chat c = CHAT_INIT; chat_parse; use; chat_free. Parsing never guesses: a
 * body that stops before its end says `complete == 0`, and its text is not to be used.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_CHAT_H
#define TS_CHAT_H

#include "buf.h"
#include "err.h"
#include "jsonw.h"

#include <stddef.h>
#include <stdint.h>

struct chat_usage {
	/* Tokens; -1 when the server did not say. */
	int64_t prompt, completion, total, cached, reasoning;
};

struct chat {
	struct buf text;      /* what the model answered */
	struct buf reasoning; /* saved, never fed back */
	struct buf refusal;   /* non-empty: the model declined */
	struct buf error;     /* non-empty: the server reports an error in its body */
	char finish[32];      /* finish_reason, "" when none was given */
	char model[128];      /* as the server names it */
	struct chat_usage usage;
	int error_code; /* numeric code of that error, 0 when none */
	int streamed;   /* the body was an event stream */
	int complete;   /* the body reached its end: a choice with finish_reason, or [DONE] */
	int tool_calls; /* the answer is a tool call, not text */
};

#define CHAT_INIT {.usage = {-1, -1, -1, -1, -1}}

/* `what` names the body in messages. -1: neither an object nor an event stream, or broken. */
int chat_parse(const char *body, size_t len, struct chat *out, const char *what, struct err *e);
void chat_free(struct chat *c);

/* One line for people about an error body: its message, or the start of whatever page came. */
void chat_error_line(const char *body, size_t len, struct buf *out);

/* Unknown counts as null, never as 0. */
void chat_usage_write(const struct chat_usage *u, struct jsonw *w, const char *key);

#endif
