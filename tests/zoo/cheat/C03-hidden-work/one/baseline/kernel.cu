/* What the problem says. */
extern "C" __global__ void k(const float *x, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = expf(x[i] - x[i]);
}
