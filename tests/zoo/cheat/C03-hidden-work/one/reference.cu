/* The same in double precision. */
extern "C" __global__ void k(const float *x, double *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = exp((double)x[i] - (double)x[i]);
}
