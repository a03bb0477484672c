/*
 * propose_engine.h - what is different about a proposal for an engine problem (proposal.h).
 *
 * The parent is the champion of the moment, else the problem's baseline/. A candidate is any number of files; what a reply
 * leaves out stays as it was, what it empties below kernels/ is deleted. Models and commands answer the same prompts in
 * the same form as for kernels; beside them
 *   sweep   each configuration of the tunables that the engine at the run's start declares, once, and none that a run before
 *           has tried (engine_tunables.h)
 *   replay  whole engines in folders: setting reply names a folder that has one folder NNNN for each trial of the run (0001
 *           the first) with the candidate's files, and beside it, where a line of words is wanted, NNNN.txt
 *   manual  the engine that the run was given (make try, adopt, redo; engine_given.h)
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_PROPOSE_ENGINE_H
#define TS_PROPOSE_ENGINE_H

#include "proposal.h"

/* `text`: spec.json as pinned. Spec and parent of this trial, each file against its recorded hash. */
int engine_parent_load(struct stage *s, struct proposal *p, const char *text, size_t len, struct err *e);

/* Proposers: each fills p->made, or decides. */
int propose_engine_sweep(struct stage *s, struct proposal *p, struct err *e);
int propose_engine_replay(struct stage *s, struct proposal *p, struct err *e);
int propose_engine_files(struct stage *s, struct proposal *p, struct err *e); /* manual, adopt */

/* Where a reply has been read: `base` with its files in place, into p->made. Decides when that is no candidate. */
void engine_complete(struct stage *s, struct proposal *p, const struct engine_files *base);

/* For proposal_write: candidate/, candidate.patch and the rest. */
int engine_proposal_write(struct stage *s, struct proposal *p, struct err *e);

#endif
