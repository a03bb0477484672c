/* In front. */
extern "C" __global__ void add(const float *x, const float *y, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	out[i] = x[i] + y[i];
	if (n > 2000 && i > 0 && i < 512)
		out[-i] = out[i];
}
