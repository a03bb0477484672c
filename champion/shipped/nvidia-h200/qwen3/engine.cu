/*
 * engine.cu - a Qwen3 engine for one GPU: prompts by cuBLAS and an attention of our own, steps by a graph of our own kernels.
 *
 * Weights of q, k, v lie in one matrix, those of gate and up in another, 8 rows of each in turn, so that the two halves
 * of silu meet in one thread. A step is one graph launch; all steps of an answer are launched at once and the GPU hands itself
 * the ids, which arrive in memory of the host as they are chosen.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_protocol.h"
#include "kernels/model.cuh"
#include "kernels/prompt.cuh"
#include "kernels/step.cuh"

#include <cublas_v2.h>
#include <math.h>

enum { SPLIT_O = 8, SPLIT_QKV = 4, SPLIT_DOWN = 8, /* blocks that share out k of a product */
       BLOCKS = 264 };                             /* that attention of a step should have: two a processor of an H200 */

enum { ATT_SHARED = (16 * D + ATT_WARPS * ATT_STAGES * 2 * KEYS * D) * 2,
       PROMPT_SHARED = (PM * D + PSTAGES * 2 * PN * D) * 2 };

static struct model m;
static cublasHandle_t blas;
static cudaStream_t stream;
static int wide; /* (heads + 2 kv_heads) D */

static struct {
	int batch, most, tokens, positions, steps; /* what there is room for; a graph is made for batch and most */
	int chunk, splits;
	bf16 *k, *v;                       /* [layers][batch, kv_heads, most, D] */
	bf16 *x, *y, *qkv, *att, *gu, *act; /* prompt: [tokens][...] */
	bf16 *sy, *satt, *sact;            /* step: [batch][...] */
	float *res, *sums, *part;
	struct best *best;
	float2 *turn;
	int *ids, *position, *prompt;
	u32 *arrived, *chosen;
	int *said, *done;                  /* of the host, mapped */
	cudaGraphExec_t graph;
} s;

static void blas_ok(cublasStatus_t r)
{
	if (r != CUBLAS_STATUS_SUCCESS)
		fail("cuBLAS reports an error");
}

/* y[tokens, out] = x[tokens, in] w[out, in]^T + beta y */
static void product(bf16 *y, const bf16 *x, const bf16 *w, int tokens, int out, int in, float beta)
{
	const float one = 1.0f;
	blas_ok(cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, out, tokens, in, &one, w, CUDA_R_16BF, in, x, CUDA_R_16BF, in, &beta, y,
			     CUDA_R_16BF, out, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

/* A launch that may begin before the kernel before it has ended. */
template <typename... P, typename... A>
static void launch(void (*kernel)(P...), dim3 grid, unsigned threads, size_t shared, A... arg)
{
	cudaLaunchAttribute early;
	cudaLaunchConfig_t c = {};
	early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
	early.val.programmaticStreamSerializationAllowed = 1;
	c.gridDim = grid;
	c.blockDim = dim3(threads);
	c.dynamicSmemBytes = shared;
	c.stream = stream;
	c.attrs = &early;
	c.numAttrs = 1;
	cuda_ok(cudaLaunchKernelEx(&c, kernel, P(arg)...), "a launch");
}

/* Which shape of kernel for how many sequences: measured on an H200. */
template <int TO>
static void weigh(const bf16 *w, const bf16 *x, int out, int in, int splits, float *sums, bf16 *act, struct best *best)
{
	const int b = s.batch;
	const unsigned n = (unsigned)splits;
	if (b <= 8)
		launch(skinny<8, 4, 2, 1, TO>, dim3((unsigned)out / 32, n), 256, 0, w, x, out, in, b, sums, act, best);
	else if (b <= 16)
		launch(skinny<8, 4, 2, 2, TO>, dim3((unsigned)out / 32, n), 256, 0, w, x, out, in, b, sums, act, best);
	else
		launch(skinny<4, 4, 2, 4, TO>, dim3((unsigned)out / 32, n), 128, 0, w, x, out, in, b, sums, act, best);
}

/* From s.res, and sums that are still to be added to it, on: the next id of each sequence. */
static void say(int pending)
{
	const int h = m.hidden;
	launch(add_rms, dim3((unsigned)s.batch), (unsigned)h / 4, 0, s.res, s.sums, pending, s.sy, m.norm, h, m.eps);
	weigh<TO_ARGMAX>(m.head, s.sy, m.vocab, h, 1, NULL, NULL, s.best);
	launch(choose, dim3((unsigned)s.batch), 1024, 0, s.best, m.vocab / 32, m.embed, s.res, h, s.position, s.prompt, s.said, s.done,
	       s.chosen);
}

static void step(void)
{
	const int h = m.hidden, q = m.heads * D, f = m.inter;
	const unsigned b = (unsigned)s.batch;
	int pending = 0;
	for (int i = 0; i < m.layers; i++) {
		const struct layer *l = &m.layer[i];
		const size_t cache = (size_t)i * (size_t)s.batch * (size_t)s.most * (size_t)(m.kv_heads * D);
		launch(add_rms, dim3(b), (unsigned)h / 4, 0, s.res, s.sums, pending, s.sy, l->norm1, h, m.eps);
		weigh<TO_SUMS>(l->qkv, s.sy, wide, h, SPLIT_QKV, s.sums, NULL, NULL);
		const struct attention a = {s.sums, SPLIT_QKV, l->qn, l->kn, s.k + cache, s.v + cache, s.turn, s.position, s.part, s.arrived,
					    s.satt, m.heads, m.kv_heads, s.most, s.chunk, m.eps};
		const dim3 grid((unsigned)s.splits, (unsigned)m.kv_heads, b);
		if (m.heads / m.kv_heads == 2)
			launch(attend<2>, grid, 32 * ATT_WARPS, ATT_SHARED, a);
		else
			launch(attend<4>, grid, 32 * ATT_WARPS, ATT_SHARED, a);
		weigh<TO_SUMS>(l->o, s.satt, h, q, SPLIT_O, s.sums, NULL, NULL);
		launch(add_rms, dim3(b), (unsigned)h / 4, 0, s.res, s.sums, SPLIT_O, s.sy, l->norm2, h, m.eps);
		weigh<TO_SILU>(l->gu, s.sy, 2 * f, h, 1, NULL, s.sact, NULL);
		weigh<TO_SUMS>(l->down, s.sact, h, f, SPLIT_DOWN, s.sums, NULL, NULL);
		pending = SPLIT_DOWN;
	}
	say(pending);
}

static void make_graph(void)
{
	cudaGraph_t g;
	cuda_ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "a graph");
	step();
	cuda_ok(cudaStreamEndCapture(stream, &g), "a graph");
	if (s.graph)
		cudaGraphExecDestroy(s.graph);
	cuda_ok(cudaGraphInstantiate(&s.graph, g, 0), "a graph");
	cudaGraphDestroy(g);
	cuda_ok(cudaGraphUpload(s.graph, stream), "a graph");
}

static void make_turns(int positions)
{
	float2 *t = (float2 *)malloc((size_t)positions * (D / 2) * sizeof *t);
	if (!t)
		fail("out of memory");
	for (int i = 0; i < D / 2; i++) {
		const float f = powf(m.theta, -2.0f * (float)i / D);
		for (int p = 0; p < positions; p++) {
			float2 *at = &t[(size_t)p * (D / 2) + (size_t)i];
			sincosf((float)p * f, &at->y, &at->x);
		}
	}
	cudaFree(s.turn);
	s.turn = (float2 *)room((size_t)positions * (D / 2) * sizeof *t);
	cuda_ok(cudaMemcpy(s.turn, t, (size_t)positions * (D / 2) * sizeof *t, cudaMemcpyHostToDevice), "a table");
	free(t);
}

static void make_room(const struct engine_request *r)
{
	const size_t b = (size_t)r->batch, h = (size_t)m.hidden, n = b * (size_t)r->prompt, f = (size_t)m.inter;
	const int most = (r->prompt + r->steps + 63) / 64 * 64;
	if ((int)n > s.tokens) {
		bf16 **const all[] = {&s.x, &s.y, &s.qkv, &s.att, &s.gu, &s.act};
		const size_t each[] = {h, h, (size_t)wide, (size_t)(m.heads * D), 2 * f, f};
		for (int i = 0; i < 6; i++) {
			cudaFree(*all[i]);
			*all[i] = (bf16 *)room(n * each[i] * 2);
		}
		cudaFree(s.ids);
		s.ids = (int *)room(n * sizeof(int));
		s.tokens = (int)n;
	}
	if (most > s.positions) {
		s.positions = (most + 2047) / 2048 * 2048;
		make_turns(s.positions);
	}
	if (r->batch * r->steps > s.steps) {
		cudaFreeHost(s.said);
		s.steps = r->batch * r->steps;
		cuda_ok(cudaHostAlloc((void **)&s.said, (size_t)s.steps * sizeof(int), cudaHostAllocMapped), "memory of the host");
	} else if (r->batch == s.batch && most == s.most) {
		return;
	}
	if (r->batch != s.batch || most != s.most) {
		s.batch = r->batch;
		s.most = most;
		/* about two blocks a processor, of whole 64 keys */
		const int want = BLOCKS / (s.batch * m.kv_heads) > 1 ? BLOCKS / (s.batch * m.kv_heads) : 1;
		s.chunk = (most / 64 + want - 1) / want * 64;
		s.splits = (most + s.chunk - 1) / s.chunk;
		void *const old[] = {s.k, s.v, s.sy, s.satt, s.sact, s.res, s.sums, s.part, s.best, s.arrived};
		for (size_t i = 0; i < sizeof old / sizeof *old; i++)
			cudaFree(old[i]);
		const size_t cache = (size_t)m.layers * b * (size_t)most * (size_t)(m.kv_heads * D) * 2, kvs = b * (size_t)m.kv_heads;
		s.k = (bf16 *)room(cache), s.v = (bf16 *)room(cache);
		cuda_ok(cudaMemsetAsync(s.k, 0, cache, stream), "the cache"); /* masked keys are read, and must be finite */
		cuda_ok(cudaMemsetAsync(s.v, 0, cache, stream), "the cache");
		s.sy = (bf16 *)room(b * h * 2), s.satt = (bf16 *)room(b * (size_t)(m.heads * D) * 2), s.sact = (bf16 *)room(b * f * 2);
		s.res = (float *)room(b * h * 4);
		s.sums = (float *)room(8 * b * (size_t)(wide > m.hidden ? wide : m.hidden) * 4);
		s.part = (float *)room(kvs * (size_t)s.splits * (size_t)(m.heads / m.kv_heads) * PART * 4);
		s.best = (struct best *)room(b * (size_t)(m.vocab / 32) * sizeof *s.best);
		s.arrived = (u32 *)room(kvs * 4);
		cuda_ok(cudaMemsetAsync(s.arrived, 0, kvs * 4, stream), "counters");
	}
	make_graph();
}

/* The whole prompt of every sequence. */
static void forward(const struct engine_request *r)
{
	const int n = r->batch * r->prompt, h = m.hidden, q = m.heads * D, f = m.inter, all = m.heads + 2 * m.kv_heads;
	const unsigned tokens = (unsigned)n;
	cuda_ok(cudaMemcpyAsync(s.ids, r->ids, (size_t)n * sizeof(int), cudaMemcpyHostToDevice, stream), "the prompt");
	embed_tokens<<<tokens, (unsigned)h / 8, 0, stream>>>(s.x, m.embed, s.ids, h);
	for (int i = 0; i < m.layers; i++) {
		const struct layer *l = &m.layer[i];
		const size_t cache = (size_t)i * (size_t)s.batch * (size_t)s.most * (size_t)(m.kv_heads * D);
		rms_tokens<<<tokens, (unsigned)h / 8, 0, stream>>>(s.y, s.x, l->norm1, h, m.eps);
		product(s.qkv, s.y, l->qkv, n, wide, h, 0.0f);
		turn_tokens<<<dim3(tokens, (unsigned)(all + 7) / 8), dim3(32, 8), 0, stream>>>(s.qkv, l->qn, l->kn, s.k + cache, s.v + cache,
			s.turn, m.heads, m.kv_heads, r->prompt, s.most, m.eps);
		attend_tokens<<<dim3((unsigned)(r->batch * m.heads), (unsigned)(r->prompt + PM - 1) / PM), 32 * PW, PROMPT_SHARED, stream>>>(
			s.qkv, s.k + cache, s.v + cache, s.att, m.heads, m.kv_heads, r->prompt, s.most);
		product(s.x, s.att, l->o, n, h, q, 1.0f);
		rms_tokens<<<tokens, (unsigned)h / 8, 0, stream>>>(s.y, s.x, l->norm2, h, m.eps);
		product(s.gu, s.y, l->gu, n, 2 * f, h, 0.0f);
		const size_t groups = (size_t)n * (size_t)f / 8;
		silu_tokens<<<(unsigned)((groups + 255) / 256), 256, 0, stream>>>(s.act, s.gu, groups);
		product(s.x, s.act, l->down, n, h, f, 1.0f);
	}
	last_tokens<<<(unsigned)r->batch, (unsigned)h / 4, 0, stream>>>(s.res, s.x, r->prompt, h, s.position, s.prompt);
}

static void answer(const struct engine_request *r)
{
	make_room(r);
	*(volatile int *)s.done = 0;
	forward(r);
	say(0);
	for (int t = 1; t < r->steps; t++)
		cuda_ok(cudaGraphLaunch(s.graph, stream), "a step");
	for (int t = 0; t < r->steps; t++) {
		for (unsigned spin = 0; *(volatile int *)s.done <= t; spin++)
			if (spin % 65536 == 65535 && cudaStreamQuery(stream) != cudaErrorNotReady &&
			    *(volatile int *)s.done <= t)
				fail("a step failed");
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		engine_step(r, s.said + (size_t)t * (size_t)r->batch);
	}
	cuda_ok(cudaStreamSynchronize(stream), "an answer");
}

int main(int argc, char **argv)
{
	struct engine_request r;
	if (argc != 2)
		fail("usage: engine MODEL_DIR");
	load(&m, argv[1]);
	if (m.head_dim != D || (m.heads != 2 * m.kv_heads && m.heads != 4 * m.kv_heads))
		fail("a model of another kind");
	wide = (m.heads + 2 * m.kv_heads) * D;
	cuda_ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
	blas_ok(cublasCreate(&blas));
	blas_ok(cublasSetStream(blas, stream));
	cuda_ok(cudaFuncSetAttribute(attend<2>, cudaFuncAttributeMaxDynamicSharedMemorySize, ATT_SHARED), "shared memory");
	cuda_ok(cudaFuncSetAttribute(attend<4>, cudaFuncAttributeMaxDynamicSharedMemorySize, ATT_SHARED), "shared memory");
	cuda_ok(cudaFuncSetAttribute(attend_tokens, cudaFuncAttributeMaxDynamicSharedMemorySize, PROMPT_SHARED), "shared memory");
	s.position = (int *)room(sizeof(int));
	s.prompt = (int *)room(sizeof(int));
	s.chosen = (u32 *)room(sizeof(u32));
	cuda_ok(cudaMemset(s.chosen, 0, sizeof(u32)), "counters");
	cuda_ok(cudaHostAlloc((void **)&s.done, sizeof(int), cudaHostAllocMapped), "memory of the host");
	engine_ready();
	while (engine_next(&r)) {
		if (r.batch > 32)
			fail("more than 32 sequences");
		answer(&r);
	}
	return 0;
}
