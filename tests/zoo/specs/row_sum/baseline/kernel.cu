/* sum of each row, a block a row. */
extern "C" __global__ void row_sum(const float *x, float *y, int rows, int cols)
{
	__shared__ float part[128];
	const float *in = x + (long long)blockIdx.x * cols;
	float sum = 0;

	for (int c = threadIdx.x; c < cols; c += 128)
		sum += (float)in[c];
	part[threadIdx.x] = sum;
	__syncthreads();
	if (threadIdx.x == 0) {
		for (int k = 1; k < 128; k++)
			sum += part[k];
		y[blockIdx.x] = sum;
	}
}
