/*
 * client.c - the only program that speaks HTTP and the only one that holds the API key.
 *
 * Reads: a request file (client_call.h), the request body beside it, the key (environment
 * variable or 0600 file that the request names). Writes, beside the request: client.json and,
 * when a complete reply came, reply.json or reply.sse. Never: prints or stores the key (an echo
 * of it in a body is blanked), follows redirects, sends anything that the request does not say.
 *
 * Once a request is on its way its reply may cost money, so from then on the client no longer
 * dies with its caller: it finishes, stores the reply and ends, within the request's total_ms.
 * It starts no further attempt for a caller that is gone.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../lib/chat.h"
#include "../lib/client_call.h"
#include "../lib/file.h"
#include "../lib/json.h"
#include "../lib/jsonw.h"
#include "../lib/secret.h"
#include "../lib/verdict.h"

#include <curl/curl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static const char HELP[] =
	"usage: client REQUEST.json\n"
	"\n"
	"Send one HTTP request with bounded retries and store its reply beside it.\n"
	"propose and research start this program; people need it only for debugging.\n"
	"\n"
	"Files, all in the folder of REQUEST.json\n"
	"  request.body   bytes to send\n"
	"  client.json    outcome: http, attempts, finish_reason, usage, error\n"
	"  reply.json     raw body of a complete reply (reply.sse when it was a stream)\n"
	"\n"
	"Exit codes\n"
	"  0 reply stored   3 malformed request   4 key or address refused\n"
	"  75 try again later (network, rate limit, server)   111 system call failed\n";

enum { KEY_LEAST = 8 }; /* shorter ones are no secrets */

struct client {
	char dir[400];
	char request_sha[HASH_HEX];
	cJSON *json;
	int chat; /* kind */
	char *url;
	char *secret; /* the key, NULL for none */
	struct buf body;
	struct client_limits limits;
	struct curl_slist *headers;
	pid_t parent;
	double started; /* monotonic */
	char began[32];
	struct jsonw log; /* one object per attempt */
	int attempts, http, redacted;
	double retry_after;
	char error[300];
};

/* What one attempt brought. */
struct answer {
	struct buf body;
	size_t cap;
	int over;
	int idle;      /* cut off for silence */
	double heard;  /* when a byte last moved */
	curl_off_t moved;
	double idle_s;
	int retry;     /* worth another attempt */
	int done;      /* complete reply */
	struct chat chat;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double left_s(const struct client *c)
{
	return (double)c->limits.total_ms / 1000 - (now() - c->started);
}

/* ---- the key ---- */

static int take_key(struct client *c, struct err *e)
{
	const cJSON *auth = json_get(c->json, "auth");
	const char *env = json_get_str(auth, "env", NULL), *file = json_get_str(auth, "file", NULL);
	struct buf b = BUF_INIT;
	size_t n;
	int rc = file ? secret_read(file, &b, e) : 1;

	if (rc < 0)
		return -1;
	if (rc > 0 && env && getenv(env))
		buf_adds(&b, getenv(env));
	n = strspn(buf_str(&b), " \t\r\n");
	c->secret = xstrdup(buf_str(&b) + n);
	for (n = strlen(c->secret); n && strchr(" \t\r\n", c->secret[n - 1]); n--)
		c->secret[n - 1] = '\0';
	if (b.data)
		explicit_bzero(b.data, b.len);
	buf_free(&b);
	for (n = 0; c->secret[n]; n++)
		if (c->secret[n] < 0x21 || c->secret[n] > 0x7e)
			return err_set(e, EX_NOENV, "the API key has a blank or a control character");
	if (n)
		return 0;
	free(c->secret);
	c->secret = NULL;
	if (!cJSON_IsTrue(json_get(auth, "required")))
		return 0;
	return err_set(e, EX_NOENV, "no API key: set %s%s%s", env ? env : "", env && file ? " or write " : "",
		       file ? file : "");
}

/* Blank every echo of the key. Error pages like to repeat it. The stand-in that a local server is
 * given ("x", "EMPTY") is no secret, and blanking it would tear the reply. */
static void redact(struct client *c, struct buf *b)
{
	size_t n = c->secret ? strlen(c->secret) : 0;
	char *p = b->data;

	while (n >= KEY_LEAST && p && (p = memmem(p, b->len - (size_t)(p - b->data), c->secret, n))) {
		memset(p, '*', n);
		c->redacted++;
	}
}

/* ---- one attempt ---- */

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	struct answer *a = ctx;

	if (size * n > a->cap - a->body.len) {
		a->over = 1;
		return 0;
	}
	buf_add(&a->body, data, size * n);
	return size * n;
}

/* Called at least once a second. curl's own low-speed limit averages over seconds that we did
 * not ask for. */
static int on_progress(void *ctx, curl_off_t dlt, curl_off_t dl, curl_off_t ult, curl_off_t ul)
{
	struct answer *a = ctx;

	(void)dlt;
	(void)ult;
	if (dl + ul != a->moved) {
		a->moved = dl + ul;
		a->heard = now();
	}
	a->idle = now() - a->heard > a->idle_s;
	return a->idle;
}

static CURL *make_handle(struct client *c, struct answer *a)
{
	const char *ca = getenv("CURL_CA_BUNDLE") ? getenv("CURL_CA_BUNDLE") : getenv("SSL_CERT_FILE");
	CURL *h = curl_easy_init();
	double left = left_s(c);
	long total = left > 0.001 ? (long)(left * 1000) : 1;

	if (!h)
		return NULL;
	curl_easy_setopt(h, CURLOPT_URL, c->url);
	curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(h, CURLOPT_HTTPHEADER, c->headers);
	curl_easy_setopt(h, CURLOPT_USERAGENT, "touchstone/0.1");
	if (strcmp(json_get_str(c->json, "method", "POST"), "GET")) {
		curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, json_get_str(c->json, "method", "POST"));
		curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body.len);
		curl_easy_setopt(h, CURLOPT_POSTFIELDS, buf_str(&c->body));
	}
	if (ca && *ca)
		curl_easy_setopt(h, CURLOPT_CAINFO, ca);
	curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, c->limits.connect_ms);
	curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, total);
	curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(h, CURLOPT_XFERINFODATA, a);
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(h, CURLOPT_WRITEDATA, a);
	return h;
}

static int retry_status(int http)
{
	return http == 408 || http == 409 || http == 425 || http == 429 || (http >= 500 && http < 600);
}

/* A 2xx body: is it all there? */
static void check_body(struct client *c, struct answer *a)
{
	struct err e = {0};

	if (!c->chat) {
		a->done = 1;
	} else if (chat_parse(buf_str(&a->body), a->body.len, &a->chat, "reply", &e)) {
		a->retry = 1;
		snprintf(c->error, sizeof c->error, "http %d: %.250s", c->http, e.text);
	} else if (a->chat.error.len && !a->chat.complete) {
		/* Gateways report upstream trouble under status 200. */
		a->retry = !a->chat.error_code || retry_status(a->chat.error_code);
		snprintf(c->error, sizeof c->error, "http %d: error in the body: %.220s", c->http,
			 a->chat.error.data);
	} else if (!a->chat.complete) {
		a->retry = 1;
		snprintf(c->error, sizeof c->error, "http %d: the reply stops before its end", c->http);
	} else {
		a->done = 1;
	}
}

static void sort_answer(struct client *c, struct answer *a, CURL *h, CURLcode rc)
{
	long http = 0;
	curl_off_t wait = 0;
	struct buf line = BUF_INIT;

	curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &http);
	curl_easy_getinfo(h, CURLINFO_RETRY_AFTER, &wait);
	c->http = (int)http;
	c->retry_after = wait > 0 ? (double)wait : -1;
	c->error[0] = '\0';
	redact(c, &a->body);
	if (a->over) {
		snprintf(c->error, sizeof c->error, "http %d: reply larger than %zu bytes", c->http, a->cap);
	} else if (rc != CURLE_OK) {
		a->retry = rc != CURLE_URL_MALFORMAT && rc != CURLE_UNSUPPORTED_PROTOCOL &&
			   rc != CURLE_PEER_FAILED_VERIFICATION && rc != CURLE_SSL_CACERT_BADFILE;
		snprintf(c->error, sizeof c->error, "%s after %zu bytes",
			 a->idle ? "silence" : curl_easy_strerror(rc), a->body.len);
		/* A stream that had said its finish_reason is whole, however the line ended. */
		if (http / 100 == 2 && c->chat &&
		    !chat_parse(buf_str(&a->body), a->body.len, &a->chat, "reply", NULL) &&
		    a->chat.complete)
			a->done = 1;
	} else if (http / 100 == 2) {
		check_body(c, a);
	} else {
		a->retry = retry_status(c->http);
		chat_error_line(buf_str(&a->body), a->body.len, &line);
		snprintf(c->error, sizeof c->error, "http %d: %.220s", c->http, buf_str(&line));
		buf_free(&line);
	}
}

static int attempt(struct client *c, struct answer *a, struct err *e)
{
	double t0 = now();
	CURLcode rc;
	CURL *h;

	memset(a, 0, sizeof *a);
	a->chat = (struct chat)CHAT_INIT;
	a->cap = (size_t)c->limits.max_bytes;
	a->heard = t0;
	a->idle_s = (double)c->limits.idle_ms / 1000;
	h = make_handle(c, a);
	if (!h)
		return err_set(e, EX_HARNESS, "cannot set up libcurl");
	c->attempts++;
	rc = curl_easy_perform(h);
	sort_answer(c, a, h, rc);
	curl_easy_cleanup(h);
	jw_obj(&c->log, NULL);
	jw_int(&c->log, "http", c->http);
	jw_int(&c->log, "curl", (int64_t)rc);
	jw_num(&c->log, "elapsed_s", (double)(long)((now() - t0) * 1000) / 1000);
	jw_int(&c->log, "bytes", (int64_t)a->body.len);
	jw_str(&c->log, "error", a->done ? NULL : c->error);
	jw_end(&c->log);
	return 0;
}

/* Pause before attempt n+1: what the server asks for, else doubling with jitter. Negative: no
 * time is left for it. */
static double pause_s(struct client *c, int n)
{
	uint32_t r = 0;
	double s = (double)c->limits.backoff_ms / 1000;

	for (int i = 1; i < n && s < 60; i++)
		s *= 2;
	if (s > 60)
		s = 60;
	if (getrandom(&r, sizeof r, 0) != sizeof r)
		r = 0x80000000u;
	s *= 0.5 + (double)r / 8589934592.0;
	if (c->retry_after > s)
		s = c->retry_after;
	return s < left_s(c) ? s : -1;
}

/* Sleep in slices; 1 when the caller has gone meanwhile. */
static int pause_for(const struct client *c, double s)
{
	double end = now() + s;

	while (now() < end) {
		if (getppid() != c->parent)
			return 1;
		usleep(end - now() > 0.05 ? 50000 : 1000);
	}
	return getppid() != c->parent;
}

static int exchange(struct client *c, struct answer *a, struct err *e)
{
	for (;;) {
		double s;
		chat_free(&a->chat);
		buf_free(&a->body);
		if (attempt(c, a, e))
			return -1;
		if (a->done || !a->retry || c->attempts > c->limits.retries)
			return 0;
		s = pause_s(c, c->attempts);
		if (s < 0) {
			size_t n = strlen(c->error);
			snprintf(c->error + n, sizeof c->error - n, " (no time left to retry)");
			return 0;
		}
		if (pause_for(c, s))
			return 0;
	}
}

/* ---- outcome ---- */

static int write_outcome(struct client *c, const struct answer *a, const char *file, struct err *e)
{
	struct client_outcome o = {
		.request_sha = c->request_sha, .http = c->http, .attempts = c->attempts,
		.redacted = c->redacted, .retry_after_s = c->retry_after, .started = c->began,
		.elapsed_s = now() - c->started, .chat = &a->chat, .body_file = file,
		.body = &a->body, .error = c->error,
	};

	jw_end(&c->log);
	o.log = buf_str(&c->log.out);
	return client_outcome_write(c->dir, &o, e);
}

/* client.json goes first, the body last: a body on disk is a whole, described reply. An orphan
 * whose request was replaced meanwhile stores nothing. */
static int store(struct client *c, const struct answer *a, struct err *e)
{
	const char *file = a->chat.streamed ? "reply.sse" : "reply.json";
	char path[512], sha[HASH_HEX];

	snprintf(path, sizeof path, "%s/request.json", c->dir);
	if (hash_file(path, sha, e))
		return -1;
	if (strcmp(sha, c->request_sha))
		return err_set(e, EX_AGAIN, "the request was replaced while it was under way");
	if (write_outcome(c, a, a->done ? file : NULL, e))
		return -1;
	if (a->done) {
		snprintf(path, sizeof path, "%s/%s", c->dir, file);
		return file_write(path, buf_str(&a->body), a->body.len, 0644, e);
	}
	return err_set(e, a->retry || a->over || !c->http ? EX_AGAIN : EX_NOENV, "%.260s (%d attempt%s)",
		       c->error, c->attempts, c->attempts == 1 ? "" : "s");
}

/* ---- request ---- */

static int take_headers(struct client *c, struct err *e)
{
	const cJSON *auth = json_get(c->json, "auth"), *h;
	const char *scheme = json_get_str(auth, "scheme", "Bearer");
	char *line;

	/* No "Expect: 100-continue": some servers never answer it. */
	c->headers = curl_slist_append(c->headers, "Expect:");
	cJSON_ArrayForEach(h, json_get(c->json, "headers")) {
		if (!cJSON_IsString(h) || strpbrk(h->valuestring, "\r\n"))
			return err_set(e, EX_BADINPUT, "a header of the request is malformed");
		c->headers = curl_slist_append(c->headers, h->valuestring);
	}
	if (c->secret) {
		line = xasprintf("%s: %s%s%s", json_get_str(auth, "header", "Authorization"), scheme,
				 *scheme ? " " : "", c->secret);
		c->headers = curl_slist_append(c->headers, line);
		explicit_bzero(line, strlen(line));
		free(line);
	}
	return 0;
}

static int load(struct client *c, const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/'), *want;
	char body[512], sha[HASH_HEX];

	snprintf(c->dir, sizeof c->dir, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	c->json = json_read(path, &JSON_OURS, c->request_sha, e);
	if (!c->json)
		return -1;
	if (strcmp(json_get_str(c->json, "schema", ""), CLIENT_REQUEST_SCHEMA))
		return err_set(e, EX_BADINPUT, "'%s' is no %s", path, CLIENT_REQUEST_SCHEMA);
	c->chat = !strcmp(json_get_str(c->json, "kind", "raw"), "chat");
	client_limits_read(json_get(c->json, "limits"), &c->limits);
	c->url = client_url(json_get_str(c->json, "base_url", ""), json_get_str(c->json, "path", ""), e);
	if (!c->url)
		return -1;
	snprintf(body, sizeof body, "%s/request.body", c->dir);
	if (file_read(body, (size_t)64 << 20, &c->body, e))
		return -1;
	hash_hex(buf_str(&c->body), c->body.len, sha);
	want = json_get_str(c->json, "body_sha256", "");
	if (strcmp(sha, want))
		return err_set(e, EX_BADINPUT, "'%s' is not the body that the request names", body);
	return take_key(c, e) || take_headers(c, e) ? -1 : 0;
}

static int work(struct client *c, const char *path, struct err *e)
{
	struct client_result have = {0};
	struct answer a = {0};
	int rc;

	/* Held until the process ends: whoever else wants this reply waits for it. */
	if (load(c, path, e) || client_hold(c->dir, c->limits.total_ms, e) < 0)
		return -1;
	rc = client_durable(c->dir, &have, e);
	client_result_free(&have);
	if (rc)
		return rc < 0 ? -1 : 0;
	c->started = now();
	verdict_now(c->began);
	jw_arr(&c->log, NULL);
	/* From here on the reply is worth more than our caller's life. */
	prctl(PR_SET_PDEATHSIG, 0);
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	rc = exchange(c, &a, e) || store(c, &a, e) ? -1 : 0;
	chat_free(&a.chat);
	buf_free(&a.body);
	return rc;
}

int main(int argc, char **argv)
{
	struct client c = {.retry_after = -1};
	struct err e = {0};
	int rc;

	prog_name(argv[0]);
	if (argc == 2 && !strcmp(argv[1], "-h")) {
		fputs(HELP, stdout);
		return 0;
	}
	if (argc != 2)
		die(EX_BADUSE, "give one request file (client -h explains)");
	c.parent = getppid();
	c.started = now();
	c.limits = CLIENT_LIMITS;
	prctl(PR_SET_DUMPABLE, 0); /* no core, no /proc/PID/environ for other processes of ours */
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		die(EX_HARNESS, "cannot set up libcurl");
	rc = work(&c, argv[1], &e);
	curl_slist_free_all(c.headers);
	if (c.secret)
		explicit_bzero(c.secret, strlen(c.secret));
	free(c.secret);
	free(c.url);
	buf_free(&c.body);
	jw_free(&c.log);
	cJSON_Delete(c.json);
	curl_global_cleanup();
	if (rc)
		die_err(&e);
	return 0;
}
