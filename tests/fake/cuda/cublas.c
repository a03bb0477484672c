/*
 * cublas.c - the fake libcublas.so.13: products of matrices by plain loops, after what the stream holds.
 *
 * Only what stages/lib/cublas_api.h names, and of it what the reference of engine problems asks: float32 and bfloat16
 * in, float32 out. Other types and a wrong leading dimension are refused as the real one refuses them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../../stages/lib/cublas_api.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NOT_INITIALIZED = 1, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };

#define X(name, symbol, type, args) __attribute__((visibility("default"))) type symbol args;
CUBLAS_CALLS(X)
#undef X

struct cublasContext {
	CUstream stream;
	CUresult (*wait)(CUstream);
};

int cublasCreate_v2(cublasHandle *out)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *wait = driver ? dlsym(driver, "cuStreamSynchronize") : NULL;
	if (getenv("FAKE_CUBLAS_CREATE"))
		return atoi(getenv("FAKE_CUBLAS_CREATE"));
	if (!wait)
		return NOT_INITIALIZED;
	*out = calloc(1, sizeof **out);
	if (!*out)
		return CUBLAS_ALLOC_FAILED;
	memcpy(&(*out)->wait, &wait, sizeof wait);
	return CUBLAS_OK;
}

int cublasDestroy_v2(cublasHandle h)
{
	free(h);
	return CUBLAS_OK;
}

int cublasSetStream_v2(cublasHandle h, CUstream s)
{
	h->stream = s;
	return CUBLAS_OK;
}

int cublasSetMathMode(cublasHandle h, int mode)
{
	(void)h;
	return mode == CUBLAS_EXACT ? CUBLAS_OK : NOT_SUPPORTED;
}

const char *cublasGetStatusName(int status)
{
	return status == CUBLAS_OK ? "CUBLAS_STATUS_SUCCESS" : status == NOT_INITIALIZED ? "CUBLAS_STATUS_NOT_INITIALIZED"
		: status == CUBLAS_ALLOC_FAILED ? "CUBLAS_STATUS_ALLOC_FAILED" : "CUBLAS_STATUS_INVALID_VALUE";
}

static float at(const void *p, int type, int64_t i)
{
	if (type == CUBLAS_F32)
		return ((const float *)p)[i];
	const uint32_t bits = (uint32_t)((const uint16_t *)p)[i] << 16;
	float f;
	memcpy(&f, &bits, sizeof f);
	return f;
}

int cublasGemmStridedBatchedEx(cublasHandle h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int at_,
			       int lda, long long sa, const void *b, int bt, int ldb, long long sb, const void *beta, void *c,
			       int ct, int ldc, long long sc, int count, int compute, int algorithm)
{
	float scale, keep;
	if ((at_ != CUBLAS_F32 && at_ != CUBLAS_BF16) || at_ != bt || ct != CUBLAS_F32 || compute != CUBLAS_SUM_F32 ||
	    algorithm != CUBLAS_CHOOSE)
		return NOT_SUPPORTED;
	if (m < 0 || n < 0 || k < 0 || count < 0 || lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m)
		return INVALID_VALUE;
	if (h->wait(h->stream))
		return EXECUTION_FAILED;
	memcpy(&scale, alpha, sizeof scale);
	memcpy(&keep, beta, sizeof keep);
	for (int64_t i = 0; i < count; i++)
		for (int64_t x = 0; x < n; x++)
			for (int64_t y = 0; y < m; y++) {
				float *to = (float *)c + i * sc + x * ldc + y, sum = 0;
				for (int64_t z = 0; z < k; z++)
					sum += at(a, at_, i * sa + (ta ? y * lda + z : z * lda + y)) *
					       at(b, bt, i * sb + (tb ? z * ldb + x : x * ldb + z));
				*to = scale * sum + (keep != 0 ? keep * *to : 0);
			}
	return CUBLAS_OK;
}

int cublasGemmEx(cublasHandle h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int at_, int lda,
		 const void *b, int bt, int ldb, const void *beta, void *c, int ct, int ldc, int compute, int algorithm)
{
	return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, alpha, a, at_, lda, 0, b, bt, ldb, 0, beta, c, ct, ldc, 0, 1, compute,
					  algorithm);
}
