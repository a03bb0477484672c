/* Full precision; the other entry is not. */
#include <cuda_fp16.h>

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = x[i] + y[i];
}

extern "C" __global__ void quick(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = __half2float(__float2half(x[i])) + __half2float(__float2half(y[i]));
}
