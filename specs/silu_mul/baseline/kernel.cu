/*
 * silu_mul: y[i] = a[i] / (1 + exp(-a[i])) * b[i], bf16 in and out, fp32 inside.
 *
 * The gate of a SwiGLU feed-forward layer. Each thread handles ITEMS groups of VEC neighbours.
 */
#include <cuda_bf16.h>

union pack {
#if VEC == 1
	unsigned short v;
#elif VEC == 2
	unsigned int v;
#elif VEC == 4
	uint2 v;
#else
	uint4 v;
#endif
	__nv_bfloat16 e[VEC];
	__device__ pack() {}
};

__device__ static __nv_bfloat16 gate(__nv_bfloat16 a, __nv_bfloat16 b)
{
	float f = __bfloat162float(a);
	return __float2bfloat16(f / (1.0f + expf(-f)) * __bfloat162float(b));
}

extern "C" __global__ void __launch_bounds__(BLOCK)
silu_mul(const __nv_bfloat16 *__restrict__ a, const __nv_bfloat16 *__restrict__ b,
	 __nv_bfloat16 *__restrict__ y, int n)
{
	int first = (blockIdx.x * ITEMS * BLOCK + threadIdx.x) * VEC;
#pragma unroll
	for (int i = 0; i < ITEMS; i++) {
		int at = first + i * BLOCK * VEC;
		if (at + VEC <= n) {
			union pack p, q;
			p.v = *(const decltype(p.v) *)(a + at);
			q.v = *(const decltype(q.v) *)(b + at);
#pragma unroll
			for (int k = 0; k < VEC; k++)
				p.e[k] = gate(p.e[k], q.e[k]);
			*(decltype(p.v) *)(y + at) = p.v;
		} else {
			for (int k = at; k < n; k++)
				y[k] = gate(a[k], b[k]);
		}
	}
}
