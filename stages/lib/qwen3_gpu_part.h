/*
 * qwen3_gpu_part.h - inside of qwen3_gpu: qwen3_gpu.c (weights, kernels), qwen3_gpu_fault.c (weights that are wrong),
 * qwen3_gpu_pass.c (layers of a chunk of a batch) and qwen3_gpu_run.c (what is asked of it).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_QWEN3_GPU_PART_H
#define TS_QWEN3_GPU_PART_H

#include "cublas_api.h"
#include "cuda_api.h"
#include "qwen3_gpu.h"

#include <stddef.h>

enum qwen3_kernel {
	K_EMBED, K_NORM, K_HEADS, K_STALE, K_SOFTMAX, K_STEP, K_JOIN, K_SILU, K_SUM, K_SAID, K_QUANTISE, K_KERNELS
};

/* Tensors of a layer in the order of qwen3_tensor. */
enum { W_INPUT_NORM, W_Q, W_K, W_V, W_Q_NORM, W_K_NORM, W_O, W_POST_NORM, W_GATE, W_UP, W_DOWN, W_LAYER };

struct qwen3_gpu {
	const struct qwen3 *m;
	CUdevice dev;
	CUcontext ctx;
	CUstream stream;
	CUmodule module;
	CUfunction kernel[K_KERNELS];
	cublasHandle blas;
	CUdeviceptr weights, *w;    /* one allocation; of each tensor as qwen3_tensor counts */
	CUdeviceptr cosine, sine;   /* [angles][head_dim / 2] */
	int angles;
};

/* Positions up to n have angles. */
int qwen3_gpu_angles(struct qwen3_gpu *g, int n, struct err *e);

/* A group of sequences of one length on the GPU: their cache, and room for a chunk of positions of each. */
struct qwen3_pass {
	struct qwen3_gpu *g;
	enum qwen3_fault fault;
	int rounds, parts;          /* see stages/gpu/qwen3.cu */
	CUdeviceptr own, *w;        /* weights of few bits, and g->w with them; 0 and g->w: the model's */
	int batch, room;            /* sequences; positions of each */
	int chunk, rows_of_logits;  /* positions at once; rows that fit */
	size_t scores, widest;      /* elements: of scores that fit; of the widest row that is split */
	CUdeviceptr base;
	CUdeviceptr x, y, q, k, v, turned, mixed, gate, up, part, pieces, score, keys, values, ids, token, said, logits;
};

/* At most `batch` sequences, as many as fit: p->batch. EX_AGAIN when not even one does. */
int qwen3_pass_open(struct qwen3_pass *p, struct qwen3_gpu *g, enum qwen3_policy policy, enum qwen3_fault fault, int batch,
		    int room, struct err *e);
void qwen3_pass_close(struct qwen3_pass *p);

/* All layers for positions [at, at + n) of each sequence; ids [batch, n] on the host, n <= chunk. */
int qwen3_pass_layers(struct qwen3_pass *p, const int32_t *ids, int at, int n, struct err *e);
/* After that, of the last `last` of the n positions: said[batch, last] of token[batch, last] (NULL: none), or logits[batch,
 * last, vocab] on the host. */
int qwen3_pass_head(struct qwen3_pass *p, int n, int last, const int32_t *token, struct engine_said *said, float *logits,
		    struct err *e);

/* A launch on the pass's stream; none for no blocks. Threads: a power of two for n elements a row. */
int qwen3_pass_launch(struct qwen3_pass *p, enum qwen3_kernel k, size_t blocks, uint32_t threads, void **args, struct err *e);
uint32_t qwen3_threads_for(int n, uint32_t limit);

/* In qwen3_gpu_fault.c: p->w under the pass's fault, EX_AGAIN without memory for other weights; and back. */
int qwen3_pass_weights(struct qwen3_pass *p, struct err *e);
void qwen3_pass_restore(struct qwen3_pass *p);

#endif
