/* The same in double precision. */
extern "C" __global__ void k(const float *x, const float *y, double *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = (double)x[i] + ((double)y[i] - (double)y[i]);
}
