/*
 * proposer_openai.c - ask a chat-completions endpoint, once per attempt, however often we are killed.
 *
 * Writes aK/prompt.md, request.json, request.body, client.json, reply.json or reply.sse (the raw
 * body), reply.txt (the answer), reasoning.txt, ticket (the ledger's reservation). The client
 * role does the talking and has the key; see client_call.h for what "durable" means.
 *
 * A network that is down, a rate limit or a refused key is nobody's proposal: exit 75 or 4, no
 * verdict. Whatever the model answers is one.
 *
 * SPDX-License-Identifier: MIT
 */
#include "proposal.h"

#include "client_call.h"
#include "file.h"
#include "json.h"
#include "jsonw.h"
#include "ledger.h"
#include "profile.h"
#include "prompt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct asking {
	struct stage *s;
	struct proposal *p;
	struct profile pr;
	struct prompt q;
	struct ledger_amount most;
	char ticket[LEDGER_ID];
};

static int load_profile(struct asking *a, struct err *e)
{
	struct run *r = &a->s->run;
	int64_t out;

	if (profile_load(run_str(r, "profile", "openai"), run_str(r, "model", NULL),
			 run_str(r, "base_url", NULL), &a->pr, e))
		return -1;
	if (!a->pr.model || !*a->pr.model)
		return err_set(e, EX_NOENV, "profile %s names no model: give MODEL=", a->pr.name);
	if (!*a->pr.base_url)
		return err_set(e, EX_NOENV, "profile %s has no base_url", a->pr.name);
	if (run_num(r, "max_usd", 0) > 0 && (isnan(a->pr.price_in) || isnan(a->pr.price_out)))
		return err_set(e, EX_NOENV, "MAX_USD is set, but profile %s has no prices to count with: "
			       "write them into %s/%s.json", a->pr.name, PROFILE_DIR, a->pr.name);
	a->pr.widened = a->p->plateau.widen > 0;
	out = run_int(r, "max_reply_tokens", 0);
	if (out > 0)
		a->pr.max_tokens = out;
	snprintf(a->p->provider, sizeof a->p->provider, "%s", a->pr.name);
	a->p->model = xstrdup(a->pr.model);
	return 0;
}

/* What was asked for, in the record; the URL without anything that could be a secret. */
static void note_params(struct asking *a)
{
	struct jsonw w = {0};

	jw_obj(&w, NULL);
	jw_str(&w, "base_url", a->pr.base_url);
	jw_str(&w, "profile_sha256", a->pr.sha);
	if (*a->pr.max_tokens_field)
		jw_int(&w, a->pr.max_tokens_field, a->pr.max_tokens);
	jw_bool(&w, "stream", a->pr.stream);
	if (a->pr.extra)
		jw_item(&w, "extra", a->pr.extra);
	if (a->pr.widened && a->pr.widen)
		jw_item(&w, "widen", a->pr.widen);
	jw_int(&w, "prompt_tokens_estimate", a->q.tokens);
	jw_int(&w, "prompt_shed", a->q.shed);
	jw_end(&w);
	a->p->params = cJSON_Parse(buf_str(&w.out));
	jw_free(&w);
}

static void ticket_path(const struct asking *a, char out[TRIAL_PATH + 16])
{
	snprintf(out, TRIAL_PATH + 16, "%s/ticket", a->s->dir);
}

/* Reserve the most it can cost. The ticket is on disk before the client starts, so that whoever
 * finds the reply can settle it. */
static int reserve(void *ctx, struct err *e)
{
	struct asking *a = ctx;
	char path[TRIAL_PATH + 16];

	if (ledger_reserve(&a->s->run, a->s->id, "model_call", &a->most, a->ticket, e)) {
		a->p->no_room = e->code == EX_NOENV;
		return -1;
	}
	ticket_path(a, path);
	return file_write(path, a->ticket, strlen(a->ticket), 0644, e);
}

static void find_ticket(struct asking *a)
{
	char path[TRIAL_PATH + 16];
	struct buf b = BUF_INIT;

	ticket_path(a, path);
	if (!a->ticket[0] && !file_read(path, LEDGER_ID - 1, &b, NULL))
		snprintf(a->ticket, sizeof a->ticket, "%s", buf_str(&b));
	buf_free(&b);
}

static int settle(struct asking *a, const struct ledger_amount *spent, struct err *e)
{
	struct ledger_amount most; /* as reserved: the prompt of a later make may be another */
	int open;

	find_ticket(a);
	if (!a->ticket[0])
		return 0;
	open = ledger_reserved(&a->s->run, a->ticket, &most, e);
	if (open <= 0)
		return open;
	return ledger_settle(&a->s->run, a->s->id, "model_call", a->ticket, &most, spent, e);
}

/* Unknown usage is charged as reserved. */
static int settle_reply(struct asking *a, const struct chat *c, struct err *e)
{
	struct ledger_amount spent = a->most;
	int known;

	a->p->usage = c->usage;
	a->p->cost = NAN;
	if (c->usage.prompt >= 0 && c->usage.completion >= 0) {
		spent.tokens_in = c->usage.prompt;
		spent.tokens_out = c->usage.completion;
		spent.usd = profile_cost(&a->pr, &c->usage, &known);
		if (known)
			a->p->cost = spent.usd;
	}
	return settle(a, &spent, e);
}

static void plan_amount(struct asking *a)
{
	struct chat_usage u = {.prompt = a->q.tokens, .completion = a->pr.max_tokens, .total = -1,
			       .cached = -1, .reasoning = -1};
	int known;

	a->most = (struct ledger_amount){.calls = 1, .tokens_in = u.prompt, .tokens_out = u.completion};
	a->most.usd = profile_cost(&a->pr, &u, &known);
}

static int call(struct asking *a, struct client_result *r, struct err *e)
{
	const char *headers[20] = {"Content-Type: application/json", "Accept: application/json, text/event-stream"};
	char id[HASH_HEX], *idem;
	struct buf body = BUF_INIT, whom = BUF_INIT;
	size_t n = 2;
	int rc;

	buf_addf(&whom, "%s\n%s\n%s", a->pr.name, a->pr.base_url, a->pr.model);
	prompt_identity(a->s, a->p, buf_str(&whom), id);
	idem = xasprintf("Idempotency-Key: %s", id);
	headers[n++] = idem;
	for (size_t i = 0; a->pr.headers[i]; i++)
		headers[n++] = a->pr.headers[i];
	profile_body(&a->pr, buf_str(&a->q.system), buf_str(&a->q.user), a->s->run.seed, &body);
	struct client_request q = {
		.identity = id, .kind = "chat", .base_url = a->pr.base_url, .path = a->pr.path,
		.method = "POST", .headers = headers, .auth_header = a->pr.auth_header,
		.auth_scheme = a->pr.auth_scheme, .key_env = a->pr.key_env, .key_file = a->pr.key_file,
		.key_required = a->pr.key_required, .body = body.data, .body_len = body.len,
		.limits = a->pr.limits,
	};
	rc = client_call(a->s->dir, &q, reserve, a, r, e);
	free(idem);
	buf_free(&body);
	buf_free(&whom);
	return rc;
}

static int side(struct asking *a, const char *name, const struct buf *t, struct err *e)
{
	char file[64];

	if (!t->len)
		return 0;
	snprintf(file, sizeof file, "a%d/%s", a->s->attempt, name);
	return stage_side(a->s, file, t->data, t->len, e);
}

static int name_outputs(struct asking *a, const struct client_result *r, struct err *e)
{
	const char *files[] = {"request.json", "request.body", "client.json", r->body_file};
	char file[64];

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(file, sizeof file, "a%d/%s", a->s->attempt, files[i]);
		if (verdict_output(&a->s->v, file, e))
			return -1;
	}
	return 0;
}

/* The reply is a fact now; is it an answer? */
static void sort_reply(struct asking *a, const struct chat *c)
{
	struct stage *s = a->s;
	struct proposal *p = a->p;

	if (!strcmp(c->finish, "length"))
		proposal_reject(s, p, "propose.truncated", "the reply was cut at its token limit (finish_reason length, %s %lld)",
				*a->pr.max_tokens_field ? a->pr.max_tokens_field : "max tokens",
				(long long)a->pr.max_tokens);
	else if (!strcmp(c->finish, "content_filter"))
		proposal_reject(s, p, "propose.filtered", "the provider filtered the reply (finish_reason content_filter)");
	else if (c->refusal.len && !c->text.len)
		proposal_reject(s, p, "propose.refused", "the model declined: %.200s", c->refusal.data);
	else if (c->tool_calls && !c->text.len)
		proposal_reject(s, p, "propose.tool_calls", "the model called a tool instead of answering");
	else if (!c->text.len)
		proposal_reject(s, p, "propose.empty", "the reply has no content%s",
				c->reasoning.len ? ", only reasoning" : "");
	else
		proposal_take_text(s, p, c->text.data, c->text.len);
}

static int take_reply(struct asking *a, const struct client_result *r, struct err *e)
{
	struct chat c = CHAT_INIT;
	struct err bad = {0};
	int rc;

	if (chat_parse(buf_str(&r->body), r->body.len, &c, r->body_file, &bad)) {
		proposal_reject(a->s, a->p, "propose.malformed", "%s", bad.text);
		rc = 0;
	} else {
		rc = side(a, "reply.txt", &c.text, e) || side(a, "reasoning.txt", &c.reasoning, e);
		if (!rc)
			sort_reply(a, &c);
	}
	if (!rc)
		rc = name_outputs(a, r, e) || settle_reply(a, &c, e);
	jw_obj(&a->s->v.data, "call");
	jw_int(&a->s->v.data, "http", r->http);
	jw_int(&a->s->v.data, "attempts", r->attempts);
	jw_num(&a->s->v.data, "elapsed_s", r->elapsed_s);
	jw_bool(&a->s->v.data, "reused", r->reused);
	jw_str(&a->s->v.data, "finish_reason", c.finish[0] ? c.finish : NULL);
	jw_end(&a->s->v.data);
	chat_free(&c);
	return rc ? -1 : 0;
}

/* No reply. An answer with an error status costs nothing; a call that broke may have cost, so
 * its reservation stays. */
static int no_reply(struct asking *a, const struct client_result *r, struct err *e)
{
	struct ledger_amount spent = {.calls = r->http ? 1 : 0};
	int unsent = r->exit_code == EX_NOENV && !r->attempts;

	if ((r->http >= 300 || unsent) && settle(a, &spent, e))
		return -1;
	return err_set(e, r->exit_code, "profile %s: %.380s", a->pr.name, r->error);
}

int propose_openai(struct stage *s, struct proposal *p, struct err *e)
{
	struct asking a = {.s = s, .p = p};
	struct client_result r = {0};
	int rc = load_profile(&a, e);

	if (!rc)
		rc = prompt_make(s, p, run_int(&s->run, "max_prompt_tokens", a.pr.max_prompt_tokens), &a.q, e);
	if (!rc) {
		note_params(&a);
		plan_amount(&a);
		rc = call(&a, &r, e);
	}
	if (!rc)
		rc = r.stored ? take_reply(&a, &r, e) : no_reply(&a, &r, e);
	client_result_free(&r);
	prompt_free(&a.q);
	profile_free(&a.pr);
	return rc;
}
