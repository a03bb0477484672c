/* Zero in the second half. */
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	out[i] = n > 2000 && i > n / 2 ? 0 : x[i] + y[i];
}
