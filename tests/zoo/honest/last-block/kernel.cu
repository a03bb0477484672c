/* Four blocks a row. Whoever counts to three is last and adds the parts, always in the same order. */
extern "C" __global__ void __launch_bounds__(64)
sum_last(const float *x, float *y, float *parts, unsigned *done, int rows, int cols)
{
	__shared__ float part[64];
	__shared__ bool last;
	int row = blockIdx.x / 4, q = blockIdx.x % 4, per = (cols + 3) / 4, from = q * per, to = min(cols, from + per);
	float sum = 0.0f;

	for (int i = from + threadIdx.x; i < to; i += 64)
		sum += x[(long long)row * cols + i];
	part[threadIdx.x] = sum;
	__syncthreads();
	if (threadIdx.x == 0) {
		for (int k = 1; k < 64; k++)
			sum += part[k];
		parts[blockIdx.x] = sum;
		__threadfence();
		last = atomicAdd(&done[row], 1u) == 3;
	}
	__syncthreads();
	if (last && threadIdx.x == 0) {
		volatile float *p = parts + row * 4;
		__threadfence();
		y[row] = p[0] + p[1] + p[2] + p[3];
	}
}
