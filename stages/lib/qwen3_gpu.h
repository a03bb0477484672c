/*
 * qwen3_gpu.h - the forward pass of Qwen3 on a GPU: the reference of engines that run there.
 *
 * The same model as qwen3_ref.h computes, ours and independent of every engine: products by cuBLAS, the rest by
 * stages/gpu/qwen3.cu. QWEN3_FP32 is near float32 on tensor cores: weights are bfloat16 as they are, each
 * activation is split into three bfloat16 parts that hold all its bits, and the three products are summed in float32;
 * attention is plain float32, no TF32. QWEN3_BF16 rounds where transformers' eager code does. Logits are float32.
 *
 *   qwen3_gpu_open -> qwen3_gpu_replay, qwen3_gpu_answer, qwen3_gpu_logits ... -> qwen3_gpu_close
 *
 * Faults are those of qwen3_ref.h; one of weights takes as much memory as the weights again.
 *
 * The weights stay on the GPU in between; what a call needs besides, it gives back. A batch is cut to fit the free memory:
 * into chunks of positions, and of sequences. For one thread at a time. The first GPU that CUDA_VISIBLE_DEVICES shows.
 *
 * EX_NOENV: no driver, cuBLAS or compiler; EX_AGAIN: not enough free memory on the GPU; EX_BADINPUT: an id outside the
 * vocabulary, more positions than the model has.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_QWEN3_GPU_H
#define TS_QWEN3_GPU_H

#include "engine_judge.h"
#include "err.h"
#include "qwen3.h"
#include "qwen3_ref.h"

#include <stdint.h>

struct qwen3_gpu;

/* Loads the weights; *m must stay open. On error nothing is left. */
int qwen3_gpu_open(struct qwen3_gpu **g, const struct qwen3 *m, struct err *e);
void qwen3_gpu_close(struct qwen3_gpu *g);

struct qwen3_asked {
	int batch, prompt, steps;
	const int32_t *ids; /* [batch, prompt] */
};

/* Teacher-forced under QWEN3_FP32: said[batch, steps] before each of out[batch, steps]. */
int qwen3_gpu_replay(struct qwen3_gpu *g, const struct qwen3_asked *a, const int32_t *out, struct engine_said *said,
		     struct err *e);
/* Greedy with a cache, a step at a time for the whole batch: out[batch, steps]. EX_BADINPUT: the model's own logits are no
 * numbers. */
int qwen3_gpu_answer(struct qwen3_gpu *g, enum qwen3_policy p, enum qwen3_fault f, const struct qwen3_asked *a, int32_t *out,
		     struct err *e);
/* Logits [n, vocab] of every position of one sequence (a truncated vocabulary shows in answers alone). */
int qwen3_gpu_logits(struct qwen3_gpu *g, enum qwen3_policy p, enum qwen3_fault f, const int32_t *ids, int n, float *logits,
		     struct err *e);

#endif
