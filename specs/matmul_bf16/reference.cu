/* matmul_bf16 in double precision; c holds 8-byte elements. */
#include <cuda_bf16.h>

extern "C" __global__ void reference(const __nv_bfloat16 *a, const __nv_bfloat16 *b, double *c, int m, int n, int k)
{
	for (int r = blockIdx.x * blockDim.x + threadIdx.x; r < m; r += gridDim.x * blockDim.x) {
		double *out = c + (long long)r * n;
		for (int s = 0; s < n; s++)
			out[s] = 0.0;
		for (int q = 0; q < k; q++) {
			double f = (double)__bfloat162float(a[(long long)r * k + q]);
			for (int s = 0; s < n; s++)
				out[s] += f * (double)__bfloat162float(b[(long long)q * n + s]);
		}
	}
}
