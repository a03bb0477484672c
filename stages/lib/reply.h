/*
 * reply.h - from a model's answer to whole files, or to the reason why not.
 *
 * Understood (prompts/contract.md asks for the first):
 *   - a small JSON header {item, hypothesis, expected_effect, files, risk, reasoning}, fenced or
 *     bare, and each file whole in a fenced block with its name: in the fence's
 *     info string, or alone on the line before it, or, if nothing is named, by being the only
 *     block that can be that file;
 *   - one JSON object of the same members whose `files` maps names to contents (a plan may be an
 *     object), or lists {name, content}.
 * Prose around is ignored, a leading <think> block is cut off. Never guessed: two different
 * answers for one file are `propose.ambiguous`, anything cut is `propose.truncated`, a file named
 * in the header but not given is `propose.missing_file`, any other file name `propose.file_name`.
 * The answer depends on the text (and an engine's rules) alone.
 *
 * A kernel's files are kernel.cu and plan.json. An engine's are engine.c and kernels/NAME.c, .h, or in CUDA engine.cu
 * and kernels/NAME.cu, .cuh, .h (engine_files.h); each has a slot from its first mention on, and one of kernels/ that is
 * given empty has has[] and no text: it is to be deleted.
 *
 * Life cycle: reply_parse (any bytes), look at `code`, reply_free.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_REPLY_H
#define TS_REPLY_H

#include "buf.h"

#include <stddef.h>
#include <stdint.h>

enum reply_slot { REPLY_KERNEL, REPLY_PLAN, REPLY_SLOTS };
extern const char *const REPLY_FILE[REPLY_SLOTS]; /* "kernel.cu", "plan.json" */

enum {
	REPLY_FILES = 64,
	REPLY_NAME = 64,
	REPLY_MAX_TEXT = 4 << 20,
	REPLY_MAX_FILE = 256 << 10, /* guard has the spec's tighter limit */
};

/* What the model says of its change; each one line, cleaned and capped. */
struct reply_words {
	struct buf item, hypothesis, expected_effect, risk, reasoning;
};

/* What an engine problem allows. */
struct reply_rules {
	int cuda;
	int64_t files;                /* that a candidate may have */
};

struct reply {
	int n;                        /* slots: a kernel's REPLY_SLOTS, or an engine's, in the order of their first mention */
	char name[REPLY_FILES][REPLY_NAME];
	struct buf file[REPLY_FILES]; /* LF line ends, a newline at the end */
	int has[REPLY_FILES];
	struct reply_words words;     /* empty where the model said nothing */
	int header;                   /* a header was found */
	const char *code;             /* "ok" or a propose.* reason code */
	char message[256];            /* for people; "" when ok */
};

void reply_parse(const char *text, size_t len, struct reply *out);        /* a kernel's */
void reply_parse_engine(const char *text, size_t len, const struct reply_rules *rules, struct reply *out);
void reply_free(struct reply *r);

/* Normalised copy of a file's text: LF for CR LF and CR, no BOM, a newline at the end. */
void reply_normalise(struct buf *out, const char *s, size_t len);

#endif
