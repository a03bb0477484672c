/*
 * qwen3_gpu_fault.c - weights that are wrong in a known way, for the faults of qwen3_ref.h. See qwen3_gpu_part.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "qwen3_gpu_part.h"

#include "buf.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 256 };

static float top_of(enum qwen3_fault f)
{
	return f == QWEN3_INT8 ? 127 : f == QWEN3_INT4 ? 7 : f == QWEN3_FP8 ? 448 : 0;
}

/* Tensor i, rows of n; 0 rows: not one that is quantised. The embedding is looked up as it is; as a head it is quantised. */
static int rows_of(const struct qwen3_config *c, int i, int *n)
{
	char name[QWEN3_NAME];
	int64_t shape[2];
	int rank;
	const int head = c->layers * W_LAYER + 2;
	if (!qwen3_tensor(c, i == head && c->tied ? 0 : i, name, shape, &rank) || rank != 2 || i == 0)
		return 0;
	*n = (int)shape[1];
	return (int)shape[0];
}

static int quantise(struct qwen3_pass *p, float top, struct err *e)
{
	const struct qwen3_config *c = &p->g->m->c;
	const int all = c->layers * W_LAYER + 3;
	int floating = p->fault == QWEN3_FP8, n = 0;
	size_t bytes = 0;
	for (int i = 0, rows; i < all; i++)
		if ((rows = rows_of(c, i, &n)) > 0)
			bytes += ((size_t)rows * (size_t)n * 2 + ALIGN - 1) / ALIGN * ALIGN;
	CUresult r = cu.MemAlloc(&p->own, bytes);
	if (r != CUDA_OK)
		return cuda_fail(e, "memory for weights of few bits", r);
	CUdeviceptr at = p->own;
	p->w = xcalloc((size_t)all, sizeof *p->w);
	memcpy(p->w, p->g->w, (size_t)all * sizeof *p->w);
	for (int i = 0, rows; i < all; i++) {
		if ((rows = rows_of(c, i, &n)) == 0)
			continue;
		void *args[] = {&at, &p->g->w[i], &n, &top, &floating};
		if (qwen3_pass_launch(p, K_QUANTISE, (size_t)rows, qwen3_threads_for(n, 256), args, e))
			return -1;
		p->w[i] = at;
		at += ((size_t)rows * (size_t)n * 2 + ALIGN - 1) / ALIGN * ALIGN;
	}
	return 0;
}

int qwen3_pass_weights(struct qwen3_pass *p, struct err *e)
{
	const float top = top_of(p->fault);
	p->w = p->g->w;
	return top > 0 ? quantise(p, top, e) : 0;
}

void qwen3_pass_restore(struct qwen3_pass *p)
{
	if (p->own)
		cu.MemFree(p->own);
	if (p->w != p->g->w)
		free(p->w);
	p->own = 0;
	p->w = p->g->w;
}
