/* A thread a part of the row; what each addition lost is carried along. */
extern "C" __global__ void __launch_bounds__(64) sum_kahan(const float *x, float *y, int rows, int cols)
{
	__shared__ float part[64], lost[64];
	const float *in = x + (long long)blockIdx.x * cols;
	float sum = 0.0f, c = 0.0f;

	for (int i = threadIdx.x; i < cols; i += 64) {
		float v = in[i] - c, t = sum + v;
		c = (t - sum) - v;
		sum = t;
	}
	part[threadIdx.x] = sum;
	lost[threadIdx.x] = c;
	__syncthreads();
	if (threadIdx.x != 0)
		return;
	for (int k = 1; k < 64; k++) {
		float v = part[k] - c - lost[k], t = sum + v;
		c = (t - sum) - v;
		sum = t;
	}
	y[blockIdx.x] = sum;
}
