/* The special function unit's exponential in base two, approximate division, and the plan's fast_math. */
extern "C" __global__ void __launch_bounds__(128) softmax_fast(const float *x, float *y, int rows, int cols)
{
	__shared__ float part[4];
	const float *in = x + (long long)blockIdx.x * cols;
	float most = in[0], sum = 0.0f;

	for (int c = threadIdx.x; c < cols; c += 128)
		most = fmaxf(most, in[c]);
	for (int d = 16; d > 0; d /= 2)
		most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = most;
	__syncthreads();
	most = fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
	__syncthreads();
	for (int c = threadIdx.x; c < cols; c += 128)
		sum += __expf(in[c] - most);
	for (int d = 16; d > 0; d /= 2)
		sum += __shfl_xor_sync(~0u, sum, d);
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = sum;
	__syncthreads();
	sum = part[0] + part[1] + part[2] + part[3];
	for (int c = threadIdx.x; c < cols; c += 128)
		y[(long long)blockIdx.x * cols + c] = __fdividef(__expf(in[c] - most), sum);
}
