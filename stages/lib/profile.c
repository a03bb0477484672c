/*
 * profile.c - see profile.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "profile.h"

#include "file.h"
#include "json.h"
#include "jsonw.h"
#include "trial.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const KEYS[] = {
	"schema", "description", "base_url", "path", "model", "key_env", "key_file", "key_required",
	"auth_header", "auth_scheme", "headers", "max_tokens_field", "max_tokens",
	"max_prompt_tokens", "stream", "stream_usage", "send_seed", "extra", "widen", "prices", "limits", NULL};

static int flag(const cJSON *j, const char *key, int fallback)
{
	const cJSON *v = json_get(j, key);

	return cJSON_IsBool(v) ? cJSON_IsTrue(v) : fallback;
}

/* A base that carries its version ("/v1", "/v1beta/openai") is used as it is. */
static const char *default_path(const char *base)
{
	const char *p;

	for (p = strstr(base, "/v"); p; p = strstr(p + 1, "/v"))
		if (isdigit((unsigned char)p[2]))
			return "chat/completions";
	return "v1/chat/completions";
}

static const char *env_of(const char *name, const char *profile)
{
	const char *v = strcmp(profile, "openai") ? NULL : getenv(name);

	return v && *v ? v : NULL;
}

static int take_headers(struct profile *p, struct err *e)
{
	const cJSON *h;
	int n = 0;

	cJSON_ArrayForEach(h, json_get(p->json, "headers")) {
		if (!cJSON_IsString(h) || !strchr(h->valuestring, ':') || n == 16)
			return err_set(e, EX_NOENV, "profile %s: 'headers' wants \"Name: value\" texts",
				       p->name);
		p->headers[n++] = h->valuestring;
	}
	return 0;
}

static double price(const cJSON *j, const char *key)
{
	return json_get_num(json_get(j, "prices"), key, NAN);
}

static void take_members(struct profile *p)
{
	const cJSON *j = p->json;

	p->path = json_get_str(j, "path", NULL);
	if (!p->path)
		p->path = default_path(p->base_url);
	p->key_env = json_get_str(j, "key_env", NULL);
	p->key_file = json_get_str(j, "key_file", NULL);
	p->key_required = flag(j, "key_required", 1);
	p->auth_header = json_get_str(j, "auth_header", "Authorization");
	p->auth_scheme = json_get_str(j, "auth_scheme", "Bearer");
	p->max_tokens_field = json_get_str(j, "max_tokens_field", "max_tokens");
	p->max_tokens = json_get_int(j, "max_tokens", 16384);
	p->max_prompt_tokens = json_get_int(j, "max_prompt_tokens", 60000);
	p->stream = flag(j, "stream", 1);
	p->stream_usage = flag(j, "stream_usage", 1);
	p->send_seed = flag(j, "send_seed", 0);
	p->extra = json_get(j, "extra");
	p->widen = json_get(j, "widen");
	p->price_in = price(j, "in");
	p->price_cached = price(j, "cached_in");
	p->price_out = price(j, "out");
	client_limits_read(json_get(j, "limits"), &p->limits);
	/* A server that does not stream is silent until it has finished. */
	if (!p->stream && p->limits.idle_ms < p->limits.total_ms)
		p->limits.idle_ms = p->limits.total_ms;
}

static int check_counts(const struct profile *p, const char *path, struct err *e)
{
	static const char *const KEY[] = {"max_tokens", "max_prompt_tokens"};

	for (int i = 0; i < 2; i++) {
		const double v = json_get_num(p->json, KEY[i], 1);
		if (!(v >= 1 && v <= 1e9))
			return err_set(e, EX_BADINPUT, "%s: %s: 1 to 1000000000 is expected", path, KEY[i]);
	}
	return 0;
}

int profile_load(const char *name, const char *model, const char *base_url, struct profile *p,
		 struct err *e)
{
	char path[160];

	memset(p, 0, sizeof *p);
	if (!trial_name_ok(name))
		return err_set(e, EX_BADUSE, "'%.60s' is no name of a profile", name);
	snprintf(p->name, sizeof p->name, "%s", name);
	snprintf(path, sizeof path, "%s/%s.json", PROFILE_DIR, name);
	if (!file_exists(path))
		return err_set(e, EX_NOENV, "no profile '%s': %s does not exist", name, path);
	p->json = json_read(path, &JSON_OURS, p->sha, e);
	if (!p->json)
		return -1;
	if (json_only(p->json, KEYS, path, e) || check_counts(p, path, e)) {
		profile_free(p);
		return -1;
	}
	if (!base_url || !*base_url)
		base_url = env_of("OPENAI_BASE_URL", name);
	if (!base_url)
		base_url = json_get_str(p->json, "base_url", "");
	if (!model || !*model)
		model = env_of("OPENAI_MODEL", name);
	if (!model)
		model = json_get_str(p->json, "model", NULL);
	p->base_url = xstrdup(base_url);
	p->model = model ? xstrdup(model) : NULL;
	take_members(p);
	if (take_headers(p, e)) {
		profile_free(p);
		return -1;
	}
	return 0;
}

void profile_free(struct profile *p)
{
	cJSON_Delete(p->json);
	free(p->base_url);
	free(p->model);
	memset(p, 0, sizeof *p);
}

int profile_ready(const char *name)
{
	struct profile p;
	struct stat st;
	int ready, key;
	char *file;

	if (profile_load(name, NULL, NULL, &p, NULL))
		return 0;
	file = p.key_file && !strncmp(p.key_file, "~/", 2) && getenv("HOME")
		? xasprintf("%s/%s", getenv("HOME"), p.key_file + 2)
		: xstrdup(p.key_file ? p.key_file : "");
	key = (p.key_env && getenv(p.key_env) && *getenv(p.key_env)) || (*file && !stat(file, &st));
	ready = *p.base_url && (key || !p.key_required);
	free(file);
	profile_free(&p);
	return ready;
}

double profile_cost(const struct profile *p, const struct chat_usage *u, int *known)
{
	double in = u->prompt > 0 ? (double)u->prompt : 0, out = u->completion > 0 ? (double)u->completion : 0;
	double cached = u->cached > 0 ? (double)u->cached : 0;

	*known = !isnan(p->price_in) && !isnan(p->price_out);
	if (!*known)
		return 0;
	if (isnan(p->price_cached) || cached > in)
		cached = 0;
	return ((in - cached) * p->price_in + (cached > 0 ? cached * p->price_cached : 0) +
		out * p->price_out) / 1e6;
}

/* Members of a body that are ours, whatever a plateau widens. */
static int is_ours(const char *key)
{
	static const char *const ours[] = {"model", "messages", "stream", "stream_options", "seed"};

	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		if (!strcmp(ours[i], key))
			return 1;
	return 0;
}

static void message(struct jsonw *w, const char *role, const char *text)
{
	jw_obj(w, NULL);
	jw_str(w, "role", role);
	jw_str(w, "content", text);
	jw_end(w);
}

void profile_body(const struct profile *p, const char *system, const char *user, int64_t seed,
		  struct buf *out)
{
	struct jsonw w = {0};
	const cJSON *x;

	jw_obj(&w, NULL);
	jw_str(&w, "model", p->model);
	jw_arr(&w, "messages");
	if (system && *system)
		message(&w, "system", system);
	message(&w, "user", user);
	jw_end(&w);
	if (*p->max_tokens_field && !json_get(p->extra, p->max_tokens_field))
		jw_int(&w, p->max_tokens_field, p->max_tokens);
	if (p->send_seed && !json_get(p->extra, "seed"))
		jw_int(&w, "seed", seed);
	if (p->stream && !json_get(p->extra, "stream")) {
		jw_bool(&w, "stream", 1);
		if (p->stream_usage) {
			jw_obj(&w, "stream_options");
			jw_bool(&w, "include_usage", 1);
			jw_end(&w);
		}
	}
	cJSON_ArrayForEach(x, p->extra)
		if (strcmp(x->string, "model") && strcmp(x->string, "messages") &&
		    !(p->widened && json_get(p->widen, x->string)))
			jw_item(&w, x->string, x);
	cJSON_ArrayForEach(x, p->widen)
		if (p->widened && !is_ours(x->string))
			jw_item(&w, x->string, x);
	jw_end(&w);
	buf_add(out, w.out.data, w.out.len);
	jw_free(&w);
}
