/*
 * plateau.h - the rule for a search that finds nothing: after K charged trials of a run without a keep, widen;
 * after as many again, stop. K is the run's setting `plateau`; 0 or absent: no rule.
 *
 * Widened, a proposal is told to leave the beaten track and which item of the playbook to take, every second
 * one starts from another parent (the champion before, else the spec's own source), and a model is asked with
 * the profile's `widen` members (a higher temperature). Proposers that cannot be widened (a sweep, a replay)
 * stop after K. What is stopped is rejected with propose.plateau and not charged, as the rest of the run then is.
 *
 * The count is in the `after` block of promote's verdict, {"plateau": {"run", "dry"}}: all of it follows from the
 * record that a trial may see, so that a resumed run goes on alike. With WIDTH above 1 a trial sees as much later.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_PLATEAU_H
#define TS_PLATEAU_H

#include "jsonw.h"
#include "run.h"

#include <cjson/cJSON.h>

struct plateau {
	int k;     /* 0: no rule */
	int dry;   /* charged trials of this run since the last keep */
	int widen; /* 0 no, else the how-manieth widened state: 1, 2, ... */
	int stop;
};

/* The state of `run` after the record `after` (NULL: none), for a proposer of this kind. */
struct plateau plateau_of(const struct run *run, const cJSON *after, const char *kind);

/* Should this widened proposal start from another parent? */
int plateau_other_parent(const struct plateau *p);

/* Why the search stops, in words. */
void plateau_words(const struct plateau *p, char *out, size_t size);

/* promote: write `plateau` into the new after block; nothing where the run has no rule. */
void plateau_put(struct jsonw *w, const struct run *run, const cJSON *after, int charged, int kept);
/* propose: the member `plateau` of its data and of the log's line, {"dry", "state"}; nothing in the usual state. */
void plateau_tell(struct jsonw *w, const struct plateau *p);

#endif
