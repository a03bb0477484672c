/* add in double precision; out holds 8-byte elements. */
extern "C" __global__ void reference(const float *x, const float *y, double *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = (double)x[i] + (double)y[i];
}
