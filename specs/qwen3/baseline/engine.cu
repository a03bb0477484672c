/*
 * engine.cu - a plain Qwen3 engine for one GPU: what a competent person writes first.
 *
 * Whole prompts at once, matrix products by cuBLAS in bfloat16 with float32 sums, a cache of keys and values, then a step
 * at a time for the whole batch. No graphs, nothing fused but what is trivial; head_dim is 128, as in every Qwen3.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_protocol.h"
#include "kernels/model.cuh"
#include "kernels/ops.cuh"

#include <cublas_v2.h>

static struct model m;
static cublasHandle_t blas;

static struct {
	int batch, most, prompt;   /* sequences, positions of each, of which the prompt */
	bf16 *k, *v;               /* [layers][batch, kv_heads, most, head_dim] */
	bf16 *x, *y, *q, *kk, *vv, *att, *gate, *up, *p;
	float *logits, *score;     /* score, p: [batch, heads, prompt, prompt] */
	void **list;               /* pointers for batched products: three lists of batch x heads */
	int *ids;
} s;

static void blas_ok(cublasStatus_t r)
{
	if (r != CUBLAS_STATUS_SUCCESS)
		fail("cuBLAS reports an error");
}

/* y[tokens, out] = x[tokens, in] w[out, in]^T + beta y */
static void product(void *y, cudaDataType type, const bf16 *x, const bf16 *w, int tokens, int out, int in, float beta)
{
	const float one = 1.0f;
	blas_ok(cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, out, tokens, in, &one, w, CUDA_R_16BF, in, x, CUDA_R_16BF, in, &beta, y,
			     type, out, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

static void make_room(const struct engine_request *r)
{
	void *all[] = {s.k, s.v, s.x, s.y, s.q, s.kk, s.vv, s.att, s.gate, s.up, s.p, s.logits, s.score, s.list, s.ids};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		cudaFree(all[i]);
	s.batch = r->batch;
	s.prompt = r->prompt;
	s.most = r->prompt + r->steps;
	const size_t b = (size_t)r->batch, n = b * (size_t)r->prompt, d = (size_t)m.head_dim, kv = (size_t)m.kv_heads * d,
		     q = (size_t)m.heads * d, h = (size_t)m.hidden, cache = (size_t)m.layers * b * (size_t)s.most * kv,
		     square = b * (size_t)m.heads * (size_t)r->prompt * (size_t)r->prompt;
	s.k = (bf16 *)room(cache * 2), s.v = (bf16 *)room(cache * 2);
	s.x = (bf16 *)room(n * h * 2), s.y = (bf16 *)room(n * h * 2);
	s.q = (bf16 *)room(n * q * 2), s.att = (bf16 *)room(n * q * 2);
	s.kk = (bf16 *)room(n * kv * 2), s.vv = (bf16 *)room(n * kv * 2);
	s.gate = (bf16 *)room(n * (size_t)m.inter * 2), s.up = (bf16 *)room(n * (size_t)m.inter * 2);
	s.p = (bf16 *)room(square * 2), s.score = (float *)room(square * 4);
	s.logits = (float *)room(b * (size_t)m.vocab * 4);
	s.list = (void **)room(3 * b * (size_t)m.heads * sizeof(void *));
	s.ids = (int *)room(n * sizeof(int));
}

/* Pointers to what each sequence and head multiplies in its batched product. */
static void lists(void *const base[3], const size_t row[3], const size_t head[3], const int shared[3])
{
	const int n = s.batch * m.heads;
	static void **host;
	host = (void **)realloc(host, 3 * (size_t)n * sizeof *host);
	if (!host)
		fail("out of memory");
	for (int k = 0; k < 3; k++)
		for (int i = 0; i < n; i++) {
			const size_t b = (size_t)(i / m.heads), h = (size_t)(i % m.heads / (shared[k] ? m.heads / m.kv_heads : 1));
			host[k * n + i] = (char *)base[k] + b * row[k] + h * head[k];
		}
	cuda_ok(cudaMemcpyAsync(s.list, host, 3 * (size_t)n * sizeof *host, cudaMemcpyHostToDevice), "copying");
}

/* Attention of the whole prompt: scores of every query and key, softmax, and the values. */
static void attend_prompt(const bf16 *kc, const bf16 *vc)
{
	const float one = 1.0f, zero = 0.0f;
	const int P = s.prompt, d = m.head_dim, q = m.heads * d, n = s.batch * m.heads;
	const size_t cache = (size_t)m.kv_heads * (size_t)s.most * (size_t)d * 2, head = (size_t)s.most * (size_t)d * 2;
	const size_t square = (size_t)P * (size_t)P, rows = (size_t)P * (size_t)q * 2;
	void *const scores[3] = {(void *)kc, s.q, s.score}, *const values[3] = {(void *)vc, s.p, s.att};
	const size_t row1[3] = {cache, rows, square * (size_t)m.heads * 4}, head1[3] = {head, (size_t)d * 2, square * 4};
	const size_t row2[3] = {cache, square * (size_t)m.heads * 2, rows}, head2[3] = {head, square * 2, (size_t)d * 2};
	const int shared[3] = {1, 0, 0};
	lists(scores, row1, head1, shared);
	blas_ok(cublasGemmBatchedEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, P, P, d, &one, (const void **)s.list, CUDA_R_16BF, d,
				    (const void **)s.list + n, CUDA_R_16BF, q, &zero, s.list + 2 * n, CUDA_R_32F, P, n,
				    CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
	softmax_kernel<<<dim3((unsigned)P, (unsigned)n), 128>>>(s.p, s.score, P, 1.0f / sqrtf((float)d));
	lists(values, row2, head2, shared);
	blas_ok(cublasGemmBatchedEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, d, P, P, &one, (const void **)s.list, CUDA_R_16BF, d,
				    (const void **)s.list + n, CUDA_R_16BF, P, &zero, s.list + 2 * n, CUDA_R_16BF, q, n,
				    CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

/* `per` new tokens of each sequence from `position` on; s.x holds their embeddings, [batch, per, hidden]. */
static void forward(int per, int position)
{
	const int n = s.batch * per, h = m.hidden, d = m.head_dim, q = m.heads * d, kv = m.kv_heads * d, f = m.inter;
	for (int i = 0; i < m.layers; i++) {
		const struct layer *l = &m.layer[i];
		const size_t cache = (size_t)i * (size_t)s.batch * (size_t)s.most * (size_t)kv;
		rms_kernel<<<n, 256>>>(s.y, s.x, l->norm1, h, m.eps, 1, 0);
		product(s.q, CUDA_R_16BF, s.y, l->q, n, q, h, 0.0f);
		product(s.kk, CUDA_R_16BF, s.y, l->k, n, kv, h, 0.0f);
		product(s.vv, CUDA_R_16BF, s.y, l->v, n, kv, h, 0.0f);
		qk_kernel<<<dim3((unsigned)n, (unsigned)(m.heads + m.kv_heads)), d / 2>>>(s.q, s.kk, s.vv, l->qn, l->kn, s.k + cache,
			s.v + cache, m.heads, m.kv_heads, per, position, s.most, m.eps, m.theta);
		if (position == 0)
			attend_prompt(s.k + cache, s.v + cache);
		else
			decode_kernel<<<dim3((unsigned)m.heads, (unsigned)s.batch), 32 * DECODE_WARPS>>>(s.att, s.q, s.k + cache,
				s.v + cache, m.heads, m.kv_heads, position + 1, s.most, 1.0f / sqrtf((float)d));
		product(s.x, CUDA_R_16BF, s.att, l->o, n, h, q, 1.0f);
		rms_kernel<<<n, 256>>>(s.y, s.x, l->norm2, h, m.eps, 1, 0);
		product(s.gate, CUDA_R_16BF, s.y, l->gate, n, f, h, 0.0f);
		product(s.up, CUDA_R_16BF, s.y, l->up, n, f, h, 0.0f);
		const size_t cells = (size_t)n * (size_t)f;
		silu_kernel<<<(unsigned)((cells + 255) / 256), 256>>>(s.gate, s.up, cells);
		product(s.x, CUDA_R_16BF, s.gate, l->down, n, h, f, 1.0f);
	}
}

/* The best next id of each sequence, from the last of its `per` tokens; it is the next input, too. */
static void choose(int per, int32_t *next)
{
	rms_kernel<<<s.batch, 256>>>(s.y, s.x, m.norm, m.hidden, m.eps, per, per - 1);
	product(s.logits, CUDA_R_32F, s.y, m.head, s.batch, m.vocab, m.hidden, 0.0f);
	argmax_kernel<<<s.batch, 1024>>>(s.ids, s.logits, m.vocab);
	cuda_ok(cudaMemcpy(next, s.ids, (size_t)s.batch * sizeof *next, cudaMemcpyDeviceToHost), "a step");
}

static void answer(const struct engine_request *r)
{
	int32_t next[ENGINE_BATCH_MOST];
	const int n = r->batch * r->prompt;
	make_room(r);
	cuda_ok(cudaMemcpy(s.ids, r->ids, (size_t)n * sizeof(int), cudaMemcpyHostToDevice), "the prompt");
	embed_kernel<<<n, 128>>>(s.x, m.embed, s.ids, m.hidden);
	forward(r->prompt, 0);
	choose(r->prompt, next);
	engine_step(r, next);
	for (int t = 1; t < r->steps; t++) {
		embed_kernel<<<r->batch, 128>>>(s.x, m.embed, s.ids, m.hidden);
		forward(1, r->prompt + t - 1);
		choose(1, next);
		engine_step(r, next);
	}
}

int main(int argc, char **argv)
{
	struct engine_request r;
	if (argc != 2)
		fail("usage: engine MODEL_DIR");
	load(&m, argv[1]);
	if (m.head_dim != 128)
		fail("head_dim is not 128");
	blas_ok(cublasCreate(&blas));
	engine_ready();
	while (engine_next(&r))
		answer(&r);
	return 0;
}
