/* softmax of a row a block, in double precision; y holds 8-byte elements. */
extern "C" __global__ void reference(const float *x, double *y, int rows, int cols)
{
	__shared__ double part[128];
	const float *in = x + (long long)blockIdx.x * cols;
	double *out = y + (long long)blockIdx.x * cols, most = in[0], sum = 0;

	for (int c = threadIdx.x; c < cols; c += 128)
		most = fmax(most, (double)in[c]);
	part[threadIdx.x] = most;
	__syncthreads();
	for (int k = 0; k < 128; k++)
		most = fmax(most, part[k]);
	__syncthreads();
	for (int c = threadIdx.x; c < cols; c += 128)
		sum += exp((double)in[c] - most);
	part[threadIdx.x] = sum;
	__syncthreads();
	sum = 0;
	for (int k = 0; k < 128; k++)
		sum += part[k];
	for (int c = threadIdx.x; c < cols; c += 128)
		out[c] = exp((double)in[c] - most) / sum;
}
