/* softmax of a row a block, two reads. */
extern "C" __global__ void softmax_rows(const float *x, float *y, int rows, int cols)
{
	__shared__ float part[128];
	const float *in = x + (long long)blockIdx.x * cols;
	float *out = y + (long long)blockIdx.x * cols, most = in[0], sum = 0;

	for (int c = threadIdx.x; c < cols; c += 128)
		most = fmaxf(most, (float)in[c]);
	part[threadIdx.x] = most;
	__syncthreads();
	for (int k = 0; k < 128; k++)
		most = fmaxf(most, part[k]);
	__syncthreads();
	for (int c = threadIdx.x; c < cols; c += 128)
		sum += expf((float)in[c] - most);
	part[threadIdx.x] = sum;
	__syncthreads();
	sum = 0;
	for (int k = 0; k < 128; k++)
		sum += part[k];
	for (int c = threadIdx.x; c < cols; c += 128)
		out[c] = expf((float)in[c] - most) / sum;
}
