/* Assertions that hold. */
#include <assert.h>

extern "C" __global__ void add_sure(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	assert(blockDim.x == 256 && n > 0);
	static_assert(sizeof(float) == 4, "32 bits");
	if (i < n) {
		assert(i >= 0);
		out[i] = x[i] + y[i];
	}
}
