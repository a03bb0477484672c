/* softmax in double precision, one block a row; y holds 8-byte elements. */
/* One value of all 256 threads. */
__device__ static double block_max(double v)
{
	__shared__ double part[256];
	__syncthreads(); /* the call before may still be reading */
	part[threadIdx.x] = v;
	__syncthreads();
	for (int half = 128; half > 0; half /= 2) {
		if (threadIdx.x < half)
			part[threadIdx.x] = fmax(part[threadIdx.x], part[threadIdx.x + half]);
		__syncthreads();
	}
	return part[0];
}

/* One value of all 256 threads. */
__device__ static double block_sum(double v)
{
	__shared__ double part[256];
	__syncthreads(); /* the call before may still be reading */
	part[threadIdx.x] = v;
	__syncthreads();
	for (int half = 128; half > 0; half /= 2) {
		if (threadIdx.x < half)
			part[threadIdx.x] = part[threadIdx.x] + part[threadIdx.x + half];
		__syncthreads();
	}
	return part[0];
}

extern "C" __global__ void reference(const float *x, double *y, int cols)
{
	const float *in = x + (long long)blockIdx.x * cols;
	double *out = y + (long long)blockIdx.x * cols;
	double max = (double)in[0], sum = 0.0;

	for (int c = threadIdx.x; c < cols; c += 256)
		max = fmax(max, (double)in[c]);
	max = block_max(max);
	for (int c = threadIdx.x; c < cols; c += 256) {
		out[c] = exp((double)in[c] - max);
		sum += out[c];
	}
	sum = block_sum(sum);
	for (int c = threadIdx.x; c < cols; c += 256)
		out[c] /= sum;
}
