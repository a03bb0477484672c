/* Each thread halves its part again and again, down to 8 numbers; then the block halves. */
template <int LEVEL> __device__ float halves(const float *x, int n, int step)
{
	if constexpr (LEVEL > 0) {
		if (n > 8) {
			int half = n / 2;
			return halves<LEVEL - 1>(x, half, step) + halves<LEVEL - 1>(x + (long long)half * step, n - half, step);
		}
	}
	float sum = 0.0f;
	for (int i = 0; i < n; i++)
		sum += x[(long long)i * step];
	return sum;
}

extern "C" __global__ void __launch_bounds__(128) sum_pairs(const float *x, float *y, int rows, int cols)
{
	__shared__ float part[128];
	int me = threadIdx.x;

	part[me] = halves<4>(x + (long long)blockIdx.x * cols + me, me < cols ? (cols - me + 127) / 128 : 0, 128);
	for (int half = 64; half > 0; half /= 2) {
		__syncthreads();
		if (me < half)
			part[me] += part[me + half];
	}
	if (me == 0)
		y[blockIdx.x] = part[0];
}
