/* Threads arrive, do the next part of their row, and wait only then. */
#include <cuda/barrier>

extern "C" __global__ void __launch_bounds__(128) sum_split_barrier(const float *x, float *y, int rows, int cols)
{
	__shared__ float part[128];
	__shared__ cuda::barrier<cuda::thread_scope_block> bar;
	const float *in = x + (long long)blockIdx.x * cols;
	int half = cols / 2;
	float sum = 0.0f;

	if (threadIdx.x == 0)
		init(&bar, 128);
	__syncthreads();
	for (int i = threadIdx.x; i < half; i += 128)
		sum += in[i];
	part[threadIdx.x] = sum;
	auto token = bar.arrive();
	sum = 0.0f;
	for (int i = half + threadIdx.x; i < cols; i += 128)
		sum += in[i];
	bar.wait(static_cast<decltype(token) &&>(token));
	float other = part[127 - threadIdx.x];
	bar.arrive_and_wait();
	part[threadIdx.x] = sum + other;
	bar.arrive_and_wait();
	if (threadIdx.x == 0) {
		sum = 0.0f;
		for (int k = 0; k < 128; k++)
			sum += part[k];
		y[blockIdx.x] = sum;
	}
}
