/*
 * qwen3_gpu_pass.c - the layers of Qwen3 for a chunk of a batch on a GPU. See qwen3_gpu_part.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "qwen3_gpu_part.h"

#include "buf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 3, TOKENS = 8192, FEW = 64, WINDOW = 64, ALIGN = 256 };
enum { TURN_NOT, TURN_HALVES, TURN_PAIRS }; /* stages/gpu/qwen3.cu */
static const size_t SCORES = (size_t)1 << 30, LOGITS = (size_t)256 << 20; /* bytes at once, one row at least */

static size_t most(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* ---- memory ---- */

static CUdeviceptr carve(size_t *at, size_t elements, size_t width)
{
	const size_t begin = *at;
	*at += (elements * width + ALIGN - 1) / ALIGN * ALIGN;
	return begin;
}

static int at_most(size_t room, size_t each, int limit)
{
	const size_t n = room / most(each, 1);
	return n < 1 ? 1 : n > (size_t)limit ? limit : (int)n;
}

/* Where things lie for `batch` sequences; the bytes they take. */
static size_t lay(struct qwen3_pass *p, int batch)
{
	const struct qwen3_config *c = &p->g->m->c;
	const size_t d = (size_t)c->head_dim, qn = (size_t)c->heads * d, kn = (size_t)c->kv_heads * d, h = (size_t)c->hidden,
		     m = (size_t)c->intermediate, room = (size_t)p->room;
	size_t at = 0;
	p->batch = batch;
	p->chunk = at_most(TOKENS, (size_t)batch, p->room);
	p->chunk = at_most(SCORES, (size_t)c->heads * room * 4, p->chunk);
	const size_t each = (size_t)c->heads * (size_t)p->chunk * room; /* scores of a sequence */
	p->scores = each * (size_t)at_most(SCORES, each * 4, batch);
	const size_t t = (size_t)batch * (size_t)p->chunk;
	p->rows_of_logits = at_most(LOGITS, (size_t)c->vocab * 4, (int)t);
	p->widest = most(most(h, qn), m);
	p->x = carve(&at, t * h, 4);
	p->y = carve(&at, t * h, 4);
	p->q = carve(&at, t * qn, 4);
	p->k = carve(&at, t * kn, 4);
	p->v = carve(&at, t * kn, 4);
	p->turned = carve(&at, t * qn, 4);
	p->mixed = carve(&at, t * qn, 4);
	p->gate = carve(&at, t * m, 4);
	p->up = carve(&at, t * m, 4);
	p->part = carve(&at, t * p->widest * (size_t)p->parts, 2);
	p->pieces = carve(&at, (t < FEW ? t : FEW) * (size_t)p->parts * most(p->widest, (size_t)c->vocab), 4);
	p->score = carve(&at, p->scores, 4);
	p->keys = carve(&at, (size_t)c->layers * (size_t)batch * room * kn, 4);
	p->values = carve(&at, (size_t)c->layers * (size_t)batch * room * kn, 4);
	p->ids = carve(&at, t, 4);
	p->token = carve(&at, t, 4);
	p->said = carve(&at, t, sizeof(struct engine_said));
	p->logits = carve(&at, (size_t)p->rows_of_logits * (size_t)c->vocab, 4);
	return at;
}

static void move(struct qwen3_pass *p)
{
	CUdeviceptr *const all[] = {&p->x, &p->y, &p->q, &p->k, &p->v, &p->turned, &p->mixed, &p->gate, &p->up, &p->part,
				    &p->pieces, &p->score, &p->keys, &p->values, &p->ids, &p->token, &p->said, &p->logits};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		*all[i] += p->base;
}

int qwen3_pass_open(struct qwen3_pass *p, struct qwen3_gpu *g, enum qwen3_policy policy, enum qwen3_fault fault, int batch,
		    int room, struct err *e)
{
	size_t available = 0, total = 0;
	*p = (struct qwen3_pass){.g = g, .fault = fault, .rounds = policy == QWEN3_BF16,
				 .parts = policy == QWEN3_BF16 ? 1 : PARTS, .room = room, .w = g->w};
	CUresult r = cu.CtxSetCurrent(g->ctx);
	if (r == CUDA_OK && qwen3_pass_weights(p, e))
		return -1;
	if (r == CUDA_OK)
		r = cu.MemGetInfo(&available, &total);
	if (r != CUDA_OK)
		return cuda_fail(e, "cuMemGetInfo", r);
	if (qwen3_gpu_angles(g, room, e))
		return -1;
	available -= available / 8; /* cuBLAS wants some, and memory comes in pages */
	size_t bytes = lay(p, batch);
	while (bytes > available && batch > 1)
		bytes = lay(p, batch = (batch + 1) / 2);
	if (bytes > available)
		return err_set(e, EX_AGAIN, "the reference needs %zu MiB of GPU memory for a sequence of %d tokens, %zu are free",
			       bytes >> 20, room, available >> 20);
	if ((r = cu.MemAlloc(&p->base, bytes)) != CUDA_OK)
		return cuda_fail(e, "memory for the reference", r);
	move(p);
	return 0;
}

void qwen3_pass_close(struct qwen3_pass *p)
{
	if (p->base) {
		cu.StreamSynchronize(p->g->stream);
		cu.MemFree(p->base);
	}
	p->base = 0;
	qwen3_pass_restore(p);
}

/* ---- work ---- */

int qwen3_pass_launch(struct qwen3_pass *p, enum qwen3_kernel k, size_t blocks, uint32_t threads, void **args, struct err *e)
{
	const CUlaunch c = {.grid = {(uint32_t)blocks, 1, 1}, .block = {threads, 1, 1}, .stream = p->g->stream};
	if (blocks == 0)
		return 0;
	CUresult r = cu.LaunchKernelEx(&c, p->g->kernel[k], args, NULL);
	return r == CUDA_OK ? 0 : cuda_fail(e, "kernel of the reference", r);
}

uint32_t qwen3_threads_for(int n, uint32_t limit)
{
	uint32_t t = 32;
	while (t < limit && (int)t < n)
		t *= 2;
	return t;
}

/* Elements between the parts of `rows` rows of n: few rows lie one part behind the other, so that one product with all of
 * them reads the weights once. */
static uint64_t stride(const struct qwen3_pass *p, int rows, int n)
{
	return rows <= FEW ? (uint64_t)rows * (uint64_t)n : (uint64_t)p->batch * (uint64_t)p->chunk * (uint64_t)p->widest;
}

static int product(struct qwen3_pass *p, CUdeviceptr y, CUdeviceptr w, CUdeviceptr x, int rows, int out, int in, float keep,
		   struct err *e)
{
	const float one = 1;
	int s = cublas.GemmEx(p->g->blas, CUBLAS_T, CUBLAS_N, out, rows, in, &one, (const void *)(uintptr_t)w, CUBLAS_BF16, in,
			      (const void *)(uintptr_t)x, CUBLAS_BF16, in, &keep, (void *)(uintptr_t)y, CUBLAS_F32, out,
			      CUBLAS_SUM_F32, CUBLAS_CHOOSE);
	return s == CUBLAS_OK ? 0 : cublas_fail(e, "cublasGemmEx", s);
}

/* y[many, out] = (the parts' sum)[many, in] w[out, in]^T, for `many` from `first` of the rows that were split; small parts
 * come first. */
static int matrix_of(struct qwen3_pass *p, CUdeviceptr y, CUdeviceptr w, int rows, int first, int many, int out, int in,
		     struct err *e)
{
	const uint64_t apart = stride(p, rows, in), begin = (uint64_t)first * (uint64_t)in;
	uint64_t count = (uint64_t)many * (uint64_t)out;
	if (p->parts > 1 && many == rows && rows <= FEW) {
		void *args[] = {&y, &p->pieces, &p->parts, &count};
		return product(p, p->pieces, w, p->part, rows * p->parts, out, in, 0, e) ||
				       qwen3_pass_launch(p, K_SUM, (size_t)(count + 255) / 256, 256, args, e)
			       ? -1
			       : 0;
	}
	for (int i = p->parts - 1; i >= 0; i--)
		if (product(p, y, w, p->part + 2 * ((uint64_t)i * apart + begin), many, out, in, i < p->parts - 1, e))
			return -1;
	return 0;
}

static int matrix(struct qwen3_pass *p, CUdeviceptr y, CUdeviceptr w, int rows, int out, int in, struct err *e)
{
	return matrix_of(p, y, w, rows, 0, rows, out, in, e);
}

/* `add` 0: x as it is; else x += y first. */
static int norm(struct qwen3_pass *p, CUdeviceptr w, int rows, int add, int take, int per, int first, struct err *e)
{
	int n = p->g->m->c.hidden;
	double eps = p->g->m->c.eps;
	CUdeviceptr y = add ? p->y : 0;
	uint64_t apart = stride(p, rows, n);
	void *args[] = {&p->part, &apart, &p->parts, &p->x, &y, &w, &n, &eps, &take, &per, &first, &p->rounds};
	return qwen3_pass_launch(p, K_NORM, (size_t)rows, qwen3_threads_for(n, 256), args, e);
}

/* Of queries (`late`, `map`: faults), keys, or values (TURN_NOT, no w). */
static int heads(struct qwen3_pass *p, CUdeviceptr to, CUdeviceptr from, CUdeviceptr w, int count, int span, int at, int turn,
		 int position, int n, struct err *e)
{
	const struct qwen3_config *c = &p->g->m->c;
	const int query = to == p->turned;
	int d = c->head_dim, late = query && p->fault == QWEN3_Q_LATE ? p->room : 0,
	    map = query && p->fault == QWEN3_GQA_MAP ? c->kv_heads : 0;
	double eps = c->eps;
	void *args[] = {&to, &from, &w, &p->g->cosine, &p->g->sine, &count, &d, &n, &span, &at, &position, &turn, &late, &map, &eps,
			&p->rounds};
	return qwen3_pass_launch(p, K_HEADS, (size_t)p->batch * (size_t)n * (size_t)count, qwen3_threads_for(d / 2, 64), args, e);
}

/* Scores, weights and mixture of `many` sequences from `s`: query heads of one key head are neighbours. */
static int attend(struct qwen3_pass *p, CUdeviceptr keys, CUdeviceptr values, int s, int many, int position, int n, struct err *e)
{
	const struct qwen3_config *c = &p->g->m->c;
	const int d = c->head_dim, rows = c->heads / c->kv_heads * n, batches = many * c->kv_heads;
	const float one = 1, zero = 0;
	float scale = (float)(1 / sqrt(d));
	int len = position + n;
	const size_t kv = (size_t)s * (size_t)c->kv_heads * (size_t)p->room * (size_t)d * 4,
		     q = (size_t)s * (size_t)c->heads * (size_t)n * (size_t)d * 4;
	const long long cached = (long long)p->room * d, queries = (long long)rows * d, scores = (long long)rows * len;
	void *const score = (void *)(uintptr_t)p->score;
	int st = cublas.GemmStridedBatchedEx(p->g->blas, CUBLAS_T, CUBLAS_N, len, rows, d, &one,
					     (const void *)(uintptr_t)(keys + kv), CUBLAS_F32, d, cached,
					     (const void *)(uintptr_t)(p->turned + q), CUBLAS_F32, d, queries, &zero, score,
					     CUBLAS_F32, len, scores, batches, CUBLAS_SUM_F32, CUBLAS_CHOOSE);
	if (st != CUBLAS_OK)
		return cublas_fail(e, "cublasGemmStridedBatchedEx", st);
	int drop = p->fault == QWEN3_DROP_NEWEST, window = p->fault == QWEN3_WINDOW ? WINDOW : 0;
	void *args[] = {&p->score, &n, &len, &position, &drop, &window, &scale, &p->rounds};
	if (qwen3_pass_launch(p, K_SOFTMAX, (size_t)batches * (size_t)rows, qwen3_threads_for(len, 128), args, e))
		return -1;
	st = cublas.GemmStridedBatchedEx(p->g->blas, CUBLAS_N, CUBLAS_N, d, rows, len, &one,
					 (const void *)(uintptr_t)(values + kv), CUBLAS_F32, d, cached, score, CUBLAS_F32, len,
					 scores, &zero, (void *)(uintptr_t)(p->mixed + q), CUBLAS_F32, d, queries, batches,
					 CUBLAS_SUM_F32, CUBLAS_CHOOSE);
	return st == CUBLAS_OK ? 0 : cublas_fail(e, "cublasGemmStridedBatchedEx", st);
}

/* The same for one token of every sequence. */
static int attend_one(struct qwen3_pass *p, CUdeviceptr keys, CUdeviceptr values, int position, struct err *e)
{
	const struct qwen3_config *c = &p->g->m->c;
	int d = c->head_dim, group = c->heads / c->kv_heads, len = position + 1, drop = p->fault == QWEN3_DROP_NEWEST,
	    window = p->fault == QWEN3_WINDOW ? WINDOW : 0;
	float scale = (float)(1 / sqrt(d));
	void *args[] = {&p->mixed, &p->turned, &keys, &values, &p->score, &group, &d, &p->room, &len, &drop, &window, &scale, &p->rounds};
	return qwen3_pass_launch(p, K_STEP, (size_t)p->batch * (size_t)c->heads, qwen3_threads_for(len, 512), args, e);
}

/* A fault: what position 0 left is not overwritten by position 1. */
static int stale(struct qwen3_pass *p, CUdeviceptr cache, int at, int n, struct err *e)
{
	int d = p->g->m->c.head_dim;
	void *args[] = {&cache, &p->room, &d};
	if (p->fault != QWEN3_STALE_KV || at > 1 || at + n <= 1)
		return 0;
	return qwen3_pass_launch(p, K_STALE, (size_t)p->batch * (size_t)p->g->m->c.kv_heads, qwen3_threads_for(d, 64), args, e);
}

static int join(struct qwen3_pass *p, int n, struct err *e)
{
	int map = p->fault == QWEN3_GQA_MAP ? p->g->m->c.kv_heads : 0;
	int d = p->g->m->c.head_dim, count = p->g->m->c.heads;
	uint64_t all = (uint64_t)p->batch * (uint64_t)n * (uint64_t)count * (uint64_t)d;
	uint64_t apart = stride(p, p->batch * n, count * d);
	void *args[] = {&p->part, &apart, &p->parts, &p->mixed, &count, &d, &n, &map, &all, &p->rounds};
	return qwen3_pass_launch(p, K_JOIN, (size_t)(all + 255) / 256, 256, args, e);
}

static int attention(struct qwen3_pass *p, int layer, int at, int n, struct err *e)
{
	const struct qwen3_config *c = &p->g->m->c;
	const CUdeviceptr *w = p->w + 1 + layer * W_LAYER;
	const int rows = p->batch * n, d = c->head_dim, qn = c->heads * d, kn = c->kv_heads * d, h = c->hidden;
	const size_t cache = (size_t)layer * (size_t)p->batch * (size_t)p->room * (size_t)kn * 4;
	const CUdeviceptr keys = p->keys + cache, values = p->values + cache;
	const int plain = p->fault == QWEN3_NO_QK_NORM, turn = p->fault == QWEN3_NO_ROPE ? TURN_NOT
		: p->fault == QWEN3_ROPE_PAIRS ? TURN_PAIRS : TURN_HALVES;
	if (norm(p, w[W_INPUT_NORM], rows, layer > 0, n, n, 0, e) || matrix(p, p->q, w[W_Q], rows, qn, h, e) ||
	    matrix(p, p->k, w[W_K], rows, kn, h, e) || matrix(p, p->v, w[W_V], rows, kn, h, e) ||
	    heads(p, p->turned, p->q, plain ? 0 : w[W_Q_NORM], c->heads, n, 0, turn, at, n, e) ||
	    heads(p, keys, p->k, plain ? 0 : w[W_K_NORM], c->kv_heads, p->room, at, turn, at, n, e) ||
	    heads(p, values, p->v, 0, c->kv_heads, p->room, at, TURN_NOT, at, n, e) || stale(p, keys, at, n, e) ||
	    stale(p, values, at, n, e))
		return -1;
	const size_t each = (size_t)c->heads * (size_t)n * (size_t)(at + n); /* scores of a sequence */
	const int together = at_most(p->scores, each, p->batch);
	if (n == 1 && together == p->batch) {
		if (attend_one(p, keys, values, at, e))
			return -1;
	} else
		for (int s = 0; s < p->batch; s += together)
			if (attend(p, keys, values, s, p->batch - s < together ? p->batch - s : together, at, n, e))
				return -1;
	return join(p, n, e) || matrix(p, p->y, w[W_O], rows, h, qn, e) ? -1 : 0;
}

static int mlp(struct qwen3_pass *p, int layer, int n, struct err *e)
{
	const struct qwen3_config *c = &p->g->m->c;
	const CUdeviceptr *w = p->w + 1 + layer * W_LAYER;
	const int rows = p->batch * n, h = c->hidden, m = c->intermediate;
	uint64_t all = (uint64_t)rows * (uint64_t)m, apart = stride(p, rows, m);
	void *args[] = {&p->part, &apart, &p->parts, &p->gate, &p->up, &all, &p->rounds};
	return norm(p, w[W_POST_NORM], rows, 1, n, n, 0, e) || matrix(p, p->gate, w[W_GATE], rows, m, h, e) ||
			       matrix(p, p->up, w[W_UP], rows, m, h, e) ||
			       qwen3_pass_launch(p, K_SILU, (size_t)(all + 255) / 256, 256, args, e) ||
			       matrix(p, p->y, w[W_DOWN], rows, h, m, e)
		       ? -1
		       : 0;
}

int qwen3_pass_layers(struct qwen3_pass *p, const int32_t *ids, int at, int n, struct err *e)
{
	int h = p->g->m->c.hidden;
	const size_t rows = (size_t)p->batch * (size_t)n;
	void *args[] = {&p->x, &p->w[0], &p->ids, &h};
	CUresult r = cu.MemcpyHtoDAsync(p->ids, ids, rows * sizeof *ids, p->g->stream);
	if (r == CUDA_OK)
		r = cu.StreamSynchronize(p->g->stream); /* the caller may now change its ids */
	if (r != CUDA_OK)
		return cuda_fail(e, "ids for the reference", r);
	int rc = qwen3_pass_launch(p, K_EMBED, rows, qwen3_threads_for(h, 256), args, e);
	for (int l = 0; l < p->g->m->c.layers - (p->fault == QWEN3_SKIP_LAYER) && rc == 0; l++)
		rc = attention(p, l, at, n, e) || mlp(p, l, n, e) ? -1 : 0;
	return rc;
}

/* ---- the head ---- */

/* Of the rows asked [from, from + many): their logits, and what is said of them. */
static int some(struct qwen3_pass *p, int rows, int from, int many, const int32_t *token, struct engine_said *said, float *logits,
		struct err *e)
{
	const struct qwen3_config *c = &p->g->m->c;
	const size_t f = (size_t)from, m = (size_t)many, vocab = (size_t)c->vocab;
	int n = c->vocab, limit = p->fault == QWEN3_VOCAB ? n / 2 : n;
	double least = ENGINE_MARGIN_LEAST;
	void *args[] = {&p->said, &p->logits, &p->token, &n, &limit, &least};
	CUresult r = CUDA_OK;
	if (matrix_of(p, p->logits, p->w[1 + c->layers * W_LAYER + 1], rows, from, many, n, c->hidden, e))
		return -1;
	if (logits)
		r = cu.MemcpyDtoHAsync(logits + f * vocab, p->logits, m * vocab * sizeof *logits, p->g->stream);
	else {
		r = token ? cu.MemcpyHtoDAsync(p->token, token + f, m * sizeof *token, p->g->stream)
			  : cu.MemsetD32Async(p->token, ~0u, m, p->g->stream);
		if (r == CUDA_OK && qwen3_pass_launch(p, K_SAID, m, qwen3_threads_for(n, 1024), args, e))
			return -1;
		if (r == CUDA_OK)
			r = cu.MemcpyDtoHAsync(said + f, p->said, m * sizeof *said, p->g->stream);
	}
	if (r == CUDA_OK)
		r = cu.StreamSynchronize(p->g->stream);
	return r == CUDA_OK ? 0 : cuda_fail(e, "the reference", r);
}

int qwen3_pass_head(struct qwen3_pass *p, int n, int last, const int32_t *token, struct engine_said *said, float *logits,
		    struct err *e)
{
	const int rows = p->batch * last;
	int rc = norm(p, p->w[1 + p->g->m->c.layers * W_LAYER], rows, 1, last, n, n - last, e);
	for (int r = 0; r < rows && rc == 0; r += p->rows_of_logits)
		rc = some(p, rows, r, rows - r < p->rows_of_logits ? rows - r : p->rows_of_logits, token, said, logits, e);
	return rc;
}
