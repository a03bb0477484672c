/* Units of 2^-30: additions are exact, so that atomics may come in any order. Good for sums up to 2^33. */
extern "C" __global__ void add_units(const float *x, unsigned long long *sums, int rows, int cols)
{
	long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;

	if (i < (long long)rows * cols)
		atomicAdd(&sums[i / cols], (unsigned long long)llrint((double)x[i] * 1073741824.0));
}

extern "C" __global__ void to_float(const unsigned long long *sums, float *y, int rows)
{
	int r = blockIdx.x * blockDim.x + threadIdx.x;

	if (r < rows)
		y[r] = (float)((double)(long long)sums[r] * (1.0 / 1073741824.0));
}
