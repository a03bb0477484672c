/* Everyone adds to the row. */
extern "C" __global__ void row_sum(const float *x, float *y, int rows, int cols)
{
	__shared__ double total;
	const float *in = x + (long long)blockIdx.x * cols;

	if (threadIdx.x == 0)
		total = 0;
	__syncthreads();
	for (int c = threadIdx.x; c < cols; c += 128)
		total += in[c];
	__syncthreads();
	if (threadIdx.x == 0)
		y[blockIdx.x] = (float)total;
}
