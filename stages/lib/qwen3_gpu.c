/*
 * qwen3_gpu.c - what the reference holds on a GPU from open to close. See qwen3_gpu.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "qwen3_gpu_part.h"

#include "buf.h"
#include "gpu_source.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 16 << 20, THREADS = 8, ALIGN = 256 };

/* ---- weights: from the mapped files to the GPU, by several threads ---- */

struct piece {
	const char *from;
	CUdeviceptr to;
	size_t n;
};

struct load {
	struct qwen3_gpu *g;
	struct piece *piece;
	size_t n, room;
	atomic_size_t next;
	atomic_int failed; /* a CUresult */
};

static void cut(struct load *l, const void *from, CUdeviceptr to, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += PIECE) {
		if (l->n == l->room)
			l->piece = xrealloc(l->piece, (l->room = 2 * l->room + 64) * sizeof *l->piece);
		l->piece[l->n++] = (struct piece){(const char *)from + at, to + at, bytes - at < PIECE ? bytes - at : PIECE};
	}
}

/* Pinned memory goes at the bus's full speed; reading the file's pages is what takes the threads' time. */
static void *work(void *at)
{
	struct load *l = at;
	void *pinned = NULL;
	CUresult r = cu.CtxSetCurrent(l->g->ctx);
	if (r == CUDA_OK)
		r = cu.MemHostAlloc(&pinned, PIECE, 0);
	for (size_t i; r == CUDA_OK && !atomic_load(&l->failed) && (i = atomic_fetch_add(&l->next, 1)) < l->n;) {
		memcpy(pinned, l->piece[i].from, l->piece[i].n);
		r = cu.MemcpyHtoD(l->piece[i].to, pinned, l->piece[i].n);
	}
	if (pinned)
		cu.MemFreeHost(pinned);
	if (r != CUDA_OK)
		atomic_store(&l->failed, r);
	return NULL;
}

static int copy_all(struct load *l, struct err *e)
{
	pthread_t thread[THREADS];
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int most = cpus < 2 ? 0 : cpus > THREADS ? THREADS : (int)cpus - 1, started = 0;
	while (started < most && (size_t)started + 1 < l->n && pthread_create(&thread[started], NULL, work, l) == 0)
		started++;
	work(l);
	for (int i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	int failed = atomic_load(&l->failed);
	if (!failed)
		failed = cu.CtxSynchronize();
	return failed ? cuda_fail(e, "copy of the model's weights to the GPU", failed) : 0;
}

static size_t aligned(size_t n)
{
	return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static int weights(struct qwen3_gpu *g, struct err *e)
{
	const struct qwen3 *m = g->m;
	char name[QWEN3_NAME];
	int64_t shape[2];
	int rank, n = 0;
	size_t total = 0;
	while (qwen3_tensor(&m->c, n, name, shape, &rank))
		n++;
	size_t *bytes = xcalloc((size_t)n, sizeof *bytes);
	struct load l = {.g = g};
	g->w = xcalloc((size_t)n + 1, sizeof *g->w);
	for (int i = 0; i < n; i++) {
		qwen3_tensor(&m->c, i, name, shape, &rank);
		bytes[i] = 2 * (size_t)shape[0] * (rank == 2 ? (size_t)shape[1] : 1);
		g->w[i] = total;
		total += aligned(bytes[i]);
	}
	CUresult r = cu.MemAlloc(&g->weights, total);
	int rc = r == CUDA_OK ? 0 : cuda_fail(e, "memory for the reference's weights", r);
	for (int i = 0; i < n && rc == 0; i++) {
		qwen3_tensor(&m->c, i, name, shape, &rank);
		g->w[i] += g->weights;
		cut(&l, safetensors_find(&m->st, name)->data, g->w[i], bytes[i]);
	}
	if (m->c.tied)
		g->w[n] = g->w[0];
	if (rc == 0)
		rc = copy_all(&l, e);
	free(l.piece);
	free(bytes);
	return rc;
}

/* ---- angles ---- */

int qwen3_gpu_angles(struct qwen3_gpu *g, int n, struct err *e)
{
	const int d = g->m->c.head_dim, half = d / 2;
	const size_t bytes = (size_t)n * (size_t)half * sizeof(float);
	if (n <= g->angles)
		return 0;
	float *c = xcalloc(1, bytes), *s = xcalloc(1, bytes);
	for (int i = 0; i < half; i++) {
		/* float32 as in transformers: the angle itself is part of the model */
		const float f = (float)(1 / pow(g->m->c.rope_theta, 2.0 * i / d));
		for (int p = 0; p < n; p++) {
			c[(size_t)p * (size_t)half + (size_t)i] = cosf((float)p * f);
			s[(size_t)p * (size_t)half + (size_t)i] = sinf((float)p * f);
		}
	}
	if (g->cosine)
		cu.MemFree(g->cosine);
	if (g->sine)
		cu.MemFree(g->sine);
	g->cosine = g->sine = 0;
	g->angles = 0;
	CUresult r = cu.MemAlloc(&g->cosine, bytes);
	if (r == CUDA_OK)
		r = cu.MemAlloc(&g->sine, bytes);
	if (r == CUDA_OK)
		r = cu.MemcpyHtoD(g->cosine, c, bytes);
	if (r == CUDA_OK)
		r = cu.MemcpyHtoD(g->sine, s, bytes);
	if (r == CUDA_OK)
		r = cu.CtxSynchronize(); /* our stream does not wait for the one that copies */
	free(c);
	free(s);
	if (r != CUDA_OK)
		return cuda_fail(e, "angles of the reference", r);
	g->angles = n;
	return 0;
}

/* ---- open, close ---- */

static int kernels(struct qwen3_gpu *g, struct err *e)
{
	static const char *const file[] = {"qwen3.cu"};
	static const char *const name[K_KERNELS] = {"ts_qwen3_embed", "ts_qwen3_norm", "ts_qwen3_heads", "ts_qwen3_stale",
						    "ts_qwen3_softmax", "ts_qwen3_step", "ts_qwen3_join", "ts_qwen3_silu",
						    "ts_qwen3_sum", "ts_qwen3_said", "ts_qwen3_quantise"};
	struct buf cubin = BUF_INIT;
	char arch[16];
	int rc = gpu_source_arch(g->dev, arch, e);
	if (rc == 0)
		rc = gpu_source_build(file, 1, arch, &cubin, e);
	if (rc == 0) {
		CUresult r = cu.ModuleLoadData(&g->module, cubin.data);
		for (int i = 0; i < K_KERNELS && r == CUDA_OK; i++)
			r = cu.ModuleGetFunction(&g->kernel[i], g->module, name[i]);
		rc = r == CUDA_OK ? 0 : cuda_fail(e, "kernels of the reference", r);
	}
	buf_free(&cubin);
	return rc;
}

static int library(struct qwen3_gpu *g, struct err *e)
{
	if (cublas_open(e))
		return -1;
	int s = cublas.Create(&g->blas);
	if (s != CUBLAS_OK)
		return s == CUBLAS_ALLOC_FAILED ? cublas_fail(e, "cublasCreate", s)
			: err_set(e, EX_NOENV, "cuBLAS does not start on this GPU: %s", cublas.GetStatusName(s));
	s = cublas.SetStream(g->blas, g->stream);
	if (s == CUBLAS_OK)
		s = cublas.SetMathMode(g->blas, CUBLAS_EXACT);
	return s == CUBLAS_OK ? 0 : cublas_fail(e, "cublasSetMathMode", s);
}

static int start(struct qwen3_gpu *g, struct err *e)
{
	if (cuda_start_lazy(&g->dev, e))
		return -1;
	CUresult r = cu.PrimaryCtxRetain(&g->ctx, g->dev);
	if (r == CUDA_OK)
		r = cu.StreamCreate(&g->stream, CU_STREAM_NON_BLOCKING);
	if (r != CUDA_OK)
		return cuda_fail(e, "start of the reference", r);
	return kernels(g, e) || library(g, e) || weights(g, e) ? -1 : 0;
}

int qwen3_gpu_open(struct qwen3_gpu **out, const struct qwen3 *m, struct err *e)
{
	struct qwen3_gpu *g = xcalloc(1, sizeof *g);
	g->m = m;
	int rc = start(g, e);
	if (rc)
		qwen3_gpu_close(g);
	*out = rc ? NULL : g;
	return rc;
}

/* The stream and the context stay: they go with the process. */
void qwen3_gpu_close(struct qwen3_gpu *g)
{
	if (!g)
		return;
	const CUdeviceptr held[] = {g->weights, g->cosine, g->sine};
	if (g->ctx)
		cu.CtxSetCurrent(g->ctx);
	if (g->blas)
		cublas.Destroy(g->blas);
	if (g->module)
		cu.ModuleUnload(g->module);
	for (size_t i = 0; i < sizeof held / sizeof *held; i++)
		if (held[i])
			cu.MemFree(held[i]);
	free(g->w);
	free(g);
}
