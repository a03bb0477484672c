/*
 * qwen3.h - a dense Qwen3 checkpoint: its dimensions and where its weights are.
 *
 * Reads a folder as Hugging Face ships it: config.json in either spelling (rope_theta and torch_dtype at the
 * top, or rope_parameters and dtype), weights by safetensors.h, tied head or not; an lm_head that lies beside
 * a tied embedding is not used. What this family does not have (biases, sliding windows, scaled RoPE, another
 * dtype than bfloat16, unknown tensors) is refused by name: no figure may come from a model that is
 * not the one it is called after.
 *
 * Weights are row-major [out, in], y = x W^T, bfloat16 bits. Names and order: transformers, modeling_qwen3.py.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_QWEN3_H
#define TS_QWEN3_H

#include "err.h"
#include "safetensors.h"

#include <stddef.h>
#include <stdint.h>

struct qwen3_config {
	int hidden, layers, heads, kv_heads, head_dim, intermediate, vocab, max_positions;
	int tied; /* the head is the embedding */
	double rope_theta, eps;
};

struct qwen3_layer {
	const uint16_t *input_norm;            /* [hidden] */
	const uint16_t *q, *k, *v;             /* [heads or kv_heads x head_dim, hidden] */
	const uint16_t *q_norm, *k_norm;       /* [head_dim] */
	const uint16_t *o;                     /* [hidden, heads x head_dim] */
	const uint16_t *post_norm;             /* [hidden] */
	const uint16_t *gate, *up;             /* [intermediate, hidden] */
	const uint16_t *down;                  /* [hidden, intermediate] */
};

struct qwen3 {
	struct qwen3_config c;
	struct safetensors st;
	const uint16_t *embed, *norm, *head;   /* [vocab, hidden], [hidden], [vocab, hidden] */
	struct qwen3_layer *layer;
};

/* `what` names the text in messages. EX_BADINPUT. */
int qwen3_config_parse(const char *text, size_t len, const char *what, struct qwen3_config *c, struct err *e);

/* One tensor of a model of these dimensions; i counts from 0 over all of them. Returns 0 when there are no
 * more. `name` holds QWEN3_NAME bytes; rank is 1 or 2. The head comes last and is left out when tied. */
enum { QWEN3_NAME = 96 };
int qwen3_tensor(const struct qwen3_config *c, int i, char *name, int64_t shape[2], int *rank);

/* A checkpoint folder. On error nothing stays open. */
int qwen3_open(struct qwen3 *m, const char *dir, struct err *e);
void qwen3_close(struct qwen3 *m);

/* Parameters, and bytes that one decode step must read of the weights (all layers, the norm, the head). */
uint64_t qwen3_parameters(const struct qwen3_config *c);
uint64_t qwen3_step_bytes(const struct qwen3_config *c);

#endif
