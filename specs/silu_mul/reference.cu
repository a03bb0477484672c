/* silu_mul in double precision; y holds 8-byte elements. */
#include <cuda_bf16.h>

extern "C" __global__ void reference(const __nv_bfloat16 *a, const __nv_bfloat16 *b, double *y, int n)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
		double f = (double)__bfloat162float(a[i]);
		y[i] = f / (1.0 + exp(-f)) * (double)__bfloat162float(b[i]);
	}
}
