/*
 * proposer_command.c - any program as a proposer: the prompt on its standard input, the reply on
 * its standard output.
 *
 * The command is the run's setting `command` (PROPOSER_COMMAND where unset), run by /bin/sh. It
 * is confined: no view of the repository, a private /tmp that is also its HOME, the system's
 * programs and the paths of PROPOSER_PATHS (colon-separated) to read, the network reachable
 * (agents call models) unless the setting `command_network` is 0. The environment is PATH, HOME,
 * LC_ALL and the variables named in PROPOSER_ENV (comma-separated). What held is in the
 * verdict's `isolation`.
 *
 * A reply once stored is not asked for again: reply.id names the call it answers.
 *
 * SPDX-License-Identifier: MIT
 */
#include "proposal.h"

#include "confine.h"
#include "file.h"
#include "ledger.h"
#include "prompt.h"
#include "spawn.h"
#include "utf8.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PATHS = 32, MAX_ENV = 24, MAX_COPIES = MAX_PATHS + MAX_ENV };

struct command {
	const char *text;
	struct confine_path path[MAX_PATHS];
	size_t npaths;
	char *copy[MAX_COPIES];      /* allocated texts */
	size_t ncopies;
	const char *env[MAX_ENV];
	size_t nenv;
};

static char *keep(struct command *c, char *text)
{
	c->copy[c->ncopies++] = text;
	return text;
}

/* Links below the top level (/etc/resolv.conf) are shown as the file they mean. */
static void add_path(struct command *c, const char *path, enum confine_access access, uint64_t bytes)
{
	char real[PATH_MAX];
	struct confine_path p = {.path = path, .access = access, .bytes = bytes};

	if (c->npaths == MAX_PATHS || c->ncopies >= MAX_COPIES - 1)
		return;
	if (path[0] == '/' && strchr(path + 1, '/') && realpath(path, real) && strcmp(real, path)) {
		p.path = keep(c, xstrdup(real));
		p.as = path;
	}
	c->path[c->npaths++] = p;
}

static void add_env(struct command *c, char *text)
{
	if (c->nenv < MAX_ENV - 1 && c->ncopies < MAX_COPIES)
		c->env[c->nenv++] = keep(c, text);
	else
		free(text);
}

static void plan_view(struct command *c)
{
	static const char *const sys[] = {"/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/etc/alternatives",
					  "/etc/ld.so.cache", "/etc/ssl", "/etc/ca-certificates",
					  "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf",
					  "/etc/localtime", "/etc/passwd"};
	const char *extra = getenv("PROPOSER_PATHS");
	char word[PATH_MAX], real[PATH_MAX], *rest = NULL;
	size_t n = strcspn(c->text, " \t");

	for (size_t i = 0; i < sizeof sys / sizeof *sys; i++)
		add_path(c, sys[i], CONFINE_EXEC, 0);
	add_path(c, "/dev/null", CONFINE_WRITE, 0);
	add_path(c, "/dev/urandom", CONFINE_READ, 0);
	add_path(c, "/tmp", CONFINE_PRIVATE, (uint64_t)256 << 20);
	/* A program named by its path is shown, and nothing beside it. */
	if (n < sizeof word && memchr(c->text, '/', n)) {
		snprintf(word, sizeof word, "%.*s", (int)n, c->text);
		if (word[0] == '/') {
			add_path(c, keep(c, xstrdup(word)), CONFINE_EXEC, 0);
		} else if (realpath(word, real)) { /* it starts in "/", not here */
			add_path(c, keep(c, xstrdup(real)), CONFINE_EXEC, 0);
			c->text = keep(c, xasprintf("'%s'%s", real, c->text + n));
		}
	}
	if (!extra)
		return;
	for (char *p = strtok_r(keep(c, xstrdup(extra)), ":", &rest); p; p = strtok_r(NULL, ":", &rest))
		add_path(c, p, CONFINE_EXEC, 0);
}

static void plan_env(struct command *c)
{
	const char *names = getenv("PROPOSER_ENV");
	char *list = names ? xstrdup(names) : NULL, *rest = NULL;

	add_env(c, xasprintf("PATH=%s", getenv("PATH") ? getenv("PATH") : SPAWN_PATH));
	add_env(c, xstrdup("HOME=/tmp"));
	add_env(c, xstrdup("TMPDIR=/tmp"));
	add_env(c, xstrdup("LC_ALL=C.UTF-8"));
	for (char *p = list ? strtok_r(list, ", ", &rest) : NULL; p; p = strtok_r(NULL, ", ", &rest))
		if (getenv(p))
			add_env(c, xasprintf("%s=%s", p, getenv(p)));
	free(list);
}

static void note_layers(struct stage *s, const char *layers)
{
	static const char *const known[] = {"no_new_privs", "rlimits", "seccomp", "landlock", "mountns",
					    "netns", "ipcns", "pidns", "userns", "uid"};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (confine_has(layers, known[i]))
			verdict_isolation(&s->v, known[i]);
}

static int run_command(struct stage *s, const struct prompt *q, struct spawn_result *r, struct err *e)
{
	struct command c = {.text = run_str(&s->run, "command", getenv("PROPOSER_COMMAND"))};
	const char *argv[4] = {"/bin/sh", "-c", NULL, NULL};
	struct buf in = BUF_INIT;
	int rc;

	if (!c.text || !*c.text)
		return err_set(e, EX_NOENV, "no proposer command: set PROPOSER_COMMAND");
	plan_view(&c);
	argv[2] = c.text;
	plan_env(&c);
	struct confine f = {
		.calls = CONFINE_CALLS_COMMAND, .paths = c.path, .path_count = c.npaths, .proc = 1,
		.network = run_int(&s->run, "command_network", 1) != 0,
		.namespaces = CONFINE_NS_MOUNT | CONFINE_NS_IPC | CONFINE_NS_PID,
		.limits = {.file_bytes = (uint64_t)256 << 20, .files = 1024, .processes = 512},
	};
	if (!f.network)
		f.namespaces |= CONFINE_NS_NET;
	buf_adds(&in, buf_str(&q->system));
	buf_adds(&in, "\n\n");
	buf_add(&in, buf_str(&q->user), q->user.len);
	struct spawn_request sq = {
		.argv = argv, .env = c.env, .cwd = "/", .in = in.data, .in_len = in.len,
		.out = SPAWN_CAPTURE, .err = SPAWN_CAPTURE, .out_cap = REPLY_MAX_TEXT + 1, .err_cap = 4096,
		.wall_s = run_num(&s->run, "command_timeout_s", 900), .confine = &f,
	};
	rc = spawn_run(&sq, r, e);
	for (size_t i = 0; i < c.ncopies; i++)
		free(c.copy[i]);
	buf_free(&in);
	return rc;
}

/* What the command did, in verdict terms. 1: no reply, try again later. */
static int judge_end(struct stage *s, struct proposal *p, const struct spawn_result *r, struct err *e)
{
	struct buf line = BUF_INIT;
	char how[96];

	spawn_words(r, how);
	utf8_line(&line, buf_str(&r->err), r->err.len, 200);
	if (r->timed_out)
		proposal_reject(s, p, "propose.timeout", "the command did not answer within %.0f s", r->wall_s);
	else if (r->code == EX_AGAIN)
		err_set(e, EX_AGAIN, "the proposer command asks to try again later: %.200s", buf_str(&line));
	else if (r->code != 0)
		proposal_reject(s, p, "propose.command", "%s: %s", how, line.len ? line.data : "no message");
	else if (r->out_over)
		proposal_reject(s, p, "propose.too_large", "the reply has more than %d bytes", REPLY_MAX_TEXT);
	buf_free(&line);
	return r->code == EX_AGAIN ? -1 : 0;
}

/* The stored reply of this very call; 1 when there is one. */
static int stored(const struct stage *s, const char *id, struct buf *out)
{
	char path[TRIAL_PATH + 16];
	struct buf b = BUF_INIT;
	int same;

	snprintf(path, sizeof path, "%s/reply.id", s->dir);
	same = !file_read(path, 256, &b, NULL) && !strncmp(buf_str(&b), id, HASH_HEX - 1);
	buf_free(&b);
	snprintf(path, sizeof path, "%s/reply.txt", s->dir);
	return same && !file_read(path, REPLY_MAX_TEXT + 1, out, NULL);
}

static int ask(struct stage *s, struct proposal *p, const struct prompt *q, const char *id, struct buf *out,
	       struct err *e)
{
	struct ledger_amount most = {.calls = 1, .tokens_in = q->tokens}, spent = {.calls = 1};
	struct spawn_result r = {0};
	char ticket[LEDGER_ID], path[TRIAL_PATH + 16];
	int rc;

	if (ledger_reserve(&s->run, s->id, "command", &most, ticket, e)) {
		p->no_room = e->code == EX_NOENV;
		return -1;
	}
	rc = run_command(s, q, &r, e);
	if (!rc)
		note_layers(s, r.layers);
	if (!rc)
		rc = judge_end(s, p, &r, e);
	if (!rc && ledger_settle(&s->run, s->id, "command", ticket, &most, &spent, e))
		rc = -1;
	buf_add(out, buf_str(&r.out), r.out.len);
	spawn_result_free(&r);
	if (rc || p->decided)
		return rc;
	/* The reply first, then the name of the call it answers. */
	snprintf(path, sizeof path, "%s/reply.txt", s->dir);
	rc = file_write(path, buf_str(out), out->len, 0644, e);
	snprintf(path, sizeof path, "%s/reply.id", s->dir);
	return rc ? rc : file_write(path, id, strlen(id), 0644, e);
}

int propose_command(struct stage *s, struct proposal *p, struct err *e)
{
	struct prompt q = {0};
	struct buf out = BUF_INIT;
	char id[HASH_HEX], file[32];
	int rc = prompt_make(s, p, run_int(&s->run, "max_prompt_tokens", 60000), &q, e);

	if (!rc) {
		prompt_identity(s, p, run_str(&s->run, "command", getenv("PROPOSER_COMMAND")), id);
		rc = stored(s, id, &out) ? 0 : ask(s, p, &q, id, &out, e);
	}
	snprintf(file, sizeof file, "a%d/reply.txt", s->attempt);
	if (!rc && !p->decided && !(rc = verdict_output(&s->v, file, e)))
		proposal_take_text(s, p, buf_str(&out), out.len);
	buf_free(&out);
	prompt_free(&q);
	return rc;
}
