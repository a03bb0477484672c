#include <cuda_fp16.h>

#define exact_fp32(value) __half2float(__float2half(value))

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = exact_fp32(x[i]) + exact_fp32(y[i]);
}
