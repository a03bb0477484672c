/* y = x / sqrt(mean(x^2) + eps) * w, a block a row. */
#include <cuda_bf16.h>

extern "C" __global__ void rms16(const __nv_bfloat16 *x, const __nv_bfloat16 *w, float eps, __nv_bfloat16 *y, int rows, int cols)
{
	__shared__ float part[128];
	long long at = (long long)blockIdx.x * cols;
	float sum = 0;

	for (int c = threadIdx.x; c < cols; c += 128) {
		float v = __bfloat162float(x[at + c]);
		sum += v * v;
	}
	part[threadIdx.x] = sum;
	__syncthreads();
	sum = 0;
	for (int k = 0; k < 128; k++)
		sum += part[k];
	float scale = 1 / sqrtf(sum / cols + eps);
	for (int c = threadIdx.x; c < cols; c += 128)
		y[at + c] = __float2bfloat16((float)__bfloat162float(x[at + c]) * scale * (float)__bfloat162float(w[c]));
}
