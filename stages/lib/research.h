/*
 * research.h - a web search when a run begins and after so many rejections in a row (the setting `research`), and its
 * notes in later prompts.
 *
 * trials/runs/R/research/TRIAL/: request and raw answer as the client role leaves them (client_call.h), and notes.json
 * {schema, trial, why, query, error, results [{title, url, text}]}. Asked at most once a trial: notes.json closes it, also
 * when nothing came. A missing key, an error or a quota is one line on standard error; the loop goes on.
 *
 * Whether a trial asks, what it asks, and whose notes its prompt has follow from the records it sees. The query names the
 * problem, its kind and type, the device and the commonest reason of rejections, in our words: no source, no text of a
 * candidate leaves this machine.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_RESEARCH_H
#define TS_RESEARCH_H

#include "proposal.h"

#define RESEARCH_SCHEMA "touchstone/research/1"
#define RESEARCH_MOST 19 /* of rejections in a row: `recent` has 20 */

/* Could a search be made: is a key there? Looks whether the variable or file exists. */
int research_ready(void);

/* Before a prompt is made. Never fails a proposal: what goes wrong is told and noted. */
void research_ask(struct stage *s, const struct proposal *p);

/* The notes that this trial may use, fenced with `salt`; nothing when there are none. */
int research_notes(struct stage *s, const char *salt, struct buf *out, struct err *e);

#endif
