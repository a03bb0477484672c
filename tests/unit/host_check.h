/*
 * host_check.h - the checker's kernels on the host: check.cu as C, one thread after the other. For
 * tests that include it once.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/gpu_check.h"

#include <math.h>
#include <string.h>

static struct {
	unsigned x;
} blockIdx, blockDim, threadIdx, gridDim;

#define __device__
static inline check_u64 __umul64hi(check_u64 a, check_u64 b)
{
	return (check_u64)((unsigned __int128)a * b >> 64);
}
static inline check_i64 __double_as_longlong(double v)
{
	check_i64 x;
	memcpy(&x, &v, sizeof x);
	return x;
}
static inline double __longlong_as_double(check_i64 x)
{
	double v;
	memcpy(&v, &x, sizeof v);
	return v;
}
static inline unsigned __float_as_uint(float v)
{
	unsigned x;
	memcpy(&x, &v, sizeof x);
	return x;
}
static inline float __uint_as_float(unsigned x)
{
	float v;
	memcpy(&v, &x, sizeof v);
	return v;
}
static inline void atomicAdd(check_u64 *p, check_u64 v)
{
	*p += v;
}
static inline void atomicMax(check_u64 *p, check_u64 v)
{
	*p = v > *p ? v : *p;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include "../../stages/gpu/check.cu"
#pragma GCC diagnostic pop

#define HOST_CASE(K, name, type) case K: name(*(const struct type *)job); break

/* Three threads: every loop over a grid has more than one turn. */
static int host_launch(void *ctx, enum check_kernel k, const void *job, uint64_t work, struct err *e)
{
	(void)ctx;
	(void)work;
	(void)e;
	gridDim.x = 3;
	blockDim.x = 1;
	for (blockIdx.x = 0; blockIdx.x < 3; blockIdx.x++)
		switch (k) {
		HOST_CASE(CHECK_FILL, check_fill, check_fill);
		HOST_CASE(CHECK_CHANGE, check_change, check_change);
		HOST_CASE(CHECK_POISON, check_poison, check_segment);
		HOST_CASE(CHECK_GUARD, check_guard, check_segment);
		HOST_CASE(CHECK_SCAN, check_scan, check_scan);
		HOST_CASE(CHECK_FOLD, check_fold, check_fold);
		HOST_CASE(CHECK_COMPARE, check_compare, check_compare);
		HOST_CASE(CHECK_GROUPS, check_groups, check_groups);
		HOST_CASE(CHECK_INTEGERS, check_integers, check_integers);
		HOST_CASE(CHECK_HASH, check_hash, check_hash);
		default: return -1;
		}
	return 0;
}
