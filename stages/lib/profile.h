/*
 * profile.h - where a model is asked and how: prompts/profiles/NAME.json, the run's settings and
 * the OPENAI_* environment, joined.
 *
 * A setting of the run (MODEL=) wins over the environment, the environment over the profile. The
 * environment variables OPENAI_BASE_URL and OPENAI_MODEL count for the profile `openai` only; the
 * key is never read here, only the name of its variable or file.
 *
 * Members of a profile file, all but schema and base_url optional:
 *   schema "touchstone/profile/1", base_url, path "v1/chat/completions", model
 *   key_env, key_file (0600, outside the repository; ~/ is the home folder), key_required true
 *   auth_header "Authorization", auth_scheme "Bearer", headers ["Name: value"]
 *   max_tokens_field "max_tokens" ("" sends none), max_tokens 16384, max_prompt_tokens 60000
 *   stream true, stream_usage true, send_seed false, extra {} (sent as it is, wins over ours)
 *   widen {} (sent beside extra, and instead of its like, while a plateau is widened: {"temperature": 1.2})
 *   prices {in, cached_in, out}: money per million tokens, null where unknown
 *   limits {connect_ms, idle_ms, total_ms, backoff_ms, retries, max_bytes}
 *
 * Life cycle: profile_load, profile_free.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_PROFILE_H
#define TS_PROFILE_H

#include "chat.h"
#include "client_call.h"
#include "err.h"
#include "hash.h"

#include <cjson/cJSON.h>
#include <stdint.h>

#define PROFILE_DIR "prompts/profiles"
#define PROFILE_SCHEMA "touchstone/profile/1"

struct profile {
	cJSON *json;
	char sha[HASH_HEX];
	char name[65];
	char *base_url, *model; /* after the joining; model may be NULL */
	const char *path, *key_env, *key_file, *auth_header, *auth_scheme;
	const char *headers[17];
	int key_required;
	const char *max_tokens_field;
	int64_t max_tokens, max_prompt_tokens;
	int stream, stream_usage, send_seed;
	const cJSON *extra, *widen;
	int widened; /* the caller: send `widen` */
	double price_in, price_cached, price_out; /* per million tokens; NAN unknown */
	struct client_limits limits;
};

/* `model` and `base_url` are the run's settings, NULL where not set. */
int profile_load(const char *name, const char *model, const char *base_url, struct profile *p,
		 struct err *e);
void profile_free(struct profile *p);

/* Could a call be made: is a base URL known, and a key where one is required? Looks whether the
 * variable or file exists, not into it. For the choice of a default proposer. 1 or 0. */
int profile_ready(const char *name);

/* Price of a call in the profile's money; 0 where prices are unknown (*known says). */
double profile_cost(const struct profile *p, const struct chat_usage *u, int *known);

/* The body of a chat request. Deterministic. */
void profile_body(const struct profile *p, const char *system, const char *user, int64_t seed,
		  struct buf *out);

#endif
