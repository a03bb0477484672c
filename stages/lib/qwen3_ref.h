/*
 * qwen3_ref.h - the forward pass of Qwen3 on the processor: the reference that replays an engine's tokens.
 *
 * Independent of every engine: plain C, weights widened from bfloat16, everything else float32. One call
 * appends tokens to one sequence and gives the logits at the last positions; so a whole prompt
 * with the tokens after it is one call (replay), a token at a time is another (generation), and both must
 * agree to rounding.
 *
 *   qwen3_seq_open -> qwen3_seq_append ... -> qwen3_seq_close
 *
 * QWEN3_BF16 rounds to bfloat16 wherever the eager code of transformers (modeling_qwen3.py) does: the
 * second opinion that tells how far honest engines differ. Logits are float32 under both.
 *
 * A fault makes the pass wrong in one way that engines are known to be wrong in; `make check` of an engine
 * problem shows that each is rejected. QWEN3_RIGHT is 0.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_QWEN3_REF_H
#define TS_QWEN3_REF_H

#include "qwen3.h"

enum qwen3_policy { QWEN3_FP32, QWEN3_BF16 };

enum qwen3_fault {
	QWEN3_RIGHT,
	QWEN3_ROPE_PAIRS,   /* neighbours rotated together instead of halves */
	QWEN3_NO_ROPE,
	QWEN3_NO_QK_NORM,
	QWEN3_Q_LATE,       /* queries one position on */
	QWEN3_DROP_NEWEST,  /* a token does not see itself */
	QWEN3_WINDOW,       /* only the last 64 tokens */
	QWEN3_GQA_MAP,      /* query head h uses head h mod kv_heads */
	QWEN3_SKIP_LAYER,   /* the last one */
	QWEN3_STALE_KV,     /* position 1 keeps what position 0 left in its slot */
	QWEN3_VOCAB,        /* only the first half of the vocabulary */
	QWEN3_INT8, QWEN3_INT4, QWEN3_FP8, /* weights of all projections, one scale a row; the head too */
	QWEN3_FAULTS
};
const char *qwen3_fault_name(enum qwen3_fault f);

struct qwen3_seq;

/* A sequence of at most `room` tokens. EX_BADINPUT when the model has not so many positions. */
int qwen3_seq_open(struct qwen3_seq **s, const struct qwen3 *m, enum qwen3_policy p, enum qwen3_fault f, int room,
		   struct err *e);
/* Append ids[n]; logits (may be NULL) gets [last, vocab] for the last `last` of them. EX_BADINPUT: an id outside
 * the vocabulary, no room. */
int qwen3_seq_append(struct qwen3_seq *s, const int32_t *ids, int n, int last, float *logits, struct err *e);
void qwen3_seq_close(struct qwen3_seq *s);

/* The lowest id of the largest logit; a NaN anywhere gives -1. */
int32_t qwen3_argmax(const float *logits, int vocab);

#endif
