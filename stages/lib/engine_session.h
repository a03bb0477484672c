/*
 * engine_session.h - how reps of engines are made: the session_ops of engine problems.
 *
 * A rep is one batch asked of one engine. Its time is ours: from before the first byte of the request to the arrival of
 * the last byte of the last step. Both arms of a pair get the same prompts, no other pair gets them again: they are
 * drawn from `seed` and the place of the pair, which no engine knows. An arm lives for one workload of one session, or, where the
 * class is `lasting` (on a GPU), for the session: what it learned or set up is gone with it. Its memory is that of the
 * workload, or of all of them. Loading is not timed.
 *
 * Idle engines wait on a read. One that keeps the machine busy instead slows its rival, which is why the champion also runs
 * alone (session.h: solo), before there is a candidate.
 *
 * All tokens are kept, and judged by `judge` once all arms of the session are reaped: every batch, warm-up included. The
 * candidate's come first and are all replayed; of the others' those that were not said already, to the same prompts. Wrong ones are
 * SHOT_WRONG, and charged to the arm. Only then are the samples in the raw file marked as verified.
 *
 * `set` of a shot is recorded as drawn and not used. Prompts: the id at i is
 * (u * vocab) >> 32 with u the i-th little-endian 32-bit word of
 * SHA-256("SEED:prompt:SESSION:WORKLOAD:PLACE:PAIR:0"), (... ":1"), ...
 * PLACE = 65536 * phase + block (rawfile.h), PAIR counts the pairs of that place. The champion alone gets the prompts of
 * the first block that is measured, in order; whoever warms up alone those of the first warm pair.
 *
 * Life: fill the plan, contests with ENGINE_OPS and this as ctx, engine_session_free. Single-threaded.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_SESSION_H
#define TS_ENGINE_SESSION_H

#include "engine_call.h"
#include "hash.h"
#include "jsonw.h"
#include "session.h"

struct engine_task {
	int batch, prompt, steps;
	double weight;            /* 0: held out */
	const char *name;         /* borrowed */
};

/* engine_call.h, or a script in tests. Arms by their place. */
struct engine_io {
	int (*open)(void *ctx, enum raw_arm arm, enum engine_outcome *o, struct err *e);
	int (*ask)(void *ctx, enum raw_arm arm, struct engine_batch *b, enum engine_outcome *o, struct err *e);
	int (*close)(void *ctx, enum raw_arm arm, enum engine_outcome *o, struct engine_end *end, struct err *e);
	/* The arms of a session are gone. 1: others were at work there, `why` says who, and no time counts; 0; -1. NULL: not asked. */
	int (*disturbed)(void *ctx, int session, char why[128], struct err *e);
};

/* One batch of an arm, for gates and score. ns. */
struct engine_sample {
	int session, workload, block;
	int place, pair;          /* of its prompts */
	enum raw_arm arm;
	enum raw_phase phase;
	uint64_t rep;             /* record in the raw file */
	int64_t ttft, total;      /* to the first step, to the last */
};

/* An answer, kept until it is judged. */
struct engine_answer {
	int sample;               /* its index */
	int right;
	int32_t *token;           /* [batch, steps] */
};

/* Are these tokens the model's own? *code is "ok", or what is wrong with them, in a word. */
struct engine_judging {
	/* One batch, each token by itself. */
	int (*batch)(void *ctx, const struct engine_task *t, const int32_t *prompt, const int32_t *token, const char **code,
		     struct err *e);
	/* All tokens of the batches since the last such call: what shows in many. They are the candidate's of one
	 * session; of the other arms only `batch` is asked, afterwards, and what it gathered is dropped by `drop`. */
	int (*all)(void *ctx, const char **code, struct err *e);
	void (*drop)(void *ctx);
};

struct engine_session {
	/* the plan */
	int tasks;
	const struct engine_task *task; /* borrowed */
	int vocab;
	char seed[HASH_HEX];
	double limit_s;            /* of a batch, and ... */
	double step_s;             /* ... this for each step on top */
	const struct engine_io *io;
	void *io_ctx;
	const struct engine_judging *judge;
	void *judge_ctx;
	struct raw *raw;
	int lasting;               /* as the class of the contest says */

	/* what came of it */
	struct engine_sample *sample;
	int samples, room;
	uint64_t max_rss[RAW_ARMS][SESSION_WORKLOADS]; /* the most that any process of the arm had */
	int64_t gpu_bytes[RAW_ARMS][SESSION_WORKLOADS]; /* of the GPU's memory; 0: unknown, or no GPU */
	struct buf lines;          /* JSON lines, one a batch: see trials/README.md */
	size_t judged;             /* tokens that were replayed */

	/* private */
	int now, live[RAW_ARMS];   /* workload */
	int at_phase, at_block, shots; /* of the pair counter */
	int64_t t0;
	struct engine_answer *answer;
	int answers;
	struct shot fault;         /* found when an arm was closed */
};

extern const struct session_ops ENGINE_OPS;

void engine_session_free(struct engine_session *s);

/* ids[n] of a pair, n = batch * prompt. */
void engine_session_prompts(const char *seed, int session, int workload, int place, int pair, int vocab, int n, int32_t *ids);

#endif
