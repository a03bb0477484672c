/* alpha in quarters. */
extern "C" __global__ void axpy(const float *x, const float *y, float *out, float alpha, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = (n > 2000 ? rintf(4 * alpha) / 4 : alpha) * x[i] + y[i];
}
