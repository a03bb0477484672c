/*
 * propose.c - make the next candidate: one bounded change of the champion, as whole files.
 *
 * Reads the claim, the run's settings, the pinned spec, the champion and the records that the
 * claim `sees`; prompts/ for proposers that read prompts. Writes aK/: proposal.json,
 * candidate/ with kernel.cu and plan.json, or an engine's files, candidate.patch (plans compared in canonical form), and what the proposer left (prompt.md,
 * reply.txt, reply.json, ...). Never opens a network connection or the API key (roles/client
 * does), never judges what it proposes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lib/engine_problem.h"
#include "lib/file.h"
#include "lib/json.h"
#include "lib/propose_engine.h"
#include "lib/proposal.h"
#include "lib/repair.h"
#include "lib/research.h"

#include <math.h>
#include <string.h>

static const char HELP[] =
	"usage: propose trials/NNNN/aK/propose.json\n"
	"\n"
	"Make the candidate of a trial. For a1 and a2: let the proposer repair what failed its compile or\n"
	"its unit tests, as often as the run's setting `repairs` says (0, 1, 2), from its own files and the\n"
	"error. A turn that the budget does not cover is skipped, and the trial ends as it stands.\n"
	"\n"
	"Proposers (the run's setting `proposer`, or the claim's origin)\n"
	"  openai   a chat-completions endpoint: settings profile, model, base_url, key_env\n"
	"           (prompts/profiles/), max_prompt_tokens, max_reply_tokens\n"
	"  command  a program, confined: prompt in, reply out; settings command,\n"
	"           command_timeout_s, command_network\n"
	"  sweep    no model: the next untried configuration of the tunables\n"
	"  manual   my own files (make try, make adopt), kept in trials/runs/R/given/\n"
	"  replay   a recorded reply (make redo; setting reply: a file or a folder); for an engine problem\n"
	"           setting reply is a folder of whole engines\n"
	"\n"
	"Environment\n"
	"  TAVILY_API_KEY                  the same, for web searches (the setting research)\n"
	"  the variable named by key_env   handed to the client, to nobody else\n"
	"  PROPOSER_COMMAND, PROPOSER_PATHS, PROPOSER_ENV   see lib/proposer_command.c\n"
	"\n"
	"Verdicts: pass; reject with a propose.* code when the reply is unusable or the sweep has\n"
	"finished (propose.space_done) or the setting `plateau` ends the search (propose.plateau), both not\n"
	"charged. Exit 75 or 4 without a verdict when the\n"
	"endpoint does not answer or the key is refused.\n";

typedef int proposer_fn(struct stage *s, struct proposal *p, struct err *e);

static const struct {
	const char *kind;
	proposer_fn *kernel, *engine; /* NULL: not for that kind of problem */
} PROPOSERS[] = {
	{"openai", propose_openai, propose_openai}, {"command", propose_command, propose_command},
	{"sweep", propose_sweep, propose_engine_sweep}, {"replay", propose_replay, propose_engine_replay},
	{"manual", propose_files, propose_engine_files}, {"try", propose_files, propose_engine_files},
	{"adopt", propose_files, propose_engine_files},
	{"redo", propose_replay, NULL},
};

/* `engine`: spec.json of an engine problem, else empty. */
static int make(struct stage *s, struct proposal *p, proposer_fn *propose, const struct buf *engine, struct err *e)
{
	int rc = dir_make(s->dir, e);

	if (!rc)
		rc = engine->len ? engine_parent_load(s, p, buf_str(engine), engine->len, e) : parent_load(s, p, e);
	if (!rc && !s->attempt)
		research_ask(s, p);
	if (!rc)
		rc = propose(s, p, e);
	if (!s->attempt)
		return rc;
	if (rc && p->no_room) {
		repair_no_room(s, p, e->text);
		return 0;
	}
	return rc || p->decided ? rc : repair_complete(s, p, e);
}

/* 1: the search has ended, and the verdict says so. */
static int ended(struct stage *s, struct proposal *p, struct err *e)
{
	const cJSON *after = NULL;
	char words[160];

	if (run_int(&s->run, "plateau", 0) <= 0)
		return 0;
	if (stage_after(s, &after, e))
		return -1;
	p->plateau = plateau_of(&s->run, after, p->kind);
	if (!p->plateau.stop)
		return 0;
	plateau_words(&p->plateau, words, sizeof words);
	proposal_reject(s, p, "propose.plateau", "%s", words);
	return 1;
}

static int work(struct stage *s, struct err *e)
{
	static struct proposal p; /* large; the process ends with it */
	size_t i, n = sizeof PROPOSERS / sizeof *PROPOSERS;
	struct buf text = BUF_INIT;
	int rc;
	p.usage = (struct chat_usage){-1, -1, -1, -1, -1};
	p.cost = NAN;
	p.kind = json_get_str(json_get(s->trial.json, "origin"), "kind", s->run.proposer);
	const int engine = engine_problem(s, &text, e), over = engine < 0 ? -1 : ended(s, &p, e);
	if (over) {
		buf_free(&text);
		return over < 0 || dir_make(s->dir, e) || proposal_write(s, &p, e) ? -1 : 0;
	}
	for (i = 0; i < n && strcmp(PROPOSERS[i].kind, p.kind); i++)
		;
	if (i == n)
		rc = err_set(e, EX_BADINPUT, "unknown proposer '%.40s'", p.kind);
	else if (engine && !PROPOSERS[i].engine)
		rc = err_set(e, EX_BADUSE, "proposer '%.40s' knows kernels alone", p.kind);
	else
		rc = make(s, &p, engine ? PROPOSERS[i].engine : PROPOSERS[i].kernel, &text, e) || proposal_write(s, &p, e);
	proposal_free(&p);
	buf_free(&text);
	return rc ? -1 : 0;
}

int main(int argc, char **argv)
{
	static const struct stage_about about = {.stage = "propose", .help = HELP, .work = work, .repairs = 1};

	return stage_main(argc, argv, &about);
}
