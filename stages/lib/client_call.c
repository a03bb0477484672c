/*
 * client_call.c - see client_call.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "client_call.h"

#include "file.h"
#include "json.h"
#include "jsonw.h"
#include "spawn.h"
#include "utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <unistd.h>

const struct client_limits CLIENT_LIMITS = {
	.connect_ms = 10000, .idle_ms = 120000, .total_ms = 900000,
	.backoff_ms = 1000, .retries = 5, .max_bytes = 32 << 20,
};

static void path_in(char out[512], const char *dir, const char *file)
{
	snprintf(out, 512, "%s/%s", dir, file);
}

char *client_url(const char *base, const char *path, struct err *e)
{
	size_t n = strlen(base);
	const char *seg;

	if ((strncasecmp(base, "http://", 7) && strncasecmp(base, "https://", 8)) ||
	    strpbrk(base, " \t\r\n\"'<>?#@")) {
		err_set(e, EX_NOENV, "base URL '%.120s' is not an http or https address", base);
		return NULL;
	}
	while (n && base[n - 1] == '/')
		n--;
	while (*path == '/')
		path++;
	/* "http://h/v1" + "v1/chat/..." must not become /v1/v1. */
	seg = memrchr(base, '/', n);
	if (seg) {
		size_t k = n - (size_t)(seg + 1 - base);
		if (k && !strncmp(path, seg + 1, k) && path[k] == '/')
			path += k + 1;
	}
	return xasprintf("%.*s/%s", (int)n, base, path);
}

static void write_limits(struct jsonw *w, const struct client_limits *l)
{
	jw_obj(w, "limits");
	jw_int(w, "connect_ms", l->connect_ms);
	jw_int(w, "idle_ms", l->idle_ms);
	jw_int(w, "total_ms", l->total_ms);
	jw_int(w, "backoff_ms", l->backoff_ms);
	jw_int(w, "retries", l->retries);
	jw_int(w, "max_bytes", l->max_bytes);
	jw_end(w);
}

static int write_request(const char *dir, const struct client_request *q, struct err *e)
{
	struct jsonw w = {.pretty = 1};
	char path[512], sha[HASH_HEX];
	int rc;

	path_in(path, dir, "request.body");
	if (file_write(path, q->body, q->body_len, 0644, e))
		return -1;
	hash_hex(q->body, q->body_len, sha);
	jw_obj(&w, NULL);
	jw_str(&w, "schema", CLIENT_REQUEST_SCHEMA);
	jw_str(&w, "identity", q->identity);
	jw_str(&w, "kind", q->kind);
	jw_str(&w, "method", q->method);
	jw_str(&w, "base_url", q->base_url);
	jw_str(&w, "path", q->path);
	jw_arr(&w, "headers");
	for (const char *const *h = q->headers; h && *h; h++)
		jw_str(&w, NULL, *h);
	jw_end(&w);
	jw_obj(&w, "auth");
	jw_str(&w, "header", q->auth_header ? q->auth_header : "Authorization");
	jw_str(&w, "scheme", q->auth_scheme ? q->auth_scheme : "Bearer");
	jw_str(&w, "env", q->key_env && *q->key_env ? q->key_env : NULL);
	jw_str(&w, "file", q->key_file && *q->key_file ? q->key_file : NULL);
	jw_bool(&w, "required", q->key_required);
	jw_end(&w);
	jw_str(&w, "body", "request.body");
	jw_str(&w, "body_sha256", sha);
	write_limits(&w, &q->limits);
	jw_end(&w);
	path_in(path, dir, "request.json");
	rc = file_write(path, w.out.data, w.out.len, 0644, e);
	jw_free(&w);
	return rc;
}

/* 1 when the folder's request is the call `identity`. */
static int same_request(const char *dir, const char *identity)
{
	char path[512];
	cJSON *j;
	int same;

	path_in(path, dir, "request.json");
	j = json_read(path, &JSON_OURS, NULL, NULL);
	same = j && !strcmp(json_get_str(j, "identity", ""), identity);
	cJSON_Delete(j);
	return same;
}

static void take_result(const cJSON *j, struct client_result *r)
{
	const cJSON *body = json_get(j, "body");
	const char *s;

	r->http = (int)json_get_int(j, "http", 0);
	r->attempts = (int)json_get_int(j, "attempts", 0);
	r->retry_after_s = json_get_num(j, "retry_after_s", -1);
	r->elapsed_s = json_get_num(j, "elapsed_s", 0);
	s = json_get_str(j, "error", NULL);
	if (s)
		snprintf(r->error, sizeof r->error, "%.390s", s);
	s = json_get_str(body, "file", "");
	if (!strcmp(s, "reply.json") || !strcmp(s, "reply.sse"))
		snprintf(r->body_file, sizeof r->body_file, "%.15s", s);
	s = json_get_str(body, "sha256", "");
	if (hash_is_hex(s))
		memcpy(r->body_sha, s, HASH_HEX);
}

int client_durable(const char *dir, struct client_result *r, struct err *e)
{
	char path[512], sha[HASH_HEX];
	cJSON *j;
	int mine;

	path_in(path, dir, "request.json");
	if (!file_exists(path))
		return 0;
	if (hash_file(path, r->request_sha, e))
		return -1;
	path_in(path, dir, "client.json");
	j = json_read(path, &JSON_OURS, NULL, NULL);
	if (!j)
		return 0;
	mine = !strcmp(json_get_str(j, "request_sha256", ""), r->request_sha);
	if (mine)
		take_result(j, r);
	cJSON_Delete(j);
	if (!mine || !r->body_file[0] || !r->body_sha[0])
		return 0;
	path_in(path, dir, r->body_file);
	buf_clear(&r->body);
	/* Redaction may lengthen a body a little beyond the cap: leave room. */
	if (file_read(path, (size_t)64 << 20, &r->body, NULL))
		return 0;
	hash_hex(r->body.data ? r->body.data : "", r->body.len, sha);
	r->stored = !strcmp(sha, r->body_sha);
	if (r->stored)
		r->error[0] = '\0';
	return r->stored;
}

int client_hold(const char *dir, long wait_ms, struct err *e)
{
	char path[512];
	int fd;

	path_in(path, dir, "request.json");
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? -2 : err_sys(e, "cannot open '%s'", path);
	for (long waited = 0; flock(fd, LOCK_EX | LOCK_NB); waited += 50) {
		int rc = 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			rc = err_sys(e, "cannot lock '%s'", path);
		else if (waited > wait_ms)
			rc = err_set(e, EX_AGAIN, "the client of an earlier make still holds '%s'", path);
		if (rc) {
			close(fd);
			return -1;
		}
		usleep(50000);
	}
	return fd;
}

/* Wait for a client that another propose left behind. It cannot work longer than total_ms. */
static int wait_orphan(const char *dir, const struct client_limits *l, struct err *e)
{
	int fd = client_hold(dir, l->total_ms + 10000, e);

	if (fd >= 0)
		close(fd);
	return fd == -1 ? -1 : 0;
}

static void add_env(const char **env, size_t *n, char **own, size_t *nown, const char *name)
{
	const char *v = getenv(name);

	if (!v)
		return;
	own[*nown] = xasprintf("%s=%s", name, v);
	env[(*n)++] = own[(*nown)++];
}

static int run_client(const char *dir, const struct client_request *q, struct client_result *r,
		      struct err *e)
{
	static const char *const pass[] = {"HOME", "PATH", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "http_proxy",
					   "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY",
					   "all_proxy", "ALL_PROXY"};
	const char *env[16] = {"LC_ALL=C"};
	char tool[512], path[512], *own[16];
	size_t n = 1, nown = 0;
	struct spawn_result s = {0};
	const char *argv[] = {tool, path, NULL};
	int rc;

	if (spawn_tool("client", tool, sizeof tool, e))
		return -1;
	path_in(path, dir, "request.json");
	for (size_t i = 0; i < sizeof pass / sizeof *pass; i++)
		add_env(env, &n, own, &nown, pass[i]);
	if (q->key_env && *q->key_env)
		add_env(env, &n, own, &nown, q->key_env);
	env[n] = NULL;
	struct spawn_request sq = {.argv = argv, .env = env, .out = SPAWN_CAPTURE,
				   .flags = SPAWN_STDOUT_TOO, .out_cap = 4096};
	rc = spawn_run(&sq, &s, e);
	for (size_t i = 0; i < nown; i++) {
		explicit_bzero(own[i], strlen(own[i]));
		free(own[i]);
	}
	if (rc == 0) {
		struct buf line = BUF_INIT;
		r->exit_code = s.code >= 0 ? s.code : s.outside ? EX_AGAIN : EX_HARNESS;
		utf8_line(&line, buf_str(&s.out), s.out.len, sizeof r->error - 1);
		if (r->exit_code)
			snprintf(r->error, sizeof r->error, "%s", line.len ? line.data : "client died");
		buf_free(&line);
	}
	spawn_result_free(&s);
	return rc;
}

static int clear_old(const char *dir, struct err *e)
{
	static const char *const old[] = {"reply.json", "reply.sse", "reply.txt", "client.json"};
	char path[512];

	for (size_t i = 0; i < sizeof old / sizeof *old; i++) {
		path_in(path, dir, old[i]);
		if (unlink(path) && errno != ENOENT)
			return err_sys(e, "cannot remove '%s'", path);
	}
	return file_sync_dir(dir, e);
}

int client_call(const char *dir, const struct client_request *q, client_before_fn *before, void *ctx,
		struct client_result *r, struct err *e)
{
	char text[sizeof r->error];
	int got, code;

	memset(r, 0, sizeof *r);
	r->retry_after_s = -1;
	if (same_request(dir, q->identity)) {
		if (wait_orphan(dir, &q->limits, e))
			return -1;
		got = client_durable(dir, r, e);
		if (got) {
			r->reused = got > 0;
			return got < 0 ? -1 : 0;
		}
	} else if (clear_old(dir, e) || write_request(dir, q, e)) {
		return -1;
	}
	if ((before && before(ctx, e)) || run_client(dir, q, r, e))
		return -1;
	memcpy(text, r->error, sizeof text);
	code = r->exit_code;
	if (client_durable(dir, r, e) < 0)
		return -1;
	r->exit_code = code;
	if (!r->stored)
		memcpy(r->error, text, sizeof text); /* what the client said last counts */
	if (!r->stored && !code)
		r->exit_code = EX_HARNESS;
	return 0;
}

void client_result_free(struct client_result *r)
{
	buf_free(&r->body);
}

void client_limits_read(const cJSON *l, struct client_limits *out)
{
	const struct {
		const char *key;
		long *to;
	} f[] = {{"connect_ms", &out->connect_ms}, {"idle_ms", &out->idle_ms},
		 {"total_ms", &out->total_ms}, {"backoff_ms", &out->backoff_ms},
		 {"retries", &out->retries}, {"max_bytes", &out->max_bytes}};

	*out = CLIENT_LIMITS;
	for (size_t i = 0; i < sizeof f / sizeof *f; i++) {
		double v = json_get_num(l, f[i].key, -1);
		if (v >= 0 && v <= 1e9)
			*f[i].to = (long)v;
	}
}

int client_outcome_write(const char *dir, const struct client_outcome *o, struct err *e)
{
	struct jsonw w = {.pretty = 1};
	char path[512], sha[HASH_HEX];
	cJSON *log = cJSON_Parse(o->log);
	int rc;

	jw_obj(&w, NULL);
	jw_str(&w, "schema", CLIENT_RESULT_SCHEMA);
	jw_str(&w, "request_sha256", o->request_sha);
	jw_int(&w, "http", o->http);
	jw_int(&w, "attempts", o->attempts);
	if (o->retry_after_s < 0)
		jw_null(&w, "retry_after_s");
	else
		jw_num(&w, "retry_after_s", o->retry_after_s);
	jw_str(&w, "started", o->started);
	jw_num(&w, "elapsed_s", (double)(long)(o->elapsed_s * 1000) / 1000);
	jw_int(&w, "redacted", o->redacted);
	jw_str(&w, "finish_reason", o->chat->finish[0] ? o->chat->finish : NULL);
	jw_str(&w, "model", o->chat->model[0] ? o->chat->model : NULL);
	chat_usage_write(&o->chat->usage, &w, "usage");
	if (o->body_file) {
		hash_hex(buf_str(o->body), o->body->len, sha);
		jw_obj(&w, "body");
		jw_str(&w, "file", o->body_file);
		jw_str(&w, "sha256", sha);
		jw_int(&w, "bytes", (int64_t)o->body->len);
		jw_end(&w);
	} else {
		jw_null(&w, "body");
	}
	jw_str(&w, "error", o->body_file ? NULL : o->error);
	jw_item(&w, "log", log);
	jw_end(&w);
	path_in(path, dir, "client.json");
	rc = file_write(path, w.out.data, w.out.len, 0644, e);
	jw_free(&w);
	cJSON_Delete(log);
	return rc;
}
