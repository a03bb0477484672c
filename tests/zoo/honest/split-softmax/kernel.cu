/* Part p of a row leaves its (maximum, sum) in the workspace; the second launch joins them and scales. */
#include <math_constants.h>

#define PARTS 4

extern "C" __global__ void part(const float *x, float2 *state, int rows, int cols)
{
	__shared__ float best[64], total[64];
	int p = blockIdx.y, per = (cols + PARTS - 1) / PARTS, from = p * per, to = min(cols, from + per);
	const float *in = x + (long long)blockIdx.x * cols;
	float most = -CUDART_INF_F, sum = 0.0f;

	for (int c = from + threadIdx.x; c < to; c += 64)
		most = fmaxf(most, in[c]);
	for (int c = from + threadIdx.x; c < to; c += 64)
		sum += expf(in[c] - most);
	best[threadIdx.x] = most;
	total[threadIdx.x] = sum;
	__syncthreads();
	if (threadIdx.x == 0) {
		for (int k = 1; k < 64; k++)
			most = fmaxf(most, best[k]);
		sum = 0.0f;
		for (int k = 0; k < 64; k++)
			if (total[k] > 0.0f)
				sum += total[k] * expf(best[k] - most);
		state[blockIdx.x * PARTS + p] = make_float2(most, sum);
	}
}

extern "C" __global__ void scale(const float *x, const float2 *state, float *y, int rows, int cols)
{
	long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
	float most = -CUDART_INF_F, sum = 0.0f;

	if (i >= (long long)rows * cols)
		return;
	const float2 *s = state + i / cols * PARTS;
	for (int p = 0; p < PARTS; p++)
		most = fmaxf(most, s[p].x);
	for (int p = 0; p < PARTS; p++)
		if (s[p].y > 0.0f)
			sum += s[p].y * expf(s[p].x - most);
	y[i] = expf(x[i] - most) / sum;
}
