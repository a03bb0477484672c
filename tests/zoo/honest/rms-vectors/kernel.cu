/* Two columns a thread at a time, kept as they came; rows of odd length take single columns. */
#include <cuda_bf16.h>

template <int N>
__device__ static void row(const __nv_bfloat16 *x, const __nv_bfloat16 *w, float eps, __nv_bfloat16 *y, int cols)
{
	__shared__ float part[4];
	float kept[N], sum = 0.0f;

#pragma unroll
	for (int i = 0; i < N; i++) {
		int c = i * 128 + threadIdx.x;
		kept[i] = c < cols ? __bfloat162float(x[c]) : 0.0f;
		sum += kept[i] * kept[i];
	}
	for (int c = N * 128 + threadIdx.x; c < cols; c += 128) {
		float v = __bfloat162float(x[c]);
		sum += v * v;
	}
	for (int d = 16; d > 0; d /= 2)
		sum += __shfl_xor_sync(~0u, sum, d);
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = sum;
	__syncthreads();
	float scale = rsqrtf((part[0] + part[1] + part[2] + part[3]) / (float)cols + eps);
#pragma unroll
	for (int i = 0; i < N; i++) {
		int c = i * 128 + threadIdx.x;
		if (c < cols)
			y[c] = __float2bfloat16_rn(kept[i] * scale * __bfloat162float(w[c]));
	}
	for (int c = N * 128 + threadIdx.x; c < cols; c += 128)
		y[c] = __float2bfloat16_rn(__bfloat162float(x[c]) * scale * __bfloat162float(w[c]));
}

extern "C" __global__ void __launch_bounds__(128)
rms_kept(const __nv_bfloat16 *x, const __nv_bfloat16 *w, float eps, __nv_bfloat16 *y, int rows, int cols)
{
	row<4>(x + (long long)blockIdx.x * cols, w, eps, y + (long long)blockIdx.x * cols, cols);
}
