/* sum of each row, a block a row, in double precision; y holds 8-byte elements. */
extern "C" __global__ void reference(const float *x, double *y, int rows, int cols)
{
	__shared__ double part[128];
	const float *in = x + (long long)blockIdx.x * cols;
	double sum = 0;

	for (int c = threadIdx.x; c < cols; c += 128)
		sum += (double)in[c];
	part[threadIdx.x] = sum;
	__syncthreads();
	if (threadIdx.x == 0) {
		for (int k = 1; k < 128; k++)
			sum += part[k];
		y[blockIdx.x] = sum;
	}
}
