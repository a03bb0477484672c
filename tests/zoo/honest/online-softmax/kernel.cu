/* A warp a row. Each lane keeps (maximum, sum) of what it has seen; a larger maximum rescales the sum. */
#include <math_constants.h>

extern "C" __global__ void __launch_bounds__(128) softmax_online(const float *x, float *y, int rows, int cols)
{
	int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
	float most = -CUDART_INF_F, sum = 0.0f;

	if (row >= rows)
		return;
	const float *in = x + (long long)row * cols;
	for (int c = lane; c < cols; c += 32) {
		float v = in[c], next = fmaxf(most, v);
		sum = sum * expf(most - next) + expf(v - next);
		most = next;
	}
	for (int d = 16; d > 0; d /= 2) {
		float m = __shfl_xor_sync(~0u, most, d), s = __shfl_xor_sync(~0u, sum, d), next = fmaxf(most, m);
		sum = (most == next ? sum : sum * expf(most - next)) + (m == next ? s : s * expf(m - next));
		most = next;
	}
	for (int c = lane; c < cols; c += 32)
		y[(long long)row * cols + c] = expf(in[c] - most) / sum;
}
