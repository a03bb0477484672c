/*
 * propose.c - make the next candidate: one bounded change of the champion, as whole files.
 *
 * Reads the claim, the run's settings, the pinned spec, the champion and the records that the
 * claim `sees`; prompts/ for proposers that read prompts. Writes aK/: proposal.json,
 * candidate/{kernel.cu,plan.json}, candidate.patch (plans compared in canonical form), and what the proposer left (prompt.md,
 * reply.txt, reply.json, ...). Never opens a network connection or the API key (roles/client
 * does), never judges what it proposes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lib/engine_setup.h"
#include "lib/file.h"
#include "lib/json.h"
#include "lib/propose_engine.h"
#include "lib/proposal.h"
#include "lib/repair.h"

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
	"  replay   a recorded reply (make redo; setting reply: a file or a folder)\n"
	"\n"
	"Environment\n"
	"  the variable named by key_env   handed to the client, to nobody else\n"
	"  PROPOSER_COMMAND, PROPOSER_PATHS, PROPOSER_ENV   see lib/proposer_command.c\n"
	"\n"
	"Verdicts: pass; reject with a propose.* code when the reply is unusable or the sweep has\n"
	"finished (propose.space_done) or the setting `plateau` ends the search (propose.plateau), both not\n"
	"charged. Exit 75 or 4 without a verdict when the\n"
	"endpoint does not answer or the key is refused.\n";

static const struct {
	const char *kind;
	int (*make)(struct stage *s, struct proposal *p, struct err *e);
} PROPOSERS[] = {
	{"openai", propose_openai}, {"command", propose_command}, {"sweep", propose_sweep},
	{"manual", propose_files},  {"try", propose_files},       {"adopt", propose_files},
	{"replay", propose_replay}, {"redo", propose_replay},
};

static int make(struct stage *s, struct proposal *p, size_t i, struct err *e)
{
	int rc = dir_make(s->dir, e) || parent_load(s, p, e) || PROPOSERS[i].make(s, p, e);

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
	int rc;
	p.usage = (struct chat_usage){-1, -1, -1, -1, -1};
	p.cost = NAN;
	p.kind = json_get_str(json_get(s->trial.json, "origin"), "kind", s->run.proposer);
	struct buf text = BUF_INIT;
	const int engine = engine_problem(s, &text, e), over = ended(s, &p, e);
	buf_free(&text);
	if (over)
		return over < 0 || dir_make(s->dir, e) || proposal_write(s, &p, e) ? -1 : 0;
	if (engine)
		return engine < 0 ? -1 : propose_engine(s, p.kind, e);
	for (i = 0; i < n && strcmp(PROPOSERS[i].kind, p.kind); i++)
		;
	if (i == n)
		return err_set(e, EX_BADINPUT, "unknown proposer '%.40s'", p.kind);
	rc = make(s, &p, i, e) || proposal_write(s, &p, e);
	proposal_free(&p);
	return rc ? -1 : 0;
}

int main(int argc, char **argv)
{
	static const struct stage_about about = {.stage = "propose", .help = HELP, .work = work, .repairs = 1};

	return stage_main(argc, argv, &about);
}
