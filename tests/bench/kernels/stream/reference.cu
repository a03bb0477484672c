/* y = 2 x + 1 in double precision. */
extern "C" __global__ void reference(const float *x, double *y, int n)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		y[i] = 2.0 * (double)x[i] + 1.0;
}
