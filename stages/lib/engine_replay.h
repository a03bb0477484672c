/*
 * engine_replay.h - prompts that nobody could foresee, and what the reference says of the answers.
 *
 * A batch is what was asked (ids) and, once it was answered, what came back (out). The reference is float32 (qwen3_ref.h, or
 * qwen3_gpu.h where the model says so): it is given prompt and answer and says the logits before each id of the answer,
 * all ids of all sequences. Honest ways to answer the same prompts (float32 and transformers' bfloat16, a token
 * at a time) set the gates.
 *
 *   engine_replay_prompts -> engine_honest -> [the engine answers, ends] -> engine_replay -> engine_judge
 *
 * On the processor sequences are shared out among threads of this process, which are gone when a call returns; the
 * result does not depend on their number. Costs of one sequence of P + S tokens: a replay is one pass of P + S, an honest way two.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_REPLAY_H
#define TS_ENGINE_REPLAY_H

#include "engine_judge.h"
#include "engine_model.h"
#include "err.h"

#include <stddef.h>
#include <stdint.h>

struct engine_asked {
	int batch, prompt, steps;
	int32_t *ids; /* [batch, prompt] */
	int32_t *out; /* [batch, steps]; not looked at by engine_replay_prompts and engine_honest */
};

/* ids from the key's stream `label`: uniform over the vocabulary, and no two sequences begin with the same id while the
 * vocabulary lasts, so that nothing of one helps another. */
void engine_replay_prompts(const uint8_t key[32], const char *label, int vocab, struct engine_asked *a);

/* Regrets of a[0..n)'s answers, sequence after sequence, added to *r. EX_BADINPUT: an id outside the vocabulary,
 * more positions than the model has. */
int engine_replay(const struct engine_model *m, const struct engine_asked *a, int n, struct engine_regrets *r, struct err *e);

/* How far honest ways differ on these prompts, and the gates that follow. EX_BADINPUT when this checkpoint, on these
 * prompts, cannot judge (engine_calibrate). */
struct engine_honest {
	struct engine_figures own, rounded; /* float32 a token at a time; bfloat16 as transformers rounds */
	struct engine_gates gates;
};
int engine_honest(const struct engine_model *m, const struct engine_asked *a, int n, struct engine_honest *h, struct err *e);

/* What the reference would have said in place of a.out[sequence, step], after the same ids before it; -1 for a NaN. */
int engine_best(const struct engine_model *m, const struct engine_asked *a, int sequence, int step, int32_t *id, struct err *e);

#endif
