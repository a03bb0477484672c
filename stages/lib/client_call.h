/*
 * client_call.h - ask the client role for one HTTP exchange, and never pay twice for it.
 *
 * The caller (propose, research) builds a request; the client process, which alone has the key
 * and libcurl, sends it. Both meet in a folder:
 *   request.json  what to send where, without secrets; its `identity` says which call this is
 *   request.body  the exact bytes sent, the same on every retry
 *   client.json   the outcome: http, attempts, retry_after_s, finish_reason, usage, error
 *   reply.json    the raw body of a complete reply (reply.sse for an event stream): its presence,
 *                 with the hash that client.json names, is what "the reply is durable" means
 *
 * client_call: when the folder has a request of the same identity, that request stands: its
 * durable reply is handed over without a call, and a client still at work on it (its make died,
 * it did not) is waited for. Otherwise request.json and request.body are written and the client
 * started. The client holds flock(2) on request.json while it works; it ignores the death of its
 * caller from the moment it sends until the reply is stored, at most `total_ms`.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_CLIENT_CALL_H
#define TS_CLIENT_CALL_H

#include "buf.h"
#include "chat.h"
#include "err.h"
#include "hash.h"

#include <cjson/cJSON.h>

#include <stddef.h>

#define CLIENT_REQUEST_SCHEMA "touchstone/request/1"
#define CLIENT_RESULT_SCHEMA "touchstone/reply/1"

struct client_limits {
	long connect_ms, idle_ms, total_ms; /* total covers every attempt and every pause */
	long backoff_ms;                    /* first pause; doubles, jittered, at most a minute */
	long retries;                       /* attempts beyond the first */
	long max_bytes;                     /* of a response body */
};
extern const struct client_limits CLIENT_LIMITS; /* 10 s, 120 s, 900 s, 1 s, 5, 32 MiB */

struct client_request {
	const char *identity;     /* which call this is; 64 hex digits */
	const char *kind;         /* "chat": the reply must be a complete chat completion; "raw" */
	const char *base_url, *path, *method;
	const char *const *headers; /* "Name: value" without secrets, NULL-terminated, or NULL */
	const char *auth_header, *auth_scheme; /* "Authorization", "Bearer"; scheme "" = bare key */
	const char *key_env, *key_file;        /* NULL or "": none; key_file wins when it exists */
	int key_required;
	const void *body;
	size_t body_len;
	struct client_limits limits;
};

struct client_result {
	int stored;          /* a complete reply is durable */
	int reused;          /* ... and was there before this call */
	int exit_code;       /* of the client: EX_DONE, EX_AGAIN, EX_NOENV, ... */
	int http, attempts;
	double retry_after_s; /* -1: not given */
	double elapsed_s;
	char body_file[16];  /* "reply.json" or "reply.sse" */
	char body_sha[HASH_HEX], request_sha[HASH_HEX];
	struct buf body;     /* raw reply when stored */
	char error[400];     /* "" when stored */
};

/* Called once right before a client is started (to reserve money); not when a reply is reused. */
typedef int client_before_fn(void *ctx, struct err *e);

/* -1 only when the exchange could not be tried; a failed one is a result with exit_code. */
int client_call(const char *dir, const struct client_request *q, client_before_fn *before, void *ctx,
		struct client_result *r, struct err *e);
void client_result_free(struct client_result *r);

/* Is there a durable reply for the request in `dir`? 1 (r filled), 0, -1. */
int client_durable(const char *dir, struct client_result *r, struct err *e);

/* Hold the request of `dir` (flock on request.json, dropped when the descriptor is closed or the
 * process ends), waiting for another holder. The descriptor; -2 when there is no request; -1. */
int client_hold(const char *dir, long wait_ms, struct err *e);

/* For the client itself: read "limits" of a request over the defaults, write client.json. */
void client_limits_read(const cJSON *limits, struct client_limits *out);

struct client_outcome {
	const char *request_sha, *started, *error; /* error counts when nothing is stored */
	const char *log;                           /* JSON array, an object per attempt */
	int http, attempts, redacted;
	double retry_after_s, elapsed_s;
	const struct chat *chat;
	const char *body_file;                     /* NULL: no complete reply */
	const struct buf *body;
};
int client_outcome_write(const char *dir, const struct client_outcome *o, struct err *e);

/* BASE and PATH joined by exactly one slash, a doubled version segment ("/v1" + "/v1/...")
 * collapsed. Only http and https. malloc'd, or NULL. */
char *client_url(const char *base, const char *path, struct err *e);

#endif
