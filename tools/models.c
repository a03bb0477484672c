/*
 * models.c - make models: does each provider that is set up answer, with a tiny call?
 *
 * Reads prompts/profiles/. Speaks through roles/client alone, which has the key; writes nothing but a scratch folder
 * that it removes. Costs a few dozen tokens a profile.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../stages/lib/file.h"
#include "../stages/lib/json.h"
#include "../stages/lib/model_list.h"
#include "../stages/lib/profile.h"
#include "../stages/lib/trial.h"
#include "../stages/lib/utf8.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char HELP[] =
	"models - does each provider that is set up answer?\n"
	"\n"
	"usage: models [--PROVIDER=NAME] [--MODEL=ID]      (make models PROVIDER=nebius)\n"
	"\n"
	"Every profile of prompts/profiles/ whose key is there (or the one named) is asked for its list of\n"
	"models and for one tiny answer with a JSON schema. A row for each:\n"
	"  reachable   the endpoint answers, and takes the key\n"
	"  there       the model is in its list; ? when it gives no list\n"
	"  structured  yes: the schema was kept; falls back: refused, and answered without one; ignored:\n"
	"              accepted, but the answer is not what it asks for\n"
	"  tokens      billed, in + out, by the endpoint's own account; ? when it does not say\n"
	"Proposals do not need structured output: their form is a JSON header and fenced files.\n"
	"Servers of this machine that need no key and do not run are no failure, unless named.\n"
	"\n"
	"exit: 0 all that were asked answered; 4 one did not, or none is set up; 2 usage; 111 a system call failed\n";

static const char ASK[] = "Answer with the JSON object {\"ok\": true} and nothing else.";
static const char SCHEMA[] =
	"{\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"ok\",\"strict\":true,\"schema\":"
	"{\"type\":\"object\",\"properties\":{\"ok\":{\"type\":\"boolean\"}},\"required\":[\"ok\"],"
	"\"additionalProperties\":false}}}}";

struct row {
	const char *reachable, *there, *structured;
	char tokens[48], note[300];
	double seconds;
	int bad; /* counts as a failure */
};

struct asking {
	struct profile *p;
	const char *dir;
	int serial;
};

static int call(struct asking *a, const char *kind, const char *path, const struct buf *body,
		struct client_result *r, struct err *e)
{
	const char *headers[20] = {"Content-Type: application/json", "Accept: application/json, text/event-stream"};
	char id[HASH_HEX], dir[300], text[64];
	int n = snprintf(text, sizeof text, "models %d %ld", a->serial, (long)getpid());

	for (size_t i = 0; a->p->headers[i]; i++)
		headers[i + 2] = a->p->headers[i];
	hash_hex(text, (size_t)n, id);
	snprintf(dir, sizeof dir, "%s/%d", a->dir, a->serial++);
	struct client_request q = {
		.identity = id, .kind = kind, .base_url = a->p->base_url, .path = path,
		.method = body ? "POST" : "GET", .headers = headers, .auth_header = a->p->auth_header,
		.auth_scheme = a->p->auth_scheme, .key_env = a->p->key_env, .key_file = a->p->key_file,
		.key_required = a->p->key_required, .body = body ? buf_str(body) : "", .body_len = body ? body->len : 0,
		.limits = a->p->limits,
	};
	q.limits.retries = 1;
	q.limits.total_ms = 60000;
	q.limits.idle_ms = 60000;
	return dir_make(dir, e) || client_call(dir, &q, NULL, NULL, r, e) ? -1 : 0;
}

/* "v1/chat/completions" -> "v1/models" */
static void list_path(const char *chat, char out[200])
{
	const char *end = strstr(chat, "chat/completions");

	snprintf(out, 200, "%.*smodels", end ? (int)(end - chat < 150 ? end - chat : 150) : 0, chat);
}

static int ask_list(struct asking *a, struct model_list *list, int *http, struct row *row, struct err *e)
{
	struct client_result r = {0};
	char path[200];
	int rc;

	list_path(a->p->path, path);
	rc = call(a, "raw", path, NULL, &r, e);
	*http = r.http;
	memset(list, 0, sizeof *list);
	row->there = "?";
	if (!rc && r.stored && !model_list_parse(buf_str(&r.body), r.body.len, a->p->model, list, NULL))
		row->there = list->there ? "yes" : "no";
	else if (!rc && !r.stored)
		snprintf(row->note, sizeof row->note, "%.250s", r.error);
	client_result_free(&r);
	return rc;
}

static int is_ok(const struct chat *c)
{
	static const struct json_limits limits = {.bytes = 4096, .depth = 4};
	cJSON *j = json_parse(buf_str(&c->text), c->text.len, &limits, "answer", NULL);
	int ok = cJSON_IsTrue(json_get(j, "ok"));

	cJSON_Delete(j);
	return ok;
}

static void bill(const struct profile *p, const struct chat_usage *u, struct row *row)
{
	int known;
	double usd = profile_cost(p, u, &known);
	size_t n;

	if (u->prompt < 0 || u->completion < 0) {
		snprintf(row->tokens, sizeof row->tokens, "?");
		return;
	}
	n = (size_t)snprintf(row->tokens, sizeof row->tokens, "%lld + %lld", (long long)u->prompt, (long long)u->completion);
	if (known)
		snprintf(row->tokens + n, sizeof row->tokens - n, " ($%.6f)", usd);
}

/* Does the error say that it is the schema that was not liked? Nothing else is a reason to go without. */
static int about_schema(const struct client_result *r)
{
	static const char *const words[] = {"response_format", "json_schema", "schema", "structured", "guided"};

	if (r->http != 400 && r->http != 422 && r->http != 501)
		return 0;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcasestr(r->error, words[i]))
			return 1;
	return 0;
}

static int ask(struct asking *a, int structured, struct client_result *r, struct err *e)
{
	struct buf body = BUF_INIT;
	cJSON *schema = structured ? cJSON_Parse(SCHEMA) : NULL;
	int rc;

	a->p->widen = schema;
	a->p->widened = structured;
	a->p->max_tokens = 1024; /* one that thinks first needs some */
	profile_body(a->p, NULL, ASK, 1, &body);
	rc = call(a, "chat", a->p->path, &body, r, e);
	a->p->widen = NULL;
	cJSON_Delete(schema);
	buf_free(&body);
	return rc;
}

static void take_answer(struct asking *a, const struct client_result *r, int fell, struct row *row)
{
	struct chat c = CHAT_INIT;

	row->seconds = r->elapsed_s;
	if (!r->stored || chat_parse(buf_str(&r->body), r->body.len, &c, "reply", NULL)) {
		snprintf(row->note, sizeof row->note, "%.280s", r->stored ? "the answer is no chat completion" : r->error);
		row->reachable = r->http ? "yes" : "no";
		row->structured = "-";
		row->bad = 1;
	} else {
		row->reachable = "yes";
		row->structured = fell ? "falls back" : is_ok(&c) ? "yes" : !strcmp(c.finish, "length") ? "cut" : "ignored";
		row->note[0] = '\0';
		bill(a->p, &c.usage, row);
		if (!c.text.len) {
			snprintf(row->note, sizeof row->note, "an empty answer");
			row->bad = 1;
		}
	}
	chat_free(&c);
}

static int check(struct asking *a, struct row *row, struct err *e)
{
	struct client_result r = {0};
	struct model_list list;
	char denied[sizeof r.error] = "";
	int http, rc;

	if (ask_list(a, &list, &http, row, e))
		return -1;
	row->reachable = http ? "yes" : "no";
	if (!http || http == 401 || http == 403) {
		row->reachable = http ? "key refused" : "no";
		row->bad = 1;
		return 0;
	}
	if (!a->p->model || !*a->p->model) {
		snprintf(row->note, sizeof row->note, "no model is named: MODEL=%s%s", list.n ? ", for instance " : "", list.first);
		row->bad = 1;
		return 0;
	}
	rc = ask(a, 1, &r, e);
	int fell = !rc && !r.stored && about_schema(&r);
	if (fell) {
		snprintf(denied, sizeof denied, "%s", r.error);
		client_result_free(&r);
		rc = ask(a, 0, &r, e);
	}
	if (!rc)
		take_answer(a, &r, fell, row);
	if (!rc && fell && !row->bad)
		snprintf(row->note, sizeof row->note, "%.280s", denied);
	client_result_free(&r);
	return rc;
}

static void print_row(const struct profile *p, const struct row *row)
{
	char seconds[32] = "-";

	if (row->seconds > 0)
		snprintf(seconds, sizeof seconds, "%.1f", row->seconds);
	printf("%-10s %-11s %-36.36s %-5s %-10s %-16s %s\n", p->name, row->reachable, p->model && *p->model ? p->model : "-",
	       row->there ? row->there : "-", row->structured ? row->structured : "-", *row->tokens ? row->tokens : "-", seconds);
	if (*row->note) {
		struct buf line = BUF_INIT;
		utf8_line(&line, row->note, strlen(row->note), sizeof row->note);
		printf("%-10s %s\n", "", buf_str(&line));
		buf_free(&line);
	}
}

struct tally {
	int asked, bad, serial;
	const char *only, *model, *dir;
};

static int one(const char *name, struct tally *t, struct err *e)
{
	struct profile p;
	struct row row = {0};
	int rc = 0;

	if (profile_load(name, t->model, NULL, &p, e))
		return -1;
	if (!t->only && !profile_ready(name)) {
		row.reachable = "no key";
		snprintf(row.note, sizeof row.note, "set %.60s%s%.160s", p.key_env ? p.key_env : "", p.key_file ? " or write " : "",
			 p.key_file ? p.key_file : "");
	} else {
		struct asking a = {.p = &p, .dir = t->dir, .serial = t->serial};
		rc = check(&a, &row, e);
		t->serial = a.serial;
		const int absent = !t->only && !p.key_required && !strcmp(row.reachable ? row.reachable : "", "no");
		t->asked += !absent;
		t->bad += row.bad && !absent;
	}
	if (!rc) {
		print_row(&p, &row);
		fflush(stdout);
	}
	profile_free(&p);
	return rc;
}

static int is_profile(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return n > 5 && !strcmp(d->d_name + n - 5, ".json");
}

static int all(struct tally *t, struct err *e)
{
	struct dirent **list;
	int n = scandir(PROFILE_DIR, &list, is_profile, alphasort), rc = 0;

	if (n < 0)
		return err_sys(e, "cannot list '%s'", PROFILE_DIR);
	for (int i = 0; i < n; i++) {
		list[i]->d_name[strlen(list[i]->d_name) - 5] = '\0';
		if (!rc && trial_name_ok(list[i]->d_name))
			rc = one(list[i]->d_name, t, e);
		free(list[i]);
	}
	free(list);
	return rc;
}

int main(int argc, char **argv)
{
	struct tally t = {0};
	struct err e = {0};
	const char *tmp = getenv("TMPDIR");
	char dir[200];

	prog_name(argv[0]);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-h"))
			return fputs(HELP, stdout) == EOF;
		if (!strncmp(argv[i], "--PROVIDER=", 11))
			t.only = argv[i][11] ? argv[i] + 11 : NULL;
		else if (!strncmp(argv[i], "--MODEL=", 8))
			t.model = argv[i] + 8;
		else
			die(EX_BADUSE, "'%s' is no option; -h for help", argv[i]);
	}
	if (t.model && *t.model && !t.only)
		die(EX_BADUSE, "MODEL= is a model of one provider: give PROVIDER=, too");
	snprintf(dir, sizeof dir, "%.150s/touchstone-models.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		die(EX_SYS, "cannot make '%s'", dir);
	t.dir = dir;
	printf("%-10s %-11s %-36s %-5s %-10s %-16s %s\n", "profile", "reachable", "model", "there", "structured", "tokens", "seconds");
	int rc = t.only ? one(t.only, &t, &e) : all(&t, &e);
	dir_remove(dir, NULL);
	if (rc)
		die_err(&e);
	if (!t.asked)
		puts("no provider is set up: a key for one of these, or a server on this machine");
	return t.bad || !t.asked ? EX_NOENV : EX_DONE;
}
