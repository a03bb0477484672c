/*
 * proposal.h - what every proposer produces, and what propose starts from.
 *
 * The parent is the source that a proposal changes: the champion of the state that the trial may
 * know, else the spec's start/ (on a GPU), else its baseline/. A proposal is whole files (a missing one is
 * the parent's), what the model says of them, and who it was. What only engine problems need: propose_engine.h.
 *
 * Life cycle: zero it, parent_load (or engine_parent_load), one proposer fills the rest or closes the trial with a
 * verdict, proposal_write, proposal_free.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_PROPOSAL_H
#define TS_PROPOSAL_H

#include "buf.h"
#include "chat.h"
#include "engine_files.h"
#include "engine_spec.h"
#include "err.h"
#include "hash.h"
#include "plan.h"
#include "plateau.h"
#include "playbook.h"
#include "reply.h"
#include "spec.h"
#include "stage.h"

#define PROPOSAL_SCHEMA "touchstone/proposal/1"
#define PROPOSAL_PROMPTS 16

struct parent {
	char trial[TRIAL_ID];     /* "" : from the spec */
	const char *from;         /* "champion", "earlier champion", "start", "baseline" */
	char candidate[HASH_HEX];
	char kernel_sha[HASH_HEX], plan_sha[HASH_HEX];
	struct buf kernel, plan;
	struct engine_files files; /* an engine's, in place of kernel and plan */
};

struct proposal_template { /* a file that made the prompt */
	char name[64];
	char sha[HASH_HEX];
};

struct proposal {
	struct spec *spec;        /* NULL: an engine problem, and `engine` is its spec */
	struct engine_spec *engine;
	struct parent parent;
	struct engine_files made; /* an engine's candidate; empty until it is complete */
	struct reply reply;       /* files and words */
	const char *kind;         /* proposer: "openai", "sweep", ... */
	char provider[65];        /* profile name, "" none */
	char *model;              /* NULL none */
	cJSON *params;            /* object or NULL */
	struct chat_usage usage;  /* all -1 without a model */
	double cost;              /* money; NAN unknown */
	char prompt_sha[HASH_HEX]; /* "" without a prompt */
	struct proposal_template tmpl[PROPOSAL_PROMPTS];
	int ntemplates;
	struct playbook *book;    /* what the prompt advised; NULL without a prompt */
	struct plateau plateau;   /* before parent_load: it may choose another parent */
	int same_ok;              /* a candidate equal to its parent is accepted */
	int decided;              /* a proposer has set the verdict: nothing more to do */
	int no_room;              /* it failed for want of budget or of room in the model's window */
};

/* Read the pinned spec and the parent of this trial, each file against its recorded hash. */
int parent_load(struct stage *s, struct proposal *p, struct err *e);
/* The source at the run's start, for sweep: the champion then, else start/ (on a GPU), else baseline/. */
int parent_at_start(struct stage *s, const struct spec *spec, struct parent *out, struct err *e);
void parent_free(struct parent *p);
/* The champion that trial `id` replaced when it was kept, and its candidate; "" none. */
int parent_before(const char *id, char before[TRIAL_ID], char sha[HASH_HEX], struct err *e);

/* Complete missing files from the parent, compare, write candidate/, candidate.patch and
 * proposal.json, and set the verdict: pass, or propose.unchanged. */
int proposal_write(struct stage *s, struct proposal *p, struct err *e);

/* A file of the candidate (NULL: deleted) and of its parent (NULL: it had none). */
struct proposal_file {
	const char *name;
	const struct buf *is, *was;
};
/* The last part of it: proposal.json, the verdict. */
int proposal_record(struct stage *s, struct proposal *p, const struct proposal_file *f, int n, const char *candidate,
		    struct err *e);
/* aK/candidate.patch, by git, of the folders `parent` and `candidate` in `dir`, which is removed. */
int proposal_diff(struct stage *s, const char *dir, struct err *e);
void proposal_free(struct proposal *p);

/* The verdict's `proposer` member; also on rejects. */
void proposal_who(struct stage *s, const struct proposal *p);

/* Close the trial: set the verdict and `decided`. */
void proposal_reject(struct stage *s, struct proposal *p, const char *code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Read a reply's text into p->reply; closes the trial when it is unusable. */
void proposal_take_text(struct stage *s, struct proposal *p, const char *text, size_t len);

/* ---- the proposers: each fills p->reply or decides; -1 is trouble of ours ---- */
int propose_openai(struct stage *s, struct proposal *p, struct err *e);
int propose_command(struct stage *s, struct proposal *p, struct err *e);
int propose_sweep(struct stage *s, struct proposal *p, struct err *e);
int propose_files(struct stage *s, struct proposal *p, struct err *e);  /* manual, adopt */
int propose_replay(struct stage *s, struct proposal *p, struct err *e);

#endif
