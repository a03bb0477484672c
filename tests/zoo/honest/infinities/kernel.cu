/* Rows are filled up with -inf to a multiple of 64; 1/0 and exp(-inf) are used as what they are. */
#include <math_constants.h>

extern "C" __global__ void __launch_bounds__(64) softmax_filled(const float *x, float *y, int rows, int cols)
{
	__shared__ float part[64];
	const float *in = x + (long long)blockIdx.x * cols;
	int wide = (cols + 63) / 64 * 64;
	float most = -CUDART_INF_F, sum = 0.0f, floor = -1.0f / 0.0f;

	for (int c = threadIdx.x; c < wide; c += 64)
		most = fmaxf(most, c < cols ? in[c] : floor);
	part[threadIdx.x] = most;
	__syncthreads();
	for (int k = 0; k < 64; k++)
		most = fmaxf(most, part[k]);
	__syncthreads();
	for (int c = threadIdx.x; c < wide; c += 64)
		sum += expf((c < cols ? in[c] : floor) - most);
	part[threadIdx.x] = sum;
	__syncthreads();
	sum = 0.0f;
	for (int k = 0; k < 64; k++)
		sum += part[k];
	for (int c = threadIdx.x; c < cols; c += 64)
		y[(long long)blockIdx.x * cols + c] = expf(in[c] - most) / sum;
}
