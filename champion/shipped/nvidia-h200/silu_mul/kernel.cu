/*
 * silu_mul: y[i] = a[i] / (1 + exp(-a[i])) * b[i], bf16 in and out, fp32 inside.
 *
 * Each thread moves ITEMS vectors of eight bf16, BLOCK vectors apart, and issues all its loads
 * before it computes. FAST 1 takes the special function unit's exponential and quotient, whose
 * errors are far below the rounding to bf16. HINT 1 marks every line as used once.
 */
#include <cuda_bf16.h>

#if HINT == 0
#define LOAD(p) (*(p))
#define STORE(p, v) (*(p) = (v))
#else
#define LOAD(p) __ldcs(p)
#define STORE(p, v) __stcs(p, v)
#endif

__device__ static float silu(float f)
{
#if FAST
	return __fdividef(f, 1.0f + __expf(-f));
#else
	return f / (1.0f + expf(-f));
#endif
}

__device__ static unsigned gate2(unsigned a, unsigned b)
{
	/* bf16 is the upper half of an fp32. */
	float a0 = __uint_as_float(a << 16), a1 = __uint_as_float(a & 0xffff0000u);
	float b0 = __uint_as_float(b << 16), b1 = __uint_as_float(b & 0xffff0000u);
	__nv_bfloat162 r = __floats2bfloat162_rn(silu(a0) * b0, silu(a1) * b1);
	return (unsigned)__bfloat16_as_ushort(r.x) | (unsigned)__bfloat16_as_ushort(r.y) << 16;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
silu_mul(const __nv_bfloat16 *__restrict__ a, const __nv_bfloat16 *__restrict__ b,
	 __nv_bfloat16 *__restrict__ y, int n)
{
	int first = blockIdx.x * ITEMS * BLOCK + threadIdx.x; /* in vectors */
	const uint4 *av = (const uint4 *)a, *bv = (const uint4 *)b;
	uint4 *yv = (uint4 *)y;

	uint4 p[ITEMS], q[ITEMS];
	int vectors = n / 8;

#pragma unroll
	for (int i = 0; i < ITEMS; i++) {
		p[i] = q[i] = make_uint4(0, 0, 0, 0);
		if (first + i * BLOCK < vectors) {
			p[i] = LOAD(av + first + i * BLOCK);
			q[i] = LOAD(bv + first + i * BLOCK);
		}
	}
#pragma unroll
	for (int i = 0; i < ITEMS; i++) {
		p[i].x = gate2(p[i].x, q[i].x);
		p[i].y = gate2(p[i].y, q[i].y);
		p[i].z = gate2(p[i].z, q[i].z);
		p[i].w = gate2(p[i].w, q[i].w);
		if (first + i * BLOCK < vectors)
			STORE(yv + first + i * BLOCK, p[i]);
	}
	if (blockIdx.x == gridDim.x - 1 && threadIdx.x < n % 8) { /* what is no whole vector */
		int at = vectors * 8 + threadIdx.x;
		y[at] = __float2bfloat16(silu(__bfloat162float(a[at])) * __bfloat162float(b[at]));
	}
}
