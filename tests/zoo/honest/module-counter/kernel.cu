/* As the textbooks have it: four blocks a row, the last to finish adds up, counters are global variables. */
__device__ unsigned finished[512];
__device__ float partial[2048];

__device__ static float block_sum(const float *x, int from, int to)
{
	__shared__ float part[64];
	float sum = 0.0f;

	for (int i = from + threadIdx.x; i < to; i += 64)
		sum += x[i];
	part[threadIdx.x] = sum;
	__syncthreads();
	for (int k = 1; k < 64 && threadIdx.x == 0; k++)
		sum += part[k];
	return sum;
}

extern "C" __global__ void __launch_bounds__(64) sum_counted(const float *x, float *y, int rows, int cols)
{
	int row = blockIdx.x / 4, q = blockIdx.x % 4, per = (cols + 3) / 4, from = q * per;
	float sum = block_sum(x + (long long)row * cols, from, min(cols, from + per));

	if (threadIdx.x != 0)
		return;
	partial[blockIdx.x] = sum;
	__threadfence();
	if (atomicInc(&finished[row], 3u) == 3u) {
		volatile float *p = partial + row * 4;
		y[row] = p[0] + p[1] + p[2] + p[3];
	}
}

extern "C" __global__ void __launch_bounds__(64) sum_plain(const float *x, float *y, int rows, int cols)
{
	float sum = block_sum(x + (long long)blockIdx.x * cols, 0, cols);

	if (threadIdx.x == 0)
		y[blockIdx.x] = sum;
}
