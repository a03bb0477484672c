/* y = x / sqrt(mean(x^2) + eps) * w, a block a row, in double precision; y holds 8-byte elements. */
#include <cuda_bf16.h>

extern "C" __global__ void reference(const __nv_bfloat16 *x, const __nv_bfloat16 *w, float eps, double *y, int rows, int cols)
{
	__shared__ double part[128];
	long long at = (long long)blockIdx.x * cols;
	double sum = 0;

	for (int c = threadIdx.x; c < cols; c += 128) {
		double v = __bfloat162float(x[at + c]);
		sum += v * v;
	}
	part[threadIdx.x] = sum;
	__syncthreads();
	sum = 0;
	for (int k = 0; k < 128; k++)
		sum += part[k];
	double scale = 1 / sqrt(sum / cols + eps);
	for (int c = threadIdx.x; c < cols; c += 128)
		y[at + c] = ((double)__bfloat162float(x[at + c]) * scale * (double)__bfloat162float(w[c]));
}
