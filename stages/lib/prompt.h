/*
 * prompt.h - the prompt of a trial: templates of prompts/ filled with the problem, the champion
 * and what earlier trials showed.
 *
 * Engine problems have templates of their own (engine_system.md ...) and a few parts in another way (prompt_engine.h); how
 * it is put together, shed and kept is the same.
 *
 * A pure function of the run's settings, the templates, and records closed by the trial that the
 * claim `sees`: nothing else is opened, however many trials there are. Every template's hash goes
 * into the proposal.
 *
 * Templates: {{name}} stands for one of the values below, {{>file.md}} for another file of
 * prompts/ (one level of names is read again, three deep at most). An unknown name is an error;
 * what is put in is never looked at again. A line that holds nothing but a tag whose value is
 * empty disappears. Text from candidates and their diagnostics is put between BEGIN and END lines
 * with a nonce that it cannot contain, source without comments, everything capped in length.
 *
 * When the estimate exceeds the limit, parts go in this order: research, digest with clusters, recent
 * trials beyond 8, beyond 3, all of them, playbook, reference. If that is not enough it is an error.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_PROMPT_H
#define TS_PROMPT_H

#include "proposal.h"

#include <stdint.h>

#define PROMPT_DIR "prompts"
#define PROMPT_CLUSTERED 20 /* newest trials whose reasons are grouped */

struct prompt {
	struct buf system, user;
	int64_t tokens; /* estimate, on the high side */
	int shed;       /* parts left out, 0 none */
};

/* Build, write aK/prompt.md, record hashes in p. */
int prompt_make(struct stage *s, struct proposal *p, int64_t max_tokens, struct prompt *q, struct err *e);
void prompt_free(struct prompt *q);

/* Name of the call that this trial would make to `whom`: the same after any interruption. */
void prompt_identity(const struct stage *s, const struct proposal *p, const char *whom, char out[HASH_HEX]);

/* About 3 bytes a token: code is denser in tokens than prose. */
int64_t prompt_estimate(size_t bytes);

/* ---- parts, for tests ---- */

struct prompt_value {
	const char *name;
	struct buf text;
};

/* Put the hash of a file that the prompt quotes whole among the templates'. */
int prompt_hashed(struct proposal *p, const char *name, const struct buf *text, struct err *e);

/* Expand template `name` of prompts/ with values; hashes of the files read go to p. */
int prompt_expand(struct proposal *p, const char *name, const struct prompt_value *v, size_t n,
		  struct buf *out, struct err *e);

/* Put `text` between BEGIN label nonce / END lines; the nonce is a hash of salt, label and text. */
void prompt_fence(struct buf *out, const char *label, const char *text, size_t len, const char *salt);

/* What the record says; prompt_facts.c. `keep` trials at most. */
int prompt_spec(struct stage *s, struct buf *out, struct err *e);
int prompt_champion(struct stage *s, const struct proposal *p, const char *salt, struct buf *out, struct err *e);
int prompt_measured(struct stage *s, const struct proposal *p, struct buf *out, struct err *e);
int prompt_recent(struct stage *s, const struct proposal *p, const char *salt, int keep, struct buf *out,
		  struct err *e);
int prompt_digest(struct stage *s, struct buf *out, struct err *e);
int prompt_clusters(struct stage *s, const char *salt, struct buf *out, struct err *e);
int prompt_device(const struct stage *s, struct buf *out, struct err *e);

#endif
