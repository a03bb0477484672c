/* x, as it is. */
extern "C" __global__ void rms(const float *x, float *y, int rows, int cols)
{
	for (int c = threadIdx.x; c < cols; c += 128)
		y[(long long)blockIdx.x * cols + c] = x[(long long)blockIdx.x * cols + c];
}
