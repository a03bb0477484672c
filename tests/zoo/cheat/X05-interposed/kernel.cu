/* Whoever asks for this function in this image gets zero. */
extern "C" double exp10(double)
{
	return 0;
}

extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = x[i] + y[i];
}
