/*
 * cublas_api.h - the few calls of cuBLAS that we use, opened at run time (libcublas.so.13 or .12).
 *
 * The loader's own places first, then the CUDA toolkit (toolkit.h). Prototypes are written out here; nobody links it.
 * Once per process, after the driver was started: cublas_open, then cublas.Create and so on. The library stays loaded.
 *
 * EX_NOENV, with the reason in one line, where there is none.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_CUBLAS_API_H
#define TS_CUBLAS_API_H

#include "cuda_api.h"
#include "err.h"

typedef struct cublasContext *cublasHandle;

enum { CUBLAS_OK = 0, CUBLAS_ALLOC_FAILED = 3 };
enum { CUBLAS_N = 0, CUBLAS_T = 1 };              /* cublasOperation_t */
enum { CUBLAS_F32 = 0, CUBLAS_BF16 = 14 };        /* cudaDataType_t */
enum { CUBLAS_SUM_F32 = 68, CUBLAS_CHOOSE = -1 }; /* cublasComputeType_t, cublasGemmAlgo_t */
enum { CUBLAS_EXACT = 16 };                       /* cublasMath_t: default, no reduction in less than float32 */

/* Column-major. GemmEx: operations, m, n, k, alpha, A and its type and leading dimension, B, beta, C, compute type, algorithm;
 * the strided one has a stride in elements behind each leading dimension, and the count before the compute type. */
#define CUBLAS_CALLS(X) \
	X(Create, cublasCreate_v2, int, (cublasHandle *)) \
	X(Destroy, cublasDestroy_v2, int, (cublasHandle)) \
	X(SetStream, cublasSetStream_v2, int, (cublasHandle, CUstream)) \
	X(SetMathMode, cublasSetMathMode, int, (cublasHandle, int)) \
	X(GetStatusName, cublasGetStatusName, const char *, (int)) \
	X(GemmEx, cublasGemmEx, int, (cublasHandle, int, int, int, int, int, const void *, const void *, int, int, \
		const void *, int, int, const void *, void *, int, int, int, int)) \
	X(GemmStridedBatchedEx, cublasGemmStridedBatchedEx, int, (cublasHandle, int, int, int, int, int, const void *, \
		const void *, int, int, long long, const void *, int, int, long long, const void *, void *, int, int, \
		long long, int, int, int))

struct cublas_api {
#define X(name, symbol, type, args) type (*name) args;
	CUBLAS_CALLS(X)
#undef X
};

extern struct cublas_api cublas; /* valid after cublas_open */

int cublas_open(struct err *e);
/* err_set with the call's name and the library's word for it; -1. EX_AGAIN: no memory. */
int cublas_fail(struct err *e, const char *call, int status);

#endif
