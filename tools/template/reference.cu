/* @NAME@ in double precision; float outputs hold 8-byte elements. */
extern "C" __global__ void reference(const float *x, const float *y, double *out, float alpha, int n)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		out[i] = (double)alpha * (double)x[i] + (double)y[i];
}
