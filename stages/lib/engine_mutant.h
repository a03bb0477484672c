/*
 * engine_mutant.h - engines that are wrong in one known way, made of the reference itself, and honest ones beside them.
 *
 * What `make check` of an engine problem throws at the judge: a mutant answers prompts greedily as such an engine
 * would (qwen3_ref.h has the faults of arithmetic; rows that are swapped and answers to another prompt are made of right
 * answers), and its ids are then replayed like any engine's. All of them compute in bfloat16 as transformers does, unless
 * said otherwise: a fault must be told from honest rounding, not from exact arithmetic.
 *
 *   engine_mutant_answer -> engine_replay -> engine_judge
 *
 * On the processor sequences are shared out among threads that are gone when a call returns; answers do not depend on their
 * number. Where the model's reference computes on a GPU (engine_model_gpu), its mutants do as well.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_MUTANT_H
#define TS_ENGINE_MUTANT_H

#include "engine_replay.h"
#include "qwen3_ref.h"

enum engine_mix {
	MIX_NONE,
	MIX_ROWS,  /* each sequence of a batch gets the answer of the next */
	MIX_PROMPT /* right answers, to other prompts */
};

/* What the judge owes us. */
enum engine_due {
	DUE_PASS,
	DUE_REFUSE,
	DUE_COUNT /* told by many ids, not by few: how many is counted */
};

struct engine_mutant {
	const char *name, *words;
	enum qwen3_policy policy;
	enum qwen3_fault fault;
	enum engine_mix mix;
	enum engine_due due;
};

/* All of them, honest ones first; ends with a NULL name. */
extern const struct engine_mutant ENGINE_MUTANTS[];

/* Fills a[i].out for all i < n. `other`: as many batches of the same shapes with other prompts, for MIX_PROMPT; their out is
 * used as room. EX_BADINPUT: more positions than the model has, logits that are no numbers. */
int engine_mutant_answer(const struct engine_mutant *x, const struct engine_model *m, const struct engine_asked *a,
			 const struct engine_asked *other, int n, struct err *e);

/* Does it change anything here? A batch of one has no rows to swap. */
int engine_mutant_applies(const struct engine_mutant *x, const struct engine_asked *a, int n);

#endif
