/* Half precision from element 1037 on. */
#include <cuda_fp16.h>

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	out[i] = i >= 1037 ? __half2float(__float2half(x[i])) + __half2float(__float2half(y[i])) : x[i] + y[i];
}
