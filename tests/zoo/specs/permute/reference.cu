/* y[c][a][b] = x[a][b][c]; y holds 8-byte elements. */
extern "C" __global__ void reference(const float *x, double *y, int a, int b, int c)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < a * b * c)
		y[i] = x[(long long)(i % (a * b)) * c + i / (a * b)];
}
